/* Guesses which word a mistyped one should have been. Pure. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#define SLIPS_MANY 3

/* Returns whether the "length" bytes at "typed" are "word" but for less than *slips, which become
 * the slips of this word: letters that are wrong, missing, too many, or swapped with the next one.
 * Case does not count. Begin with SLIPS_MANY. More than one slip, or than two in a word of more
 * than four letters, mean another word. */
bool similar_is_nearer(const char *typed, size_t length, const char *word, size_t *slips);
