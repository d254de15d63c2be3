#include "os/token_file.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <libgen.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/decimal.h"
#include "base/mem.h"
#include "os/file.h"

/* After so long a wait the user is told. */
#define WAITS_NS (1 * NS_PER_SEC)
/* A signal between the look at the clock and flock(2) is lost; the next one comes so much later
 * (microseconds). */
#define AGAIN_US 20000
/* A longer text is not a number, even with the spaces that other programs add. */
#define TEXT_SIZE 64

/* -- the lock -------------------------------------------------------------------------------- */

/* The handler of SIGALRM: that it is called interrupts flock(2). */
static void wake_by_signal(int signo)
{
    (void)signo;
}

/* Arms the timer: SIGALRM comes after so many ns, and then again and again; 0: disarms it. */
static void wake_after(int64_t ns)
{
    struct itimerval timer = {.it_value = {ns / NS_PER_SEC, ns % NS_PER_SEC / 1000}};

    if (ns > 0) {
        timer.it_value.tv_usec += ns < 1000; /* 0 would disarm it */
        timer.it_interval.tv_usec = AGAIN_US;
    }
    setitimer(ITIMER_REAL, &timer, NULL);
}

/* How to wait for the lock of a file. */
struct wait {
    struct moment until; /* it is given up then */
    struct moment tell_at;
    void (*waits)(const char *path);
};

/* Waits for the lock of the file: returns 0, or an errno; EWOULDBLOCK: the time is over. The caller
 * has made SIGALRM interrupt flock(2), which has no time limit. */
static int wait_in_line(const struct token_file *file, struct wait *wait)
{
    do {
        struct moment now = moment_now();
        if (moment_reached(wait->until, now))
            return EWOULDBLOCK;
        if (moment_reached(wait->tell_at, now)) {
            wait->tell_at = MOMENT_NEVER;
            wait->waits(file->path);
        }
        struct moment next = moment_min(wait->until, wait->tell_at);
        wake_after(next.ns == INT64_MAX ? 0 : moment_until(now, next));
        if (flock(file->fd, LOCK_EX) == 0)
            return 0;
    } while (errno == EINTR);
    return errno;
}

/* Locks the file, and waits for that. Returns 0, or an errno; EWOULDBLOCK: the time is over. */
static int lock_file(const struct token_file *file, struct wait *wait)
{
    struct sigaction alarmed = {.sa_handler = wake_by_signal}, before;
    sigset_t alarms, mask;

    if (flock(file->fd, LOCK_EX | LOCK_NB) == 0)
        return 0;
    if (errno != EWOULDBLOCK)
        return errno;
    sigemptyset(&alarms);
    sigaddset(&alarms, SIGALRM);
    sigaction(SIGALRM, &alarmed, &before);
    sigprocmask(SIG_UNBLOCK, &alarms, &mask);
    int error = wait_in_line(file, wait);
    wake_after(0);
    sigaction(SIGALRM, &before, NULL);
    sigprocmask(SIG_SETMASK, &mask, NULL);
    return error;
}

/* -- the file -------------------------------------------------------------------------------- */

/* Opens or makes the file, and locks it, waiting if another process has locked it. Returns 0 or an
 * errno. The caller closes it in any case. */
static int open_and_lock(struct token_file *file, struct wait *wait)
{
    struct stat status, there;

    do {
        token_file_close(file);
        /* Not O_CREAT at once: with fs.protected_regular, as in /tmp, that refuses others'
         * files. */
        int flags = O_RDWR | O_CLOEXEC | O_NOCTTY | O_NONBLOCK;
        int fd = open(file->path, flags);
        file->fd = fd < 0 && errno == ENOENT ? open(file->path, flags | O_CREAT, 0666) : fd;
        if (file->fd < 0)
            return errno;
        if (fstat(file->fd, &status) < 0)
            return errno;
        if (!S_ISREG(status.st_mode))
            return EINVAL;
        int error = lock_file(file, wait);
        if (error)
            return error;
        /* The file may have been replaced or removed while this process waited: then anew. */
    } while (stat(file->path, &there) < 0 || there.st_dev != status.st_dev ||
             there.st_ino != status.st_ino);
    return 0;
}

int token_file_open(struct token_file *file, const char *path, int64_t wait,
                    void (*waits)(const char *path))
{
    struct moment now = moment_now();
    struct wait how = {
        .until = wait == TOKEN_FILE_FOREVER ? MOMENT_NEVER : moment_plus(now, wait),
        .tell_at = moment_plus(now, WAITS_NS),
        .waits = waits,
    };

    *file = (struct token_file){.path = path, .fd = -1};
    int error = open_and_lock(file, &how);
    if (error)
        return error;
    char text[TEXT_SIZE + 1];
    ssize_t got = pread(file->fd, text, sizeof text, 0);
    if (got < 0)
        return errno;
    if (got > TEXT_SIZE)
        return EBADMSG;
    text[got] = '\0';
    /* Behind the number may be white space, and what a file system adds that is cut short by a
     * crash between the new length and the new text: that number was never acted upon. */
    size_t size = (size_t)got, digits = strspn(text, "0123456789"), end = digits;
    while (end < size && (text[end] == '\0' || strchr(" \t\r\n", text[end])))
        end++;
    file->is_empty = size == 0;
    if (file->is_empty)
        return 0;
    return end == size && decimal_read(text, digits, INT64_MAX, &file->number) ? 0 : EBADMSG;
}

/* -- writing --------------------------------------------------------------------------------- */

/* Writes the directory that the file is in to the disk, before the file gets its first number: a
 * file with a number then stays after a power failure, even if its maker was killed before it had
 * done so. Returns 0 or an errno. */
static int sync_directory(const char *path)
{
    char *target FREED = realpath(path, NULL);
    int fd = target ? open(dirname(target), O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
    int error = 0;

    /* Where the directory cannot be read, or not be synchronized, fsync(2) of the file is all that
     * there is. */
    if (fd >= 0 && fsync(fd) < 0 && errno != EINVAL && errno != EROFS)
        error = errno;
    file_close(fd);
    return error;
}

/* Writes the text over the old one, or, if there is no room for all of it, the old one again.
 * Returns 0 or an errno. */
static int write_or_restore(int fd, const char *text, size_t size, const char *old, size_t old_size)
{
    ssize_t put = pwrite(fd, text, size, 0);

    if (put == (ssize_t)size)
        return 0;
    if (put < 0)
        return errno;
    /* A limit on the size of files, or a full disk, took the beginning: writing the rest says
     * why. */
    int error = pwrite(fd, text + put, size - (size_t)put, put) < 0 ? errno : EIO;
    if (pwrite(fd, old, old_size, 0) < 0 || ftruncate(fd, (off_t)old_size) < 0)
        return errno;
    return error;
}

int token_file_write(struct token_file *file, int64_t number)
{
    char old[TEXT_SIZE], text[TEXT_SIZE + 1];
    ssize_t had = pread(file->fd, old, sizeof old, 0);
    int length = snprintf(text, sizeof text, "%" PRId64 "\n", number);

    if (had < 0)
        return errno;
    /* A higher number is never shorter, so the file is never cut; line ends take the place of what
     * zeros or spaces the old text had. */
    for (; length < had; length++)
        text[length] = '\n';
    int error = file->is_empty ? sync_directory(file->path) : 0;
    if (error)
        return error;
    __sighandler_t before = signal(SIGXFSZ, SIG_IGN); /* a limit is an error like any other */
    error = write_or_restore(file->fd, text, (size_t)length, old, (size_t)had);
    signal(SIGXFSZ, before);
    if (!error && fdatasync(file->fd) < 0)
        error = errno;
    return error;
}

void token_file_close(struct token_file *file)
{
    file_close(file->fd);
    file->fd = -1;
}
