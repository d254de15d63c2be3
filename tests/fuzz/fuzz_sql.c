/* A driver of a database that says anything at any time: each operation of the store ends once and
 * in time, what it is told to execute is in one piece, and nothing is left behind. And frames by
 * themselves.
 *
 * First byte: of which database, or frames; how much comes at a time. Three more: what is asked of
 * the store. The rest is lines, one a frame: a byte that says what it is, and texts with a tab in
 * front of each. A text that begins with '=' comes as hexadecimal digits of what follows, where a
 * CR stands for a newline. A line "." is the end of the driver, "," a pause; what follows a '!'
 * comes as it is. */
#include "driver_wraps.h"
#include "fake_loop.h"
#include "fuzz.h"
#include "os/helper_process.h"
#include "os/program.h"
#include "store/sql/wire.h"
#include "store/store.h"

#include <errno.h>
#include <sys/socket.h>
#include <time.h>

#define OPERATIONS 3
#define HEAD       (1 + OPERATIONS)
#define TURNS_MAX  20000
#define TIMEOUT    (10 * NS_PER_SEC)
#define FD         1000000

static struct loop *loop;
static int processes;

/* What the driver has yet to say. */
static const char *next, *end;
static char *line; /* as bytes */
static size_t line_size, line_at, at_most;
static bool paused;

/* What it was told. */
static struct wire_in told;

/* -- what the driver says -------------------------------------------------------------------- */

static char *unescape(const char *text, size_t size)
{
    static const char digits[] = "0123456789abcdef";
    bool hex = size > 0 && *text == '=';
    char *out = calloc(1, 2 * size + 1), *to = out;

    MUST(out);
    for (size_t i = hex; i < size; i++) {
        unsigned char byte = (unsigned char)(hex && text[i] == '\r' ? '\n' : text[i]);
        if (!hex && byte) {
            *to++ = (char)byte;
        } else if (hex) {
            *to++ = digits[byte >> 4];
            *to++ = digits[byte & 15];
        }
    }
    return out;
}

static void compose(const char *text, size_t size)
{
    struct wire_out out = {0};
    size_t at = 1;

    wire_begin(&out, (enum wire_type)(unsigned char)*text);
    while (at < size) {
        const char *start = text + at + 1;
        const char *tab = memchr(start, '\t', size - at - 1);
        size_t length = tab ? (size_t)(tab - start) : size - at - 1;
        char *one = unescape(start, length);
        wire_text(&out, one);
        free(one);
        at += 1 + length;
    }
    MUST(wire_end(&out));
    line = out.bytes;
    line_size = out.size;
}

/* False at the end, and for a pause. */
static bool take_line(void)
{
    const char *stop = memchr(next, '\n', (size_t)(end - next));
    size_t size = stop ? (size_t)(stop - next) : (size_t)(end - next);
    const char *text = next;

    next = stop ? stop + 1 : end;
    free(line);
    line = NULL;
    line_at = line_size = 0;
    paused = size == 1 && *text == ',';
    if (size == 0 || paused || (size == 1 && *text == '.'))
        return false;
    if (*text != '!') {
        compose(text, size);
        return true;
    }
    line = fuzz_text((const uint8_t *)text + 1, size - 1);
    line_size = size - 1;
    return line_size > 0;
}

/* -- what it is told ------------------------------------------------------------------------- */

/* Every text in it is digits, a number, or of rlock's own making. */
static void check_statement(const char *sql)
{
    size_t quotes = 0;

    for (const char *at = sql; *at; at++) {
        MUST(*at != '@' && *at != '\\' && (unsigned char)*at < 0x7f);
        quotes += *at == '\'';
    }
    MUST(*sql && quotes % 2 == 0);
}

static void check_told(void)
{
    struct wire_frame frame;
    enum wire_state state;
    const char *text;
    int64_t limit;

    while ((state = wire_next(&told, &frame)) == WIRE_FRAME) {
        MUST(frame.type == WIRE_CONNECT || frame.type == WIRE_STATEMENT);
        if (frame.type == WIRE_CONNECT)
            MUST(wire_take(&frame, &text));
        MUST(wire_take_number(&frame, &limit) && limit > 0);
        while (wire_take(&frame, &text))
            if (frame.type == WIRE_STATEMENT)
                check_statement(text);
        MUST(frame.at == frame.end);
    }
    MUST(state == WIRE_MORE);
}

/* -- instead of libc, and of processes ------------------------------------------------------- */

/* The clock of leases is that of the loop. */
int __wrap_clock_gettime(clockid_t clock, struct timespec *time)
{
    if (clock != CLOCK_BOOTTIME || !loop)
        return __real_clock_gettime(clock, time);
    *time = (struct timespec){loop_now(loop).ns / NS_PER_SEC, loop_now(loop).ns % NS_PER_SEC};
    return 0;
}

ssize_t __wrap_send(int fd, const void *bytes, size_t size, int flags)
{
    size_t room = 0;

    (void)flags;
    MUST(fd == FD && processes > 0);
    for (size_t sent = 0; sent < size; sent += room) {
        char *to = wire_room(&told, &room);
        room = room < size - sent ? room : size - sent;
        memcpy(to, (const char *)bytes + sent, room);
        wire_received(&told, room);
    }
    check_told();
    return (ssize_t)size;
}

ssize_t __wrap_recv(int fd, void *bytes, size_t size, int flags)
{
    (void)flags;
    MUST(fd == FD && processes > 0);
    if (line_at == line_size && !take_line()) {
        errno = EAGAIN;
        return paused ? -1 : 0;
    }
    size_t count = line_size - line_at < size ? line_size - line_at : size;
    count = count < at_most ? count : at_most;
    memcpy(bytes, line + line_at, count);
    line_at += count;
    return (ssize_t)count;
}

bool __wrap_program_find(const char *name, char *path, size_t size)
{
    snprintf(path, size, "/nowhere/%s", name);
    return true;
}

struct helper_process *__wrap_helper_process_execute(struct loop *of, const char *path, int *socket)
{
    (void)of, (void)path;
    MUST(processes == 0);
    processes++;
    told.size = told.taken = 0;
    line_at = line_size;
    *socket = FD;
    return (struct helper_process *)(void *)&processes;
}

void __wrap_helper_process_stop(struct helper_process *process)
{
    MUST(process == (void *)&processes && processes == 1);
    processes--;
}

void __wrap_helper_process_leave(struct helper_process *process)
{
    __wrap_helper_process_stop(process);
}

/* -- the life of a store --------------------------------------------------------------------- */

struct life {
    struct store *store;
    bool busy, parted, latch;
    size_t acquiring; /* how many keys */
    struct moment until;
};

static void done(void *arg, const struct answer *answer)
{
    struct life *life = arg;

    MUST(life->busy);
    life->busy = false;
    MUST(loop_now(loop).ns <= life->until.ns);
    MUST(answer->verdict <= VERDICT_UNKNOWN);
    MUST(answer->verdict != VERDICT_UNKNOWN || *answer->text);
    for (size_t i = 0; i < life->acquiring && answer->verdict == VERDICT_GRANTED; i++)
        MUST(answer->grants[i].fence > 0);
    if (life->latch && answer->verdict == VERDICT_GRANTED && answer->latch.number > 0)
        MUST(answer->latch.left >= 0 && answer->latch.left <= answer->latch.number &&
             *answer->latch.word && answer->latch.ttl_ms > 0);
    MUST(strnlen(answer->text, sizeof answer->text) < sizeof answer->text);
}

static void report(void *arg, const struct lock_view *view)
{
    struct life *life = arg;

    MUST(life->busy && view->key && view->latch.left <= view->latch.number);
}

static void report_id(void *arg, const char *id)
{
    struct life *life = arg;

    MUST(life->busy && *id);
}

static void begin_survey(struct life *life, bool all, bool latches)
{
    static const char *const patterns[] = {"a", "b*", "b"};
    struct survey_request request = {
        .patterns = patterns, .latches = latches, .each = report, .each_arg = life};

    request.pattern_count = all ? 0 : 3;
    store_survey(life->store, &request, life->until, done, life);
}

/* Its five bits are any number but 0. */
static void begin_latch(struct life *life, unsigned what)
{
    struct latch_request request = {.key = "a",
                                    .verb = what % 5,
                                    .id = "us",
                                    .unnamed = what & 8,
                                    .word = what % 5 == LATCH_SET || (what & 8) ? "word" : NULL,
                                    .number = 2,
                                    .ttl = 86400 * NS_PER_SEC,
                                    .listen = what & 16,
                                    .each = report_id,
                                    .each_arg = life};

    life->latch = true;
    store_latch(life->store, &request, life->until, done, life);
}

static void begin_force(struct life *life, bool purge)
{
    static const char *const owners[] = {"us", "them"};
    struct force_request request = {.key = "a", .owners = owners, .owner_count = 2, .purge = purge};

    store_force(life->store, &request, life->until, done, life);
}

static void begin(struct life *life, uint8_t what)
{
    static const char *const keys[] = {"a", "b"};
    struct lock_request request = {.keys = keys,
                                   .key_count = 1 + (what >> 7),
                                   .owner = (what & 0x20) ? "them.us" : "us",
                                   .mode = (what & 0x10) ? LOCK_SHARED : LOCK_EXCLUSIVE,
                                   .lease = 30 * NS_PER_SEC,
                                   .who = "",
                                   .queue = true,
                                   .listen = (what & 0x40) != 0};

    if (what % 8 == 1) {
        request.key_count = 1;
        request.mode = LOCK_EXCLUSIVE;
        request.mirror = "shedlock:n";
    }
    life->busy = true;
    life->latch = false;
    life->acquiring = what % 8 < 2 ? request.key_count : 0;
    life->until = moment_plus(loop_now(loop), TIMEOUT);
    switch (what % 8) {
    case 0:
    case 1: store_acquire(life->store, &request, life->until, done, life); break;
    case 2: store_renew(life->store, &request, life->until, done, life); break;
    case 3: store_release(life->store, &request, request.listen, life->until, done, life); break;
    case 4: begin_force(life, request.listen); break;
    case 5: begin_survey(life, request.listen, what & 0x20); break;
    case 6:
        if (what >> 3)
            begin_latch(life, what >> 3);
        else
            store_mark(life->store, &(struct mark_request){.force = false}, life->until, done,
                       life);
        break;
    case 7:
        life->busy = false;
        life->parted = true;
        store_release_nowait(life->store, &request);
        break;
    }
}

static bool turn(void)
{
    struct loop_io *io = fake_ios(loop);

    if (!io || paused) {
        paused = false;
        return fake_turn(loop);
    }
    io->ready(io, (io->events & LOOP_WRITE) ? LOOP_WRITE : LOOP_READ);
    return true;
}

static void live(const char *text, const uint8_t *operations)
{
    struct life life = {0};
    struct url url;
    char fault[256];
    int turns = 0;

    MUST(url_parse(text, &url, fault, sizeof fault));
    struct store_address address = {
        .urls = &url, .url_count = 1, .prefix = "p", .connect_timeout = 5 * NS_PER_SEC};
    life.store = store_open(loop, &address, fault, sizeof fault);
    MUST(life.store);
    for (int i = 0; i < OPERATIONS && !life.parted; i++) {
        begin(&life, operations[i]);
        while (life.busy) {
            MUST(turn());
            MUST(++turns < TURNS_MAX);
        }
    }
    store_close(life.store);
    MUST(processes == 0 && !fake_ios(loop));
    url_free(&url);
}

/* -- frames ---------------------------------------------------------------------------------- */

/* What is read can be written again, as the same bytes. */
static void check_frame(struct wire_frame *frame)
{
    struct wire_out out = {0};
    const char *start = frame->at, *text, *other;
    int64_t number;

    wire_begin(&out, frame->type);
    for (;;) {
        struct wire_frame before = *frame;
        wire_take_number(&before, &number);
        if (!wire_take(frame, &text))
            break;
        wire_text(&out, text);
    }
    MUST(wire_end(&out));
    /* But for the byte behind a text, of which nobody takes notice. */
    struct wire_frame again = {frame->type, out.bytes + 5, out.bytes + out.size};
    frame->end = frame->at;
    frame->at = start;
    while (wire_take(&again, &other))
        MUST(wire_take(frame, &text) && strcmp(text, other) == 0);
    MUST(out.size >= 5 && again.at == again.end && frame->at == frame->end);
    free(out.bytes);
}

static void read_frames(const uint8_t *data, size_t size)
{
    struct wire_in in = {0};
    struct wire_frame frame;
    enum wire_state state = WIRE_MORE;
    size_t room = 0;

    for (size_t at = 0; at < size && state == WIRE_MORE; at += room) {
        char *to = wire_room(&in, &room);
        room = room < at_most ? room : at_most;
        room = room < size - at ? room : size - at;
        memcpy(to, data + at, room);
        wire_received(&in, room);
        while ((state = wire_next(&in, &frame)) == WIRE_FRAME)
            check_frame(&frame);
    }
    free(in.bytes);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const urls[] = {"postgresql://user:secret@h/d", "mysql://h/d?table=T",
                                       "mariadb:///d?socket=/run/x"};

    if (size < HEAD)
        return 0;
    at_most = (data[0] & 0x10) ? 7 : SIZE_MAX;
    if (data[0] % 4 == 3) {
        read_frames(data + HEAD, size - HEAD);
        return 0;
    }
    loop = loop_new();
    next = (const char *)data + HEAD;
    end = (const char *)data + size;
    paused = false;
    live(urls[data[0] % 4], data + 1);
    free(line);
    free(told.bytes);
    line = NULL;
    line_at = line_size = 0;
    told = (struct wire_in){0};
    loop_free(loop);
    loop = NULL;
    return 0;
}
