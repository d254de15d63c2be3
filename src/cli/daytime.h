/* Times of day, as people read them. Pure. */
#ifndef RLOCK_CLI_DAYTIME_H
#define RLOCK_CLI_DAYTIME_H

#include <stdbool.h>
#include <stdint.h>

#define DAYTIME_SIZE 40

/* "19:50", the minute that is next to at_ms, or with "seconds" "19:50:19", in the time zone of this
 * process; with its date in front where that is another day than now_ms. Both are wall clocks, ms
 * since 1970. "?" for what is none. Returns out. */
char *daytime_print(int64_t now_ms, int64_t at_ms, bool seconds, char out[DAYTIME_SIZE]);

#endif
