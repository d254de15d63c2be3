/* The agent's watch over the supervisor: ends the command's tree when the supervisor is dead, or
 * has not acknowledged the present deadline when the command must stop. It is the second of two
 * guards: usually the supervisor ends its command itself, and this one finds nothing left. */
#pragma once

#include "lock/lease.h"
#include "net/loop.h"
#include "os/tree.h"
#include "run/channel.h"
#include "run/deadline.h"
#include "run/stop_command.h"

enum watchdog_phase {
    WATCHDOG_IDLE,     /* no command may be running */
    WATCHDOG_WATCHING, /* one may be; nothing has been done to it */
    WATCHDOG_DELAYING, /* the command of --stop runs; TERM waits for it */
    WATCHDOG_ENDING,   /* the tree was signalled, and is waited for */
    WATCHDOG_ORPHANED, /* the supervisor is dead: the tree is killed at once */
};

struct watchdog {
    struct loop *loop;
    /* NULL: of no command. The supervisor's death ends the tree whatever "on_lost" says. */
    const struct job_plan *plan;
    struct run_shared *shared; /* says which guard has begun to end the command */
    struct tree tree;
    struct loop_timer timer; /* urgent */
    enum watchdog_phase phase;
    struct supervised known;
    struct patience killing_for;      /* since the first KILL */
    struct patience overtime;         /* since the lease's end, while killing */
    bool stopping;                    /* the supervisor was ending the tree when heard last */
    struct stop_command stop_command; /* its plan is the caller's */
    /* Takes the messages of the supervisor, before anything is done to its command. */
    void (*listen)(void *arg);
    /* The supervisor did not answer in time: its command is being ended. Called once a deadline. */
    void (*alarmed)(void *arg);
    /* Nothing is left of the tree. Without "alarmed" before: nothing had to be ended. */
    void (*cleared)(void *arg);
    /* Nothing is left of the tree of a supervisor that keeps the deadline: it tells of it, unless
     * it is stopped. */
    void (*ended)(void *arg);
    /* The lease is over, and some of the tree cannot be killed (TREE_LIVE), or seen (TREE_UNSEEN);
     * TREE_GONE: of its process group, at least, nothing is left, and more cannot be seen here. */
    void (*failed)(void *arg, enum tree_state state);
    void *arg;
};

/* The caller sets the callbacks, the plan's values and the tree before. */
void watchdog_init(struct watchdog *watchdog, struct loop *loop);
/* A command may run from now on, under this lease, which the supervisor must acknowledge. */
void watchdog_watch(struct watchdog *watchdog, struct lease lease);
/* The supervisor has acknowledged the latest lease. */
void watchdog_acknowledge(struct watchdog *watchdog);
/* The lock is lost. The supervisor ends the command (REACTS); or this guard does, as the supervisor
 * is stopped, or has not reacted in time (ABSENT). */
enum watchdog_peer { SUPERVISOR_REACTS, SUPERVISOR_ABSENT };
void watchdog_lose(struct watchdog *watchdog, enum watchdog_peer supervisor);
/* Sends the command the signal of --on-lost, unless the supervisor has: it may be stopped. */
void watchdog_signal_loss(struct watchdog *watchdog);
/* The supervisor says that its command has ended, or there is none. */
void watchdog_dismiss(struct watchdog *watchdog);
/* Whether there is a command, as far as its process group has been told or noted. */
bool watchdog_knows_command(const struct watchdog *watchdog);
/* The supervisor is dead: kills the tree now; the command of --stop has the time of a stop. */
void watchdog_supervisor_died(struct watchdog *watchdog);
/* The supervisor has begun to end its command. */
void watchdog_note_stopping(struct watchdog *watchdog, struct awake since);
/* Keeps a supervisor that is stopped from running the command of --stop, as the lock may be
 * another's when it is continued. False if it has begun to run it. */
bool watchdog_bar_stop_command(struct watchdog *watchdog);
/* The supervisor is about to be stopped together with its command, and keeps no deadline. */
void watchdog_pause(struct watchdog *watchdog);
/* The paused supervisor has been continued. */
void watchdog_continue(struct watchdog *watchdog);
