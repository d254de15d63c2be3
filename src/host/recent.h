/* Records that were written just now, by this host, or by the one that has handed a lock over to
 * it. A unit that follows soon, such as the release, need not read them first where conditions find
 * out whether they have changed: it is done once with what is known here (unit->guessed). */
#pragma once

#include "host/unit.h"

struct recent {
    struct slice name, text; /* owned; the text of one that is not there is "" */
    int64_t version;
};

/* Copies both. */
void recent_note(struct slice name, struct slice text, int64_t version);
/* Whether all records of the unit are known now, and one may be written. */
bool recent_has(const struct unit *unit);
/* Returns the record of that key, which recent_has() has found; NULL: there is none. */
const struct recent *recent_find(struct slice name);
/* Forgets all. */
void recent_forget(void);
