/* The waiting line. */
#include "waiting.h"
#include "duration.h"
#include "say.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define PATIENCE_NS (1 * NS_PER_SEC) /* nobody wants to read of a shorter wait */
#define REDRAW_NS   (1 * NS_PER_SEC)
#define REPEAT_NS   (60 * NS_PER_SEC)

static void append(char *out, size_t size, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

static void append(char *out, size_t size, const char *fmt, ...)
{
    size_t used = strlen(out);
    va_list args;

    va_start(args, fmt);
    vsnprintf(out + used, size - used, fmt, args);
    va_end(args);
}

char *waiting_describe(const struct lock_party *party, int64_t later, char *out, size_t size)
{
    const struct identity *who = &party->who;
    char age[32];

    duration_print(party->age_ms * NS_PER_MS + later, age, sizeof age);
    out[0] = '\0';
    if (who->user[0])
        append(out, size, " by %.60s@%.80s", who->user, who->host);
    else if (who->host[0])
        append(out, size, " on %.80s", who->host);
    if (who->pid)
        append(out, size, " pid %ld", who->pid);
    if (who->command[0])
        append(out, size, " (%.40s)", who->command);
    append(out, size, " for %s", age);
    if (who->label[0])
        append(out, size, ", label %.200s", who->label);
    return memmove(out, out + 1, strlen(out));
}

static void compose(const struct waiting *waiting, char *out, size_t size)
{
    const struct answer *refusal = &waiting->refusal;
    char holder[512];

    snprintf(out, size, "waiting for %.120s", waiting->key);
    if (refusal->holder.owner[0])
        append(out, size, ", held %s",
               waiting_describe(&refusal->holder,
                                moment_until(waiting->heard, loop_now(waiting->loop)), holder,
                                sizeof holder));
    else
        append(out, size, ", which is about to change hands");
    if (refusal->position == 1)
        append(out, size, "; you are next");
    else
        append(out, size, "; you are number %" PRId64 " in the queue", refusal->position);
}

static void tell(struct loop_timer *timer)
{
    struct waiting *waiting = timer->owner;
    char line[800];
    bool redraw = say_on_terminal();

    compose(waiting, line, sizeof line);
    if (redraw)
        say_status(line);
    else
        say_warning("%s", line);
    loop_arm(waiting->loop, timer,
             moment_plus(loop_now(waiting->loop), redraw ? REDRAW_NS : REPEAT_NS));
}

void waiting_init(struct waiting *waiting, struct loop *loop, const char *key, bool silent)
{
    *waiting = (struct waiting){.loop = loop, .key = key, .silent = silent};
    waiting->timer = (struct loop_timer){.fire = tell, .owner = waiting};
}

void waiting_heard(struct waiting *waiting, const struct answer *refusal)
{
    waiting->refusal = *refusal;
    waiting->heard = loop_now(waiting->loop);
    if (!waiting->begun && !waiting->silent)
        loop_arm(waiting->loop, &waiting->timer, moment_plus(waiting->heard, PATIENCE_NS));
    waiting->begun = true;
}

void waiting_end(struct waiting *waiting)
{
    loop_disarm(waiting->loop, &waiting->timer);
    if (waiting->begun && !waiting->silent && say_on_terminal())
        say_status("");
    waiting->begun = false;
}

char *waiting_refused(const struct waiting *waiting, const struct answer *refusal, char *out,
                      size_t size)
{
    int64_t later = waiting->heard.ns ? moment_until(waiting->heard, loop_now(waiting->loop)) : 0;
    char holder[480];

    if (refusal->holder.owner[0])
        snprintf(out, size, "%.100s: not acquired: held %s", waiting->key,
                 waiting_describe(&refusal->holder, later, holder, sizeof holder));
    else
        snprintf(out, size, "%.100s: not acquired: others are first in the queue", waiting->key);
    return out;
}
