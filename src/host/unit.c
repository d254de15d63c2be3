/* Keeps what a unit has read and written, and notes what it still lacks. A unit has few keys: they
 * are looked through one by one. */
#include "host/unit.h"

#include "base/mem.h"

/* The key of that name in the unit; NULL: it has none. */
static struct unit_key *find_key(struct unit *unit, struct slice name)
{
    for (size_t i = 0; i < unit->count; i++)
        if (slice_equal(unit->keys[i].name, name))
            return &unit->keys[i];
    return NULL;
}

void unit_add(struct unit *unit, struct slice name, enum unit_use use)
{
    struct unit_key *key = find_key(unit, name);

    if (!key) {
        key = MEM_APPEND(unit->keys, unit->count);
        *key = (struct unit_key){.name = slice_duplicate(name)};
    }
    key->writes |= use == UNIT_WRITES;
}

struct record *unit_record(struct unit *unit, struct slice name, enum unit_use use)
{
    struct unit_key *key = find_key(unit, name);
    bool may_not_write = use == UNIT_WRITES && (!key || !key->writes || unit->reads_only);

    /* A unit that must be done again adds all that it asks for from then on, so that one more time
     * is enough. */
    if (!key || unit->again || may_not_write) {
        unit->again = true;
        unit->reads_only &= use == UNIT_READS;
        unit_add(unit, name, use);
        return NULL;
    }
    /* A record that has expired, or was kept empty when it was deleted, is not there. */
    if (record_has_expired(&key->record, unit->now_us) || key->record.type == RECORD_NONE)
        record_clear(&key->record);
    return &key->record;
}

void unit_tell(struct unit *unit, struct slice channel, struct slice text)
{
    *MEM_APPEND(unit->messages, unit->message_count) =
        (struct unit_message){slice_duplicate(channel), slice_duplicate(text)};
}

bool unit_has_changes(const struct unit *unit)
{
    bool changed = unit->message_count > 0;

    for (size_t i = 0; i < unit->count; i++)
        changed |= unit->keys[i].record.changed;
    return changed;
}

void unit_restart(struct unit *unit)
{
    for (size_t i = 0; i < unit->count; i++) {
        record_clear(&unit->keys[i].record);
        unit->keys[i].record = (struct record){0};
    }
    for (size_t i = 0; i < unit->message_count; i++) {
        slice_free(&unit->messages[i].channel);
        slice_free(&unit->messages[i].text);
    }
    unit->message_count = 0;
    unit->now_us = 0;
    unit->again = unit->guessed = false;
}

void unit_end(struct unit *unit)
{
    unit_restart(unit);
    for (size_t i = 0; i < unit->count; i++)
        slice_free(&unit->keys[i].name);
    free(unit->keys);
    free(unit->messages);
    *unit = (struct unit){0};
}
