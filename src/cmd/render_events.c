/* Transitions of locks, a line each. */
#include "cmd/render_events.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/duration.h"
#include "base/mem.h"
#include "base/utf8.h"
#include "cli/describe.h"
#include "cli/render.h"
#include "lock/key.h"

static const char *const event_names[TRANSITION_KINDS] = {
    [TRANSITION_WAITING] = "waiting",   [TRANSITION_SUPERSEDED] = "superseded",
    [TRANSITION_REFUSED] = "refused",   [TRANSITION_PAUSED] = "paused",
    [TRANSITION_RESUMED] = "resumed",   [TRANSITION_ACQUIRED] = "acquired",
    [TRANSITION_RELEASED] = "released", [TRANSITION_TIMED_OUT] = "timed-out",
    [TRANSITION_LOST] = "lost",         [TRANSITION_EXPIRED] = "expired",
    [TRANSITION_REVOKED] = "revoked",   [TRANSITION_MISSED] = "missed"};

/* -- text -------------------------------------------------------------------------------------- */

static void print_missed(FILE *out, const struct transition *event)
{
    if (event->count > 0)
        fprintf(out, "  %" PRId64 " run%s before this", event->count, event->count == 1 ? "" : "s");
    else
        fprintf(out, "  perhaps more than what follows");
}

/* "after 3s", the time that it waited; "after 2m, exit 0", the time that it was held. */
static void print_end(FILE *out, const struct transition *event)
{
    const struct lock_party *by = event->by;
    int64_t took = event->held_ms >= 0 ? event->held_ms : by->waited_ms;
    char duration[32], outcome[DESCRIBE_OUTCOME_SIZE], revoked[DESCRIBE_REVOCATION_SIZE];

    if (took > 0)
        fprintf(out, "  after %s", duration_print(took * NS_PER_MS, duration, sizeof duration));
    if (event->kind == TRANSITION_RELEASED && event->held_ms >= 0 &&
        *describe_outcome(&by->end, outcome))
        fprintf(out, "%s%s", took > 0 ? ", " : "  ", outcome);
    if (event->kind == TRANSITION_REVOKED)
        fputs(describe_revocation(&by->revoked, revoked), out);
}

void render_event(FILE *out, const struct transition *event)
{
    char key[UTF8_ESCAPED_SIZE(KEY_MAX_BYTES)], who[RENDER_PARTY_SIZE];
    char label[UTF8_ESCAPED_SIZE(IDENTITY_WORD_MAX)], at[DESCRIBE_TIME_SIZE];

    fprintf(out, "%s.%03d  %-10s  %s", describe_local(event->at_ms, true, at),
            (int)(event->at_ms % 1000), event_names[event->kind],
            event->key ? utf8_escape(event->key, key, sizeof key) : "*");
    if (event->by) {
        fprintf(out, "  %s", render_party(&event->by->who, who, sizeof who));
        if (event->by->who.label[0])
            fprintf(out, ", label %s", utf8_escape(event->by->who.label, label, sizeof label));
        print_end(out, event);
    } else {
        print_missed(out, event);
    }
    putc('\n', out);
}

/* -- JSON -------------------------------------------------------------------------------------- */

void render_event_json(FILE *out, const struct json_library *json, const struct transition *event)
{
    json_t *object = json->object();
    char at[DESCRIBE_TIME_SIZE];

    json_put_text(json, object, "event", event_names[event->kind]);
    json_put_text(json, object, "key", event->key);
    json_put_text(json, object, "at", describe_utc(event->at_ms, at));
    if (event->by)
        render_run_members(json, object, event->by, event->held_ms);
    else
        json_put_known(json, object, "count", event->count, event->count > 0);
    json_write(out, json, object);
}
