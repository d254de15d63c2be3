/* Files that the user names, read whole: regular ones, and pipes and FIFOs, whose writers take
 * their time; and regular ones written whole. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* How long the reader of a FIFO waits for a process that opens it for writing; and how long reading
 * any file may take. */
#define FILE_OPENED_SECONDS 10
#define FILE_READ_SECONDS   60

/* How to read a file. */
struct file_options {
    size_t limit;   /* bytes; one that is longer is refused */
    bool line;      /* its first line is enough: of a pipe, not a byte behind it is read */
    bool again;     /* for a second time: only a regular file, without waiting (else ESPIPE) */
    bool directory; /* a directory will do as well, and has no text (else EISDIR) */
};

struct file {
    char *text;      /* a '\0' follows; a directory has none: NULL */
    size_t size;     /* bytes, without that '\0' */
    bool rereadable; /* a regular file or a directory, which can be read again */
    bool public;     /* a regular file that every user of this host may read */
    bool pipe;       /* a pipe or a FIFO: the bytes that were read are gone */
    unsigned mode;   /* the permission bits */
};

/* Reads a file. Returns 0, and the text is the caller's (file_wipe()); or an errno, with a message
 * in "fault" that follows the path, unless "size" is 0: EFBIG where the file is too long, ETIMEDOUT
 * where its writer does not come or does not finish. */
int file_read(struct file *file, const char *path, const struct file_options *options, char *fault,
              size_t size);
/* Reads a small file of the kernel's by one read(2), and closes it. fd: -1 with errno if it could
 * not be opened. Returns how many bytes, behind which a '\0' is put; -1 with errno. */
ssize_t file_read_small(int fd, char *text, size_t size);

/* Whether there is no such file. A symbolic link that leads nowhere, as the last name of the path
 * or before it, is not missing: what it stands for may be on a file system that is not mounted. */
bool file_is_missing(const char *path);
/* Opens /dev/null, with these flags and close-on-exec. Where there is none, as in a bare chroot, it
 * is a descriptor that can neither be read nor written. -1 with errno. */
int file_open_null(int flags);
/* Locks an open file (flock(2)), and waits so many ns for another process that has locked it.
 * Returns 0; ETIME: that one has it still; or another errno: some file systems have no such
 * locks. */
int file_lock(int fd, int64_t ns);
/* Closes a descriptor, unless it is -1; errno stays as it is. */
void file_close(int fd);
/* Overwrites the text, which may be a secret, and frees it. The other members stay. */
void file_wipe(struct file *file);

/* Returns the first line of a file, which may be a pipe; the caller frees. NULL with a message in
 * "fault" that follows the path and quotes nothing of the file. *rereadable: it can be read again.
 * *exposed: the file's mode if every user of this host can read it, else 0. */
char *secret_read(const char *path, bool *rereadable, unsigned *exposed, char *fault, size_t size);
/* Returns the first line of a file that was read before, and may have changed since; never waits.
 * The caller frees. NULL where it cannot be read. */
char *secret_read_again(const char *path);

/* Whether a text of that size can be written without a wait: a pipe that has room takes
 * PIPE_BUF. */
bool file_has_room(int fd, size_t size);
/* Writes the whole text. Returns 0, or an errno. */
int file_write(int fd, const char *text, size_t size);
/* Replaces the contents of a file by the text, of so many bytes, at once: a reader finds the old
 * text or the new one, never a part. The file is made anew, with the mode of the old one, and
 * its owner and group as far as this user may; or with the mode which the umask leaves. Behind a
 * symbolic link it is the file that it leads to, which must be there. Returns 0, or an errno, and
 * the old file is as it was; EINVAL for something else than a regular file. */
int file_replace(const char *path, const char *text, size_t size);
