/* Chance, to spread in time what many would do at once. */
#pragma once

#include <stdint.h>

/* Any number. Not for secrets: where there is no entropy yet, it is always the same. */
uint32_t jitter(void);

/* "middle" ns, up to "spread" ns more or less. */
int64_t jitter_spread(int64_t middle, int64_t spread);

/* From "least" to "most". */
int64_t jitter_between(int64_t least, int64_t most);
