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
 *   rst                   reset all connections
 *   refuse                reset all connections and accept no more, until "pass"
 *   target ADDRESS        where new connections go
 *   on up|down TEXT CMD   once, on the first connection on which a chunk with TEXT goes by ("any":
 *                         every chunk): one of the above up to rst, only on that connection; the
 *                         chunk itself still gets through, but for rst
 *   stats                 "accepted A open O up BYTES down BYTES"
 *
 * A command holds for the connections there are and for those to come. */
#include "relay.h"
#include <arpa/inet.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/un.h>
#include <unistd.h>

struct address {
    union {
        struct sockaddr any;
        struct sockaddr_in in;
        struct sockaddr_un un;
    } a;
    socklen_t length;
};

static struct address target, home;
static int listener = -1;
static struct fault faults[2] = FAULTS_NONE;

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
    if (!strcmp(word[0], "pass"))
        memcpy(fault, (struct fault[2])FAULTS_NONE, sizeof(struct fault[2]));
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
        struct relay_count n = relay_count();
        sprintf(answer, "accepted %lu open %d up %llu down %llu\n", n.accepted, n.open,
                n.passed[UP], n.passed[DOWN]);
        return true;
    }
    if (words > 1 && !strcmp(word[0], "target"))
        return address_parse(word[1], &target);
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
        int client = accepting->revents ? accept4(listener, NULL, NULL, SOCK_CLOEXEC) : -1;
        if (client >= 0)
            relay_open(client, &target.a.any, target.length, faults);
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
