/* Owner tokens: the UUIDs of the ancestors and its own, outermost first, as "UUID.UUID". A UUID
 * tells whether rlock acquire has made it, which makes no difference to a store. Pure. */
#pragma once

#include "lock/lock.h"
#include <stdbool.h>

#define OWNER_UUID_SIZE 37 /* one UUID in lower case, as text */

/* Returns NULL if "text" is an owner token. Otherwise what is wrong with it (a constant). */
const char *owner_fault(const char *text);

/* Marks a random UUID as one of rlock acquire's: of version 8, and "acc" in the same group. */
void owner_mark(char uuid[OWNER_UUID_SIZE]);

/* Whether rlock acquire made the token, not rlock run. */
bool owner_is_acquired(const char *owner);

/* A shell that acquires one lock after the other nests each in those before. Copies the token in
 * which "owner" is nested to "outer", which may be the same buffer. False if there is none, or if
 * rlock acquire did not make both. */
bool owner_acquired_in(const char *owner, char outer[OWNER_SIZE]);

/* Makes the token of an owner that nests in "outer"; NULL or "": in none. False if it would be
 * nested too deep. */
bool owner_nest(const char *outer, const char *uuid, char owner[OWNER_SIZE]);

/* Makes the token of a sibling of "other": it nests in the same owner, if in any. */
void owner_beside(const char *other, const char *uuid, char owner[OWNER_SIZE]);

/* True if "owner" is a descendant of "ancestor". */
bool owner_nests_in(const char *owner, const char *ancestor);
