/* Text put together piece by piece in a caller's buffer. */
#pragma once

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>

/* Room for what a server says of its failure, and for that with the address and the question in
 * front. A message is one line of at most PIPE_BUF bytes (cli/say.h), so more would not be seen. */
#define SAID_SIZE  2560
#define FAULT_SIZE 3584

/* Whether a word is among others. */
bool text_is_among(const char *const *words, size_t count, const char *word);

/* The rest of the text behind that beginning; NULL: the text begins otherwise. */
const char *text_behind(const char *beginning, const char *text);

/* Copies a text; one that does not fit ends with "...". */
void text_copy(char *out, size_t size, const char *text);

/* text_copy() as an expression: returns "out". */
const char *text_brief(char *out, size_t size, const char *text);
#define BRIEF_TEXT(text, most) text_brief((char[(most) + 1]){""}, (most) + 1, text)

/* Adds to the text in "out", of "size" bytes with its NUL, which ends with "..." if it is cut. */
void text_append(char *out, size_t size, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
void text_vappend(char *out, size_t size, const char *fmt, va_list args)
    __attribute__((format(printf, 3, 0)));

/* A part of a form. */
struct text_field {
    const char *name, *text;
};

/* Adds a form, in which each "{name}" stands for the text of that field, which is there. A part in
 * "[brackets]" is left out if a field in it is empty. */
void text_fill(char *out, size_t size, const char *form, const struct text_field *fields);
