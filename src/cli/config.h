/* Config files: lines of "key = value", blank lines, and comments from a '#' that comes first on
 * its line to its end. White space around key and value is dropped; nothing is quoted. Pure. */
#ifndef RLOCK_CLI_CONFIG_H
#define RLOCK_CLI_CONFIG_H

#include <stddef.h>

struct config_line {
    char *key;
    char *value;
    int number; /* from 1 */
};

/* What is still to be read. Set "rest" to the file's text, which a '\0' follows, and "end" to that;
 * zero the other. */
struct config_reader {
    char *rest;
    const char *end;
    int number;
};

/* Takes the next setting, cutting the text into strings in place: 1 and *line; 0 at the end; -1
 * with line->number and a constant message in *fault. */
int config_next(struct config_reader *reader, struct config_line *line, const char **fault);

#endif
