/* How a user is told what a store cannot do: "a quorum has no --grace". */
#ifndef RLOCK_CLI_ABILITY_H
#define RLOCK_CLI_ABILITY_H

#include "store/store.h"

#define ABILITY_LACK_SIZE 80

/* Returns out. */
char *ability_print_lack(const struct store_address *address, enum store_ability ability,
                         char out[ABILITY_LACK_SIZE]);

/* Returns a hint at what to use in its place, a constant; NULL if there is nothing. */
const char *ability_instead(enum store_ability ability);

#endif
