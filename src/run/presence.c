#include "run/presence.h"

/* How long a supervisor that runs has to take a grant, or to release the lock when its command has
 * ended. It takes less than a ms, except on a busy machine. */
#define REACT_NS (2 * NS_PER_SEC)
/* How often, at most, to look whether it runs. */
#define LOOK_NS (50 * NS_PER_MS)

void presence_init(struct presence *presence, struct loop *loop, pid_t pid,
                   void (*fire)(struct loop_timer *timer), void *owner)
{
    presence->loop = loop;
    presence->pid = pid;
    presence->state = PRESENCE_ASSUMED;
    presence->seen = loop_now(loop);
    presence->timer = (struct loop_timer){.fire = fire, .owner = owner};
}

/* Whether the peer is stopped, as far as /proc tells. */
static bool is_seen_stopped(struct presence *presence)
{
    struct process process;

    if (!procfs_is_usable(presence->procfs))
        return false;
    procfs_begin(presence->procfs);
    enum process_look look = procfs_read(presence->procfs, presence->pid, &process);
    procfs_end(presence->procfs);
    return look == PROCESS_FOUND && process.state == 'T';
}

void presence_ask(struct presence *presence)
{
    const struct agent_report ping = {.kind = REPORT_PING};

    if (presence->state != PRESENCE_ASSUMED)
        return;
    if (outbox_send(presence->outbox, &ping, sizeof ping, -1))
        presence->state = PRESENCE_ASKED;
}

void presence_answered(struct presence *presence)
{
    if (presence->state == PRESENCE_ASKED)
        presence->state = PRESENCE_ASSUMED;
}

bool presence_confirm(struct presence *presence)
{
    struct moment now = loop_now(presence->loop);

    if (presence->state != PRESENCE_ASSUMED)
        return false;
    /* A peer that has been stopped since this look does not take the grant. */
    if (!moment_reached(moment_plus(presence->seen, LOOK_NS), now))
        return true;
    if (is_seen_stopped(presence))
        presence_ask(presence);
    else
        presence->seen = now;
    return presence->state == PRESENCE_ASSUMED;
}

/* Arms the timer for the next look. */
static void look_later(struct presence *presence)
{
    loop_arm(presence->loop, &presence->timer, moment_plus(loop_now(presence->loop), LOOK_NS));
}

void presence_expect(struct presence *presence)
{
    presence->waited = (struct patience){.looked = loop_now(presence->loop)};
    look_later(presence);
}

bool presence_may_react(struct presence *presence)
{
    if (is_seen_stopped(presence) ||
        patience_look(&presence->waited, loop_now(presence->loop)) >= REACT_NS)
        return false;
    look_later(presence);
    return true;
}

void presence_settle(struct presence *presence)
{
    loop_disarm(presence->loop, &presence->timer);
}
