/* Several addresses of stores in one text, with white space between them. Pure. */
#ifndef RLOCK_STORE_URLS_H
#define RLOCK_STORE_URLS_H

#include "store/url.h"

/* The first word of "text", and its length; NULL if there is none. */
const char *urls_word(const char *text, size_t *length);

/* Finds the next password at or behind "from", as url_password_span() does; white space within
 * what may be a password is taken for a part of it. */
bool urls_password_span(const char *text, size_t from, size_t *start, size_t *length);

/* Overwrites the passwords of what looks like addresses in "text" with asterisks. */
void urls_blot(char *text);

/* Prints the user's text for a message: without those passwords, and cut to a fair length, "..."
 * for the rest. Returns "out". */
#define URLS_SHOWN_SIZE 84
char *urls_show(const char *text, char out[URLS_SHOWN_SIZE]);

/* True if both name the same server, whatever its database. */
bool urls_same_server(const struct url *a, const struct url *b);

#endif
