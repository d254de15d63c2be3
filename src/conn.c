/* One RESP connection over our own socket. */
#include "conn.h"
#include "loop.h"
#include "mem.h"
#include "resolve.h"
#include "tls.h"

#include <errno.h>
#include <hiredis/hiredis.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <unistd.h>

struct conn {
    struct loop *loop;
    const struct conn_events *events;
    void *arg;
    struct loop_io io; /* fd -1 while closed */
    bool connecting;
    struct tls_session *tls; /* NULL: plain */
    bool shaking_hands;      /* connected, but TLS is not yet agreed on */
    bool remote;             /* by TCP */
    bool heard;              /* a reply has come */
    unsigned life;           /* counts closes: a callback may end what is being read */
    redisReader *reader;
    char *out;
    size_t out_size, out_sent, out_room;
};

#define CLOSED "the server closed the connection"

/* How long sent data may stay unacknowledged before the kernel gives the connection up. */
#define UNACKNOWLEDGED_MS 10000

static void handle(struct loop_io *io, int events);

struct conn *conn_new(struct loop *loop, const struct conn_events *events, void *arg)
{
    struct conn *conn = mem_zeroed(sizeof *conn);

    conn->loop = loop;
    conn->events = events;
    conn->arg = arg;
    conn->io = (struct loop_io){.fd = -1, .ready = handle, .owner = conn};
    return conn;
}

void conn_free(struct conn *conn)
{
    conn_close(conn);
    free(conn->out);
    free(conn);
}

void conn_close(struct conn *conn)
{
    if (conn->io.fd < 0)
        return;
    loop_remove(conn->loop, &conn->io);
    close(conn->io.fd);
    conn->io.fd = -1;
    conn->life++;
    conn->out_size = conn->out_sent = 0;
    redisReaderFree(conn->reader);
    conn->reader = NULL;
    tls_end(conn->tls);
    conn->tls = NULL;
}

static void broken(struct conn *conn, const char *why)
{
    conn_close(conn);
    conn->events->broken(conn->arg, why);
}

/* The connection has ended. Where not a word was said on it, the two may not speak the same language. */
static void ended(struct conn *conn, const char *why)
{
    const char *guess = conn->heard     ? NULL
                        : conn->tls     ? tls_suspicion(conn->tls)
                        : !conn->remote ? NULL
                                        : "is it a server with TLS?";
    char text[160];

    snprintf(text, sizeof text, "%s%s%s", why, guess ? "; " : "", guess ? guess : "");
    broken(conn, text);
}

static void tune(int fd, int family)
{
    if (family == AF_UNIX)
        return;
    int on = 1;
    unsigned patience = UNACKNOWLEDGED_MS;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
    setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &patience, sizeof patience);
}

int conn_open(struct conn *conn, const struct endpoint *to, struct tls *tls, const char *host)
{
    int family = to->address.ss_family;
    int fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return -1;
    tune(fd, family);
    /* A Unix socket with a full backlog says EAGAIN: nothing would ever wake us for it. */
    if (connect(fd, (const struct sockaddr *)&to->address, to->length) != 0 &&
        errno != EINPROGRESS) {
        int saved = errno == EAGAIN ? ETIMEDOUT : errno;
        close(fd);
        errno = saved;
        return -1;
    }
    conn->reader = mem_checked(redisReaderCreate());
    conn->io.fd = fd;
    conn->io.events = LOOP_WRITE;
    conn->connecting = true;
    conn->remote = family != AF_UNIX;
    conn->heard = false;
    conn->tls = tls ? tls_start(tls, host) : NULL;
    conn->shaking_hands = conn->tls != NULL;
    loop_add(conn->loop, &conn->io);
    return 0;
}

/* Sends what it can; false with errno if the connection is broken. */
static bool send_queued(struct conn *conn)
{
    bool sound = true;

    while (sound && conn->out_sent < conn->out_size) {
        ssize_t n = send(conn->io.fd, conn->out + conn->out_sent, conn->out_size - conn->out_sent,
                         MSG_NOSIGNAL);
        if (n < 0 && (errno == EAGAIN || errno == EINTR))
            break;
        if (n < 0)
            sound = false;
        else
            conn->out_sent += (size_t)n;
    }
    if (conn->out_sent == conn->out_size)
        conn->out_sent = conn->out_size = 0;
    conn->io.events = LOOP_READ | (conn->out_size ? LOOP_WRITE : 0);
    return sound;
}

/* Queues bytes for the wire. */
static void queue(struct conn *conn, const char *bytes, size_t size)
{
    if (conn->out_size + size > conn->out_room) {
        conn->out_room = conn->out_size + size;
        conn->out = mem_checked(realloc(conn->out, conn->out_room));
    }
    memcpy(conn->out + conn->out_size, bytes, size);
    conn->out_size += size;
}

/* Sends what TLS has to say; false with errno if the connection is broken. */
static bool send_tls(struct conn *conn)
{
    char bytes[4096];
    size_t size;

    while ((size = tls_give(conn->tls, bytes, sizeof bytes)) > 0)
        queue(conn, bytes, size);
    return send_queued(conn);
}

/* A failure is told from the loop, where the next attempt to send meets it again: nobody who asks for
 * something here wants to be called back before this returned. */
void conn_send(struct conn *conn, const char *bytes, size_t size)
{
    if (!conn->tls) {
        queue(conn, bytes, size);
        if (conn->io.fd >= 0 && !conn->connecting)
            send_queued(conn);
    } else if (tls_write(conn->tls, bytes, size)) {
        send_tls(conn);
    } else {
        shutdown(conn->io.fd, SHUT_RDWR);
    }
}

/* Goes on with the handshake; whatever it says goes out, also to tell the server why it failed. Our last
 * words of it leave together with the first ones of the caller. */
static void shake_hands(struct conn *conn)
{
    unsigned life = conn->life;
    char fault[160];
    bool done;
    enum tls_state state = tls_shake_hands(conn->tls, &done, fault, sizeof fault);

    if (done) {
        conn->shaking_hands = false;
        conn->events->connected(conn->arg);
        if (conn->life != life)
            return;
    }
    bool sent = send_tls(conn);
    if (state == TLS_FAILED)
        broken(conn, fault);
    else if (state == TLS_CLOSED || !sent)
        ended(conn, sent ? CLOSED : strerror(errno));
}

static void finish_connect(struct conn *conn)
{
    int fault = 0;
    socklen_t length = sizeof fault;

    getsockopt(conn->io.fd, SOL_SOCKET, SO_ERROR, &fault, &length);
    if (fault != 0) {
        broken(conn, strerror(fault));
        return;
    }
    conn->connecting = false;
    conn->io.events = LOOP_READ;
    if (!conn->tls) {
        conn->events->connected(conn->arg);
        return;
    }
    unsigned life = conn->life;
    shake_hands(conn);
    if (conn->life == life)
        tls_meanwhile(conn->tls);
}

/* Hands out every whole reply in the reader. */
static void hand_out(struct conn *conn)
{
    unsigned life = conn->life;

    for (;;) {
        void *reply = NULL;
        if (redisReaderGetReply(conn->reader, &reply) != REDIS_OK) {
            broken(conn, "what answers there is not a Redis server");
            return;
        }
        if (!reply)
            return;
        conn->heard = true;
        conn->events->reply(conn->arg, reply);
        if (conn->life != life)
            return;
    }
}

/* Feeds what TLS has decrypted to the reader; false once the connection is no more. */
static bool decrypt(struct conn *conn)
{
    char buffer[16384], fault[160];
    unsigned life = conn->life;
    enum tls_state state;
    size_t got;

    if (conn->shaking_hands)
        shake_hands(conn);
    if (conn->life != life || conn->shaking_hands)
        return false;
    while ((state = tls_read(conn->tls, buffer, sizeof buffer, &got, fault, sizeof fault)) ==
               TLS_GOING &&
           got > 0)
        redisReaderFeed(conn->reader, buffer, got);
    if (state == TLS_GOING && send_tls(conn))
        return true;
    int error = errno;
    hand_out(conn); /* what came before the end */
    if (conn->life != life)
        return false;
    if (state == TLS_FAILED)
        broken(conn, fault);
    else
        ended(conn, state == TLS_CLOSED ? CLOSED : strerror(error));
    return false;
}

/* How a server with TLS may answer to something else. */
static bool is_alert(const char *bytes, ssize_t size)
{
    return size > 1 && bytes[0] == 21 && bytes[1] == 3;
}

static void receive(struct conn *conn)
{
    char buffer[16384];
    ssize_t n = recv(conn->io.fd, buffer, sizeof buffer, 0);

    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (n <= 0) {
        ended(conn, n < 0 ? strerror(errno) : CLOSED);
        return;
    }
    if (!conn->tls && !conn->heard && is_alert(buffer, n)) {
        broken(conn, "what answers there speaks TLS");
        return;
    }
    if (!conn->tls) {
        redisReaderFeed(conn->reader, buffer, (size_t)n);
    } else {
        tls_take(conn->tls, buffer, (size_t)n);
        if (!decrypt(conn))
            return;
    }
    hand_out(conn);
}

/* What the server said before it closed is the reason: "max number of clients", say. */
static void break_sending(struct conn *conn)
{
    unsigned life = conn->life;
    int fault = errno;

    receive(conn);
    if (conn->life == life)
        ended(conn, strerror(fault));
}

static void handle(struct loop_io *io, int events)
{
    struct conn *conn = io->owner;

    if (conn->connecting) {
        finish_connect(conn);
        return;
    }
    if ((events & LOOP_WRITE) && !send_queued(conn)) {
        break_sending(conn);
        return;
    }
    if (events & (LOOP_READ | LOOP_GONE))
        receive(conn);
}

const char *conn_overdue(const struct conn *conn)
{
    return conn->connecting      ? "connecting timed out"
           : conn->shaking_hands ? "no answer to TLS in time; is it a server without?"
                                 : "no answer in time";
}

void conn_encode(char **bytes, size_t *size, int argc, const char **argv, const size_t *lengths)
{
    char *text = NULL;
    long long length = redisFormatCommandArgv(&text, argc, argv, lengths);

    if (length < 0)
        abort();
    *bytes = mem_checked(realloc(*bytes, *size + (size_t)length));
    memcpy(*bytes + *size, text, (size_t)length);
    *size += (size_t)length;
    redisFreeCommand(text);
}
