/* Messages for a user who does not hold the lock, or no longer does. */
#pragma once

#include "cli/command.h"

/* The words of a command. */
struct not_holder_words {
    const char *what; /* "is not …": "held by that owner" */
    const char *by;   /* "…, but … WHO": "by" */
    const char *gone; /* "is not …", if the lock is free: "held: it was released" */
};

/* Explains an answer NOT_HOLDER: who has taken the lock away and when, as far as the store
 * remembers that, or else who has it. Silent under -q, as the status says no. */
void not_holder_say(const struct call *call, const char *key, const struct answer *answer,
                    const struct not_holder_words *words);

/* Tells the user who has reserved KEY. False, and nothing is said: it is not reserved, or the store
 * does not answer. */
bool not_holder_told_reserver(const struct call *call, const char *key);

/* Refuses KEY, which the user has not reserved, and says whether it is free, or who has it. Returns
 * STATUS_NO. */
int not_holder_refuse_unreserved(const struct call *call, const char *key);

/* Refuses to touch the lock of a run in place of that run. Returns STATUS_NO. */
int not_holder_refuse_run(const struct call *call, const char *key);

/* Says of each of these KEYs that "owner" has reserved that a request for all of them nests in the
 * reservation, or that this was taken away. all: the request is for all. Says nothing if the store
 * does not answer soon: the next request reports that. */
void not_holder_warn_of_reservations(const struct settings *settings, const char *const *keys,
                                     size_t count, bool all, const char *owner);
