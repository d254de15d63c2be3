/* What is said to somebody who does not hold the lock, or not any more. */
#ifndef RLOCK_CLI_NOT_HOLDER_H
#define RLOCK_CLI_NOT_HOLDER_H

#include "cli/command.h"

/* How a command words it. */
struct not_holder_words {
    const char *what; /* "is not …": "held by that owner" */
    const char *by;   /* "…, but … WHO": "by" */
    const char *gone; /* "is not …", where nobody has it: "held: it was released" */
};

/* Says who has taken the lock away and when, as far as the store remembers that, or else who has
 * it, of an answer NOT_HOLDER. It is a plain no: the status tells it to a user that asked for
 * quiet. */
void not_holder_say(const struct command *command, const char *key, const struct answer *answer,
                    const struct not_holder_words *words);

/* Looks whether KEY is reserved by anybody, and says by whom; false if it is not, or that cannot be
 * found out. */
bool not_holder_say_reserved(const struct command *command, const char *key,
                             const struct settings *settings);

/* Looks whether somebody has taken away what "owner" has reserved of these KEYs, and warns of each.
 * A store that does not answer soon is left to what comes next. */
void not_holder_warn(const struct settings *settings, const char *const *keys, size_t count,
                     const char *owner);

#endif
