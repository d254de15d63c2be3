#include "cli/screen.h"

#include <stdio.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/utf8.h"

/* The alternate screen, without a cursor; and back. */
#define ENTER "\033[?1049h\033[?25l"
#define LEAVE "\033[?25h\033[?1049l"
/* To the first line; the rest of a line, of the screen, is wiped. */
#define HOME       "\033[H"
#define WIPE_LINE  "\033[K"
#define WIPE_BELOW "\033[J"

bool screen_is_there(void)
{
    const char *term = getenv("TERM");

    return isatty(STDOUT_FILENO) && term && *term && strcmp(term, "dumb") != 0;
}

struct window screen_window(void)
{
    struct winsize size = {0};

    ioctl(STDOUT_FILENO, TIOCGWINSZ, &size);
    return (struct window){.columns = size.ws_col > 0 ? size.ws_col : 80,
                           .lines = size.ws_row > 0 ? size.ws_row : 24};
}

bool screen_shows_utf8(void)
{
    static const char *const names[] = {"LC_ALL", "LC_CTYPE", "LANG"};
    const char *locale = NULL;

    for (size_t i = 0; i < 3 && !(locale && *locale); i++)
        locale = getenv(names[i]);
    return locale && (strcasestr(locale, "utf-8") || strcasestr(locale, "utf8"));
}

/* Draws the lines. Each is wiped before it is written: behind a character in the last column the
 * cursor is still on it. */
bool screen_draw(struct screen *screen, const char *lines)
{
    int lines_left = screen_window().lines;
    pid_t foreground = tcgetpgrp(STDOUT_FILENO); /* -1: not the terminal of this session */

    if (foreground > 0 && foreground != getpgrp())
        return true; /* another job is in the foreground */
    fputs(screen->entered ? HOME : ENTER HOME, stdout);
    screen->entered = true;
    for (;; lines_left--) {
        size_t length = strcspn(lines, "\n");
        printf(WIPE_LINE "%.*s", (int)length, lines);
        lines += length;
        if (!*lines)
            break;
        fputs("\r\n", stdout);
        lines++;
    }
    if (lines_left > 1)
        fputs("\r\n" WIPE_BELOW, stdout);
    return fflush(stdout) == 0;
}

void screen_leave(struct screen *screen)
{
    if (!screen->entered)
        return;
    screen->entered = false;
    fputs(LEAVE, stdout);
    fflush(stdout);
}

/* -- text fitted into a window ----------------------------------------------------------------- */

#define ESCAPE '\033'

/* Adds a line cut to so many columns. Its colours take no room, and stay even behind the cut, as
 * the last one ends them. */
static void put_line(struct strbuf *out, const char *line, size_t length, size_t columns)
{
    const char *end = line + length;

    while (line < end) {
        const char *color = memchr(line, ESCAPE, (size_t)(end - line));
        size_t length_plain = (size_t)((color ? color : end) - line);
        char *plain FREED = mem_checked(strndup(line, length_plain));
        size_t kept = utf8_fit(plain, columns);
        strbuf_add(out, plain, kept);
        columns = kept < length_plain ? 0 : columns - utf8_width(plain);
        line += length_plain;
        if (!color)
            break;
        const char *last = memchr(line, 'm', (size_t)(end - line));
        size_t sequence = (size_t)((last ? last + 1 : end) - line);
        strbuf_add(out, line, sequence);
        line += sequence;
    }
}

void window_fit(struct strbuf *out, const char *text, const struct window *window, const char *unit)
{
    size_t count = 0, room = window->lines > 0 ? (size_t)window->lines : 1;
    size_t columns = window->columns > 0 ? (size_t)window->columns : 1;
    char more[64];

    for (const char *line = text; *line; count++)
        line += strcspn(line, "\n") + (strchr(line, '\n') != NULL);
    size_t shown = count <= room ? count : room - 1;
    for (size_t i = 0; i < shown; i++) {
        size_t length = strcspn(text, "\n");
        if (i > 0)
            strbuf_putc(out, '\n');
        put_line(out, text, length, columns);
        text += length + (text[length] != '\0');
    }
    if (shown == count)
        return;
    snprintf(more, sizeof more, "\xe2\x80\xa6 and %zu more%s", count - shown, unit);
    if (shown > 0)
        strbuf_putc(out, '\n');
    put_line(out, more, strlen(more), columns);
}

#define INDENT 4

/* Returns how many bytes of a line go into so many columns: as many as fit; fewer, up to a space,
 * if one is in their second half. */
static size_t length_to_break(const char *line, size_t columns)
{
    size_t whole = utf8_fit(line, columns), part = whole;

    if (!line[whole])
        return whole;
    while (part > whole / 2 && line[part] != ' ')
        part--;
    part = part > whole / 2 ? part : whole;
    /* At least a character, though none fits; one of more than two columns is broken. */
    part = part > 0 ? part : utf8_fit(line, 2);
    return part > 0 ? part : 1;
}

void window_wrap(struct strbuf *out, const char *text, int columns)
{
    size_t room = columns > 1 ? (size_t)columns : 1;

    while (*text) {
        size_t length = strcspn(text, "\n");
        char *whole FREED = mem_checked(strndup(text, length));
        const char *line = whole;
        size_t indent = 0;
        do {
            size_t part = length_to_break(line, room - indent);
            strbuf_printf(out, "%*s%.*s\n", (int)indent, "", (int)part, line);
            line += part;
            line += strspn(line, " ");
            indent = room > 2 * INDENT ? INDENT : 0;
        } while (*line);
        text += length + (text[length] != '\0');
    }
}
