/* Judges each life by sentences of the manual, whatever goes wrong in it. */
#pragma once

#include "lives/run.h"

/* Before a life. */
void oracle_begin(void);
/* When nothing is left to happen: nothing is stuck, nothing is left, and the history is true. */
void oracle_end(void);
