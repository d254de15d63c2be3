/* Hints of stores (store/hint.h) in words. */
#ifndef RLOCK_CLI_HINTS_H
#define RLOCK_CLI_HINTS_H

#include "store/store.h"

/* What a user can do about it: the hint, or what always helps where something was not done for this
 * cause; NULL where the cause says it all. */
const char *hint_words(enum cause cause, enum hint hint);

#endif
