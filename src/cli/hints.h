/* The words for the hints (store/hint.h) and the abilities of stores. */
#ifndef RLOCK_CLI_HINTS_H
#define RLOCK_CLI_HINTS_H

#include "store/store.h"

/* Returns the words of the hint, or else of the one that always goes with the cause; NULL if there
 * is none. */
const char *hint_words(enum cause cause, enum hint hint);

#define ABILITY_LACK_SIZE 80

/* Prints "a quorum has no --grace". Returns out. */
char *ability_print_lack(const struct store_address *address, enum store_ability ability,
                         char out[ABILITY_LACK_SIZE]);

/* Returns a hint at what to use instead in that store, a constant; NULL if there is nothing. */
const char *ability_instead(const struct store_address *address, enum store_ability ability);

#endif
