/* Carries the bytes of one connection, and tells its owner what has come and why it ended. It reads
 * the socket and the clock of the loop; a fault is worded here, where it is known. A callback may
 * close the stream, or begin another connection: "generation" tells that to whoever called it. */
#include "net/stream.h"
#include "base/jitter.h"
#include "base/mem.h"
#include "base/strbuf.h"
#include "net/loop.h"
#include "net/resolve.h"
#include "net/tls.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <unistd.h>

struct stream {
    struct loop *loop;
    const struct stream_events *events;
    void *arg;
    struct loop_io io; /* fd -1 while closed */
    bool connecting;
    struct endpoint to;
    struct loop_timer timer; /* armed while the server's queue of new connections is full, or while
                              * the connection is ending */
    struct tls_session *tls; /* NULL: plain */
    bool in_handshake;       /* connected, but TLS is not yet agreed on */
    bool remote;             /* by TCP */
    bool made_sense;         /* the other end has */
    bool made_sense_before;  /* or had on an earlier connection */
    bool foreign;            /* another attempt is of no use */
    enum stream_language language;
    bool ending;         /* the other end has closed it unheard, and may reset it yet */
    bool reset;          /* the other end has reset it */
    unsigned generation; /* counts closes */
    struct strbuf out;   /* bytes to send */
    size_t out_sent;     /* the bytes of "out" that were sent */
};

#define CLOSED "the server closed the connection"

/* How long sent data may stay unacknowledged before the kernel gives the connection up. */
#define UNACKNOWLEDGED_MS 10000
/* How often to try where the queue of new connections is full, and by how much that is spread. */
#define CROWDED_NS        (20 * NS_PER_MS)
#define CROWDED_SPREAD_NS (10 * NS_PER_MS)
/* How long after the end of a connection its reset may come. */
#define RESET_NS (10 * NS_PER_MS)

static void handle_events(struct loop_io *io, int events);
static void on_due(struct loop_timer *timer);

struct stream *stream_new(struct loop *loop, const struct stream_events *events, void *arg)
{
    struct stream *stream = mem_zeroed(sizeof *stream);

    stream->loop = loop;
    stream->events = events;
    stream->arg = arg;
    stream->io = (struct loop_io){.fd = -1, .ready = handle_events, .owner = stream};
    stream->timer = (struct loop_timer){.fire = on_due, .owner = stream};
    return stream;
}

void stream_free(struct stream *stream)
{
    stream_close(stream);
    strbuf_free(&stream->out);
    free(stream);
}

void stream_close(struct stream *stream)
{
    if (stream->io.fd < 0)
        return;
    loop_remove(stream->loop, &stream->io);
    loop_disarm(stream->loop, &stream->timer);
    close(stream->io.fd);
    stream->io.fd = -1;
    stream->generation++;
    strbuf_cut(&stream->out, 0);
    stream->out_sent = 0;
    tls_end(stream->tls);
    stream->tls = NULL;
}

/* Ends the connection, and reports why. */
static void break_off(struct stream *stream, const char *why)
{
    stream_close(stream);
    stream->events->broken(stream->arg, why);
}

void stream_refuse(struct stream *stream, const char *why)
{
    stream->foreign = true;
    break_off(stream, why);
}

void stream_expiry(const struct stream *stream, struct tls_expiry *expiry)
{
    *expiry = (struct tls_expiry){0};
    if (stream->tls)
        tls_session_expiry(stream->tls, expiry);
}

/* Closes the stream where the other end has ended the connection, and reports why; with a guess at
 * the reason, if the other end has never made sense. */
static void break_off_ended(struct stream *stream, const char *why)
{
    const char *guess = stream->made_sense_before ? NULL
                        : stream->tls             ? tls_guess_refusal(stream->tls)
                        : !stream->remote
                            ? NULL
                            : "is it a server with TLS, or a proxy that lacks commands?";
    char text[160];

    if (guess && !stream->tls)
        stream->language = STREAM_TLS;
    snprintf(text, sizeof text, "%s%s%s", why, guess ? "; " : "", guess ? guess : "");
    break_off(stream, text);
}

/* Starts to connect, or arms the timer for another attempt; false with errno if that failed. */
static bool start_to_connect(struct stream *stream)
{
    struct moment now = loop_now(stream->loop);

    if (connect(stream->io.fd, (const struct sockaddr *)&stream->to.address, stream->to.length) ==
            0 ||
        errno == EINPROGRESS)
        loop_add(stream->loop, &stream->io);
    else if (errno == EAGAIN) /* the queue of a Unix socket is full, and no event tells of room */
        loop_arm(stream->loop, &stream->timer,
                 moment_plus(now, jitter_spread(CROWDED_NS, CROWDED_SPREAD_NS)));
    else
        return false;
    return true;
}

/* The error that the socket has had, an errno, which it then forgets; 0: none. */
static int fault_of(const struct stream *stream)
{
    int fault = 0;
    socklen_t length = sizeof fault;

    getsockopt(stream->io.fd, SOL_SOCKET, SO_ERROR, &fault, &length);
    return fault;
}

/* For the timer: breaks off a connection that the other end has closed unheard, and may have reset
 * since; or tries anew to connect. */
static void on_due(struct loop_timer *timer)
{
    struct stream *stream = timer->owner;

    if (stream->ending) {
        stream->reset |= fault_of(stream) != 0;
        break_off_ended(stream, CLOSED);
    } else if (!start_to_connect(stream)) {
        break_off(stream, strerror(errno));
    }
}

/* Sets the stream back for a new connection over fd, which is going to be connected. */
static void begin_stream(struct stream *stream, int fd)
{
    stream->io.fd = fd;
    stream->io.events = LOOP_WRITE;
    stream->connecting = true;
    stream->remote = false;
    stream->made_sense = stream->foreign = stream->in_handshake = false;
    stream->ending = stream->reset = false;
    stream->language = STREAM_OURS;
}

int stream_open(struct stream *stream, const struct endpoint *to, struct tls *tls, const char *host)
{
    int family = to->address.ss_family;
    int fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return -1;
    if (family != AF_UNIX) {
        int on = 1;
        unsigned timeout = UNACKNOWLEDGED_MS;
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
        setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
        setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &timeout, sizeof timeout);
    }
    stream->to = *to;
    begin_stream(stream, fd);
    stream->remote = family != AF_UNIX;
    if (!start_to_connect(stream)) {
        int saved = errno;
        close(fd);
        stream->io.fd = -1;
        errno = saved;
        return -1;
    }
    stream->tls = tls ? tls_start(tls, host) : NULL;
    stream->in_handshake = stream->tls != NULL;
    return 0;
}

int stream_adopt(struct stream *stream, int fd)
{
    int copy = fcntl(fd, F_DUPFD_CLOEXEC, 0);
    if (copy < 0)
        return -1;
    begin_stream(stream, copy);
    loop_add(stream->loop, &stream->io);
    return 0;
}

/* Sends what the socket takes of the queue; false with errno if the connection is broken. */
static bool send_queued(struct stream *stream)
{
    bool sound = true;

    while (sound && stream->out_sent < stream->out.size) {
        ssize_t n = send(stream->io.fd, stream->out.text + stream->out_sent,
                         stream->out.size - stream->out_sent, MSG_NOSIGNAL);
        if (n < 0 && (errno == EAGAIN || errno == EINTR))
            break;
        if (n < 0)
            sound = false;
        else
            stream->out_sent += (size_t)n;
    }
    if (stream->out_sent == stream->out.size) {
        strbuf_cut(&stream->out, 0);
        stream->out_sent = 0;
    }
    stream->io.events = LOOP_READ | (stream->out.size ? LOOP_WRITE : 0);
    return sound;
}

/* Queues what TLS has to say, and sends what the socket takes; false with errno if the connection
 * is broken. */
static bool send_tls(struct stream *stream)
{
    char bytes[4096];
    size_t size;

    while ((size = tls_give(stream->tls, bytes, sizeof bytes)) > 0)
        strbuf_add(&stream->out, bytes, size);
    return send_queued(stream);
}

/* A failure is reported from the loop, where the next attempt to send meets it again: no caller
 * wants to be called back before this returned. */
void stream_send(struct stream *stream, const char *bytes, size_t size)
{
    if (!stream->tls) {
        strbuf_add(&stream->out, bytes, size);
        if (stream->io.fd >= 0 && !stream->connecting)
            send_queued(stream);
    } else if (tls_write(stream->tls, bytes, size)) {
        send_tls(stream);
    } else { /* the session is broken: the loop finds the end of the connection */
        shutdown(stream->io.fd, SHUT_RDWR);
    }
}

/* Continues the handshake with what has come, and reports when it is over, or has failed. */
static void shake_hands(struct stream *stream)
{
    unsigned generation = stream->generation;
    char fault[512];
    bool done;
    enum tls_state state = tls_handshake(stream->tls, &done, fault, sizeof fault);

    if (done) {
        stream->in_handshake = false;
        stream->events->connected(stream->arg);
        if (stream->generation != generation)
            return;
    }
    /* Behind that call, so that our last words of the handshake leave together with the first ones
     * of the owner. After a failure they tell the server why. */
    bool sent = send_tls(stream);
    if (state == TLS_FAILED && tls_hears_plain(stream->tls))
        stream->language = STREAM_PLAIN;
    if (state == TLS_FAILED)
        stream_refuse(stream, fault);
    else if (state == TLS_CLOSED || !sent)
        break_off_ended(stream, sent ? CLOSED : strerror(errno));
}

void stream_secure(struct stream *stream, struct tls *tls, const char *host)
{
    stream->tls = tls_start(tls, host);
    stream->in_handshake = true;
    shake_hands(stream);
}

/* Takes the end of an attempt to connect, a success or a failure, and reports it; over TLS, the
 * handshake begins. */
static void finish_connect(struct stream *stream)
{
    int fault = fault_of(stream);

    stream->reset = fault == EPIPE || fault == ECONNRESET;
    if (fault != 0) {
        break_off(stream, strerror(fault));
        return;
    }
    stream->connecting = false;
    stream->io.events = LOOP_READ;
    if (stream->tls)
        shake_hands(stream);
    else
        stream->events->connected(stream->arg);
}

/* Continues TLS after bytes have come in: the handshake, and then hands out what it decrypts.
 * Inlined, its buffers would be on the stack of every connection, and each page of it makes a short
 * run 3 us longer. */
__attribute__((noinline)) static void decrypt_received(struct stream *stream)
{
    char buffer[16384], fault[160];
    unsigned generation = stream->generation;
    enum tls_state state;
    size_t got;

    if (stream->in_handshake)
        shake_hands(stream);
    if (stream->generation != generation || stream->in_handshake)
        return;
    while ((state = tls_read(stream->tls, buffer, sizeof buffer, &got, fault, sizeof fault)) ==
               TLS_GOING &&
           got > 0) {
        stream->events->received(stream->arg, buffer, got);
        if (stream->generation != generation)
            return;
    }
    if (state != TLS_GOING || !send_tls(stream)) {
        int error = errno;
        /* With TLS 1.3, a server refuses our certificate in its first words after the handshake. */
        if (state == TLS_FAILED && !stream->made_sense_before)
            stream_refuse(stream, fault);
        else if (state == TLS_FAILED)
            break_off(stream, fault);
        else
            break_off_ended(stream, state == TLS_CLOSED ? CLOSED : strerror(error));
    }
}

/* A server of TLS answers to anything else with an alert, of a version 3.x. */
enum { TLS_ALERT = 21, TLS_MAJOR_VERSION = 3 };

/* Takes what the socket has: bytes, which are handed out, or the end of the connection. */
static void receive_bytes(struct stream *stream)
{
    char buffer[4096]; /* few answers are longer */
    ssize_t n = recv(stream->io.fd, buffer, sizeof buffer, 0);

    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    stream->reset |= n < 0 && errno == ECONNRESET;
    if (n == 0 && stream->remote && !stream->made_sense && !stream->tls) {
        /* A server that turns a client away may reset the connection right behind its end
         * (ZooKeeper does, where it is full): only the reset tells that nothing was read. */
        loop_remove(stream->loop, &stream->io);
        stream->ending = true;
        loop_arm(stream->loop, &stream->timer, moment_plus(loop_now(stream->loop), RESET_NS));
        return;
    }
    if (n <= 0) {
        break_off_ended(stream, n < 0 ? strerror(errno) : CLOSED);
        return;
    }
    bool is_alert = n > 1 && buffer[0] == TLS_ALERT && buffer[1] == TLS_MAJOR_VERSION;
    if (!stream->tls && !stream->made_sense && is_alert) {
        stream->language = STREAM_TLS;
        stream_refuse(stream, "what answers there speaks TLS");
        return;
    }
    if (!stream->tls) {
        stream->events->received(stream->arg, buffer, (size_t)n);
    } else {
        tls_take(stream->tls, buffer, (size_t)n);
        decrypt_received(stream);
    }
}

/* For the loop: the socket is ready. Connects, sends and receives. */
static void handle_events(struct loop_io *io, int events)
{
    struct stream *stream = io->owner;

    if (stream->connecting) {
        finish_connect(stream);
        return;
    }
    if ((events & LOOP_WRITE) && !send_queued(stream)) {
        /* The server's last words before it closed are the reason: "max number of clients",
         * say. */
        unsigned generation = stream->generation;
        int fault = errno;
        stream->reset = fault == EPIPE || fault == ECONNRESET;
        receive_bytes(stream);
        if (stream->generation == generation && !stream->ending)
            break_off_ended(stream, strerror(fault));
        return;
    }
    if (events & (LOOP_READ | LOOP_GONE))
        receive_bytes(stream);
}

bool stream_is_foreign(const struct stream *stream)
{
    return stream->foreign;
}

enum stream_language stream_language(const struct stream *stream)
{
    bool waits_for_tls = stream->io.fd >= 0 && stream->in_handshake && !stream->connecting;

    return waits_for_tls ? STREAM_PLAIN : stream->language;
}

bool stream_was_reset(const struct stream *stream)
{
    return stream->reset;
}

const char *stream_overdue(const struct stream *stream)
{
    return stream->ending         ? CLOSED
           : stream->timer.armed  ? "its queue of new connections is full"
           : stream->connecting   ? "connecting timed out"
           : stream->in_handshake ? "no answer to TLS in time; is it a server without?"
                                  : "no answer in time";
}

void stream_trust(struct stream *stream)
{
    stream->made_sense = stream->made_sense_before = true;
}
