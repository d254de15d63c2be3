/* Passwords kept in files. */
#ifndef RLOCK_OS_SECRET_H
#define RLOCK_OS_SECRET_H

#include <stdbool.h>
#include <stddef.h>

/* The first line of a file, which may be a pipe; the caller frees. NULL with a message in "fault"
 * that follows the path and quotes nothing of the file. *rereadable: it can be read again.
 * *exposed: the file's mode if every user of this host can read it, else 0. */
char *secret_read(const char *path, bool *rereadable, unsigned *exposed, char *fault, size_t size);
/* The same of a file that was read before and may have changed; never waits, says nothing; NULL
 * where it cannot. */
char *secret_read_again(const char *path);

#endif
