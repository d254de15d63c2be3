/* The agent's watch over the supervisor: ends the command's tree when the supervisor is dead, or
 * has not acknowledged the present deadline when the command has to stop. It is the second of two;
 * in the ordinary way the supervisor ends its command itself, and this one finds nothing left. */
#ifndef RLOCK_RUN_WATCHDOG_H
#define RLOCK_RUN_WATCHDOG_H

#include "lock/lease.h"
#include "net/loop.h"
#include "os/tree.h"
#include "run/stop_command.h"

struct watchdog {
    struct loop *loop;
    int64_t kill_after;    /* ns */
    bool enabled;          /* while the supervisor lives; its death ends the tree in any case */
    bool wait_descendants; /* what the command leaves behind is under the lock, too */
    struct tree tree;
    struct loop_timer timer; /* urgent */
    struct lease lease;      /* as last posted */
    bool silent;             /* not acknowledged yet */
    bool paused;             /* the terminal has stopped the supervisor together with its command */
    bool armed;              /* a command may be running */
    bool stopping;           /* the supervisor was ending the tree when it was heard last */
    bool orphaned, termed;
    struct stop_command stop_command; /* its plan is the caller's */
    bool delayed;                     /* TERM waits for it */
    /* Hears what the supervisor has said, before anything is done to its command. */
    void (*listen)(void *arg);
    /* The supervisor did not answer in time: its command is being ended. Called once a deadline. */
    void (*alarmed)(void *arg);
    /* Nothing is left of the tree. Without "alarmed" before: nothing had to be ended. */
    void (*cleared)(void *arg);
    /* The lease is over, and some of the tree cannot be killed (TREE_LIVE), or seen (TREE_UNSEEN);
     * TREE_GONE: of its process group, at least, nothing is left, and more cannot be seen here. */
    void (*failed)(void *arg, enum tree_state state);
    void *arg;
};

/* The callbacks, the plan's values and the tree are the caller's to set; then: */
void watchdog_init(struct watchdog *watchdog, struct loop *loop);
/* A command may run from now on, under this lease, which the supervisor has yet to acknowledge. */
void watchdog_watch(struct watchdog *watchdog, struct lease lease);
void watchdog_acknowledge(struct watchdog *watchdog, struct lease lease);
/* The supervisor says that its command has ended, or is none. */
void watchdog_dismiss(struct watchdog *watchdog);
/* The supervisor is dead: everything goes, now; but what is elsewhere has the time of a stop. */
void watchdog_supervisor_died(struct watchdog *watchdog);
/* The supervisor is about to be stopped together with its command, and sees to no deadline; or not
 * any more. */
void watchdog_pause(struct watchdog *watchdog, bool paused);

#endif
