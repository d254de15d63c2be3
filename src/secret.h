/* Passwords kept in files. */
#ifndef RLOCK_SECRET_H
#define RLOCK_SECRET_H

#include <stddef.h>

/* The first line of a file; the caller frees. NULL with a message in "fault" that does not quote it. */
char *secret_read(const char *path, char *fault, size_t size);

#endif
