/* Chance that a seed repeats. */
#pragma once

/* Returns one of 0 to limit - 1; "limit" is 65536 at most. *seed: what the next one is made of. */
unsigned chance(unsigned *seed, unsigned limit);

/* The output of getrandom() from now on, in a program that is linked with --wrap=getrandom: chance
 * of this seed, which is borrowed. NULL, and before: always the same. */
void chance_for_system(unsigned *seed);
