/* The driver's end of the wire: whatever rlock's side sends, each frame that is whole is answered
 * by one that is whole, or the driver ends. The library below is one that repeats what it is told.
 *
 * First byte: how many bytes come at a time. The rest is what comes. */
#include "fuzz.h"
#include "store/sql/wire.h"

#include <setjmp.h>
#include <sys/time.h>
#include <unistd.h>

static jmp_buf ended;
static const uint8_t *next, *end;
static size_t at_most;
static struct wire_in told;

static ssize_t fuzz_read(int fd, void *to, size_t size)
{
    size_t count = (size_t)(end - next);

    (void)fd;
    count = count < at_most ? count : at_most;
    count = count < size ? count : size;
    memcpy(to, next, count);
    next += count;
    return (ssize_t)count;
}

static ssize_t fuzz_write(int fd, const void *from, size_t size)
{
    size_t room;
    char *to = wire_room(&told, &room);

    (void)fd;
    size = size < room ? size : room;
    memcpy(to, from, size);
    wire_received(&told, size);
    return (ssize_t)size;
}

static void fuzz_exit(int status) __attribute__((noreturn));
static void fuzz_exit(int status)
{
    longjmp(ended, status + 1);
}

static void fuzz_setitimer(const struct itimerval *limit)
{
    MUST(limit->it_value.tv_sec >= 0 && limit->it_value.tv_usec >= 0);
}

#define read(fd, to, size)        fuzz_read(fd, to, size)
#define write(fd, from, size)     fuzz_write(fd, from, size)
#define exit(status)              fuzz_exit(status)
#define setitimer(which, to, old) fuzz_setitimer(to)
#define driver_serve              fuzz_driver_serve
#define driver_fail               fuzz_driver_fail
#define driver_await              fuzz_driver_await
#define driver_blames_name        fuzz_driver_blames_name
#include "../../src/drivers/driver.c"
#undef exit

static bool connect_to(const struct driver_target *target, const char **version,
                       struct driver_fault *fault)
{
    const char *const texts[] = {target->host,        target->port,     target->user,
                                 target->password,    target->database, target->ca,
                                 target->certificate, target->key,      target->client};

    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        MUST(strlen(texts[i]) <= WIRE_FRAME_MAX);
    *version = target->host;
    return *target->user != '!' || driver_fail(fault, WIRE_DENIED, target->password);
}

static bool repeat(const char *sql, struct wire_out *rows, struct driver_fault *fault)
{
    wire_number(rows, 1);
    wire_text(rows, sql);
    return *sql != '!' || driver_fail(fault, WIRE_CONFLICT, sql);
}

static void check_answers(void)
{
    struct wire_frame frame;
    const char *text;
    enum wire_state state;

    while ((state = wire_next(&told, &frame)) == WIRE_FRAME) {
        MUST(frame.type == WIRE_CONNECTED || frame.type == WIRE_ROWS || frame.type == WIRE_ERROR);
        while (frame.at < frame.end)
            MUST(wire_take(&frame, &text));
    }
    MUST(state == WIRE_MORE && told.size == told.taken);
}

/* The loop itself is not called: it waits for sockets. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const struct driver_ops ops = {.connect = connect_to, .execute = repeat};
    int (*const unused)(const struct driver_ops *) = driver_serve;

    if (size == 0 || !unused)
        return 0;
    next = data + 1;
    end = data + size;
    at_most = *data + 1U;
    if (setjmp(ended) == 0)
        while (hear(&ops))
            ;
    check_answers();
    free(input.bytes);
    free(output.bytes);
    free(told.bytes);
    input = told = (struct wire_in){0};
    output = (struct wire_out){0};
    return 0;
}
