#include "base/similar.h"

#include <ctype.h>
#include <string.h>

#define LENGTH_MAX 32 /* of words; longer ones are similar to none */

static size_t smaller_of(size_t a, size_t b)
{
    return a < b ? a : b;
}

static bool same_letter(char a, char b)
{
    return tolower((unsigned char)a) == tolower((unsigned char)b);
}

/* Returns the edit distance of Levenshtein, in which a swap of two neighbours counts once.
 * rows[i][j] is the distance of the first i letters of a from the first j of b. */
static size_t edit_distance(const char *a, size_t a_length, const char *b, size_t b_length)
{
    size_t rows[LENGTH_MAX + 1][LENGTH_MAX + 1];

    for (size_t i = 0; i <= a_length; i++) {
        for (size_t j = 0; j <= b_length; j++) {
            size_t *here = &rows[i][j];
            if (i == 0 || j == 0) {
                *here = i + j;
                continue;
            }
            *here = smaller_of(rows[i - 1][j - 1] + !same_letter(a[i - 1], b[j - 1]),
                               smaller_of(rows[i - 1][j], rows[i][j - 1]) + 1);
            if (i > 1 && j > 1 && same_letter(a[i - 1], b[j - 2]) &&
                same_letter(a[i - 2], b[j - 1]))
                *here = smaller_of(*here, rows[i - 2][j - 2] + 1);
        }
    }
    return rows[a_length][b_length];
}

bool similar_is_nearer(const char *typed, size_t length, const char *word, size_t *slips)
{
    size_t word_length = strlen(word);

    if (length > LENGTH_MAX || word_length > LENGTH_MAX)
        return false;
    size_t found = edit_distance(typed, length, word, word_length);
    if (found >= *slips || found > (word_length > 4 ? 2 : 1))
        return false;
    *slips = found;
    return true;
}
