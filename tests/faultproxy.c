/* faultproxy: a proxy for TCP and Unix sockets that misbehaves on command. For the tests.
 *
 *   faultproxy CONTROL LISTEN TARGET     serve until killed, or until its parent is gone; print the
 *                                        address that it listens on
 *   faultproxy -s CONTROL COMMAND...     hand a command to a running one, print its answer
 *
 * CONTROL is the path of a Unix socket. LISTEN and TARGET are a path that starts with '/' or
 * HOST:PORT with a numeric IPv4 host; port 0 lets the kernel choose. "up" is from client to target.
 *
 *   pass                  no faults; held data flows again, dropped data is gone
 *   delay up|down MS      every chunk arrives MS later
 *   drop up|down          read and throw away
 *   hold up|down          read nothing more (a cable that is cut: TCP keeps the data for later)
 *   blackhole             hold both, for new connections too
 *   cut up|down N [close] after N more bytes on a connection: hold, or reset it
 *   trickle up|down MS    one byte every MS
 *   double MS             what a client says is said once more, up to MS later, on a connection of
 *                         its own, behind what the client said first; the answer is thrown away
 *   rst                   reset all connections
 *   refuse                reset all connections and accept no more, until "pass"
 *   target ADDRESS        where new connections go
 *   spare HOST            new connections from there suffer no faults
 *   on up|down TEXT CMD   once, on the first connection on which a chunk with TEXT goes by ("any":
 *                         every chunk): one of the above up to rst, only on that connection; the
 *                         chunk itself still gets through, but for rst
 *   stats                 "accepted A open O up BYTES down BYTES"
 *
 * A command holds for the connections there are and for those to come. */
#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

/* -- connections, and the faults that they suffer ---------------------------------------------- */

enum { UP, DOWN }; /* client to target, target to client */
enum {
    LINKS = 1100,
    LINE = 512,
    CHUNK = 16384
}; /* connections at most; bytes of a command, read */

/* The faults of one direction. */
struct fault {
    bool drop, hold;
    int64_t delay, trickle; /* ms */
    int64_t twin;           /* ms; 0: nothing is said twice */
    int64_t cut;            /* bytes to go, -1: no cut */
    bool cut_closes;
};

static const struct fault no_faults[2] = {{.cut = -1}, {.cut = -1}};

struct chunk {
    struct chunk *next;
    int64_t due; /* ms */
    size_t length, sent;
    char bytes[CHUNK];
};

/* One direction of a connection: from fd[way] to fd[!way]. */
struct half {
    struct fault fault;
    struct chunk *first, **last;
    int64_t busy_until; /* the last byte of a trickle went out, the next one may then */
    bool ended, shut;   /* the source said end of file; it was passed on */
};

struct link {
    bool open, spared;
    int fd[2]; /* UP: the client's, DOWN: the target's */
    struct half half[2];
    struct sockaddr_storage target;
    socklen_t target_length;
    struct chunk *greeting; /* the first that was said by the client */
};

static struct link links[LINKS];
static struct {
    unsigned long accepted;
    unsigned long long passed[2]; /* bytes */
} count;
static struct {
    bool armed, resets;
    int way;
    char text[LINE];
    struct fault faults[2];
} trigger;

static int64_t now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static void link_close(struct link *link, bool reset)
{
    struct linger now = {.l_onoff = 1, .l_linger = 0};
    for (int way = UP; way <= DOWN; way++) {
        if (reset)
            setsockopt(link->fd[way], SOL_SOCKET, SO_LINGER, &now, sizeof now);
        close(link->fd[way]);
        for (struct chunk *c = link->half[way].first, *next; c; c = next) {
            next = c->next;
            free(c);
        }
    }
    free(link->greeting);
    link->open = false;
}

/* Connects a client that was accepted, -1 for none, to "target", with these faults; closes it if
 * that fails. */
static struct link *relay_open(int client, const struct sockaddr *target, socklen_t length,
                               const struct fault faults[2])
{
    struct link *link = links;
    while (link->open && link < links + LINKS - 1)
        link++;
    if (link->open) {
        close(client);
        return NULL;
    }
    int server = socket(target->sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    count.accepted++;
    *link = (struct link){.open = true, .fd = {client, server}, .target_length = length};
    memcpy(&link->target, target, length);
    for (int way = UP; way <= DOWN; way++) {
        link->half[way].fault = faults[way];
        link->half[way].last = &link->half[way].first;
    }
    /* Connecting may block: to this machine it does not, unless the target's backlog is full. */
    bool there = server >= 0 && connect(server, target, length) == 0;
    if (!there)
        link_close(link, true);
    return there ? link : NULL;
}

/* Sets the faults of all connections. */
static void relay_set(const struct fault faults[2])
{
    for (struct link *link = links; link < links + LINKS; link++)
        for (int way = UP; way <= DOWN && !link->spared; way++)
            link->half[way].fault = faults[way];
}

static void relay_reset(void)
{
    for (struct link *link = links; link < links + LINKS; link++)
        if (link->open && !link->spared)
            link_close(link, true);
}

/* Once, when a chunk with "text" ("any": every chunk) goes by in that direction: that connection
 * alone gets these faults besides its own, or is reset where they are NULL. */
static void relay_trigger(int way, const char *text, const struct fault *faults)
{
    trigger.armed = text != NULL;
    trigger.resets = faults == NULL;
    trigger.way = way;
    snprintf(trigger.text, sizeof trigger.text, "%s", text ? text : "");
    if (faults)
        memcpy(trigger.faults, faults, sizeof trigger.faults);
}

static int count_open(void)
{
    int open = 0;
    for (int i = 0; i < LINKS; i++)
        open += links[i].open;
    return open;
}

/* Pulls the trigger if this is the chunk; false when the connection has to go. */
static bool trigger_pull(struct link *link, int way, const char *bytes, size_t length)
{
    if (!trigger.armed || trigger.way != way)
        return true;
    if (strcmp(trigger.text, "any") && !memmem(bytes, length, trigger.text, strlen(trigger.text)))
        return true;
    trigger.armed = false;
    for (int i = UP; i <= DOWN; i++)
        link->half[i].fault = trigger.faults[i];
    return !trigger.resets;
}

static struct chunk *chunk_new(const char *bytes, size_t length, int64_t due)
{
    struct chunk *chunk = calloc(1, sizeof *chunk);
    if (!chunk)
        exit(1);
    memcpy(chunk->bytes, bytes, length);
    chunk->length = length;
    chunk->due = due;
    return chunk;
}

static void half_queue(struct half *half, struct chunk *chunk)
{
    *half->last = chunk;
    half->last = &chunk->next;
}

/* A server hears of the end of the other connection when it has done what was said. */
static void twin_say(const struct link *link, const char *bytes, size_t length, int64_t due)
{
    static const struct fault unheard[2] = {{.cut = -1}, {.cut = -1, .drop = true}};
    struct link *twin =
        relay_open(-1, (const struct sockaddr *)&link->target, link->target_length, unheard);
    if (!twin)
        return;
    if (link->greeting)
        half_queue(&twin->half[UP], chunk_new(link->greeting->bytes, link->greeting->length, due));
    half_queue(&twin->half[UP], chunk_new(bytes, length, due));
    half_queue(&twin->half[UP], chunk_new("", 0, due + 500));
    twin->half[UP].ended = true;
}

static void twin_take(struct link *link, const struct fault *fault, const char *bytes,
                      size_t length)
{
    if (fault->twin)
        twin_say(link, bytes, length, now_ms() + rand() % fault->twin);
    if (!link->greeting)
        link->greeting = chunk_new(bytes, length, 0);
}

/* Queues what was read; false when the connection has to go. */
static bool half_take(struct link *link, int way, const char *bytes, size_t length)
{
    struct half *half = &link->half[way];
    struct fault *fault = &half->fault;
    bool cut_here = fault->cut >= 0 && (int64_t)length >= fault->cut;
    size_t keep = cut_here ? (size_t)fault->cut : length;
    if (fault->cut > 0)
        fault->cut -= (int64_t)keep;
    if (!fault->drop && keep > 0)
        half_queue(half, chunk_new(bytes, keep, now_ms() + fault->delay));
    if (way == UP && keep > 0)
        twin_take(link, fault, bytes, keep);
    if (cut_here) {
        fault->hold = true;
        fault->cut = -1;
        return !fault->cut_closes;
    }
    return trigger_pull(link, way, bytes, length);
}

static bool half_read(struct link *link, int way)
{
    char bytes[CHUNK];
    ssize_t got = recv(link->fd[way], bytes, sizeof bytes, MSG_DONTWAIT);
    if (got < 0)
        return errno == EAGAIN || errno == EINTR;
    if (got > 0)
        return half_take(link, way, bytes, (size_t)got);
    link->half[way].ended = true;
    return true;
}

/* Sends what is due; false when the connection has to go. */
static bool half_write(struct link *link, int way)
{
    struct half *half = &link->half[way];
    int64_t now = now_ms();
    while (half->first && half->first->due <= now && half->busy_until <= now) {
        struct chunk *chunk = half->first;
        size_t size = half->fault.trickle ? 1 : chunk->length - chunk->sent;
        ssize_t sent =
            send(link->fd[!way], chunk->bytes + chunk->sent, size, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (sent < 0)
            return errno == EAGAIN || errno == EINTR;
        count.passed[way] += (unsigned long long)sent;
        chunk->sent += (size_t)sent;
        half->busy_until = half->fault.trickle ? now + half->fault.trickle : 0;
        if (chunk->sent < chunk->length)
            continue;
        half->first = chunk->next;
        if (!half->first)
            half->last = &half->first;
        free(chunk);
    }
    if (half->ended && !half->first && !half->shut) {
        half->shut = true;
        shutdown(link->fd[!way], SHUT_WR);
    }
    return !(link->half[UP].shut && link->half[DOWN].shut);
}

/* Returns the events to poll one end for; lowers *wait to the ms until something is due there. */
static int end_events(const struct link *link, int way, int64_t now, int64_t *wait)
{
    const struct half *in = &link->half[way], *out = &link->half[!way];
    int events = in->fault.hold || in->ended ? 0 : POLLIN;
    if (!out->first)
        return events;
    int64_t due = out->first->due > out->busy_until ? out->first->due : out->busy_until;
    if (due <= now)
        return events | POLLOUT;
    if (*wait < 0 || due - now < *wait)
        *wait = due - now;
    return events;
}

/* Fills a set of 2 * LINKS; returns ms until something is due, -1 for never. */
static int relay_watch(struct pollfd *set)
{
    int64_t wait = -1, now = now_ms();
    for (int i = 0; i < LINKS; i++)
        for (int way = UP; way <= DOWN; way++) {
            int events = links[i].open ? end_events(&links[i], way, now, &wait) : 0;
            set[2 * i + way] =
                (struct pollfd){.fd = events ? links[i].fd[way] : -1, .events = (short)events};
        }
    return (int)wait;
}

/* Moves what can be moved after poll(). */
static void relay_move(const struct pollfd *set)
{
    for (int i = 0; i < LINKS; i++)
        for (int way = UP; way <= DOWN; way++) {
            struct link *link = &links[i];
            const struct pollfd *seen = &set[2 * i + way];
            if (!link->open)
                continue;
            bool readable = seen->events & POLLIN && seen->revents;
            if (readable && !half_read(link, way))
                link_close(link, true);
            else if (!half_write(link, way))
                link_close(link, false);
        }
}

/* -- commands ---------------------------------------------------------------------------------- */

struct address {
    union {
        struct sockaddr any;
        struct sockaddr_in in;
        struct sockaddr_un un;
    } a;
    socklen_t length;
};

static struct address target, home;
static struct in_addr spared; /* 0.0.0.0: none */
static int listener = -1;
static struct fault faults[2] = {{.cut = -1}, {.cut = -1}};

static void die(const char *what)
{
    fprintf(stderr, "faultproxy: %s: %s\n", what, strerror(errno));
    exit(1);
}

static bool address_parse(const char *text, struct address *out)
{
    memset(out, 0, sizeof *out);
    if (text[0] == '/') {
        out->a.un.sun_family = AF_UNIX;
        out->length = sizeof out->a.un;
        return snprintf(out->a.un.sun_path, sizeof out->a.un.sun_path, "%s", text) <
               (int)sizeof out->a.un.sun_path;
    }
    char host[64];
    unsigned port;
    if (sscanf(text, "%63[0-9.]:%u", host, &port) != 2 || port > 65535)
        return false;
    out->a.in.sin_family = AF_INET;
    out->a.in.sin_port = htons((uint16_t)port);
    out->length = sizeof out->a.in;
    return inet_pton(AF_INET, host, &out->a.in.sin_addr) == 1;
}

static int listen_on(struct address *where)
{
    int fd = socket(where->a.any.sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0), on = 1;
    if (where->a.any.sa_family == AF_UNIX)
        unlink(where->a.un.sun_path);
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (fd < 0 || bind(fd, &where->a.any, where->length) || listen(fd, 1000))
        die("cannot listen");
    getsockname(fd, &where->a.any, &where->length); /* the port that port 0 became */
    return fd;
}

/* Adds one command's faults; false if it is none of those. */
static bool fault_add(struct fault fault[2], int words, char word[][LINE])
{
    int way = words > 1 && !strcmp(word[1], "down") ? DOWN : UP;
    bool has_way = words > 1 && (way == DOWN || !strcmp(word[1], "up"));
    int64_t number = words > 2 ? atoll(word[2]) : 0;
    if (!strcmp(word[0], "double") && words > 1)
        fault[UP].twin = atoll(word[1]);
    else if (!strcmp(word[0], "pass"))
        memcpy(fault, no_faults, sizeof no_faults);
    else if (!strcmp(word[0], "blackhole"))
        fault[UP].hold = fault[DOWN].hold = true;
    else if (!strcmp(word[0], "drop") && has_way)
        fault[way].drop = true;
    else if (!strcmp(word[0], "hold") && has_way)
        fault[way].hold = true;
    else if (!strcmp(word[0], "delay") && has_way && words > 2)
        fault[way].delay = number;
    else if (!strcmp(word[0], "trickle") && has_way && words > 2)
        fault[way].trickle = number;
    else if (!strcmp(word[0], "cut") && has_way && words > 2) {
        fault[way].cut = number;
        fault[way].cut_closes = words > 3;
    } else
        return false;
    return true;
}

/* on WAY TEXT COMMAND... */
static bool trigger_set(int words, char word[][LINE])
{
    struct fault then[2];
    int way = !strcmp(word[1], "down");
    memcpy(then, faults, sizeof then);
    if (words == 4 && !strcmp(word[3], "rst"))
        relay_trigger(way, word[2], NULL);
    else if (words > 3 && fault_add(then, words - 3, word + 3))
        relay_trigger(way, word[2], then);
    else
        return false;
    return true;
}

/* Does what a line says; false if it makes no sense. */
static bool obey(const char *line, char *answer)
{
    char word[8][LINE] = {""};
    int words = sscanf(line, "%511s %511s %511s %511s %511s %511s %511s", word[0], word[1], word[2],
                       word[3], word[4], word[5], word[6]);
    if (words > 3 && !strcmp(word[0], "on"))
        return trigger_set(words, word);
    if (!strcmp(word[0], "stats")) {
        sprintf(answer, "accepted %lu open %d up %llu down %llu\n", count.accepted, count_open(),
                count.passed[UP], count.passed[DOWN]);
        return true;
    }
    if (words > 1 && !strcmp(word[0], "target"))
        return address_parse(word[1], &target);
    if (words > 1 && !strcmp(word[0], "spare"))
        return inet_pton(AF_INET, word[1], &spared) == 1;
    if (!strcmp(word[0], "rst") || !strcmp(word[0], "refuse")) {
        relay_reset();
        if (word[0][1] == 'e' && listener >= 0)
            close(listener), listener = -1;
        return true;
    }
    if (!fault_add(faults, words, word))
        return false;
    relay_set(faults);
    if (!strcmp(word[0], "pass")) {
        relay_trigger(UP, NULL, NULL);
        listener = listener < 0 ? listen_on(&home) : listener;
    }
    return true;
}

static void command_take(int control)
{
    char line[LINE] = "", answer[LINE] = "ok\n";
    int fd = accept4(control, NULL, NULL, SOCK_CLOEXEC);
    if (fd >= 0 && recv(fd, line, sizeof line - 1, 0) > 0) {
        if (!obey(line, answer))
            strcpy(answer, "what?\n");
        send(fd, answer, strlen(answer), MSG_NOSIGNAL);
    }
    close(fd);
}

static int command_send(const char *path, int words, char **word)
{
    struct address where;
    char line[LINE] = "", answer[LINE] = "";
    for (int i = 0; i < words; i++)
        snprintf(line + strlen(line), sizeof line - strlen(line), "%s%s", i ? " " : "", word[i]);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (!address_parse(path, &where) || fd < 0 || connect(fd, &where.a.any, where.length))
        die(path);
    if (send(fd, line, strlen(line), MSG_NOSIGNAL) < 0 ||
        recv(fd, answer, sizeof answer - 1, 0) < 0)
        die("no answer");
    fputs(answer, stdout);
    return strcmp(answer, "what?\n") ? 0 : 1;
}

/* A pair of descriptors for each connection, and poll(2) refuses a set larger than the limit. */
static void raise_limit(void)
{
    struct rlimit limit;
    getrlimit(RLIMIT_NOFILE, &limit);
    limit.rlim_cur = limit.rlim_max;
    setrlimit(RLIMIT_NOFILE, &limit);
}

static void accept_client(void)
{
    struct sockaddr_in from = {0};
    socklen_t length = sizeof from;
    int client = accept4(listener, (struct sockaddr *)&from, &length, SOCK_CLOEXEC);
    bool spare = spared.s_addr && from.sin_addr.s_addr == spared.s_addr;
    struct link *link =
        client < 0 ? NULL
                   : relay_open(client, &target.a.any, target.length, spare ? no_faults : faults);
    if (link)
        link->spared = spare;
}

static void serve(int control)
{
    static struct pollfd set[2 * LINKS + 2];
    struct pollfd *accepting = &set[2 * LINKS], *commands = accepting + 1;
    for (;;) {
        int wait = relay_watch(set);
        *accepting = (struct pollfd){.fd = listener, .events = POLLIN};
        *commands = (struct pollfd){.fd = control, .events = POLLIN};
        if (poll(set, 2 * LINKS + 2, wait) < 0 && errno != EINTR)
            die("poll");
        relay_move(set);
        if (accepting->revents)
            accept_client();
        if (commands->revents)
            command_take(control);
    }
}

int main(int argc, char **argv)
{
    struct address control;
    if (argc > 3 && !strcmp(argv[1], "-s"))
        return command_send(argv[2], argc - 3, argv + 3);
    if (argc != 4 || !address_parse(argv[1], &control) || !address_parse(argv[2], &home) ||
        !address_parse(argv[3], &target)) {
        fputs("usage: faultproxy CONTROL LISTEN TARGET | faultproxy -s CONTROL COMMAND...\n",
              stderr);
        return 64;
    }
    prctl(PR_SET_PDEATHSIG, SIGKILL); /* a killed bats does not clean up */
    raise_limit();
    listener = listen_on(&home);
    int commands = listen_on(&control);
    if (home.a.any.sa_family == AF_UNIX)
        puts(argv[2]);
    else
        printf("127.0.0.1:%u\n", ntohs(home.a.in.sin_port));
    fflush(stdout);
    serve(commands);
}
