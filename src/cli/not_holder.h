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

/* Says by whom KEY is reserved. Returns false if it is not, or the store does not answer. */
bool not_holder_say_reserved(const struct call *call, const char *key);

/* Warns of each of these KEYs whose reservation by "owner" was taken away. Says nothing if the
 * store does not answer soon: the next request reports that. */
void not_holder_warn(const struct settings *settings, const char *const *keys, size_t count,
                     const char *owner);
