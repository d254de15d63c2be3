/* A loop without a clock. */
#include "fake_loop.h"

#include <stdlib.h>

struct loop {
    struct loop_timer *timers; /* the earliest first */
    struct loop_io *ios;
    struct moment now;
    int64_t lag; /* to be added to the next turn's time */
    void (*descriptor)(struct loop_timer *timer);
};

struct loop *loop_new(void)
{
    struct loop *loop = calloc(1, sizeof *loop);
    if (!loop)
        abort();
    loop->now = (struct moment){1000 * NS_PER_SEC};
    return loop;
}

void loop_free(struct loop *loop)
{
    free(loop);
}

struct moment loop_now(const struct loop *loop)
{
    return loop->now;
}

void loop_disarm(struct loop *loop, struct loop_timer *timer)
{
    for (struct loop_timer **at = &loop->timers; *at; at = &(*at)->next) {
        if (*at == timer) {
            *at = timer->next;
            break;
        }
    }
    timer->armed = false;
}

void loop_arm(struct loop *loop, struct loop_timer *timer, struct moment due)
{
    struct loop_timer **at = &loop->timers;

    loop_disarm(loop, timer);
    while (*at && (*at)->due.ns <= due.ns)
        at = &(*at)->next;
    timer->due = due;
    timer->next = *at;
    timer->armed = true;
    *at = timer;
}

void loop_add(struct loop *loop, struct loop_io *io)
{
    if (io->watched)
        return;
    io->next = loop->ios;
    io->watched = true;
    loop->ios = io;
}

void loop_remove(struct loop *loop, struct loop_io *io)
{
    struct loop_io **at = &loop->ios;

    while (*at && *at != io)
        at = &(*at)->next;
    if (*at)
        *at = io->next;
    io->watched = false;
}

/* The doctor runs loops of its own. It is linked with the records of the stores, and never
 * called. */
int loop_run(struct loop *loop)
{
    (void)loop;
    abort();
}

int loop_run_for(struct loop *loop, int64_t ns)
{
    (void)ns;
    return loop_run(loop);
}

void loop_stop(struct loop *loop)
{
    (void)loop;
    abort();
}

/* No process is started in a simulation. */
void loop_own(struct loop *loop, struct loop_owned *owned)
{
    (void)loop, (void)owned;
    abort();
}

void loop_disown(struct loop *loop, struct loop_owned *owned)
{
    loop_own(loop, owned);
}

struct loop_io *fake_ios(const struct loop *loop)
{
    return loop->ios;
}

/* Fires the timers of one kind that are due, at most as many as there are. */
static void fire_due(struct loop *loop, bool urgent, bool descriptors)
{
    for (int most = 8; most > 0; most--) {
        struct loop_timer *timer = loop->timers;
        while (timer &&
               (timer->urgent != urgent || (timer->fire == loop->descriptor) != descriptors))
            timer = timer->next;
        if (!timer || !moment_reached(timer->due, loop->now))
            return;
        loop_disarm(loop, timer);
        timer->fire(timer);
    }
}

void fake_turn_at(struct loop *loop, struct moment now)
{
    loop->now = moment_max(loop->now, now);
    fire_due(loop, true, false);
    fire_due(loop, false, true);
    fire_due(loop, false, false);
}

bool fake_turn(struct loop *loop)
{
    struct moment now = moment_max(loop->now, fake_due(loop));
    int64_t lag = loop->lag;

    if (now.ns == MOMENT_NEVER.ns)
        return false;
    loop->lag = 0;
    fake_turn_at(loop, moment_plus(now, lag));
    return true;
}

struct moment fake_due(const struct loop *loop)
{
    return loop->timers ? loop->timers->due : MOMENT_NEVER;
}

void fake_suspend(struct loop *loop, int64_t ns)
{
    loop->lag += ns;
}

void fake_descriptor(struct loop *loop, void (*fire)(struct loop_timer *timer))
{
    loop->descriptor = fire;
}
