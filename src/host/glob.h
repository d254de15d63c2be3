/* Patterns as Redis matches them, in SCAN: *, ?, [abc], [^a-z], and \ before a letter. Pure. */
#ifndef RLOCK_HOST_GLOB_H
#define RLOCK_HOST_GLOB_H

#include <stdbool.h>

bool glob_fits(const char *glob, const char *text);

#endif
