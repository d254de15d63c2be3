/* Durations as people write them: 500ms, 30s, 5m, 2h, 1d, 1m30s, 1.5h; a bare number is seconds. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The longest duration accepted: ten years. */
#define DURATION_MAX_NS (INT64_C(3650) * 86400 * 1000000000)

/* Parses all of "text" into *ns, nanoseconds. False for anything else: empty, negative, an
 * exponent, an unknown unit, units repeated or not in falling order, more than DURATION_MAX_NS. */
bool duration_parse(const char *text, int64_t *ns);
/* Says of a text that was refused that it is longer than that; "otherwise" if it is not a duration
 * at all. */
#define DURATION_FAULT "is not a duration (such as 500ms, 30s, 5m or 1m30s)"
const char *duration_fault(const char *text, const char *otherwise);

/* Prints a duration for a reader, rounded: "850ms", "1.5s", "24s", "3m12s", "2h05m", "3d04h";
 * negative as 0. Returns out. */
char *duration_print(int64_t ns, char *out, size_t size);

/* Macros named …_TEXT print into a text of their own, which lasts as long as the block around. */
#define DURATION_TEXT(ns) duration_print(ns, (char[32]){""}, 32)
#define MS_TEXT(ms)       DURATION_TEXT((ms)*INT64_C(1000000))
