/* A server, or Sentinels and a server, a cluster, a quorum, that say anything at any time: each
 * operation of a store ends once and in time, and nothing is left behind.
 *
 * The first byte chooses the store and its promises, three more its operations. The rest is
 * what the network says. */
#include "fake_loop.h"
#include "fuzz.h"
#include "os/helper_process.h"
#include "store/store.h"

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* The network: sockets whose other end says what the input says. The calls of libc
 * that net/stream.c makes come here (ld --wrap).
 *
 * Bytes of the input are what is received. One of them is not: WIRE_MARK, and after it what happens
 * instead; two of them are one byte that is received. */
#define WIRE_MARK 0xff
enum { WIRE_END, WIRE_RESET, WIRE_PAUSE, WIRE_REFUSE, WIRE_EVENTS };

#define FIRST_FD 100000 /* no real one */
#define FDS      64

static const uint8_t *next, *end;
static bool paused;
static bool used[FDS];

/* Puts the input on the wire. Borrowed. */
static void wire_feed(const uint8_t *data, size_t size)
{
    next = data;
    end = data + size;
    paused = false;
}

/* Sockets that are open. */
static int wire_open(void)
{
    int count = 0;

    for (int i = 0; i < FDS; i++)
        count += used[i];
    return count;
}

/* The event that the input has next, WIRE_EVENTS if it has none. */
static int peek_event(void)
{
    bool marked = end - next >= 2 && *next == WIRE_MARK && next[1] != WIRE_MARK;

    return marked ? next[1] % WIRE_EVENTS : WIRE_EVENTS;
}

static bool take_event(int event)
{
    if (peek_event() != event)
        return false;
    next += 2;
    return true;
}

static bool is_due(const struct loop_io *io)
{
    return (io->events & LOOP_WRITE) || (!paused && next < end);
}

/* One thing happens: a socket connects, something arrives, or time passes. False if nothing ever
 * will. */
static bool wire_turn(struct loop *loop)
{
    size_t count = 0, chosen;
    struct loop_io *io;

    for (io = fake_ios(loop); io; io = io->next)
        count += is_due(io);
    if (count == 0) {
        paused = false;
        return fake_turn(loop);
    }
    chosen = (size_t)(end - next) % count;
    io = fake_ios(loop);
    while (!is_due(io) || chosen-- > 0)
        io = io->next;
    io->ready(io, (io->events & LOOP_WRITE) ? LOOP_WRITE : LOOP_READ);
    return true;
}

/* -- instead of libc ------------------------------------------------------------------------- */

int __wrap_socket(int domain, int type, int protocol);
int __wrap_connect(int fd, const struct sockaddr *address, socklen_t length);
int __wrap_getsockopt(int fd, int level, int name, void *value, socklen_t *length);
int __wrap_setsockopt(int fd, int level, int name, const void *value, socklen_t length);
int __wrap_shutdown(int fd, int how);
ssize_t __wrap_send(int fd, const void *bytes, size_t size, int flags);
ssize_t __wrap_recv(int fd, void *bytes, size_t size, int flags);
struct helper_process *__wrap_helper_process_start(struct loop *loop,
                                                   void (*work)(const void *, void *),
                                                   const void *question, size_t size,
                                                   void (*done)(void *, const void *), void *owner);
int __wrap_close(int fd);
int __real_close(int fd);

int __wrap_socket(int domain, int type, int protocol)
{
    (void)domain, (void)type, (void)protocol;
    for (int i = 0; i < FDS; i++) {
        if (used[i])
            continue;
        used[i] = true;
        return FIRST_FD + i;
    }
    errno = EMFILE;
    return -1;
}

int __wrap_close(int fd)
{
    if (fd < FIRST_FD)
        return __real_close(fd);
    used[fd - FIRST_FD] = false;
    return 0;
}

int __wrap_connect(int fd, const struct sockaddr *address, socklen_t length)
{
    (void)fd, (void)address, (void)length;
    errno = take_event(WIRE_REFUSE) ? ECONNREFUSED : EINPROGRESS;
    return -1;
}

int __wrap_getsockopt(int fd, int level, int name, void *value, socklen_t *length)
{
    (void)fd, (void)level, (void)name, (void)length;
    *(int *)value = take_event(WIRE_REFUSE) ? EHOSTUNREACH : 0;
    return 0;
}

int __wrap_setsockopt(int fd, int level, int name, const void *value, socklen_t length)
{
    (void)fd, (void)level, (void)name, (void)value, (void)length;
    return 0;
}

int __wrap_shutdown(int fd, int how)
{
    (void)fd, (void)how;
    return 0;
}

ssize_t __wrap_send(int fd, const void *bytes, size_t size, int flags)
{
    (void)fd, (void)bytes, (void)flags;
    if (take_event(WIRE_RESET)) {
        errno = EPIPE;
        return -1;
    }
    return (ssize_t)size;
}

ssize_t __wrap_recv(int fd, void *bytes, size_t size, int flags)
{
    size_t length = (size_t)(end - next);

    (void)fd, (void)flags;
    if (peek_event() != WIRE_EVENTS) {
        int event = next[1] % WIRE_EVENTS;
        next += 2;
        paused = event == WIRE_PAUSE || event == WIRE_REFUSE;
        errno = paused ? EAGAIN : ECONNRESET;
        return event == WIRE_END ? 0 : -1;
    }
    if (length > 1 && next[0] == WIRE_MARK && next[1] == WIRE_MARK) {
        next += 2;
        *(uint8_t *)bytes = WIRE_MARK;
        return 1;
    }
    const uint8_t *mark = length > 1 ? memchr(next + 1, WIRE_MARK, length - 1) : NULL;
    length = mark ? (size_t)(mark - next) : length;
    length = length < size ? length : size;
    memcpy(bytes, next, length);
    next += length;
    errno = EAGAIN;
    return length > 0 ? (ssize_t)length : -1;
}

/* No name is looked up, nothing is started. */
struct helper_process *__wrap_helper_process_start(struct loop *loop,
                                                   void (*work)(const void *, void *),
                                                   const void *question, size_t size,
                                                   void (*done)(void *, const void *), void *owner)
{
    (void)loop, (void)work, (void)question, (void)size, (void)done, (void)owner;
    errno = EAGAIN;
    return NULL;
}

/* -- the store ---------------------------------------------------------------------- */

#define OPERATIONS 3
#define HEAD       (1 + OPERATIONS)
#define TURNS_MAX  20000
#define TIMEOUT    (10 * NS_PER_SEC)

#define URLS_MAX 3

static const char *const urls[][URLS_MAX] = {
    {"redis://user:secret@127.0.0.1:7000/2"},
    {"unix:///run/redis.sock"},
    {"sentinel://user:secret@127.0.0.1,127.0.0.2,127.0.0.3/master"},
    {"sentinel://127.0.0.1/master/1"},
    {"redis://127.0.0.1", "redis://:secret@127.0.0.2/1", "unix:///run/redis.sock"},
    {"cluster://127.0.0.1,127.0.0.2:7000"},
    {"zookeeper://127.0.0.1,127.0.0.2:7000/jobs"},
    {"zookeeper://user:secret@127.0.0.1"},
};

struct life {
    struct url urls[URLS_MAX];
    struct store_address address;
    struct loop *loop;
    struct store *store;
    bool busy, parted;
    size_t acquiring; /* how many keys */
    size_t take;      /* how many of them must be held */
    struct moment until;
    unsigned reports;
};

static void done(void *arg, const struct answer *answer)
{
    struct life *life = arg;

    MUST(life->busy);
    life->busy = false;
    MUST(loop_now(life->loop).ns <= life->until.ns);
    MUST(answer->verdict <= VERDICT_UNKNOWN);
    MUST(answer->verdict != VERDICT_UNKNOWN || *answer->text);
    size_t held = 0;
    for (size_t i = 0; answer->granted.grants && i < life->acquiring; i++) {
        MUST(answer->granted.grants[i].fence > 0 || answer->granted.grants[i].absent);
        held += !answer->granted.grants[i].absent;
    }
    MUST(held == 0 || held == life->take);
    MUST(strnlen(answer->text, sizeof answer->text) < sizeof answer->text);
}

static void poked(void *arg)
{
    struct life *life = arg;
    life->reports++;
}

static const struct store_events events = {.poked = poked};

static void report(void *arg, const struct lock_view *view)
{
    struct life *life = arg;

    MUST(life->busy && view->key);
    life->reports++;
}

static void report_id(void *arg, const char *id)
{
    struct life *life = arg;

    MUST(life->busy && id);
    life->reports++;
}

static const char *const keys[] = {"a", "b"};

/* The requests of one operation; it lasts no longer than they do. */
struct requests {
    struct acquire_request acquire;
    struct renew_request renew;
    struct release_request release;
    struct force_request force;
    struct survey_request survey;
    struct latch_request latch;
};

static void fill_in(struct life *life, struct requests *requests, uint8_t what)
{
    static const char *const patterns[] = {"a", "b*", "b"}, *const owners[] = {"us", "them"};
    bool listen = (what & 0x40) != 0, latches = store_can(&life->address, STORE_LATCHES);
    size_t key_count = 1 + (what >> 7);

    requests->acquire = (struct acquire_request){.keys = keys,
                                                 .key_count = key_count,
                                                 .owner = "us",
                                                 .lease = 30 * NS_PER_SEC,
                                                 .who = "",
                                                 .queue = true,
                                                 .listen = listen};
    requests->renew = (struct renew_request){.lock = &requests->acquire, .listen = listen};
    requests->release =
        (struct release_request){.lock = &requests->acquire, .uncertain = listen || what % 8 == 7};
    requests->force = (struct force_request){.key = "a", .owners = owners, .owner_count = 2};
    requests->survey = (struct survey_request){.patterns = patterns,
                                               .pattern_count = listen ? 0 : 3,
                                               .latches = latches && what >> 7,
                                               .each = report,
                                               .each_arg = life};
    requests->latch = (struct latch_request){.key = "a",
                                             .verb = listen ? LATCH_LOOK : LATCH_LIST,
                                             .listen = listen,
                                             .each = report_id,
                                             .each_arg = life};
    if (what % 8 == 1 && key_count > 1 && store_can(&life->address, STORE_ANY))
        requests->acquire.take = 1;
}

static void begin(struct life *life, struct requests *requests, uint8_t what)
{
    static const enum store_verb verbs[] = {VERB_ACQUIRE, VERB_ACQUIRE, VERB_RENEW, VERB_RELEASE,
                                            VERB_FORCE,   VERB_SURVEY,  VERB_LATCH};
    struct operation operation = {.done = done, .arg = life};

    fill_in(life, requests, what);
    if (what % 8 == 7) {
        life->parted = true;
        store_release_nowait(life->store, &requests->release);
        return;
    }
    life->busy = true;
    life->acquiring = what % 8 < 2 ? requests->acquire.key_count : 0;
    life->take = requests->acquire.take ? requests->acquire.take : requests->acquire.key_count;
    life->until = operation.until = moment_plus(loop_now(life->loop), TIMEOUT);
    operation.verb = verbs[what % 8];
    if (operation.verb == VERB_LATCH && !store_can(&life->address, STORE_LATCHES))
        operation.verb = VERB_FORCE;
    switch (operation.verb) {
    case VERB_ACQUIRE: operation.acquire = &requests->acquire; break;
    case VERB_RENEW: operation.renew = &requests->renew; break;
    case VERB_RELEASE: operation.release = &requests->release; break;
    case VERB_FORCE: operation.force = &requests->force; break;
    case VERB_SURVEY: operation.survey = &requests->survey; break;
    default: operation.latch = &requests->latch; break;
    }
    store_start(life->store, &operation);
}

static void live(struct life *life, const uint8_t *operations)
{
    struct requests requests;
    int turns = 0;

    for (int i = 0; i < OPERATIONS && !life->parted; i++) {
        begin(life, &requests, operations[i]);
        while (life->busy) {
            MUST(wire_turn(life->loop));
            MUST(++turns < TURNS_MAX);
        }
    }
}

static void open_store(struct life *life, uint8_t kind)
{
    const char *const *texts = urls[(kind & 15) % (sizeof urls / sizeof *urls)];
    struct store_address *address = &life->address;
    char fault[256];

    *address = (struct store_address){.urls = life->urls,
                                      .prefix = "p",
                                      .connect_timeout = 5 * NS_PER_SEC,
                                      .replicas = (kind >> 4) % 4,
                                      .replica_count = 1,
                                      .grace = (kind & 64) != 0};
    while (address->url_count < URLS_MAX && texts[address->url_count]) {
        struct url *url = &life->urls[address->url_count];
        MUST(url_parse(texts[address->url_count++], url, fault, sizeof fault));
    }
    life->store = store_open(life->loop, address, fault, sizeof fault);
    MUST(life->store || *fault);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct life life = {.loop = loop_new()};

    if (size >= HEAD) {
        open_store(&life, data[0]);
        wire_feed(data + HEAD, size - HEAD);
    }
    if (life.store) {
        store_on_event(life.store, &events, &life);
        live(&life, data + 1);
        store_close(life.store);
        MUST(wire_open() == 0 && !fake_ios(life.loop));
    }
    for (size_t i = 0; i < URLS_MAX; i++)
        url_free(&life.urls[i]);
    loop_free(life.loop);
    return 0;
}
