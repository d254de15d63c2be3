/* Runs the user's own command when something happens to a lock that a person should know of: it is
 * waited for or held for long, lost, not acquired, or its command was stopped in the end.
 *
 * A process of its own does that, the notifier, so that nothing of such a command can keep the
 * supervisor from its deadlines: what the supervisor has to tell never blocks it.
 * The notifier starts what it is to run in sessions of their own, and ends all that is left of it
 * NOTIFIER_STAY_NS after the supervisor has ended, in whatever way: then the socket is closed. */
#pragma once

#include "os/child.h"
#include "run/channel.h"
#include "run/plan.h"

#define NOTIFIER_STAY_NS (10 * NS_PER_SEC)

enum notice_event {
    NOTICE_WAITING, /* for long */
    NOTICE_HELD,    /* for long */
    NOTICE_LOST,
    NOTICE_TIMED_OUT,
    NOTICE_NOT_ACQUIRED,
    NOTICE_EVENTS
};

struct notice {
    enum notice_event event;
    int64_t waited, held; /* ns */
    bool granted;
    struct lock_grant grants[LOCK_KEYS_MAX]; /* granted: for each key */
    char holder[512];                        /* in words; "": not known */
    int status;         /* an exit status that says what happened; 0: nothing that ends a run */
    char message[4096]; /* the line that the user reads; "": none is printed */
};

/* The supervisor's end. */
struct notifier {
    struct outbox *outbox; /* NULL: none was started */
    bool told[NOTICE_EVENTS];
};

/* Forks the notifier, if the plan has a command for it, before any process that must not be taken
 * for its own. A failure is reported to the user. "inherited" is for the commands. */
void notifier_start(struct notifier *notifier, struct loop *loop, const struct job_plan *plan,
                    const struct inherited *inherited);
/* Whether a notice of this event should be told: there is a notifier, and this is the first of its
 * kind. */
bool notifier_wants(const struct notifier *notifier, enum notice_event event);
/* Has the command run for a notice that notifier_wants(). Never blocks. */
void notifier_tell(struct notifier *notifier, const struct notice *notice);
/* Ends the supervisor's part: waits a moment where the kernel refuses what is left to say, and
 * tells the user if it could not be said. */
void notifier_finish(struct notifier *notifier, const struct run_events *events);
