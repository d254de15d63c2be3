/* The pauses between attempts at something that fails. */
#pragma once

#include "base/clock.h"

/* The pause in ns after attempt number "failures" (from 0) has failed: doubles from 50 ms to 1 s;
 * "chance" is any number and spreads it over half to all of that, so that many clients do not come
 * back at once. */
int64_t backoff_pause(unsigned failures, uint32_t chance);

/* One more attempt has failed "now": when to make the next one. *failures is how many had before,
 * in a row. */
struct moment backoff_next(unsigned *failures, struct moment now);
