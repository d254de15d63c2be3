/* Configuration files: lines of "key = value", blank lines, and comment lines that begin with '#'.
 * White space around key and value is dropped; nothing is quoted. Pure. */
#pragma once

#include <stdbool.h>

/* A file that is read. Begin with "rest" at its text, "end" at the '\0' that follows it, and
 * nothing else. */
struct config_reader {
    char *rest;
    const char *end;
    int number; /* of the latest line, from 1 */
    char *key, *value;
    const char *fault; /* of that line, a constant; NULL: none */
};

/* Reads the next setting, and cuts the text into strings in place. Returns false at the end, and at
 * a fault. */
bool config_next(struct config_reader *reader);
