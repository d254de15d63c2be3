/* --report-fd. */
#include "cmd/report.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/decimal.h"
#include "base/mem.h"
#include "cli/describe.h"
#include "lock/held_keys.h"

const char *report_open(struct report *report, const char *text)
{
    int64_t number;

    if (!decimal_parse(text, 0, INT_MAX, &number))
        return "is not the number of a file descriptor";
    int fd = (int)number;
    int flags = fcntl(fd, F_GETFL);
    if (flags < 0)
        return "is not open";
    if ((flags & O_ACCMODE) == O_RDONLY)
        return "is not open for writing";
    if (fd <= STDERR_FILENO)
        fd = fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
    else if (fcntl(fd, F_SETFD, FD_CLOEXEC) < 0)
        fd = -1;
    report->fd = fd;
    return fd < 0 ? "cannot be copied" : NULL;
}

static const char *outcome_name(enum outcome outcome)
{
    switch (outcome) {
    case OUTCOME_COMPLETED: return "completed";
    case OUTCOME_NOT_ACQUIRED: return "not-acquired";
    case OUTCOME_LOST: return "lost";
    case OUTCOME_TIMED_OUT: return "timed-out";
    case OUTCOME_NOT_EXECUTED: return "not-executed";
    case OUTCOME_INTERRUPTED: return "interrupted";
    case OUTCOME_FAILED: return "failed";
    }
    return NULL;
}

/* Puts one value for one key, or an array for several. */
static void put_each(const struct json_library *json, json_t *object, const char *name,
                     json_t *const *values, size_t count)
{
    json_t *array = count == 1 ? values[0] : json->array();

    for (size_t i = 0; count != 1 && i < count; i++)
        json->array_append_new(array, values[i]);
    json->object_set_new(object, name, array);
}

static void put_lock(const struct json_library *json, json_t *object,
                     const struct supervisor_outcome *outcome,
                     const struct acquire_request *request)
{
    bool granted = outcome->granted, limited = request->mode == LOCK_LIMIT;
    json_t *keys[LOCK_KEYS_MAX] = {NULL}, *fences[LOCK_KEYS_MAX] = {NULL};
    json_t *slots[LOCK_KEYS_MAX] = {NULL};
    struct held_keys held;

    held_keys_choose(&held, request->keys, request->key_count, granted ? outcome->grants : NULL);
    for (size_t i = 0; i < held.count; i++) {
        keys[i] = json->string(held.keys[i]);
        fences[i] = granted ? json->integer((json_int_t)held.grants[i].fence) : json->null();
        slots[i] = granted && limited ? json->integer(held.grants[i].slot) : json->null();
    }
    put_each(json, object, "key", keys, held.count);
    json_put_text(json, object, "mode", lock_mode_name(request->mode));
    json_put_text(json, object, "owner", request->owner);
    put_each(json, object, "fence", fences, granted ? held.count : 1);
    if (limited)
        put_each(json, object, "slot", slots, granted ? held.count : 1);
}

static char *print(const struct json_library *json, const struct supervisor_outcome *outcome,
                   const struct acquire_request *request)
{
    json_t *object = json->object();
    bool held = outcome->granted;
    char signal[16];

    json_put_text(json, object, "outcome", outcome_name(outcome->outcome));
    json_put_known(json, object, "exit_status", outcome->command_status,
                   outcome->command_status >= 0);
    json_put_text(json, object, "signal",
                  outcome->command_signal > 0 ? describe_signal(outcome->command_signal, signal)
                                              : NULL);
    json_put_number(json, object, "waited_ms", outcome->waited / NS_PER_MS);
    json_put_known(json, object, "held_ms", outcome->held / NS_PER_MS, held);
    put_lock(json, object, outcome, request);
    return json_print(json, object);
}

static bool write_all(int fd, const char *text, size_t length)
{
    while (length > 0) {
        ssize_t n = write(fd, text, length);
        if (n < 0 && errno != EINTR)
            return false;
        if (n > 0) {
            text += n;
            length -= (size_t)n;
        }
    }
    return true;
}

bool report_write(const struct report *report, const struct supervisor_outcome *outcome,
                  const struct acquire_request *request)
{
    struct sigaction ignore = {.sa_handler = SIG_IGN}, before;
    char *line = print(&report->json, outcome, request);

    sigaction(SIGPIPE, &ignore, &before);
    bool written = write_all(report->fd, line, strlen(line));
    int error = errno;
    sigaction(SIGPIPE, &before, NULL);
    free(line);
    errno = error;
    return written;
}
