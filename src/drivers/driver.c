/* The loop of a driver. */
#include "drivers/driver.h"

#include <errno.h>
#include <netdb.h>
#include <poll.h>
#include <pwd.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

#define SOCKET STDIN_FILENO

/* One process serves one connection. */
static struct wire_out output;
static struct wire_in input;
static char user[256]; /* who has logged in, or was to */

void driver_await(int fd, bool to_write)
{
    struct pollfd ready = {.fd = fd, .events = to_write ? POLLOUT : POLLIN};

    while (poll(&ready, 1, -1) < 0 && errno == EINTR)
        ;
}

bool driver_fail(struct driver_fault *fault, enum wire_error error, const char *said)
{
    fault->error = error;
    snprintf(fault->text, sizeof fault->text, "%.*s", (int)strcspn(said, "\n"), said);
    return false;
}

bool driver_blames_name(const struct driver_target *target, struct driver_fault *fault)
{
    static const struct addrinfo hints = {.ai_socktype = SOCK_STREAM};
    struct addrinfo *list = NULL;
    int wrong = *target->host == '/' ? 0 : getaddrinfo(target->host, NULL, &hints, &list);
    bool nowhere = wrong == EAI_NONAME || wrong == EAI_NODATA;

    if (wrong)
        driver_fail(fault, nowhere ? WIRE_NOWHERE : WIRE_UNREACHABLE,
                    wrong == EAI_SYSTEM ? strerror(errno) : gai_strerror(wrong));
    else if (list)
        freeaddrinfo(list);
    return wrong;
}

/* Whoever asked does not wait any longer than this, and nobody else uses this process. */
static void limit_time(int64_t ms)
{
    const struct itimerval limit = {.it_value = {ms / 1000, ms % 1000 * 1000}};

    setitimer(ITIMER_REAL, &limit, NULL);
}

static void send_all(void)
{
    while (output.size > 0) {
        ssize_t sent = write(SOCKET, output.bytes, output.size);
        if (sent < 0 && errno != EINTR)
            exit(1);
        if (sent > 0)
            wire_sent(&output, (size_t)sent);
    }
}

static void answer_fault(const struct driver_fault *fault)
{
    wire_cancel(&output);
    wire_begin(&output, WIRE_ERROR);
    wire_text(&output, (const char[]){(char)fault->error, '\0'});
    wire_text(&output, fault->text);
    wire_text(&output, user);
    wire_end(&output);
}

void driver_user(const struct driver_target *target, char *user_of, size_t size)
{
    const struct passwd *own = *target->user ? NULL : getpwuid(geteuid());

    snprintf(user_of, size, "%s", own ? own->pw_name : target->user);
}

static bool take_target(struct wire_frame *frame, struct driver_target *target, int64_t *limit)
{
    const char **const texts[] = {&target->host, &target->port, &target->user, &target->password,
                                  &target->database};
    const char **const files[] = {&target->ca, &target->certificate, &target->key, &target->client};
    int64_t version, tls;

    if (!wire_take_number(frame, &version) || version != WIRE_VERSION ||
        !wire_take_number(frame, limit))
        return false;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        if (!wire_take(frame, texts[i]))
            return false;
    if (!wire_take_number(frame, &tls))
        return false;
    for (size_t i = 0; i < sizeof files / sizeof *files; i++)
        if (!wire_take(frame, files[i]))
            return false;
    target->tls = tls != 0;
    target->seconds = (int)(*limit / 1000 + 1);
    return true;
}

static bool do_connect(const struct driver_ops *ops, struct wire_frame *frame)
{
    struct driver_target target;
    struct driver_fault fault;
    const char *version;
    int64_t limit;

    if (!take_target(frame, &target, &limit))
        return false;
    limit_time(limit);
    driver_user(&target, user, sizeof user);
    wire_begin(&output, WIRE_CONNECTED);
    if (ops->connect(&target, &version, &fault)) {
        wire_text(&output, version);
        wire_end(&output);
    } else {
        answer_fault(&fault);
    }
    limit_time(0);
    return true;
}

static bool do_statement(const struct driver_ops *ops, struct wire_frame *frame)
{
    struct driver_fault fault;
    const char *sql;
    int64_t limit;

    if (!wire_take_number(frame, &limit) || !wire_take(frame, &sql))
        return false;
    limit_time(limit);
    wire_begin(&output, WIRE_ROWS);
    if (!ops->execute(sql, &output, &fault)) {
        answer_fault(&fault);
    } else if (!wire_end(&output)) {
        driver_fail(&fault, WIRE_UNFIT, "the answer is too long");
        answer_fault(&fault);
    }
    limit_time(0);
    return true;
}

static void obey(const struct driver_ops *ops, struct wire_frame *frame)
{
    bool sound = frame->type == WIRE_CONNECT     ? do_connect(ops, frame)
                 : frame->type == WIRE_STATEMENT ? do_statement(ops, frame)
                                                 : false;
    if (!sound)
        exit(1);
    send_all();
}

/* False at the end of what the other side has to say. */
static bool hear(const struct driver_ops *ops)
{
    struct wire_frame frame;
    enum wire_state state;
    size_t room;
    char *to = wire_room(&input, &room);
    ssize_t got = read(SOCKET, to, room);

    if (got < 0 && errno == EINTR)
        return true;
    if (got <= 0)
        return false;
    wire_received(&input, (size_t)got);
    while ((state = wire_next(&input, &frame)) == WIRE_FRAME)
        obey(ops, &frame);
    return state == WIRE_MORE;
}

static void tell_calls(const struct driver_ops *ops)
{
    bool broken = false;

    while (ops->is_called(&broken)) {
        wire_begin(&output, WIRE_CALLED);
        wire_end(&output);
    }
    send_all();
    if (broken)
        exit(0);
}

/* All that a driver has to say goes through the socket, once its libraries are loaded. The renewer
 * of rlock acquire --keep has one for as long as it lives, and whoever reads what acquire has
 * written must not wait for that. The standard output is /dev/null already. */
static void close_errors(void)
{
    if (dup2(STDOUT_FILENO, STDERR_FILENO) < 0)
        close(STDERR_FILENO);
}

int driver_serve(const struct driver_ops *ops)
{
    sigset_t none;

    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    signal(SIGALRM, SIG_DFL);
    signal(SIGPIPE, SIG_IGN);
    close_errors();
    for (;;) {
        struct pollfd fds[2] = {{.fd = SOCKET, .events = POLLIN},
                                {.fd = ops->descriptor ? ops->descriptor() : -1, .events = POLLIN}};
        if (poll(fds, 2, -1) < 0 && errno != EINTR)
            return 1;
        if (fds[0].revents && !hear(ops))
            return 0;
        if (ops->descriptor && ops->descriptor() >= 0)
            tell_calls(ops);
    }
}
