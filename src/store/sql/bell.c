/* Names of user-level locks, and who sleeps by which. */
#include "store/sql/bell.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "store/sql/driver.h"

/* Of an owner token: its last part. */
#define NUMBER_LENGTH 36
/* A bell that its owner does not have is tried again after so long. */
#define MUTE_NS (2500 * NS_PER_MS)

static void print_name(const char *owner, enum sql_bell_kind kind, char name[SQL_BELL_SIZE])
{
    size_t length = strlen(owner);
    const char *number = owner + (length > NUMBER_LENGTH ? length - NUMBER_LENGTH : 0);

    snprintf(name, SQL_BELL_SIZE, "rlock:%s%s", number, kind == SQL_BELL_TURN ? ":turn" : "");
}

/* -- one's own --------------------------------------------------------------------------------- */

static void move_to(struct sql_bell *bell, const char *owner, unsigned connection)
{
    if (bell->connection == connection && strcmp(bell->owner, owner) == 0)
        return;
    bell->connection = connection;
    snprintf(bell->owner, sizeof bell->owner, "%s", owner);
    memset(bell->has, 0, sizeof bell->has);
}

void sql_bell_prepare(struct sql_bell *bell, struct sql_reading *reading, const char *owner,
                      bool shares, unsigned connection)
{
    memset(reading->bells, 0, sizeof reading->bells);
    if (bell->refused)
        return;
    move_to(bell, owner, connection);
    if (!bell->has[SQL_BELL_OWN])
        print_name(owner, SQL_BELL_OWN, reading->bells[SQL_BELL_OWN]);
    if (shares && !bell->has[SQL_BELL_TURN])
        print_name(owner, SQL_BELL_TURN, reading->bells[SQL_BELL_TURN]);
}

static bool has_asked(const struct sql_reading *reading)
{
    return *reading->bells[SQL_BELL_OWN] || *reading->bells[SQL_BELL_TURN];
}

void sql_bell_note(struct sql_bell *bell, const struct sql_reading *reading, const char *owner,
                   unsigned connection)
{
    if (!has_asked(reading))
        return;
    move_to(bell, owner, connection);
    for (size_t i = 0; i < SQL_BELLS; i++)
        bell->has[i] |= reading->taken[i];
}

/* Not done, and not for a reason that passes. */
static bool is_refused(const struct sql_reply *reply)
{
    return reply->failed && (reply->error == WIRE_UNFIT || reply->error == WIRE_DENIED);
}

bool sql_bell_fails(struct sql_bell *bell, const struct sql_reading *reading,
                    const struct sql_reply *reply)
{
    if (!has_asked(reading) || bell->refused || !is_refused(reply))
        return false;
    bell->refused = true;
    return true;
}

bool sql_bell_has(const struct sql_bell *bell, enum sql_bell_kind kind, unsigned connection)
{
    return bell->connection == connection && connection > 0 && bell->has[kind];
}

static void add_call(struct sql_text *text, const char *function, const char *name)
{
    sql_add(text, "%s(%s", function, text->dialect->text[0]);
    sql_add_digits(text, name);
    sql_add(text, "%s", text->dialect->text[1]);
}

void sql_bell_ring(const struct sql_bell *bell, bool both, struct sql_text *text)
{
    const char *between = "SELECT ";
    char name[SQL_BELL_SIZE];

    for (enum sql_bell_kind kind = both ? SQL_BELL_OWN : SQL_BELL_TURN; kind < SQL_BELLS; kind++) {
        if (!bell->has[kind])
            continue;
        print_name(bell->owner, kind, name);
        sql_add(text, "%s", between);
        add_call(text, "RELEASE_LOCK", name);
        sql_add(text, ")");
        between = ", ";
    }
}

void sql_bell_rung(struct sql_bell *bell, bool both)
{
    bell->has[SQL_BELL_TURN] = false;
    bell->has[SQL_BELL_OWN] &= !both;
}

/* -- somebody else's --------------------------------------------------------------------------- */

bool sql_bell_choose(struct sql_bell *bell, const struct sql_place *place,
                     const struct sql_claim *claim, struct moment now)
{
    const struct lock_party *before = &place->before[place->depth];
    const struct sql_holder *blocker = sql_row_blocker(&place->row, claim);
    char name[SQL_BELL_SIZE] = "";

    if (place->ahead[place->depth] > 0 && *before->owner)
        print_name(before->owner, before->mode == LOCK_EXCLUSIVE ? SQL_BELL_OWN : SQL_BELL_TURN,
                   name);
    else if (place->ahead[place->depth] == 0 && place->blocked && blocker)
        print_name(blocker->owner, SQL_BELL_OWN, name);
    if (strcmp(name, bell->name) != 0)
        bell->mute_until = (struct moment){0};
    else if (bell->rang)
        bell->mute_until = moment_plus(now, MUTE_NS);
    bell->rang = false;
    snprintf(bell->name, sizeof bell->name, "%s", name);
    return !bell->refused && *name && moment_reached(bell->mute_until, now);
}

/* It is given back at once, whoever else sleeps by it. */
void sql_bell_sleep(const struct sql_bell *bell, struct sql_text *text)
{
    sql_add(text, "SELECT IF(");
    add_call(text, "GET_LOCK", bell->name);
    sql_add(text, ", %" PRId64 ".%03" PRId64 ") = 1, ", bell->sleep / NS_PER_SEC,
            bell->sleep % NS_PER_SEC / NS_PER_MS);
    add_call(text, "RELEASE_LOCK", bell->name);
    sql_add(text, "), 0)");
}

/* A server that ends what takes long lets nobody sleep. One whose clock jumps may end it at
 * once. */
void sql_bell_wake(struct sql_bell *bell, const struct sql_reply *reply, struct moment now)
{
    bell->refused |= is_refused(reply) || (reply->failed && reply->error == WIRE_BUSY);
    if (!reply->failed)
        bell->rang = reply->rows != 1 || strcmp(reply->values[0], "0") != 0 ||
                     moment_until(reply->sent, now) < bell->sleep / 2;
}
