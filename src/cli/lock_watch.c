#include "cli/lock_watch.h"

#include <stdio.h>

#include "cli/describe.h"
#include "run/exit_status.h"

/* -- asking ------------------------------------------------------------------------------------ */

/* Notes that the store is out of reach. */
static void note_away(struct lock_watch *watch, const char *why)
{
    snprintf(watch->why, sizeof watch->why, "%s", why);
    watch->away = true;
}

/* No survey has been answered for as long as the watch is patient: says so, and again after that
 * time. */
static void on_silence(struct loop_timer *timer)
{
    struct lock_watch *watch = timer->owner;

    if (!watch->away)
        note_away(watch, "no answer");
    watch->silent(watch->arg);
    loop_arm(watch->query->loop, timer, moment_plus(moment_now(), watch->patience));
}

enum lock_watch_result lock_watch_ask(struct lock_watch *watch, struct answer *answer)
{
    struct loop *loop = watch->query->loop;

    watch->silence.fire = on_silence;
    watch->silence.owner = watch;
    if (watch->silent)
        loop_arm(loop, &watch->silence, moment_plus(moment_now(), watch->patience));
    /* Keeps the last survey if the store does not answer. */
    struct lock_list list = {0};
    query_survey(watch->query, &watch->request, &list, answer);
    if (answer->verdict == VERDICT_GRANTED || list.misfits.count > 0) {
        lock_list_free(&watch->list);
        watch->list = list;
    } else {
        lock_list_free(&list);
    }
    loop_disarm(loop, &watch->silence);
    if (answer->verdict == VERDICT_GRANTED || answer->cause == CAUSE_MISFIT) {
        struct moment now = moment_now();
        watch->gone = moment_until(watch->seen_at, now);
        watch->away = false;
        watch->seen = time(NULL);
        watch->seen_at = now;
    } else {
        note_away(watch, answer->text);
    }
    if (answer->verdict == VERDICT_GRANTED)
        return LOCK_WATCH_SEEN;
    return cause_is_outage(answer->cause) ? LOCK_WATCH_AWAY : LOCK_WATCH_REFUSED;
}

void lock_watch_summary(const struct lock_watch *watch, struct strbuf *out)
{
    const struct lock_views *locks = &watch->list.locks;
    const struct lock_views *misfits = &watch->list.misfits;
    size_t waiting = 0, paused = watch->list.pauses.count, newer = 0;

    for (size_t i = 0; i < locks->count; i++)
        waiting += locks->views[i].waiter_count;
    for (size_t i = 0; i < misfits->count; i++) /* a KEY that was named may be a latch */
        newer += !survey_names(&watch->request, misfits->views[i].key);
    if (locks->count == 0)
        strbuf_puts(out, "no locks");
    else
        strbuf_printf(out, "%zu lock%s", locks->count, locks->count == 1 ? "" : "s");
    if (waiting > 0)
        strbuf_printf(out, ", %zu waiting", waiting);
    if (paused > 0)
        strbuf_printf(out, ", %zu pattern%s paused", paused, paused == 1 ? "" : "s");
    if (newer > 0)
        strbuf_printf(out, ", %zu written by a newer rlock", newer);
}

void lock_watch_heading(const struct lock_watch *watch, struct strbuf *out)
{
    strbuf_printf(out, "%s  ", LOCAL_TIME_TEXT((int64_t)time(NULL) * 1000));
    if (watch->away)
        strbuf_escape(out, "out of reach since %s: %s",
                      LOCAL_TIME_TEXT((int64_t)watch->seen * 1000), watch->why);
    else
        lock_watch_summary(watch, out);
}
