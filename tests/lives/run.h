/* One "rlock run": what its command line says, and what has happened to it. */
#pragma once

#include "lives/kernel.h"
#include "run/supervisor.h"

#define RUNS       4 /* and a script, and one in that */
#define KEYS       3
#define OWNER_ROOM 120 /* three levels */

/* From a time of the world's on, before another one. */
struct span {
    int64_t from, until;
};

/* Calls that others notice; HEARD: a message was received. Most faults aim at the first DEEDS_MOST
 * kinds. */
enum deed {
    DEED_MESSAGE,
    DEED_REQUEST,
    DEED_SIGNAL,
    DEED_BIRTH,
    DEED_HEARD,
    DEEDS_MOST,
    DEED_TERMINAL = DEEDS_MOST, /* it is given to another group */
    DEEDS
};

struct run {
    int number;
    /* Chosen. */
    const char *keys[KEYS];
    size_t key_count;
    size_t take; /* --any: one of them; 0: all */
    enum lock_mode mode;
    unsigned limit;
    struct run *outer, *inner; /* the command of "outer" is this run; NULL: none */
    char owner[OWNER_ROOM], who[120];
    int priority;
    int64_t bound;     /* the setting priority-bound */
    const char *group; /* --latest; NULL: not */
    bool replace;
    int64_t unless_done;
    /* An administrator pauses its first key then, for so long, and resumes it; 0: not. */
    int64_t pauses_after, pause_lasts, resumes_after;
    int64_t starts; /* when */
    int64_t waits;  /* -w; NEVER: for ever */
    int64_t lease, kill_after, at_most, at_least;
    bool fixed;      /* --no-renew */
    bool goes_on;    /* --on-lost continue, or a signal */
    int lost_signal; /* that one; 0 */
    bool has_stop, wait_descendants, notifies, cgroup;
    int64_t notify_after, notice_runs; /* the command of --notify takes so long */
    struct program program;            /* its command */
    enum { PLACE_NOWHERE, PLACE_SHELL, PLACE_ALONE, PLACE_LEFT } place; /* shell.h */
    bool output_is_terminal;
    bool in_background; /* the shell continues it there first */
    int64_t away;       /* ns, for which the shell leaves it stopped */
    int64_t stop_runs;  /* the command of --stop */

    bool is_script; /* script.h */

    /* Happened. */
    struct proc *supervisor, *command;
    struct tty *tty;
    struct supervisor_outcome outcome;
    bool ended; /* the supervisor, by itself */
    bool command_alive;
    int command_status;
    unsigned starts_seen, stops_seen; /* of the command, of --stop */
    struct proc *stopper;             /* the latest of --stop; NULL: none */
    int64_t stop_began, stop_left;    /* of that: when, and for how long it was told that it has */
    int64_t stop_due;                 /* when it is killed */
    bool stop_held;                   /* its run had the lock then */
    unsigned signals_seen;            /* of --on-lost, to its command */
    bool signal_seen;                 /* the same, to any of its processes */
    unsigned granted_stopped;         /* how often, since its supervisor is stopped */
    bool ended_held;                  /* its command ended while the lock was held */
    int64_t command_ended;            /* when */
    bool ended_unseen;                /* its supervisor was stopped then */
    bool ended_lost;                  /* and the user had been told before that it was lost */
    unsigned interrupts_seen;         /* by its command */
    unsigned notices_seen;            /* a bit for each of enum notice_event */
    int64_t termed_at;                /* its command, by rlock; 0: not */
    int64_t rests_since;              /* its command is stopped, and its supervisor is not; 0 */
    const char *held[KEYS];           /* those that its command has */
    size_t held_count;
    uint64_t fences[KEYS];
    int64_t granted_at; /* the world's time: it has become a holder first; 0: it has not */
    int64_t held_since; /* the same, last */
    int64_t lease_end;  /* as its supervisor has heard last, since it is a holder */
    int64_t ended_at;
    int64_t supervisor_died; /* while its command lived; 0: not */
    /* Told to the user. */
    bool hung_up; /* its command needs the terminal */
    bool loss_told, stop_told, unreleased_told, survivors_told;
    bool unnotified_told; /* a command of --notify cannot be started */
    bool agent_left;      /* an agent has ended by itself before its supervisor */
    bool agent_missed;    /* that one has died */
    bool agent_unstarted; /* and that another one could not be started */
    bool continues_told;  /* that it is lost, and the command, which is alive, continues */

    /* Done to it. */
    bool faulted;        /* one of its processes was stopped, killed or suspended */
    bool killed;         /* its supervisor was */
    bool killed_at_work; /* the same, while its command lived */
    bool agent_faulted, agent_stopped, supervisor_stopped, suspended, signalled;
    unsigned agents_killed;
    bool paused;         /* Ctrl-Z */
    bool lacking;        /* calls of its guards were refused (shortage.c) */
    int64_t blind_until; /* its host could not read /proc, for want of descriptors or memory */
    unsigned interrupts; /* Ctrl-C, or the same by a signal */
    bool forced;         /* somebody has asked for its lock, or taken it */
    struct span taken;   /* its lock was taken away, and its command may run on then */
    struct span thinned; /* it may have no majority then */
    int64_t forgotten;   /* the server has lost its lock then; 0: it has not */
    bool asked;          /* its first request was sent */
    unsigned requests, grants, changes; /* the latter of the states of its guards */
    int64_t requested_at;               /* the latest of them was sent */
    int64_t served_at;                  /* a server has read something of it last */
    unsigned calls[2];                  /* system calls of its supervisor and its agents */
    unsigned deeds[2][DEEDS];           /* of these, of each kind */
    int64_t stopped_since;              /* its supervisor is; 0: it is not */
    /* When neither of its guards ran last. */
    bool unguarded;
    int64_t last_unguarded;
};

extern struct run runs[RUNS + 2];
extern int run_count;

int run_number(const struct run *run);
/* NULL: it is none of theirs. */
struct run *run_of_owner(const char *owner);
/* Chooses a command line. flavour: 0 exclusive, 1 readers and writers, 2 a semaphore, 3 several
 * KEYs. */
void run_choose(struct run *run, int number, int flavour);
/* The same for a run that nests in a script. */
void run_choose_in(struct run *script, struct run *run, int number);
/* In half of the lives, many of those that are chosen get options that few have otherwise. */
void run_choose_more(void);
/* Starts it: an event. The one that nests in another is that one's to start. */
void run_begin(void *run);
/* The program of the supervisor of a run. */
int run_supervise(const void *run);
/* Whether it is that run, or nests in it. */
bool run_is_in(const struct run *run, const struct run *outer);
/* Whether they are on the same host. */
bool run_is_beside(const struct run *run, const struct run *other);
void run_describe(const struct run *run);
/* Reads the servers' addresses; once, before all lives. */
void run_load(void);
struct keeper_plan run_keeper_plan(const struct run *run);
/* Notes what the program under test says to the user. */
struct run_events run_events(struct run *run);
/* The address of the server that runs ask. */
struct store_address run_address(void);
/* The process of a run that guards it; NULL: there is none now. kind: SUPERVISOR or AGENT. */
struct proc *run_guard(const struct run *run, enum kind kind);
