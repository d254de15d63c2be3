/* The files of simulated processes: descriptors, and what is behind them. */
#pragma once

#include "lives/kernel.h"

enum file_kind {
    FILE_PAIR,   /* an end of a socket pair that keeps messages apart */
    FILE_SIGNAL, /* a signalfd */
    FILE_TIMER,
    FILE_PROCESS, /* a pidfd */
    FILE_SOCKET,  /* of a connection (network.h) */
    FILE_TEXT,    /* to read */
    FILE_PIPE,    /* an end of a pipe */
    FILE_TTY,     /* /dev/tty */
    FILE_CGROUP,  /* a file to write, or a directory, of a cgroup (cgroups.c) */
    FILE_DISK,    /* of the disk (disk.h) */
    FILE_OUTPUT,  /* a pipe whose reader is not simulated */
    FILE_NOTHING  /* /dev/null */
};

struct message {
    struct message *next;
    size_t size;
    struct file *file; /* that goes with it; NULL: none */
    char bytes[];
};

struct file {
    enum file_kind kind;
    int references;
    /* PAIR, PIPE */
    struct file *peer; /* NULL: closed */
    /* PAIR */
    struct message *first, *last;
    int queued;
    bool reset; /* the peer has closed without reading all */
    /* SIGNAL */
    uint64_t signals;
    /* TIMER; PIPE: when its text can be read */
    int64_t due;
    /* PROCESS */
    struct proc *process;
    /* SOCKET */
    struct connection *connection; /* NULL before connect() */
    /* TTY */
    struct tty *tty;
    /* CGROUP */
    int cgroup;
    bool kills; /* all in it */
    /* DISK */
    struct inode *inode;
    /* OUTPUT */
    enum { OUTPUT_READ, OUTPUT_FULL, OUTPUT_CLOSED } reader;
    /* TEXT, PIPE; OUTPUT: what was written */
    char *text;
    size_t size, at;
};

/* How many messages a socket keeps for a reader. */
#define MESSAGES_MAX 40

struct file *file_new(enum file_kind kind);
/* Gives the current process a descriptor of it. */
int file_open(struct file *file);
/* The file behind a descriptor of the current process; NULL with EBADF: none. */
struct file *file_of(int fd);
/* One that has the file has let go of it. */
void file_drop(struct file *file);
/* Closes a descriptor of the current process; -1 with EBADF. */
int file_close_descriptor(int fd);
void files_close_all(struct proc *process);
/* A child has the same files as its parent, or only one of them. */
void files_inherit(struct proc *child, const struct proc *parent);
void file_inherit(struct proc *child, const struct proc *parent, int fd);

/* As write(2) to such a pipe; -1 with errno. */
ssize_t output_write(struct file *file, const void *bytes, size_t size);

/* The events that poll() reports of it now. */
int file_events(const struct proc *process, const struct pollfd *poll);
/* When a timer behind that descriptor is due; NEVER: there is none. */
int64_t file_due(const struct proc *process, int fd);
