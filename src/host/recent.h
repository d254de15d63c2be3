/* Records that were written just now, by this host, or by the one that has handed a lock over to
 * it. A unit that follows soon, such as the release, is tried with what is known here, and reads
 * nothing first (unit->guessed). The store commits it only if no record has changed since. */
#pragma once

#include "host/unit.h"

struct recent {
    struct slice name, text; /* owned; the text of one that is not there is "" */
    int64_t version;
};

/* Copies both. */
void recent_note(struct slice name, struct slice text, int64_t version);
/* Whether all records of the unit are known now, and it may write: only a commit shows that they
 * are those of now. */
bool recent_has(const struct unit *unit);
/* Returns the record of that key, which recent_has() has found; NULL: there is none. */
const struct recent *recent_find(struct slice name);
/* Forgets all. */
void recent_forget(void);
