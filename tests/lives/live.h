/* A life, from its plan to its verdict. */
#pragma once

#include <stdio.h>

#include "lives/plan.h"

/* Chooses all that a plan says. */
void plan_make(const struct plan *plan);
/* Returns whether it went well; world.verdict says what did not. trace_to: NULL for no trace. */
bool live(const struct plan *plan, FILE *trace_to);
/* Makes the plan of one that went wrong as simple as it can be, with the same verdict. Returns how
 * many lives that took. */
unsigned shrink(struct plan *plan);
/* Lives it again, and prints what matters of its trace, in TRACE_LINES at most. */
void live_traced(const struct plan *plan);
