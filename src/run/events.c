#include "run/events.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "os/kernel.h"

struct run_reason run_reason_text(const char *text)
{
    struct run_reason reason = {.cause = RUN_CAUSE_TEXT};

    snprintf(reason.text, sizeof reason.text, "%s", text);
    return reason;
}

struct run_reason run_reason_loss(const struct keeper_loss *loss)
{
    struct run_reason reason = run_reason_text(loss->text);

    reason.cause = RUN_CAUSE_LOSS + loss->cause;
    reason.key = (unsigned)loss->key;
    snprintf(reason.by, sizeof reason.by, "%s", loss->by);
    return reason;
}

struct run_reason run_reason_errno(void)
{
    return run_reason_text(strerror(errno));
}

void run_tell_errno(const struct run_events *events, enum run_event event)
{
    const struct run_reason why = run_reason_errno();
    run_tell_reason(events, event, &why);
}

void run_tell_refusal(const struct run_events *events, enum run_event event)
{
    struct run_reason why = run_reason_errno();
    const char *call = kernel_refused();

    if (call)
        snprintf(why.text, sizeof why.text, "%s: %s", call, strerror(errno));
    run_tell_reason(events, event, &why);
}

void run_tell_text(const struct run_events *events, enum run_event event, const char *text)
{
    const struct run_reason words = run_reason_text(text);
    run_tell_reason(events, event, &words);
}

struct run_news run_news_failure(const struct keeper_end *end, size_t key_count,
                                 struct run_reason *reason)
{
    size_t key = end->refusal->refused.key; /* the index of the key that is refused */
    bool of_one = end->why->cause == CAUSE_MISFIT && key < key_count;

    *reason = run_reason_text(end->why->text);
    if (end->far.round_trip) /* the store is too far away for such a lease */
        *reason = (struct run_reason){.cause = end->far.needed ? RUN_CAUSE_TOO_FAR
                                                               : RUN_CAUSE_GRANTED_TOO_LITTLE,
                                      /* whole milliseconds */
                                      .duration = end->far.round_trip / NS_PER_MS * NS_PER_MS,
                                      .lease = end->far.lease,
                                      .needed = end->far.needed};
    return (struct run_news){.event = RUN_FAILED,
                             .key = of_one ? (unsigned)key + 1 : 0,
                             .cause = end->why->cause,
                             .hint = end->why->hint,
                             .reason = reason};
}

struct run_news *run_news_keep(struct run_news *before, const struct run_news *news)
{
    struct kept_news {
        struct run_news news;
        struct run_reason reason;
    } *kept = news->event == RUN_NOTHING ? NULL : malloc(sizeof *kept);

    if (kept)
        kept->news = *news;
    if (kept && news->reason) {
        kept->reason = *news->reason;
        kept->news.reason = &kept->reason;
    }
    free(before);
    return kept ? &kept->news : NULL;
}
