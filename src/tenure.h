/* What `renew` and `release` have in common: a KEY and the owner token that holds it. */
#ifndef RLOCK_TENURE_H
#define RLOCK_TENURE_H

#include "command.h"
#include "query.h"

enum { OPTION_TOKEN = OPTION_OTHER };

/* Rows for a command's table. */
#define TENURE_OPTIONS                                                                             \
    {.id = OPTION_TOKEN,                                                                           \
     .name = "owner",                                                                              \
     .argument = "TOKEN",                                                                          \
     .help = "the owner token that rlock acquire printed (RLOCK_OWNER)"},                          \
        {.id = SETTING_REPLICAS,                                                                   \
         .name = "replicas",                                                                       \
         .argument = "N",                                                                          \
         .help = "as it was acquired: it is to be on N replicas, or a majority, or all"},          \
    {                                                                                              \
        .id = SETTING_GRACE, .name = "grace",                                                      \
        .help = "as it was acquired: the store may have forgotten it"                              \
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
