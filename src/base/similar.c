/* Guesses for mistyped words. */
#include "base/similar.h"

#include <string.h>

#define LENGTH_MAX 32 /* of words; longer ones are similar to none */

static size_t least(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* The edit distance (Levenshtein): one row of its table after the other. */
static size_t distance(const char *a, size_t a_length, const char *b, size_t b_length)
{
    size_t row[LENGTH_MAX + 1];

    for (size_t j = 0; j <= b_length; j++)
        row[j] = j;
    for (size_t i = 1; i <= a_length; i++) {
        size_t corner = row[0];
        row[0] = i;
        for (size_t j = 1; j <= b_length; j++) {
            size_t changed = corner + (a[i - 1] != b[j - 1]);
            corner = row[j];
            row[j] = least(changed, least(row[j], row[j - 1]) + 1);
        }
    }
    return row[b_length];
}

bool similar(const char *typed, size_t length, const char *word)
{
    size_t word_length = strlen(word);

    if (length > LENGTH_MAX || word_length > LENGTH_MAX)
        return false;
    return distance(typed, length, word, word_length) <= (word_length > 4 ? 2 : 1);
}
