/* The last runs of a lock, each on a line of time that is drawn with characters. Pure. */
#pragma once

#include "cli/render.h"

#define TIMELINE_LEAST 40 /* columns; no drawing is narrower */

struct timeline_style {
    int width; /* columns of the terminal */
    bool color;
    bool ascii; /* draws with '-' and '#', for terminals that do not show UTF-8 */
};

/* Draws the runs of the lock "key", the oldest first: a heading, then a row a run with who it was,
 * when it waited and held the lock, for how long, and how it ended. There is one run or more. Times
 * are those of this process's time zone. */
void timeline_print(struct strbuf *out, const char *key, const struct past_run *runs, size_t count,
                    const struct timeline_style *style);
