/* Owner tokens: the path of its ancestors' tokens and its own, outermost first, as "UUID.UUID". Pure. */
#ifndef RLOCK_OWNER_H
#define RLOCK_OWNER_H

#include "lock.h"
#include <stdbool.h>

#define OWNER_UUID_SIZE 37 /* one UUID in lower case, as text */

/* NULL when "text" is an owner token. Otherwise what is wrong with it, as "is no owner token" (a
 * constant). */
const char *owner_fault(const char *text);

/* Makes the token of one that nests in "outer", which may be NULL or "" for nobody. False if it would be
 * nested too deep. */
bool owner_nest(const char *outer, const char *uuid, char owner[OWNER_SIZE]);

/* Makes the token of a sibling of "other". */
void owner_beside(const char *other, const char *uuid, char owner[OWNER_SIZE]);

/* True if "owner" is a descendant of "ancestor". */
bool owner_nests_in(const char *owner, const char *ancestor);

#endif
