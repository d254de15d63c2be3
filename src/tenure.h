/* What `renew` and `release` have in common: a KEY and the owner token that holds it. */
#ifndef RLOCK_TENURE_H
#define RLOCK_TENURE_H

#include "command.h"
#include "query.h"

enum { OPTION_TOKEN = OPTION_OTHER };

/* A row for a command's table. */
#define TENURE_OPTION                                                                              \
    {                                                                                              \
        .id = OPTION_TOKEN, .name = "owner", .argument = "TOKEN",                                  \
        .help = "the owner token that rlock acquire printed (RLOCK_OWNER)"                         \
    }

struct tenure {
    const struct command *command;
    struct arguments arguments;
    struct settings settings;
    struct query query;
    const char *key, *owner;
    struct lock_request request; /* of that key and owner */
};

/* Reads the command line and what else is set, and checks all of it; opens nothing yet. True if the
 * request is to be made; otherwise *status is what to end with. tenure_end() in either case. */
bool tenure_begin(struct tenure *tenure, const struct command *command, int argc, char **argv,
                  int *status);
/* Says what a REFUSED or UNKNOWN answer means. Returns the status for it. */
int tenure_refused(const struct tenure *tenure, const struct answer *answer);
void tenure_end(struct tenure *tenure);

#endif
