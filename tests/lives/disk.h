/* One file on a disk, which processes read, write, lock and replace: open(2), flock(2), pread(2).
 */
#pragma once

#include "lives/files.h"

#define DISK_PATH "/disk/file"

struct inode {
    int number; /* 0: the first one that there was at the path */
    char text[80];
    size_t size;
    const struct file *locked; /* by that open file; NULL: it is not */
    const struct proc *locker; /* it has called flock(2) last */
    int64_t locked_at;
    int64_t before; /* the number in it then */
    int64_t left;   /* the path leads elsewhere since then; NEVER: it leads here */
};

/* There is no file, and there is room. */
void disk_begin(void);
int disk_open(int flags);
/* As "cp PATH new; mv new PATH"; nothing if there is no file. */
void disk_replace(void);
/* No file becomes longer than it is. */
void disk_fill(bool full);
/* An open file of the disk is closed: all descriptors of it are. */
void disk_close(const struct file *file);
/* A wait for the lock is over (POLLIN). */
int disk_events(const struct file *file);
/* The inode of the file of the disk that a process has open; NULL: it has none. */
struct inode *disk_of(const struct proc *process);
