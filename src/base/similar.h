/* Guesses which word a mistyped one should have been. Pure. */
#ifndef RLOCK_BASE_SIMILAR_H
#define RLOCK_BASE_SIMILAR_H

#include <stdbool.h>
#include <stddef.h>

/* Whether the "length" bytes at "typed" are "word" but for a slip: one letter wrong, missing or too
 * many, or two in a word of more than four. */
bool similar(const char *typed, size_t length, const char *word);

#endif
