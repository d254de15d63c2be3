/* rlock events: what happens to locks, as it happens. */
#include "cmd/commands.h"

#include <inttypes.h>
#include <unistd.h>

#include "base/duration.h"
#include "cli/lock_watch.h"
#include "cli/render.h"
#include "cmd/transitions.h"
#include "net/loop.h"

/* The interval between two surveys. It grows if a survey takes long, which may use a tenth of the
 * time, and so of the server. */
#define EVERY_NS (500 * NS_PER_MS)
#define SHARE    10
/* How soon waiters have their places again after an outage. */
#define QUEUED_NS (10 * NS_PER_SEC)

enum { OPTION_JSON = OPTION_OTHER };

static const struct option_spec options[] = {
    OPTION(OPTION_JSON, "json", NULL, "an object a line, see rlock-events(1)"),
    SETTINGS_OPTIONS,
    {0}};

struct events {
    struct call call;
    struct lock_watch locks;
    struct loop_io output;   /* standard output, watched for its end */
    bool broken;             /* standard output takes no more */
    struct moment asked_at;  /* when the last survey that the store answered began */
    struct moment queued_by; /* waiters that are missing then have left */
    int64_t took;            /* ns, the last survey; INT64_MAX: there was none */
    int64_t pause;           /* ns, until the next one */
};

static const char *const event_names[TRANSITION_KINDS] = {
    [TRANSITION_WAITING] = "waiting",   [TRANSITION_SUPERSEDED] = "superseded",
    [TRANSITION_REFUSED] = "refused",   [TRANSITION_PAUSED] = "paused",
    [TRANSITION_RESUMED] = "resumed",   [TRANSITION_ACQUIRED] = "acquired",
    [TRANSITION_RELEASED] = "released", [TRANSITION_TIMED_OUT] = "timed-out",
    [TRANSITION_LOST] = "lost",         [TRANSITION_EXPIRED] = "expired",
    [TRANSITION_REVOKED] = "revoked",   [TRANSITION_MISSED] = "missed"};

/* Appends a transition as a line for people. Without "by" it tells of runs that this watcher has
 * missed. */
static void print_text(struct strbuf *out, const struct transition *event)
{
    bool decided = event->kind == TRANSITION_PAUSED || event->kind == TRANSITION_RESUMED;

    strbuf_escape(out, "%s.%03d  %-10s  %s", LOCAL_TEXT(event->at_ms), (int)(event->at_ms % 1000),
                  event_names[event->kind], event->key ? event->key : "*");
    if (event->by) {
        strbuf_escape(out, "  %s", PARTY_TEXT(&event->by->who));
        if (event->by->who.label[0])
            strbuf_escape(out, "%s%s", decided ? ": " : ", label ", event->by->who.label);
        const struct lock_party *by = event->by;
        bool ends_run = event->held_ms >= 0;
        int64_t took = ends_run ? event->held_ms : by->waited_ms;
        const char *outcome = OUTCOME_TEXT(&by->end);
        if (took > 0)
            strbuf_printf(out, "  after %s", MS_TEXT(took));
        if (event->kind == TRANSITION_RELEASED && ends_run && *outcome)
            strbuf_printf(out, "%s%s", took > 0 ? ", " : "  ", outcome);
        if (event->kind == TRANSITION_REVOKED)
            strbuf_escape(out, "%s", REVOCATION_TEXT(&by->revoked));
    } else {
        if (event->count > 0)
            strbuf_printf(out, "  %" PRId64 " run%s before this", event->count,
                          event->count == 1 ? "" : "s");
        else
            strbuf_puts(out, "  perhaps more than what follows");
    }
    strbuf_putc(out, '\n');
}

static void print_json(struct strbuf *out, const struct transition *event)
{
    json_t *object = jansson.object();

    json_put_text(object, "event", event_names[event->kind]);
    json_put_text(object, "key", event->key);
    json_put_text(object, "at", UTC_TEXT(event->at_ms));
    if (event->by)
        render_run_members(object, event->by, event->held_ms);
    else
        json_put_known(object, "count", event->count, event->count > 0);
    if (transition_ends_run(event->kind))
        render_result_members(object, event->by);
    json_write(out, object);
}

static int print_event(const struct events *events, const struct transition *event)
{
    struct strbuf out = {0};

    if (events->call.as_json)
        print_json(&out, event);
    else
        print_text(&out, event);
    return command_print(&out);
}

/* Prints what has changed since the survey before. A waiter that seems to have gone is given time
 * to return: until events->queued_by it stays in the list. */
static int print_changes(struct events *events, const struct lock_list *before)
{
    struct moment now = moment_now();
    int64_t gap = moment_until(events->asked_at, now);
    struct transitions found ENDED_BY(transitions_free) = {0};
    int status = STATUS_OK;

    bool keeps = !moment_reached(events->queued_by, now);
    if (!transitions_miss_waiters(&before->locks, &events->locks.list.locks, keeps))
        events->queued_by = moment_plus(now, QUEUED_NS);
    transitions_find(&found, &before->locks, &events->locks.list.locks, clock_wall() / NS_PER_MS,
                     gap / NS_PER_MS);
    for (size_t i = 0; i < found.count && status == STATUS_OK; i++)
        status = print_event(events, &found.all[i]);
    return status;
}

/* -- again and again --------------------------------------------------------------------------- */

/* Sets the pause before the next survey, so that surveys take one SHAREth of the time. took: ns
 * that the last one took. It may have waited for a store that stood still, so the shorter one of
 * two in a row counts. */
static void note_time(struct events *events, int64_t took)
{
    int64_t usual = took < events->took ? took : events->took;

    events->took = took;
    events->pause = (SHARE - 1) * usual > EVERY_NS ? (SHARE - 1) * usual : EVERY_NS;
}

/* The store is back. A waiter that came and went during the outage was not seen: an event says so.
 * Returns the exit status of printing it. */
static int tell_missed(const struct events *events)
{
    int64_t gone = events->locks.gone;
    const struct transition missed = {.kind = TRANSITION_MISSED,
                                      .at_ms = clock_wall() / NS_PER_MS - gone / NS_PER_MS};

    say_warning("events: back after %s; something may have been missed", DURATION_TEXT(gone));
    return print_event(events, &missed);
}

/* Surveys the locks, and prints what has happened since the last survey; after the first one,
 * nothing. Returns false with the exit status if the command must end. */
static bool print_round(struct events *events, bool first, int *status)
{
    struct lock_watch *locks = &events->locks;
    struct lock_list before = locks->list;
    struct moment began = moment_now();
    bool was_away = locks->away;
    struct answer answer;

    events->pause = EVERY_NS;
    locks->list = (struct lock_list){0};
    enum lock_watch_result result = lock_watch_ask(locks, &answer);
    if (result == LOCK_WATCH_SEEN) {
        note_time(events, moment_until(began, moment_now()));
        *status = was_away ? tell_missed(events) : STATUS_OK;
        if (first) { /* a KEY that is not a lock yet may become one */
            command_tell_misfits(&events->call, &locks->list);
            say_detail("events: listening");
        } else if (*status == STATUS_OK) {
            *status = print_changes(events, &before);
        }
        events->asked_at = began;
        lock_list_free(&before);
        return *status == STATUS_OK;
    }
    lock_list_free(&locks->list);
    locks->list = before;
    if (result == LOCK_WATCH_AWAY && !first && !events->broken) {
        if (!was_away)
            say_warning("events: out of reach: %s; trying again", answer.text);
        return true;
    }
    *status = events->broken ? STATUS_SYSTEM : command_refused(&events->call, &answer);
    return false;
}

/* The reader of the events has gone: ends. */
static void on_output(struct loop_io *io, int what)
{
    struct events *events = io->owner;

    if (!(what & LOOP_GONE))
        return;
    events->broken = true;
    loop_remove(events->call.query.loop, io);
    loop_stop(events->call.query.loop);
}

/* Prints events until a signal kills this process; or until the store refuses, or the reader of
 * standard output is gone. */
static int follow_events(struct call *call)
{
    struct events *events = (struct events *)call;
    bool first = true, going = true;
    int status = STATUS_OK;

    events->locks = (struct lock_watch){.query = &call->query, .request = command_request(call)};
    events->locks.request.runs = QUERY_RUNS_ALL;
    events->locks.request.idle = true;
    events->output = (struct loop_io){.fd = STDOUT_FILENO, .ready = on_output, .owner = events};
    events->took = INT64_MAX;
    events->queued_by = moment_plus(moment_now(), QUEUED_NS);
    loop_add(events->call.query.loop, &events->output);
    while (going) {
        going = print_round(events, first, &status);
        first = false;
        if (going)
            loop_run_for(call->query.loop, events->pause);
        going = going && !events->broken;
    }
    lock_list_free(&events->locks.list);
    return events->broken ? STATUS_SYSTEM : status;
}

const struct command command_events = {
    .name = "events",
    .summary = "show what happens to locks, as it happens",
    .usage = {"events [OPTIONS] [KEY|GLOB...]"},
    .example = "Example, all that happens to deployments, until interrupted:\n"
               "  rlock events 'deploy-*'\n"
               "\n"
               "Example, for a program, the runs that did not end well:\n"
               "  rlock events --json | jq -c 'select(.event | IN(\"lost\", \"expired\"))'\n",
    .options = options,
    .words = WORDS_PATTERNS,
    .size = sizeof(struct events),
    .needs = STORE_MEMORY,
    .asks = true,
    .json = OPTION_JSON,
    .act = follow_events,
};
