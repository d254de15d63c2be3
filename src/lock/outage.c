#include "lock/outage.h"

#include <stdio.h>
#include <string.h>

#include "base/backoff.h"
#include "base/duration.h"
#include "base/hash.h"
#include "base/mem.h"
#include "lock/lease.h"

/* At the start, a shorter absence is not worth a message; nor is a shorter silence, which may be
 * that of a long way: two round trips come before the first answer, and more with TLS. */
#define ABSENCE_NS (1 * NS_PER_SEC)
#define SILENCE_NS (3 * NS_PER_SEC)

/* The timer of the start: the store has been away for so long that the user is told. */
static void tell_start(struct loop_timer *timer)
{
    static const struct answer silence = {.verdict = VERDICT_UNKNOWN,
                                          .cause = CAUSE_UNREACHABLE,
                                          .text = "no answer from the store yet"};
    struct outage *outage = timer->owner;

    outage->user_told = true;
    outage->events->trouble(outage->arg, *outage_trouble(outage) ? outage->latest : &silence);
}

void outage_begin(struct outage *outage, struct loop *loop, struct moment now, int64_t server_wait,
                  int64_t longest, const struct outage_events *events, void *arg)
{
    *outage = (struct outage){.loop = loop,
                              .events = events,
                              .arg = arg,
                              .longest = longest,
                              .until = moment_plus(now, server_wait),
                              .since = now};
    outage->start = (struct loop_timer){.fire = tell_start, .owner = outage};
    if (server_wait > 0)
        loop_arm(loop, &outage->start, moment_plus(now, SILENCE_NS));
}

struct moment outage_limit(const struct outage *outage, struct moment now, int64_t attempt)
{
    struct moment limit = moment_plus(now, attempt);

    if (outage->contacted || outage->failures == 0)
        return limit;
    return moment_min(limit, lease_last_call(now, outage->until));
}

void outage_answered(struct outage *outage, struct moment now)
{
    bool user_told = outage->user_told;

    outage->contacted = true;
    outage->until = now;
    outage->failures = 0;
    if (outage->latest)
        outage->latest->text[0] = '\0';
    if (outage->failure)
        outage->failure->cause = CAUSE_NONE;
    outage->user_told = false;
    outage->reason_count = 0;
    loop_disarm(outage->loop, &outage->start);
    if (user_told)
        outage->events->recovered(outage->arg, moment_until(outage->since, now));
}

/* Whether the failure may end by itself: the store is away. */
static bool is_away(const struct answer *why)
{
    return cause_may_pass(why->cause) && !why->nowhere;
}

bool outage_may_pass(const struct outage *outage, struct moment now, const struct answer *why)
{
    bool over = moment_reached(outage->until, now);

    if (!outage->contacted)
        return is_away(why) && !over;
    if (!outage->user_told) /* the first failure in a row: its time begins now */
        over = outage->longest == 0;
    return why->cause != CAUSE_DENIED && (!over || (outage->patient && is_away(why)));
}

/* Returns a hash of the reason in a failure's text. Where there is no contact, the same URL is the
 * same reason, in "cannot reach URL: WHY" or "URL: WHY": a server that goes away may be silent
 * first, then reset connections, and then refuse them. */
static uint64_t hash_reason(const struct answer *why)
{
    static const char absent[] = "cannot reach ";
    const char *text = why->text;
    size_t length = strlen(text);

    if (cause_lacks_contact(why->cause)) { /* the URL: up to the last ": " */
        text += strncmp(text, absent, strlen(absent)) == 0 ? strlen(absent) : 0;
        length = strlen(text);
        for (const char *at = text; (at = strstr(at, ": ")); at++)
            length = (size_t)(at - text);
    }
    return hash_add(HASH_START, text, length);
}

/* Notes the reason of a failure, so that each is told once in an outage. False if this one was
 * told, or as many as the limit were. */
static bool note_reason(struct outage *outage, const struct answer *why)
{
    uint64_t reason = hash_reason(why);

    for (size_t i = 0; i < outage->reason_count; i++)
        if (outage->reasons[i] == reason)
            return false;
    if (outage->reason_count == OUTAGE_REASONS_MAX)
        return false;
    outage->reasons[outage->reason_count++] = reason;
    return true;
}

/* Notes a failure in memory of its own: most outages have none, and answers are large. */
static void note_failure(struct outage *outage, const struct answer *why)
{
    if (!outage->failure)
        outage->failure = mem_zeroed(sizeof *outage->failure);
    store_note_failure(outage->failure, why);
}

struct moment outage_note(struct outage *outage, struct moment now, const struct answer *why)
{
    bool explains = !*outage_trouble(outage); /* the user was told of silence only */

    if (!outage->latest)
        outage->latest = mem_zeroed(sizeof *outage->latest);
    *outage->latest = *why;
    note_failure(outage, why);
    if (outage->contacted) {
        if (!outage->user_told) {
            outage->since = now;
            outage->until = moment_max(outage->until, moment_plus(now, outage->longest));
        }
        outage->user_told = true;
        if (note_reason(outage, why))
            outage->events->trouble(outage->arg, why);
        if (why->grace_ms > 0) /* the store means to serve again then */
            outage->until = moment_plus(now, why->grace_ms * NS_PER_MS + outage->longest);
    } else if (!outage->user_told) {
        loop_arm(outage->loop, &outage->start, moment_plus(outage->since, ABSENCE_NS));
    } else if (explains) {
        outage->events->trouble(outage->arg, why);
    }
    struct moment again = outage_pause(outage, now);
    return outage->contacted ? again : moment_min(again, outage->until);
}

void outage_add_length(const struct outage *outage, struct moment now, struct answer *why)
{
    int64_t seconds = (moment_until(outage->since, now) + NS_PER_SEC / 2) / NS_PER_SEC;
    size_t used = strlen(why->text);

    if (cause_may_pass(why->cause) && outage->failures > 0 && seconds > 0)
        snprintf(why->text + used, sizeof why->text - used, ", for %s",
                 DURATION_TEXT(seconds * NS_PER_SEC));
}

const struct answer *outage_give_up(struct outage *outage, struct moment now,
                                    const struct answer *why)
{
    note_failure(outage, why);
    outage_add_length(outage, now, outage->failure);
    return outage->failure;
}

struct moment outage_pause(struct outage *outage, struct moment now)
{
    return backoff_next(&outage->failures, now);
}

void outage_full(struct outage *outage, struct moment now)
{
    outage->until = moment_plus(now, outage->longest);
}

void outage_inherit(struct outage *outage, struct moment until)
{
    outage->contacted = true;
    outage->until = until;
    loop_disarm(outage->loop, &outage->start);
}

void outage_end(struct outage *outage)
{
    outage->failures = 0;
    loop_disarm(outage->loop, &outage->start);
}

const char *outage_trouble(const struct outage *outage)
{
    return outage->latest ? outage->latest->text : "";
}

void outage_free(struct outage *outage)
{
    outage_end(outage);
    free(outage->latest);
    free(outage->failure);
}
