/* A unit is what one run of a script, or one command, has read and written: it is committed as a
 * whole, or done again from the start. The script sees only the records that are in its unit. */
#pragma once

#include "host/record.h"

/* A store has to lock as many at once. A script has up to 32 keys and a few more. */
#define UNIT_KEYS_MAX 128

struct unit_key {
    struct slice name; /* owned */
    bool writes; /* no other unit may read it before this one ends; otherwise none may write */
    struct record record;
};

struct unit_message {
    struct slice channel, text; /* owned */
};

struct unit {
    struct unit_key *keys;
    size_t count;
    bool reads_only; /* it locks nothing, until it wants to change something */
    int64_t now_us;  /* the store's clock, read behind all locks; us since 1970 */
    bool guessed;    /* its records may be old: it is done again, unless it is committed */
    bool asks;       /* it asks for a lock, as many others may do at the same time */
    bool again; /* it must be done again at once: it needs another key or another lock on one, or
                      * has stood in a line behind those that were quicker */
    struct unit_message *messages; /* to be told when it is committed */
    size_t message_count;
};

enum unit_use { UNIT_READS, UNIT_WRITES };

/* Adds a key that the unit needs, by a name that is copied, before it is loaded. */
void unit_add(struct unit *unit, struct slice name, enum unit_use use);
/* The record of that key, which does not exist if it has expired. NULL: it was not loaded, or may
 * not be changed; then the unit must be done again. */
struct record *unit_record(struct unit *unit, struct slice name, enum unit_use use);
/* Has the text told to the channel when the unit is committed. Both are copied. */
void unit_tell(struct unit *unit, struct slice channel, struct slice text);
/* Whether there is anything to commit. */
bool unit_has_changes(const struct unit *unit);

/* Forgets what it has read and written, for another attempt, but not which keys it needs. */
void unit_restart(struct unit *unit);
/* Frees what the unit owns. */
void unit_end(struct unit *unit);
