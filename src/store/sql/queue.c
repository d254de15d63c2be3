/* Places in queues. */
#include "store/sql/queue.h"

#include <inttypes.h>
#include <string.h>

/* A place stays in the table for a while after it has ended: who was cut off comes back to it. One
 * that has begun to count just now is not written again. */
#define STALE_US (60000 * US_PER_MS)
#define YOUNG_US (1000 * US_PER_MS)

bool sql_queue_holds(const struct sql_reading *reading, bool listens)
{
    int64_t least = listens ? SQL_PLACE_US - YOUNG_US : 0;

    for (size_t i = 0; i < reading->count; i++) {
        const struct sql_place *place = &reading->places[i];
        if (!place->live || place->until - reading->now < least)
            return false;
    }
    return true;
}

void sql_queue_join(struct sql_text *text, const struct sql_reading *reading,
                    const struct lock_request *request)
{
    char mode[2] = {sql_mode_letter(request->mode), '\0'};

    if (request->key_count > 1)
        *mode = (char)(*mode & ~0x20);
    sql_add(text, "INSERT INTO @wait (name, owner, scope, since_us, deadline_us, mode, who) "
                  "VALUES ");
    for (size_t i = 0; i < reading->count; i++) {
        const char *values[] = {reading->places[i].name, request->owner,
                                reading->scopes[reading->places[i].depth]};
        sql_add(text, "%s", i > 0 ? ", (" : "(");
        for (size_t n = 0; n < 3; n++) {
            sql_add_literal(text, values[n]);
            sql_add(text, ", ");
        }
        sql_add(text, "%s, %s + %" PRId64 ", ", text->dialect->now, text->dialect->now,
                SQL_PLACE_US);
        sql_add_literal(text, mode);
        sql_add(text, ", ");
        sql_add_literal(text, request->who);
        sql_add(text, ")");
    }
    sql_add(text, "%s", text->dialect->stay);
}

/* "('…', '…')": those of the keys. */
static void add_names(struct sql_text *text, const struct sql_reading *reading)
{
    for (size_t i = 0; i < reading->count; i++) {
        sql_add(text, "%s", i > 0 ? ", " : "(");
        sql_add_literal(text, reading->places[i].name);
    }
    sql_add(text, ")");
}

void sql_queue_leave(struct sql_text *text, const struct sql_reading *reading, const char *owner)
{
    sql_add(text, "DELETE FROM @wait WHERE name IN ");
    add_names(text, reading);
    if (!owner)
        return;
    sql_add(text, " AND (owner = ");
    sql_add_literal(text, owner);
    sql_add(text, " OR deadline_us < %s - %" PRId64 ")", text->dialect->now, STALE_US);
}

/* Each waiter listens to a channel of its own, named by the last part of its owner token. */
void sql_queue_call(struct sql_text *text, const struct sql_reading *reading)
{
    sql_add(text, "; SELECT pg_notify('rlock_' || right(convert_from(owner, 'UTF8'), 36), '') FROM "
                  "(SELECT DISTINCT ON (name, scope) owner FROM @wait WHERE name IN ");
    add_names(text, reading);
    sql_add(text, " AND ");
    sql_add_live(text, "");
    sql_add(text, " ORDER BY name, scope, since_us, owner) AS first");
}

void sql_queue_listen(struct sql_text *text, const char *owner)
{
    const char *dot = strrchr(owner, '.');

    sql_add(text, "UNLISTEN *; LISTEN \"rlock_%s\"", dot ? dot + 1 : owner);
}
