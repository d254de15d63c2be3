/* The locks that this user has reserved: a file each in $XDG_STATE_HOME/rlock, which is the user's
 * alone, with the owner token that the lock is held by. So the user's later commands find it: runs
 * nest in that owner. All of them have one token, so that a run of several KEYs nests in each. What
 * is there says what was reserved, the store whether it is still. */
#ifndef RLOCK_CLI_RESERVATION_H
#define RLOCK_CLI_RESERVATION_H

#include "cli/settings.h"
#include "lock/owner.h"

/* The owner by which the user has reserved KEY in the store that the settings name. False if there
 * is none, or nothing can be read. */
bool reservation_find(const struct settings *settings, const char *key, char owner[OWNER_SIZE]);

/* By which owner the user reserves: that of the other reservations, or a new one. */
void reservation_owner(char owner[OWNER_SIZE]);

/* Notes that KEY is reserved by that owner for so many ns from now on. False with a message in
 * "fault". */
bool reservation_save(const struct settings *settings, const char *key, const char *owner,
                      int64_t ns, char *fault, size_t size);

/* Nothing is reserved there any more. */
void reservation_forget(const struct settings *settings, const char *key);

#endif
