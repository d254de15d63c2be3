/* Messages to the user: one line, prefixed "rlock: ", in one write to standard error; errno is
 * kept.
 *
 * A message never blocks for long: standard error may be a pipe without a reader, and the caller
 * has a lease to renew. A message that does not fit is dropped. No message has a password: callers
 * print addresses with url_print(), which leaves it out. Holds the program's only globals but
 * the functions of a library (cli/json.h). */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

enum verbosity { SAY_QUIET, SAY_NORMAL, SAY_VERBOSE };

/* Set once, before anything is said. */
void say_set_verbosity(enum verbosity v);
enum verbosity say_verbosity(void);

#define SAY_PRINTF __attribute__((format(printf, 1, 2)))

/* Always printed. Control characters are escaped in all four. */
void say_error(const char *fmt, ...) SAY_PRINTF;
/* "hint: …", unprefixed; after an error or warning, printed with it. */
void say_hint(const char *fmt, ...) SAY_PRINTF;
/* Printed unless quiet. */
void say_warning(const char *fmt, ...) SAY_PRINTF;
/* Printed when verbose, with the time of day. */
void say_detail(const char *fmt, ...) SAY_PRINTF;

/* Asks a question on standard error, and reads the line that is typed. False if there is no answer:
 * the end of the input, an empty line, "n", or one with Escape. */
bool say_ask(const char *question, char *answer, size_t size);
/* Whether the last question had no answer. */
bool say_was_left(void);

/* Closes what was opened to say something, for a process that has another standard error now. */
void say_let_go(void);

/* True when standard error is a terminal that say_status() may redraw on; not in a CI job (the
 * variable CI), whose log keeps every line, nor on a dumb terminal. */
bool say_on_terminal(void);
/* Redraws the terminal's status line; "" wipes it. Later messages wipe it first. False if the user
 * does not see it: this job is in the background. */
bool say_status(const char *text);
/* So many columns of the terminal say_status() shows of a text. */
size_t say_columns(void);
/* say_status() then draws only while this process group is the terminal's foreground: a job that
 * was stopped or sent to the background must not write over its user's prompt. */
void say_set_job(pid_t group);
