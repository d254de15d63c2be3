#include "os/file.h"
#include "base/clock.h"
#include "base/mem.h"
#include "base/strbuf.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <linux/magic.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#define ROOM_FIRST   2048 /* bytes; most files are smaller */
#define PASSWORD_MAX 1024

/* The reading of an open file. */
struct reading {
    int fd;
    const struct file_options *options;
    struct file *file;
    size_t room;             /* for the text */
    bool bytewise;           /* another process reads on behind the first line */
    bool opened;             /* a writer has opened it, or none is needed */
    struct moment opened_by; /* without a writer by then, it is given up */
    struct moment read_by;   /* if it is not read by then, it is given up */
};

/* Waits until there may be more to read. Returns 0 or an errno; ETIMEDOUT: it is given up. */
static int await_bytes(struct reading *reading)
{
    struct moment end = reading->opened ? reading->read_by : reading->opened_by;
    int64_t left = moment_until(moment_now(), end);
    struct pollfd io = {.fd = reading->fd, .events = POLLIN};

    if (left <= 0)
        return ETIMEDOUT;
    int count = poll(&io, 1, (int)(left / NS_PER_MS) + 1);
    if (count < 0 && errno != EINTR)
        return errno;
    /* A writer came and has gone again; without one, a FIFO says nothing. */
    if (count > 0 && (io.revents & POLLHUP))
        reading->opened = true;
    return 0;
}

/* Reads the bytes that are there, or waits for some. Returns 0: there may be more; -1: all that is
 * wanted was read; or an errno. */
static int read_available(struct reading *reading)
{
    struct file *file = reading->file;

    /* There must be room for one byte, and the '\0' that ends the text. */
    if (file->size + 2 > reading->room) {
        size_t most = reading->options->limit + 2;
        size_t room = reading->room ? 2 * reading->room : ROOM_FIRST;
        reading->room = room < most ? room : most;
        file->text = mem_checked(realloc(file->text, reading->room));
    }
    size_t wanted = reading->bytewise ? 1 : reading->room - 1 - file->size;
    ssize_t n = read(reading->fd, file->text + file->size, wanted);

    if (n < 0 && errno == EINTR)
        return 0;
    if (n < 0 && errno != EAGAIN)
        return errno;
    if (n == 0 && reading->opened)
        return -1;
    if (n == 0)
        return await_bytes(reading);
    reading->opened = true; /* without a writer, read() had told the end (n == 0) */
    if (n < 0)
        return await_bytes(reading);
    char *fresh = file->text + file->size;
    file->size += (size_t)n;
    if (reading->options->line && memchr(fresh, '\n', (size_t)n))
        return -1;
    return file->size > reading->options->limit ? EFBIG : 0;
}

/* Reads the open file to its end, and notes of what kind it is. Returns 0 or an errno. *opened:
 * whether a FIFO's other end was opened, to tell that from a writer that is slow. */
static int read_open(int fd, struct file *file, const struct file_options *options, bool *opened)
{
    struct stat status;

    if (fstat(fd, &status) < 0)
        return errno;
    bool regular = S_ISREG(status.st_mode);
    file->rereadable = regular || S_ISDIR(status.st_mode);
    file->pipe = S_ISFIFO(status.st_mode);
    file->public = regular && (status.st_mode & S_IROTH);
    file->mode = status.st_mode & 07777U;
    if (S_ISDIR(status.st_mode))
        return options->directory ? 0 : EISDIR;
    if (options->again && !regular)
        return ESPIPE;
    struct moment now = moment_now();
    struct statfs system;
    struct reading reading = {
        .fd = fd,
        .opened_by = moment_plus(now, FILE_OPENED_SECONDS * NS_PER_SEC),
        .read_by = moment_plus(now, FILE_READ_SECONDS * NS_PER_SEC),
        .options = options,
        .file = file,
        .bytewise = options->line && !regular,
        /* The pipe of a process substitution has its writer from the start. */
        .opened = !file->pipe || (fstatfs(fd, &system) == 0 && system.f_type == PIPEFS_MAGIC)};
    int error;
    do {
        error = read_available(&reading);
    } while (error == 0);
    file->text[file->size] = '\0';
    *opened = reading.opened;
    return error < 0 ? 0 : error;
}

/* Words why a file could not be read. opened: its writer has come. */
static void explain_error(int error, bool opened, const struct file_options *options, char *fault,
                          size_t size)
{
    if (size == 0)
        return;
    if (error == EFBIG && options->line)
        snprintf(fault, size, "its first line is longer than %zu bytes", options->limit);
    else if (error == EFBIG)
        snprintf(fault, size, "it is longer than %zu bytes", options->limit);
    else if (error == ETIMEDOUT && opened)
        snprintf(fault, size, "its writer has not finished within %d s", FILE_READ_SECONDS);
    else if (error == ETIMEDOUT)
        snprintf(fault, size, "no process has opened this FIFO for writing within %d s",
                 FILE_OPENED_SECONDS);
    else
        snprintf(fault, size, "%s", strerror(error));
}

int file_read(struct file *file, const char *path, const struct file_options *options, char *fault,
              size_t size)
{
    bool opened = false;

    *file = (struct file){0};
    /* Without O_NONBLOCK, opening a FIFO waits for its writer. */
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    int error = fd < 0 ? errno : read_open(fd, file, options, &opened);
    file_close(fd);
    if (error) {
        file_wipe(file);
        explain_error(error, opened, options, fault, size);
    }
    return error;
}

ssize_t file_read_small(int fd, char *text, size_t size)
{
    ssize_t got = fd < 0 ? -1 : read(fd, text, size - 1);

    file_close(fd);
    text[got > 0 ? got : 0] = '\0';
    return got;
}

bool file_is_missing(const char *path)
{
    char *copy FREED = mem_strdup(path), *name = copy;
    bool above = false; /* name: a folder above the path */
    struct stat there;  /* of the first name, from the path upwards, that is there */

    for (; lstat(name, &there) < 0; name = dirname(name), above = true)
        if (errno != ENOENT && errno != ENOTDIR)
            return false;
    return above && (!S_ISLNK(there.st_mode) || stat(name, &there) == 0);
}

int file_open_null(int flags)
{
    int fd = open("/dev/null", flags | O_CLOEXEC);
    return fd < 0 ? open("/", O_PATH | O_CLOEXEC) : fd;
}

int file_lock(int fd, int64_t ns)
{
    const struct timespec pause = {.tv_nsec = 3 * NS_PER_MS};
    struct moment end = moment_plus(moment_now(), ns);

    while (flock(fd, LOCK_EX | LOCK_NB) < 0) {
        if (errno != EWOULDBLOCK)
            return errno;
        if (moment_reached(end, moment_now()))
            return ETIME;
        nanosleep(&pause, NULL);
    }
    return 0;
}

void file_close(int fd)
{
    int error = errno;

    if (fd >= 0)
        close(fd);
    errno = error;
}

void file_wipe(struct file *file)
{
    if (file->text)
        explicit_bzero(file->text, file->size);
    free(file->text);
    file->text = NULL;
    file->size = 0;
}

/* -- passwords -------------------------------------------------------------------------------- */

/* Returns the first line of a file, which must be all text; the caller frees. NULL, with a message
 * in "fault", if there is none. *file: of what kind the file is; its text is wiped. */
static char *read_secret(const char *path, const struct file_options *options, struct file *file,
                         char *fault, size_t size)
{
    char *secret = NULL;

    if (file_read(file, path, options, fault, size) == 0) {
        const char *text = file->text ? file->text : "";
        size_t length = strcspn(text, "\r\n");
        if (length < file->size && text[length] == '\0')
            snprintf(fault, size, "its first line has a NUL byte in it");
        else if (length == 0)
            snprintf(fault, size, "its first line is empty");
        else
            secret = mem_checked(strndup(text, length));
    }
    file_wipe(file);
    return secret;
}

char *secret_read(const char *path, bool *rereadable, unsigned *exposed, char *fault, size_t size)
{
    const struct file_options first = {.limit = PASSWORD_MAX, .line = true};
    struct file file;
    char *secret = read_secret(path, &first, &file, fault, size);

    *rereadable = file.rereadable;
    *exposed = secret && file.public ? file.mode : 0;
    return secret;
}

char *secret_read_again(const char *path)
{
    const struct file_options again = {.limit = PASSWORD_MAX, .line = true, .again = true};
    struct file file;
    char why[120];

    return read_secret(path, &again, &file, why, sizeof why);
}

/* -- writing ----------------------------------------------------------------------------------- */

bool file_has_room(int fd, size_t size)
{
    struct pollfd ready = {.fd = fd, .events = POLLOUT};

    return size <= PIPE_BUF && poll(&ready, 1, 0) != 0;
}

int file_write(int fd, const char *text, size_t size)
{
    while (size > 0) {
        ssize_t n = write(fd, text, size);
        if (n < 0 && errno != EINTR)
            return errno;
        if (n > 0) {
            text += n;
            size -= (size_t)n;
        }
    }
    return 0;
}

/* Gives a new file, which only its owner may read, the mode, owner and group of the file at "path"
 * which it replaces, as far as this user may; without one, the mode that open() gives. Returns 0 or
 * an errno. */
static int set_usual_mode(int fd, const char *path)
{
    struct stat old;
    mode_t mask = umask(077);

    umask(mask);
    bool replaces = stat(path, &old) == 0;
    if (replaces)
        (void)(fchown(fd, old.st_uid, old.st_gid) == 0 || fchown(fd, (uid_t)-1, old.st_gid) == 0);
    return fchmod(fd, replaces ? old.st_mode & 0777 : 0666 & ~mask) == 0 ? 0 : errno;
}

int file_replace(const char *path, const char *text, size_t size)
{
    struct stat status;

    if (stat(path, &status) == 0 && !S_ISREG(status.st_mode))
        return S_ISDIR(status.st_mode) ? EISDIR : EINVAL;
    char *target FREED = realpath(path, NULL);
    int error = target ? 0 : errno;
    if (error && !file_is_missing(path))
        return error;
    path = target ? target : path;
    /* Beside the file, so that it can take its place. Its name begins with a dot and does not end
     * like the file's: a program that reads all of a directory's "*.prom" passes over it. */
    const char *slash = strrchr(path, '/'), *base = slash ? slash + 1 : path;
    char *beside FREED = strbuf_print("%.*s.%s.XXXXXX", (int)(base - path), path, base);
    int fd = mkostemp(beside, O_CLOEXEC);
    error = fd < 0 ? errno : 0;
    if (!error) {
        const struct sigaction ignore = {.sa_handler = SIG_IGN};
        struct sigaction before;
        sigaction(SIGXFSZ, &ignore, &before); /* beyond RLIMIT_FSIZE: an error, not the end */
        error = file_write(fd, text, size);
        sigaction(SIGXFSZ, &before, NULL);
    }
    if (!error)
        error = set_usual_mode(fd, path);
    if (fd >= 0 && close(fd) < 0 && !error)
        error = errno;
    if (!error && rename(beside, path) < 0)
        error = errno;
    if (error && fd >= 0)
        unlink(beside);
    return error;
}
