#include "cli/say.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/strbuf.h"
#include "base/text.h"
#include "base/utf8.h"

#define REDRAW      "\r\033[K"
#define STATUS_SIZE 2048

/* The globals. */
static struct {
    enum verbosity verbosity;
    pid_t job;    /* the process group that may draw a status line while in the foreground */
    pid_t opener; /* the process that has opened "fd" */
    int fd;       /* a description of our own for standard error, or standard error itself */
    /* How a line is written without blocking: by write(2), by that after poll(2), by send(2). */
    enum { WRITE_FREELY, WRITE_IF_READY, SEND } way;
    bool status_shown;
    bool left; /* the last question */
    bool said; /* the last error or warning, so that its hint follows it */
} say = {.verbosity = SAY_NORMAL, .fd = -1};

/* Opens a pipe or a terminal once more: O_NONBLOCK then holds only for this description, and
 * neither the command nor the caller's shell finds its standard error non-blocking. Repeated after
 * a fork, as the child may have closed all that it inherited. */
static void open_way_out(void)
{
    struct stat st;
    int fd = -1;

    say.opener = getpid();
    say.fd = STDERR_FILENO;
    say.way = WRITE_IF_READY;
    if (fstat(STDERR_FILENO, &st) < 0)
        return;
    if (S_ISREG(st.st_mode))
        say.way = WRITE_FREELY;
    else if (S_ISSOCK(st.st_mode))
        say.way = SEND;
    else if (S_ISFIFO(st.st_mode) || S_ISCHR(st.st_mode))
        fd = open("/proc/self/fd/2", O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    if (fd >= 0) {
        say.fd = fd;
        say.way = WRITE_FREELY;
    }
}

/* Writes the line, or drops it where writing would block: a reader that stands still must not stop
 * this process. */
static void write_whole(const char *line, size_t length)
{
    struct pollfd ready = {.fd = STDERR_FILENO, .events = POLLOUT};

    if (say.opener != getpid())
        open_way_out();
    if (say.way == WRITE_IF_READY && (poll(&ready, 1, 0) != 1 || !(ready.revents & POLLOUT)))
        return;
    if (say.way == SEND) {
        send(say.fd, line, length, MSG_DONTWAIT | MSG_NOSIGNAL);
        return;
    }
    /* A log that has reached RLIMIT_FSIZE ends no command. */
    void (*limited)(int) = signal(SIGXFSZ, SIG_IGN);
    ssize_t written = write(say.fd, line, length);
    signal(SIGXFSZ, limited);
    if (written < 0)
        return; /* dropped: there is no other way to say it */
}

/* Writes one line to standard error in one piece, without what would change a terminal. It replaces
 * a status line that is shown there. errno stays. */
__attribute__((format(printf, 2, 0))) static void put_line(const char *prefix, const char *fmt,
                                                           va_list args)
{
    struct strbuf text = {0};
    char line[PIPE_BUF]; /* a longer one may be torn apart, or block half-way */
    size_t used;
    int kept = errno;

    strbuf_vprintf(&text, fmt, args);
    used = (size_t)snprintf(line, sizeof line, "%s%s", say.status_shown ? REDRAW : "", prefix);
    size_t room = UTF8_ESCAPED_SIZE(text.size);
    char *escaped FREED = utf8_escape(text.text, mem_zeroed(room), room);
    text_copy(line + used, sizeof line - 1 - used, escaped);
    strbuf_free(&text);
    used += strlen(line + used);
    line[used++] = '\n';
    write_whole(line, used);
    say.status_shown = false;
    errno = kept;
}

#define PUT_LINE(prefix, fmt)                                                                      \
    do {                                                                                           \
        va_list args;                                                                              \
        va_start(args, fmt);                                                                       \
        put_line(prefix, fmt, args);                                                               \
        va_end(args);                                                                              \
    } while (0)

void say_set_verbosity(enum verbosity v)
{
    say.verbosity = v;
}

enum verbosity say_verbosity(void)
{
    return say.verbosity;
}

void say_error(const char *fmt, ...)
{
    say.said = true;
    PUT_LINE("rlock: ", fmt);
}

void say_hint(const char *fmt, ...)
{
    if (say.said)
        PUT_LINE("hint: ", fmt);
}

void say_warning(const char *fmt, ...)
{
    say.said = say.verbosity > SAY_QUIET;
    if (say.said)
        PUT_LINE("rlock: ", fmt);
}

void say_detail(const char *fmt, ...)
{
    char prefix[40];
    struct timespec now;
    struct tm local;
    size_t used;

    if (say.verbosity < SAY_VERBOSE)
        return;
    clock_gettime(CLOCK_REALTIME, &now);
    localtime_r(&now.tv_sec, &local);
    used = strftime(prefix, sizeof prefix, "rlock: %H:%M:%S", &local);
    snprintf(prefix + used, sizeof prefix - used, ".%03ld ", now.tv_nsec / 1000000);
    PUT_LINE(prefix, fmt);
}

void say_set_job(pid_t group)
{
    say.job = group;
}

void say_let_go(void)
{
    if (say.fd > STDERR_FILENO)
        close(say.fd);
    say.fd = -1;
    say.opener = 0;
}

bool say_on_terminal(void)
{
    const char *ci = getenv("CI"), *term = getenv("TERM");
    int kept = errno;
    bool terminal = isatty(STDERR_FILENO) == 1;

    errno = kept;
    /* "false" and "0" are what people set it to in order to be in no CI job. */
    bool in_ci = ci && *ci && strcmp(ci, "false") != 0 && strcmp(ci, "0") != 0;
    return terminal && !in_ci && !(term && strcmp(term, "dumb") == 0);
}

/* Columns for the echo of typed keys, as ^C: it must not begin a second line, which would stay. */
#define ECHOED 3

size_t say_columns(void)
{
    struct winsize window;
    int kept = errno;

    if (ioctl(STDERR_FILENO, TIOCGWINSZ, &window) < 0 || window.ws_col == 0)
        window.ws_col = 80;
    errno = kept;
    return window.ws_col > ECHOED ? window.ws_col - ECHOED : 0;
}

bool say_status(const char *text)
{
    char line[sizeof REDRAW + STATUS_SIZE] = REDRAW;
    char *start = line + sizeof REDRAW - 1;
    int kept = errno;

    if (!*text && !say.status_shown)
        return false;
    bool seen = !say.job || tcgetpgrp(STDERR_FILENO) == say.job;
    if (seen) {
        utf8_escape(text, start, STATUS_SIZE);
        write_whole(line, sizeof REDRAW - 1 + utf8_fit(start, say_columns()));
        say.status_shown = *text != '\0';
    }
    errno = kept;
    return seen;
}

bool say_ask(const char *question, char *answer, size_t size)
{
    ssize_t length;

    fprintf(stderr, "%s ", question);
    /* read(2) ends at each key that ends a line, not only at a newline. */
    length = read(STDIN_FILENO, answer, size - 1);
    answer[length > 0 ? length : 0] = '\0';
    if (!strchr(answer, '\n'))
        fputc('\n', stderr);
    answer[strcspn(answer, "\n")] = '\0';
    say.left = !*answer || strcmp(answer, "n") == 0 || strchr(answer, '\033');
    return !say.left;
}

bool say_was_left(void)
{
    return say.left;
}
