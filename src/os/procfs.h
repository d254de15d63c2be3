/* Processes as /proc shows them (proc(5)). "There is no such process" and "it cannot be read now"
 * are different answers: a process that cannot be read must not be taken for one that has ended. So
 * that descriptors do not run out, procfs_open() keeps as many in reserve as reading takes, each of
 * an open file of its own: the host's may run out as well (ENFILE). */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/clock.h"

struct process {
    pid_t pid;
    pid_t parent;
    pid_t group;
    pid_t session;
    long threads;
    char state;                 /* a letter of proc(5): 'T' and 't' are stopped, 'Z' has ended */
    bool live;                  /* at least one of its threads has not ended */
    char name[16];              /* as ps shows it, cut off */
    unsigned long long started; /* clock ticks since boot: a pid with that time is unique; 0: not
                                 * known */
    int note;                   /* its reader's own: nothing here reads or writes it */
};

/* Some processes; zeroed it is empty. Release with process_list_free(). */
struct process_list {
    struct process *all;
    size_t count;
    size_t room;
};

enum process_look {
    PROCESS_FOUND,
    PROCESS_GONE,   /* or hidden from this user (hidepid), and then nothing that it could signal */
    PROCESS_UNSEEN, /* it cannot be read now, for want of descriptors or memory */
};

#define PROCFS_RESERVE 3 /* to list processes, read one, and signal it takes one each */

struct procfs {
    int directory; /* 0, which is a standard stream: /proc is not used */
    int reserve[PROCFS_RESERVE];
    bool checked; /* procfs_is_usable() has looked */
};

/* Opens /proc. Returns 0, also where there is none; -1 with errno for want of descriptors or
 * memory. To be closed by procfs_close(). */
int procfs_open(struct procfs *procfs);
/* False if /proc is not mounted, or is that of another process name space. Then nothing else may be
 * asked of it. Looks once, and remembers. */
bool procfs_is_usable(struct procfs *procfs);
/* Whether /proc seems to be that of this process's name space: costs less than procfs_is_usable(),
 * but is true as well for another one in which this process has the same number by chance. */
bool procfs_shows_self(const struct procfs *procfs);
/* Closes /proc and the reserve; harmless if that was done. */
void procfs_close(struct procfs *procfs);

/* Before a number of looks: closes the descriptors that were kept in reserve for them. */
void procfs_begin(struct procfs *procfs);
/* After the looks: keeps descriptors in reserve again. */
void procfs_end(struct procfs *procfs);

/* The number that was given last to a process or a thread of this name space: they are given in
 * turn, up to a limit, and then from the lowest that is free. -1 if the kernel does not tell. */
pid_t procfs_last_pid(const struct procfs *procfs);
/* Opens a file of a process: -1 with errno, see process_look_of(). procfs: NULL opens it by its
 * name in /proc, for a caller that has not called procfs_open(), and so has no reserve. */
int procfs_open_file(const struct procfs *procfs, pid_t pid, const char *name);
/* Returns what the errno of opening or reading a process's file means for the process. */
enum process_look process_look_of(int error);
/* Reads what /proc tells of a process into *process, which counts only if it is PROCESS_FOUND.
 * procfs: may be NULL, as for procfs_open_file(). */
enum process_look procfs_read(const struct procfs *procfs, pid_t pid, struct process *process);
/* Reads the same as procfs_read(), but the start, which is 0, and never waits. While a process
 * executes another program, what procfs_read() reads of it is locked, for as long as a file server
 * takes, or as a process of low priority gets no turn. */
enum process_look procfs_read_status(const struct procfs *procfs, pid_t pid,
                                     struct process *process);
/* False for the number of a thread, which can be read like that of a process. */
bool procfs_is_process(const struct procfs *procfs, pid_t pid);
/* Whether the kernel lists the children of a process. */
bool procfs_lists_children(const struct procfs *procfs, pid_t pid);
/* Adds the children of a process; only their pids and their parent are known of them yet. False if
 * some may be lacking. A child that ends meanwhile may hide another one as well. */
bool procfs_add_children(const struct procfs *procfs, const struct process *process,
                         struct process_list *list);
/* Sets *list to all processes, sorted by their pids; false if one could not be read, for want of
 * memory, or if it is not done by "until". */
bool procfs_list(const struct procfs *procfs, struct moment until, struct process_list *list);

/* Adds a copy of the process. False for want of memory. */
bool process_list_append(struct process_list *list, const struct process *process);
/* Sorts the list by pids, as process_list_find() and process_list_has() need it. */
void process_list_sort(struct process_list *list);
/* Returns the process with that pid from a list that is sorted by pids; NULL if it is not there. */
struct process *process_list_find(const struct process_list *list, pid_t pid);
/* Whether the list has the very process, not another one with its pid. */
bool process_list_has(const struct process_list *list, const struct process *process);
void process_list_free(struct process_list *list);
