/* A kernel, as far as rlock sees one: processes, their signals, stops and deaths. A process that
 * runs the program under test is a coroutine, which may be preempted, stopped or killed before each
 * of its system calls (calls.c). All other processes are actors: they do nothing but run for a
 * time, answer signals, and have a child.  Its contract with Linux is that of the man pages of
 * these calls; nothing else may be relied on. */
#pragma once

#include <poll.h>
#include <sys/types.h>

#include "lives/world.h"

struct run;    /* of the program under test: all its processes belong to it (run.h) */
struct errand; /* the same of another command than "rlock run" (errand.h) */
struct file;   /* files.h */
struct tty;    /* tty.h */

#define DESCRIPTORS 40
#define CALLS_KEPT  16

enum kind {
    SUPERVISOR,
    AGENT,
    CHILD,
    COMMAND,
    DESCENDANT,
    STOPPER,
    ADMIN,
    SERVER,
    SHELL,
    NOTIFIER,
    NOTICE,
    SCRIPT,
    LATCH,
    FENCE,
    GUARD,   /* of a fence */
    STRANGER /* started by others */
};

/* The reason for which a coroutine waits. */
enum wait { WAIT_TURN, WAIT_POLL, WAIT_SLEEP, WAIT_SIGNAL, WAIT_VFORK, WAIT_SPAWN };

/* The program of an actor. */
struct program {
    int64_t runs; /* ns */
    int status;
    enum { DIES_OF_TERM, CLEANS_UP, IGNORES_TERM } on_term; /* and on INT */
    int64_t cleans; /* for so long, before it ends with 143 */
    enum { NO_CHILD, CHILD_IN_GROUP, CHILD_IN_SESSION } child;
    int64_t child_at, child_runs;
    bool child_ignores_term;
    int64_t reads_at; /* ns; NEVER or 0: it does not need a terminal */
};

/* The registers at a vfork(), at which its caller continues once more. */
struct registers {
    uint64_t saved[8];
};

struct proc {
    int pid, parent, group, session;
    enum kind kind;
    struct run *run;
    struct errand *errand;
    char name[16];
    int64_t born;
    uint64_t started;  /* clock ticks, as /proc shows it */
    int cgroup;        /* cgroups.c */
    bool hidden;       /* from /proc, though not as a child: hidepid= (proc(5)) */
    char *environment; /* as /proc shows it */
    size_t environment_size;
    struct file *files[DESCRIPTORS]; /* from 3 on; 1: its standard output, if that is a pipe */
    struct tty *output;              /* its standard output; NULL: no terminal */

    /* One of these leads to the next, but for FROZEN, which is its host's. */
    enum { ALIVE, DYING /* of a KILL */, EXITING /* its files are closed */, ZOMBIE, REAPED } life;
    bool frozen;                /* with its host */
    int64_t frozen_for;         /* all in all */
    unsigned calls_awake;       /* of a coroutine: since then or a stop, behind the one under way */
    int64_t called[CALLS_KEPT]; /* of a coroutine: the latest calls, in turn */
    unsigned calls;
    bool stopped, stop_untold, continue_untold;
    int stop_signal;
    int status; /* as waitpid() tells it; of an actor: what it will end with */
    bool ended_by_rlock;
    uint64_t pending, blocked; /* sets of signals */
    int death_signal;
    bool doomed; /* it gets that at the end of this call: its parent died amid it */
    bool subreaper;

    /* A coroutine has these. */
    bool is_coroutine;
    void *stack_pointer;
    enum wait wait;
    struct pollfd *polled;
    unsigned polled_count;
    uint64_t awaited;    /* signals */
    int64_t until;       /* it waits no longer */
    int64_t latency;     /* it continues so long after its reason */
    int64_t ready_since; /* NEVER: not */
    bool interrupted;    /* it was continued while it waited */
    int64_t alarm;       /* of setitimer(), and after how long again; 0: none */
    int64_t alarm_again;
    int64_t turn; /* WAIT_TURN: it continues then */
    struct registers vfork;
    char *stack_end; /* of the stack, which is its parent's where it was born by fork() */
    struct image {
        char *bytes; /* of that stack, while another process runs on it; NULL: it does itself */
        size_t size;
    } image;
    struct proc *vfork_parent; /* it runs on that one's stack */
    int *shares;               /* cleared when it has left its parent's memory (os/spawn.h) */
    struct proc *vforked;      /* of the parent: it continues behind the vfork() of that child */
    int (*work)(const void *arg);
    const void *arg;
    bool has_reserve;   /* of descriptors, while it looks at /proc */
    const void *inside; /* of a guard: its own struct (states.h) */

    /* An actor has these. */
    struct program program;
    int64_t finishes;            /* it has done by then all that it does */
    unsigned timer;              /* the number of the valid one */
    bool is_due;                 /* it ends when it can: it was stopped or frozen at that time */
    void (*acts)(void *process); /* when it has caught a signal, or a child changes; NULL: not */
    uint64_t caught;
};

#define PROCESSES 2048

extern struct kernel {
    struct proc *processes[PROCESSES];
    int process_count;
    struct proc *current;
    bool from_outside; /* a fault strikes now, which is not the doing of the current process */
    int next_pid;
    /* The circumstances of this life. */
    int load;           /* 0 to 3: how late processes continue */
    int64_t kill_takes; /* ns, at most */
    bool slow_exec;     /* a file system takes its time to execute a program */
    /* The errors with which a sandbox, or an older kernel, refuses calls (os/kernel.h); 0: not. */
    int no_pidfd, no_pidfd_signal, no_fork_into;
    bool signals_groups; /* by a pidfd: Linux 6.9 */
    /* So many of 100 numbers that are free again are given anew soon: as many processes have been
     * born meanwhile as there are numbers. */
    unsigned reuses_of_100;
    int strangers; /* that have got one */
    enum {
        PROC_WHOLE,
        PROC_HIDES,       /* some processes: hidepid= */
        PROC_NO_CHILDREN, /* a kernel without CONFIG_PROC_CHILDREN */
        PROC_PROCESSES,   /* no sys/kernel/ns_last_pid: subset=pid */
        PROC_NONE         /* it is not mounted */
    } proc;
    unsigned interrupts_of_1000; /* calls that wait: that often they are interrupted */
    unsigned long calls, switches;
} kernel;

/* Ends all processes of the life before. */
void kernel_begin(void);
/* Has coroutines run and things happen until none is left, or until that time. */
void kernel_run(int64_t until);

/* -- processes --------------------------------------------------------------------------------- */

struct proc *process_new(enum kind kind, int parent, struct run *run);
/* A child that was born by fork(): its stack is where its parent's is. */
void kernel_share_stack(struct proc *child);
/* The process runs "work", and ends with its result. */
void process_start(struct proc *process, int (*work)(const void *arg), const void *arg);
/* The one that is not reaped yet; NULL: none. */
struct proc *process_find(int pid);
bool process_exists(const struct proc *process);  /* it is not a zombie */
bool process_can_run(const struct proc *process); /* nor stopped, frozen, or about to end */
/* The process ends with that status, as waitpid() tells it. Does not return to itself. */
void process_end(struct proc *process, int status);
/* The process was waited for: its number is free. */
void process_reap(struct proc *process);
/* As /proc shows it. */
void process_inherit_environment(struct proc *child, const struct proc *parent);
/* The current process executes a program; does not return. */
__attribute__((noreturn)) void process_execute(char *const *argv, char *const *environment);
/* The current process, behind a fork(), ends by itself when its last call is over; does not return.
 */
__attribute__((noreturn)) void process_finish(int status);
void process_freeze(struct proc *process, int64_t ns);
void process_thaw(struct proc *process);

/* -- signals and waiting ----------------------------------------------------------------------- */

void signal_send(struct proc *process, int signo);
/* The current process acts on pending signals that it does not block (any more): it has no handler.
 */
void signal_act(void);
/* To all of a process group. */
void group_signal(int group, int signo);
/* The same, and it is not the doing of the current process. */
void group_signal_by_kernel(int group, int signo);
/* Whether no process could continue what stops of a group (setpgid(2)). */
bool group_is_orphaned(int group);
static inline uint64_t signal_bit(int signo)
{
    return UINT64_C(1) << signo;
}

/* The current process is at a system call: time passes, and it may lose its turn or its life. */
void kernel_call(void);
/* The caller waits for that; returns when it continues. False: the call is interrupted. */
bool kernel_wait(enum wait wait, int64_t until);
/* The caller stops by itself, and tells its parent. Returns when it is continued. */
void kernel_stop(int signo);
/* The caller has lost its turn; returns when it continues. */
void kernel_yield(void);
