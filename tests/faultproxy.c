/* faultproxy: a proxy for TCP and Unix sockets that misbehaves on command. For the tests.
 *
 *   faultproxy CONTROL LISTEN TARGET     serve until killed; prints the address it listens on
 *   faultproxy -s CONTROL COMMAND...     hand a command to a running one, print its answer
 *
 * CONTROL is the path of a Unix socket. LISTEN and TARGET are a path that starts with '/' or
 * HOST:PORT with a numeric IPv4 host; port 0 lets the kernel choose. "up" is from client to target.
 *
 *   pass                  no faults; what was held back flows again, what was dropped is gone
 *   delay up|down MS      every chunk arrives MS later
 *   drop up|down          read and throw away
 *   hold up|down          read nothing more (a cable that is cut: TCP keeps the data for later)
 *   blackhole             hold both, for new connections too
 *   cut up|down N [close] after N more bytes on a connection: hold, or reset it
 *   trickle up|down MS    one byte every MS
 *   rst                   reset all connections
 *   refuse                reset all connections and accept no more, until "pass"
 *   target ADDRESS        where new connections go
 *   on up|down TEXT CMD   once, on the first connection on which a chunk with TEXT goes by: CMD on
 *                         that connection alone, with that chunk still passed on (but for rst);
 *                         TEXT "any" is every chunk
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
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

enum { UP, DOWN };
enum { LINKS = 1100, CHUNK = 16384, LINE = 512 };

struct address {
    union {
        struct sockaddr any;
        struct sockaddr_in in;
        struct sockaddr_un un;
    } a;
    socklen_t length;
};

struct fault {
    bool drop, hold;
    int64_t delay, trickle; /* ms */
    int64_t cut;            /* bytes to go, -1: no cut */
    bool cut_closes;
};

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
    int64_t busy_until; /* the last byte of a trickle goes out then */
    bool ended, shut;   /* the source said end of file; it was passed on */
};

struct link {
    bool open;
    int fd[2]; /* UP: the client's, DOWN: the target's */
    struct half half[2];
};

static struct link links[LINKS];
static struct fault faults[2] = {{.cut = -1}, {.cut = -1}};
static struct address target;
static struct address home;
static int listener = -1;
static unsigned long accepted;
static unsigned long long passed[2];
static struct {
    bool armed;
    int way;
    char text[LINE], command[LINE];
} trigger;

static void die(const char *what)
{
    fprintf(stderr, "faultproxy: %s: %s\n", what, strerror(errno));
    exit(1);
}

static int64_t now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
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
    link->open = false;
}

static void link_accept(void)
{
    struct link *link = links;
    while (link < links + LINKS && link->open)
        link++;
    int client = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (client < 0)
        return;
    int server = socket(target.a.any.sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    accepted++;
    *link = (struct link){.open = true, .fd = {client, server}};
    for (int way = UP; way <= DOWN; way++) {
        link->half[way].fault = faults[way];
        link->half[way].last = &link->half[way].first;
    }
    /* Connecting may block: to loopback it does not, unless the target's backlog is full. */
    if (server < 0 || connect(server, &target.a.any, target.length))
        link_close(link, true);
}

static void reset_all(void)
{
    for (struct link *link = links; link < links + LINKS; link++)
        if (link->open)
            link_close(link, true);
}

/* Sets the faults of one direction; false if the words make no sense. */
static bool fault_set(struct fault fault[2], int words, char word[4][LINE])
{
    int way = words > 1 && !strcmp(word[1], "down") ? DOWN : UP;
    bool has_way = words > 1 && (way == DOWN || !strcmp(word[1], "up"));
    int64_t number = words > 2 ? atoll(word[2]) : 0;
    if (!strcmp(word[0], "pass"))
        fault[UP] = fault[DOWN] = (struct fault){.cut = -1};
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

/* Does one command on "only", or on everything when it is NULL; the answer goes to "out". */
static void obey(struct link *only, const char *line, char *out)
{
    char word[4][LINE] = {""};
    int words = sscanf(line, "%511s %511s %511s %511s", word[0], word[1], word[2], word[3]),
        open = 0;
    strcpy(out, "ok\n");
    if (words > 3 && !strcmp(word[0], "on")) {
        trigger.armed = true;
        trigger.way = !strcmp(word[1], "down");
        strcpy(trigger.text, word[2]);
        strcpy(trigger.command, strstr(strstr(line, word[2]) + strlen(word[2]), word[3]));
    } else if (!strcmp(word[0], "stats")) {
        for (int i = 0; i < LINKS; i++)
            open += links[i].open;
        sprintf(out, "accepted %lu open %d up %llu down %llu\n", accepted, open, passed[UP],
                passed[DOWN]);
    } else if (!strcmp(word[0], "rst")) {
        only ? link_close(only, true) : reset_all();
    } else if (!strcmp(word[0], "refuse")) {
        reset_all();
        close(listener);
        listener = -1;
    } else if (words > 1 && !strcmp(word[0], "target")) {
        if (!address_parse(word[1], &target))
            strcpy(out, "bad address\n");
    } else if (only) {
        struct fault fault[2] = {only->half[UP].fault, only->half[DOWN].fault};
        fault_set(fault, words, word);
        only->half[UP].fault = fault[UP];
        only->half[DOWN].fault = fault[DOWN];
    } else if (fault_set(faults, words, word)) {
        trigger.armed = trigger.armed && strcmp(word[0], "pass");
        if (listener < 0 && !strcmp(word[0], "pass"))
            listener = listen_on(&home);
        for (struct link *link = links; link < links + LINKS; link++)
            if (link->open)
                obey(link, line, out);
    } else
        strcpy(out, "what?\n");
}

/* Queues what was read; false when the connection has to go. */
static bool half_take(struct link *link, int way, const char *bytes, size_t length, int64_t now)
{
    struct half *half = &link->half[way];
    bool cut_here = half->fault.cut >= 0 && (int64_t)length >= half->fault.cut;
    size_t keep = cut_here ? (size_t)half->fault.cut : length;
    if (half->fault.cut > 0)
        half->fault.cut -= (int64_t)keep;
    if (!half->fault.drop && keep > 0) {
        struct chunk *chunk = calloc(1, sizeof *chunk);
        if (!chunk)
            die("memory");
        memcpy(chunk->bytes, bytes, keep);
        chunk->length = keep;
        chunk->due = now + half->fault.delay;
        *half->last = chunk;
        half->last = &chunk->next;
    }
    if (cut_here) {
        half->fault.hold = true;
        half->fault.cut = -1;
    }
    if (trigger.armed && trigger.way == way &&
        (!strcmp(trigger.text, "any") ||
         memmem(bytes, length, trigger.text, strlen(trigger.text)))) {
        char answer[LINE];
        trigger.armed = false;
        obey(link, trigger.command, answer);
    }
    return link->open && !(cut_here && half->fault.cut_closes);
}

static bool half_read(struct link *link, int way, int64_t now)
{
    char bytes[CHUNK];
    ssize_t got = recv(link->fd[way], bytes, sizeof bytes, MSG_DONTWAIT);
    if (got < 0)
        return errno == EAGAIN || errno == EINTR;
    if (got == 0) {
        link->half[way].ended = true;
        return true;
    }
    return half_take(link, way, bytes, (size_t)got, now);
}

/* Sends what is due; false when the connection has to go. */
static bool half_write(struct link *link, int way, int64_t now)
{
    struct half *half = &link->half[way];
    while (half->first && half->first->due <= now && half->busy_until <= now) {
        struct chunk *chunk = half->first;
        size_t size = half->fault.trickle ? 1 : chunk->length - chunk->sent;
        ssize_t sent =
            send(link->fd[!way], chunk->bytes + chunk->sent, size, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (sent < 0)
            return errno == EAGAIN || errno == EINTR;
        passed[way] += (unsigned long long)sent;
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

/* Fills the poll set; returns ms until something is due, -1 for never. */
static int64_t links_watch(struct pollfd *set, int64_t now)
{
    int64_t wait = -1;
    for (int i = 0; i < LINKS; i++)
        for (int way = UP; way <= DOWN; way++) {
            struct link *link = &links[i];
            struct half *in = &link->half[way], *out = &link->half[!way];
            struct pollfd *p = &set[2 * i + way];
            *p = (struct pollfd){.fd = -1};
            if (!link->open)
                continue;
            if (!in->fault.hold && !in->ended)
                p->events |= POLLIN;
            int64_t due = out->first ? out->first->due : 0;
            due = due < out->busy_until ? out->busy_until : due;
            if (out->first && due <= now)
                p->events |= POLLOUT;
            else if (out->first && (wait < 0 || due - now < wait))
                wait = due - now;
            if (p->events)
                p->fd = link->fd[way];
        }
    return wait;
}

static void control_serve(int control)
{
    char line[LINE] = "", answer[LINE];
    int fd = accept4(control, NULL, NULL, SOCK_CLOEXEC);
    if (fd >= 0 && recv(fd, line, sizeof line - 1, 0) > 0) {
        line[strcspn(line, "\n")] = '\0';
        obey(NULL, line, answer);
        send(fd, answer, strlen(answer), MSG_NOSIGNAL);
    }
    close(fd);
}

static void serve(int control)
{
    static struct pollfd set[2 * LINKS + 2];
    for (;;) {
        int64_t wait = links_watch(set, now_ms());
        set[2 * LINKS] = (struct pollfd){.fd = control, .events = POLLIN};
        set[2 * LINKS + 1] = (struct pollfd){.fd = listener, .events = POLLIN};
        if (poll(set, 2 * LINKS + 2, (int)wait) < 0 && errno != EINTR)
            die("poll");
        int64_t now = now_ms();
        for (int i = 0; i < LINKS; i++)
            for (int way = UP; way <= DOWN; way++) {
                struct link *link = &links[i];
                int seen = set[2 * i + way].revents;
                bool alive = link->open;
                if (alive && seen & (POLLIN | POLLHUP | POLLERR) && !link->half[way].fault.hold &&
                    !link->half[way].ended)
                    alive = half_read(link, way, now);
                if (link->open && (!alive || !half_write(link, way, now)))
                    link_close(link, !alive);
            }
        if (set[2 * LINKS + 1].revents)
            link_accept();
        if (set[2 * LINKS].revents)
            control_serve(control); /* last: it may close what was polled */
    }
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
    return strcmp(answer, "what?\n") && strcmp(answer, "bad address\n") ? 0 : 1;
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
    listener = listen_on(&home);
    int commands = listen_on(&control);
    if (home.a.any.sa_family == AF_UNIX)
        puts(argv[2]);
    else
        printf("127.0.0.1:%u\n", ntohs(home.a.in.sin_port));
    fflush(stdout);
    serve(commands);
}
