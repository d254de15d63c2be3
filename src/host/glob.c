/* Matching as Redis does it, its oddities included: "[" without an end goes to the end, "]" ends
 * what is in brackets wherever it is, and "z-a" is "a-z". */
#include "host/glob.h"

/* The letter at *glob, or the one behind a "\"; *glob is moved to its last character. */
static char letter(const char **glob)
{
    if (**glob == '\\' && (*glob)[1])
        ++*glob;
    return **glob;
}

/* Whether the letter is among those in brackets. *glob is at the first of them, and moved to the
 * "]", or to the last character where there is none. */
static bool is_among(const char **glob, char wanted)
{
    bool negated = **glob == '^', found = false;

    *glob += negated;
    for (; **glob && **glob != ']'; ++*glob) {
        unsigned char first = (unsigned char)letter(glob), last = first;
        bool escaped = (*glob)[-1] == '\\';
        if (!escaped && (*glob)[1] == '-' && (*glob)[2]) {
            *glob += 2;
            last = (unsigned char)**glob;
        }
        unsigned char low = first < last ? first : last, high = first < last ? last : first;
        found |= (unsigned char)wanted >= low && (unsigned char)wanted <= high;
    }
    if (!**glob)
        --*glob;
    return found != negated;
}

bool glob_fits(const char *glob, const char *text)
{
    for (; *glob; glob++, text++) {
        if (*glob == '*') {
            while (glob[1] == '*')
                glob++;
            if (!glob[1])
                return true;
            for (; *text; text++)
                if (glob_fits(glob + 1, text))
                    return true;
            return glob_fits(glob + 1, text);
        }
        if (!*text)
            return false;
        bool fits = true;
        if (*glob == '[') {
            glob++;
            fits = is_among(&glob, *text);
        } else if (*glob != '?') {
            fits = letter(&glob) == *text;
        }
        if (!fits)
            return false;
    }
    return !*text;
}
