/* Commands "rlock latch", which set, count down, wait for and delete one latch, or run a command
 * whose success is counted. */
#pragma once

#include "host/record.h"

/* Chooses whether there is a latch, and who does what with it, when. */
void latch_choose(void);
/* At the server: the record of that name has changed. */
void latch_on_change(const char *name, const struct record *record);
/* When nothing is left to happen. */
void latch_end(void);
