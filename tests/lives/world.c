#include "lives/world.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lives/plan.h"

struct world world;
void (*world_actor)(char *out, size_t size);

/* A heap: the first is the next. */
static struct event {
    int64_t when;
    uint64_t order;
    void (*happen)(void *arg);
    void *arg;
} * events;
static size_t event_count, event_room;
static uint64_t events_asked_for;

void world_begin(const struct plan *plan)
{
    world = (struct world){.now = 1000 * SEC};
    plan_begin(plan);
    event_count = 0;
    events_asked_for = 0;
}

/* -- events ------------------------------------------------------------------------------------ */

static bool is_sooner(const struct event *a, const struct event *b)
{
    return a->when != b->when ? a->when < b->when : a->order < b->order;
}

void world_at(int64_t when, void (*happen)(void *arg), void *arg)
{
    const struct event event = {when, events_asked_for++, happen, arg};
    size_t i = event_count++;

    if (i == event_room) {
        event_room = 2 * event_room + 64;
        events = realloc(events, event_room * sizeof *events);
    }
    for (; i > 0 && is_sooner(&event, &events[(i - 1) / 2]); i = (i - 1) / 2)
        events[i] = events[(i - 1) / 2];
    events[i] = event;
}

static struct event take_first(void)
{
    const struct event first = events[0], last = events[--event_count];
    size_t i = 0, child;

    while ((child = 2 * i + 1) < event_count) {
        if (child + 1 < event_count && is_sooner(&events[child + 1], &events[child]))
            child++;
        if (!is_sooner(&events[child], &last))
            break;
        events[i] = events[child];
        i = child;
    }
    events[i] = last;
    return first;
}

int64_t world_next(void)
{
    return event_count > 0 ? events[0].when : NEVER;
}

void world_step(void)
{
    const struct event event = take_first();

    if (event.when > world.now)
        world.now = event.when;
    event.happen(event.arg);
}

/* -- what is told ------------------------------------------------------------------------------ */

static void print_line(const char *format, va_list words)
{
    char actor[40] = "";

    if (world_actor)
        world_actor(actor, sizeof actor);
    fprintf(world.trace, "%12.6f %s%s", (double)world.now / 1e9, actor, *actor ? " " : "");
    vfprintf(world.trace, format, words);
    putc('\n', world.trace);
}

void trace(const char *format, ...)
{
    va_list words;

    if (!world.trace)
        return;
    va_start(words, format);
    print_line(format, words);
    va_end(words);
}

void fail(const char *format, ...)
{
    va_list words;

    if (*world.verdict)
        return;
    va_start(words, format);
    vsnprintf(world.verdict, sizeof world.verdict, format, words);
    va_end(words);
    trace("WRONG: %s", world.verdict);
    world.over = true;
}
