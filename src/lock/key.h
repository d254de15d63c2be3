/* The rules for lock names and prefixes, and the store key made of them. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#define KEY_MAX_BYTES 512

/* Returns NULL if "key" may name a lock: 1 to 512 bytes of valid UTF-8 without white space, control
 * characters, '{' or '}'. Otherwise what is wrong with it, as "is empty", "is longer than 512
 * bytes", … (a constant). The same rule holds for a prefix. */
const char *key_fault(const char *key);

/* True if "text" has an unescaped * ? or [ and so is a pattern over keys. */
bool key_is_glob(const char *text);
/* False only where no key is known to match both patterns: they begin with other letters. */
bool key_globs_may_meet(const char *one, const char *other);
/* Returns the key that a pattern without wildcards stands for: a\*b is a*b. The caller frees. */
char *key_from_pattern(const char *pattern);
/* Returns the pattern that matches only this key. The caller frees. */
char *key_to_pattern(const char *key);

/* Returns the store's name of a lock: PREFIX:{KEY}. The braces make the key the Cluster hash tag.
 * The caller frees. */
char *key_in_store(const char *prefix, const char *key);

/* Returns KEY out of PREFIX:{KEY}; NULL if the name is of another form, or for want of memory. The
 * caller frees. */
char *key_from_store(const char *prefix, const char *name);
