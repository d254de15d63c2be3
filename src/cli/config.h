/* Configuration files: lines of "key = value", blank lines, and comment lines that begin with '#'.
 * White space around key and value is dropped; nothing is quoted. Pure. */
#pragma once

#include <stddef.h>

struct config_line {
    char *key;
    char *value;
    int number; /* from 1 */
};

/* The rest of a file. Begin with "rest" at its text, "end" at the '\0' that follows it, and the
 * number 0. */
struct config_reader {
    char *rest;
    const char *end;
    int number;
};

/* Reads the next setting, and cuts the text into strings in place. Returns 1 with *line; 0 at the
 * end; -1 with line->number and a constant message in *fault. */
int config_next(struct config_reader *reader, struct config_line *line, const char **fault);
