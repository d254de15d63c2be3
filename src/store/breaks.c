#include "store/breaks.h"

#include "base/backoff.h"
#include "base/jitter.h"

/* A connection that broke when it was younger than this has shown nothing: it may be a peer that
 * ends each connection after one answer. */
#define STEADY_NS NS_PER_SEC
/* The step of backoff_pause() for the first repeated break, which is told after 200 to 400 ms. */
#define BREAKS_LEAST 3

/* The pause is over, or the loop has turned after breaks_soon(). */
static void on_due(struct loop_timer *timer)
{
    struct breaks *breaks = timer->owner;

    breaks->tell(breaks->arg);
}

void breaks_init(struct breaks *breaks, struct loop *loop, void (*tell)(void *arg), void *arg)
{
    *breaks = (struct breaks){.loop = loop, .tell = tell, .arg = arg};
    breaks->timer = (struct loop_timer){.fire = on_due, .owner = breaks};
}

void breaks_up(struct breaks *breaks)
{
    breaks->up_since = loop_now(breaks->loop);
}

void breaks_down(struct breaks *breaks)
{
    struct moment now = loop_now(breaks->loop);

    if (moment_until(breaks->up_since, now) >= STEADY_NS) {
        breaks->count = 0;
        breaks->tell(breaks->arg);
    } else {
        int64_t pause = backoff_pause(BREAKS_LEAST + breaks->count++, jitter());
        loop_arm(breaks->loop, &breaks->timer, moment_plus(now, pause));
    }
}

void breaks_soon(struct breaks *breaks)
{
    loop_arm(breaks->loop, &breaks->timer, loop_now(breaks->loop));
}

void breaks_cancel(struct breaks *breaks)
{
    loop_disarm(breaks->loop, &breaks->timer);
}
