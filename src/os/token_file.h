/* A file that has one number in it: the highest fencing token that a resource has seen. Its own
 * lock (flock(2)) keeps two from changing it at a time, on all descriptors of one open file. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define TOKEN_FILE_FOREVER (-1)

struct token_file {
    const char *path; /* borrowed */
    int fd;           /* close-on-exec; the lock is held until it is closed everywhere */
    bool is_empty;    /* it has no number yet */
    int64_t number;
};

/* Opens and locks the file, which is made where there is none, and reads it. wait: for how long
 * (ns) to wait for its lock, or TOKEN_FILE_FOREVER; "waits" is called once, after a second of that,
 * to tell the user. Returns 0, or an errno: EWOULDBLOCK if the file is still locked, EINVAL if it
 * is not a regular file, EBADMSG if something else is in it. Close with token_file_close() in any
 * case. Signals end the process meanwhile as they end any other. */
int token_file_open(struct token_file *file, const char *path, int64_t wait,
                    void (*waits)(const char *path));
/* Writes a number that is not lower than the file's, in place, by one write, and has it on the
 * disk. A process that is killed, or a disk that is full, leaves the old number or the new one.
 * Returns 0, or an errno. */
int token_file_write(struct token_file *file, int64_t number);
/* Closes the file, which unlocks it if no other process has this descriptor. */
void token_file_close(struct token_file *file);
