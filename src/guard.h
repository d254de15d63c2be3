/* The agent's watch over the supervisor: ends the command's tree when the supervisor is dead, or has not
 * acknowledged the present deadline when the command has to stop. It is the second of two; in
 * the ordinary way the supervisor ends its command itself, and this one finds nothing left. */
#ifndef RLOCK_GUARD_H
#define RLOCK_GUARD_H

#include "loop.h"
#include "tree.h"

struct guard {
    struct loop *loop;
    int64_t lease, kill_after; /* ns */
    bool enabled;              /* while the supervisor lives; its death ends the tree in any case */
    struct tree tree;
    struct loop_timer timer; /* urgent */
    struct moment deadline;  /* of the lease, as last posted */
    bool silent;             /* not acknowledged yet */
    bool excused;            /* the terminal stopped the supervisor together with its command */
    bool armed;              /* a command may be running */
    bool orphaned, termed;
    /* Hears what the supervisor has said, before anything is done to its command. */
    void (*listen)(void *arg);
    /* The supervisor did not answer in time: its command is being ended. Called once a deadline. */
    void (*alarmed)(void *arg);
    /* Nothing is left of the tree. */
    void (*cleared)(void *arg);
    /* Some of it cannot be killed, and the lease is over. */
    void (*failed)(void *arg);
    void *arg;
};

/* The callbacks, the plan's values and the tree are the caller's to set; then: */
void guard_init(struct guard *guard, struct loop *loop);
/* A command may run from now on, under this deadline, which the supervisor has yet to acknowledge. */
void guard_watch(struct guard *guard, struct moment deadline);
void guard_acknowledge(struct guard *guard, struct moment deadline);
/* The supervisor says that its command has ended, or is none. */
void guard_dismiss(struct guard *guard);
/* The supervisor is dead: everything goes, now. */
void guard_avenge(struct guard *guard);
/* The supervisor is stopped by the terminal, its command too, and this is all right; or not any more. */
void guard_excuse(struct guard *guard, bool excused);

#endif
