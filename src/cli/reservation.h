/* The locks that this user has reserved: a file each in $XDG_STATE_HOME/rlock, which only the user
 * may read, with the owner token. So the user's later commands find it, and runs nest in that
 * owner. All reservations have one token, so that a run of several KEYs nests in each. A file says
 * that a lock was reserved; only the store knows whether it still is. */
#pragma once

#include "cli/settings.h"
#include "lock/owner.h"

/* Finds the owner by which the user has reserved KEY in the store of the settings. *until_ms: its
 * end (ms since 1970); may be NULL. Returns false if there is none, and *until_ms is as it was. */
bool reservation_find(const struct settings *settings, const char *key, char owner[OWNER_SIZE],
                      int64_t *until_ms);

/* Finds the owner by which the user has reserved KEY; or takes that of the user's other
 * reservations, or else a new one. Saves that KEY is reserved by it for so many ns from now, or as
 * long as before if that is longer. *fresh:
 * until when (ms since 1970) if there was no such file, or 0. Returns false with a message in
 * "fault" on failure. */
bool reservation_begin(const struct settings *settings, const char *key, int64_t ns,
                       char owner[OWNER_SIZE], int64_t *fresh, char *fault, size_t size);

/* Removes the file of a reservation with that end (ms since 1970), unless another command has saved
 * it since. */
void reservation_forget(const struct settings *settings, const char *key, int64_t until_ms);

/* Saves that the reservation ends so many ns from now. Returns false with a message in "fault" on
 * failure. */
bool reservation_save(const struct settings *settings, const char *key, const char *owner,
                      int64_t ns, char *fault, size_t size);
