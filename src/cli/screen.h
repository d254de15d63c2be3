/* A terminal on standard output that is drawn upon, frame after frame, on a screen of its own: what
 * was there before is there again at the end. */
#pragma once

#include <stdbool.h>

#include "base/strbuf.h"

struct window {
    int columns, lines;
};

struct screen {
    bool entered;
};

/* Whether standard output is a terminal that can be drawn upon. */
bool screen_is_there(void);
/* The size of the terminal: 80 columns and 24 lines where it does not say. */
struct window screen_window(void);
/* Whether the locale's name (LC_ALL, LC_CTYPE or LANG, the first that is set) says UTF-8. */
bool screen_shows_utf8(void);
/* Draws lines that fit the window (window_fit()) in place of those before; nothing while this job
 * is in the background. False with errno if the terminal takes no more. */
bool screen_draw(struct screen *screen, const char *lines);
/* Puts back what was there before the first frame; harmless if there was none. The next frame
 * begins anew. */
void screen_leave(struct screen *screen);

/* Writes the lines of the text, without a newline behind the last. Where not all of them fit, the
 * last one that is written says how many more there are, in "unit": "… and 12 more" and the unit,
 * which may be "". No character is cut in two; sequences that set colours (ESC [ … m) take no
 * columns and are never cut off. */
void window_fit(struct strbuf *out, const char *text, const struct window *window,
                const char *unit);

/* Writes the lines of the text, which has no colours, those that are longer than "columns" as
 * several ones: at a space where there is one in the second half of the line, and with those that
 * follow indented. Each ends with a newline. */
void window_wrap(struct strbuf *out, const char *text, int columns);
