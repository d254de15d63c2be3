#include "lives/queue.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lives/server.h"

#define LATEST_NOTE " latest="

struct waiter waiters[WAITERS];
int waiter_count;

void queue_begin(void)
{
    waiter_count = 0;
}

const struct waiter *queue_find(const char *name, const struct run *run)
{
    for (int i = waiter_count; i-- > 0;)
        if (waiters[i].run == run && strcmp(waiters[i].key, name) == 0)
            return &waiters[i];
    return NULL;
}

static int64_t number_noted(const char *text, const char *note)
{
    const char *at = strstr(text, note);

    return at ? atoll(at + strlen(note)) : 0;
}

/* The one of that run and ticket, or a new one. */
static struct waiter *waiter_of(const char *name, const struct run *run, unsigned long ticket)
{
    for (int i = 0; i < waiter_count; i++)
        if (waiters[i].run == run && waiters[i].ticket == ticket &&
            strcmp(waiters[i].key, name) == 0)
            return &waiters[i];
    if (waiter_count == WAITERS)
        abort();
    struct waiter *waiter = &waiters[waiter_count];
    *waiter =
        (struct waiter){.run = run, .ticket = ticket, .order = waiter_count++, .since = world.now};
    snprintf(waiter->key, sizeof waiter->key, "%s", name);
    trace("run %d takes place %lu in the queue of %s", run->number, ticket, name);
    return waiter;
}

/* Reads "DEADLINE OWNER SINCE MODE WHO", with notes behind WHO. */
static void read_waiter(const char *name, unsigned long ticket, const char *text)
{
    long long until;
    char owner[OWNER_ROOM], mode;
    const char *latest = strstr(text, LATEST_NOTE);

    if (sscanf(text, "%lld %119s %*s %c", &until, owner, &mode) != 3 || !run_of_owner(owner))
        return;
    struct waiter *waiter = waiter_of(name, run_of_owner(owner), ticket);
    waiter->waits = true;
    waiter->mode = mode;
    waiter->until = until * MS;
    waiter->priority = (int)number_noted(text, " priority=");
    waiter->bound = number_noted(text, " bound=") * MS;
    if (latest) /* '=' stands in no name */
        snprintf(waiter->group, sizeof waiter->group, "=%.*s",
                 (int)strcspn(latest + strlen(LATEST_NOTE), " "), latest + strlen(LATEST_NOTE));
}

/* Places are called "q:" and a number; those that nest in an owner have his name before it. */
void queue_read(const char *name, const struct record *record)
{
    for (int i = 0; i < waiter_count; i++)
        if (strcmp(waiters[i].key, name) == 0) {
            waiters[i].waited = waiters[i].waits;
            waiters[i].waits = false;
        }
    for (size_t i = 0; i < record->count; i++) {
        const struct record_field *field = &record->fields[i];
        char text[500], *end;
        if (field->gone || field->name.size < 3 || memcmp(field->name.at, "q:", 2) != 0)
            continue;
        snprintf(text, sizeof text, "%.*s", (int)field->name.size, field->name.at);
        unsigned long ticket = strtoul(text + 2, &end, 10);
        if (*end)
            continue;
        snprintf(text, sizeof text, "%.*s", (int)field->value.size, field->value.at);
        read_waiter(name, ticket, text);
    }
}
