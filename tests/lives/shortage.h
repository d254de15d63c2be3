/* Hosts run out of descriptors, memory or processes: when, and for which calls. */
#pragma once

#include "lives/run.h"

#define SHORTAGES 2

/* Chooses them, for the runs that are chosen already. */
void shortages_choose(void);
