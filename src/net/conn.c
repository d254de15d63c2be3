/* One RESP connection over a stream. */
#include "net/conn.h"
#include "base/mem.h"
#include "base/strbuf.h"
#include "net/stream.h"

#include <hiredis/hiredis.h>
#include <stdio.h>
#include <string.h>

struct conn {
    const struct conn_events *events;
    void *arg;
    struct stream *stream;
    redisReader *reader;
    unsigned generation; /* counts closes: a callback may end what is being read */
    char foreign[200];
};

static void end_reading(struct conn *conn)
{
    conn->generation++;
    redisReaderFree(conn->reader);
    conn->reader = NULL;
}

static void connected(void *arg)
{
    struct conn *conn = arg;

    conn->events->connected(conn->arg);
}

/* Hands out every whole reply. */
static void received(void *arg, const char *bytes, size_t size)
{
    struct conn *conn = arg;
    unsigned generation = conn->generation;

    redisReaderFeed(conn->reader, bytes, size);
    for (;;) {
        void *reply = NULL;
        if (redisReaderGetReply(conn->reader, &reply) != REDIS_OK) {
            snprintf(conn->foreign, sizeof conn->foreign, "%.*s", (int)size, bytes);
            conn->foreign[strcspn(conn->foreign, "\r\n")] = '\0';
            stream_refuse(conn->stream, "what answers there is not a Redis server");
            return;
        }
        if (!reply)
            return;
        stream_trust(conn->stream);
        conn->events->reply(conn->arg, reply);
        if (conn->generation != generation)
            return;
    }
}

static void broken(void *arg, const char *why)
{
    struct conn *conn = arg;

    end_reading(conn);
    conn->events->broken(conn->arg, why);
}

struct conn *conn_new(struct loop *loop, const struct conn_events *events, void *arg)
{
    static const struct stream_events stream_events = {connected, received, broken};
    struct conn *conn = mem_zeroed(sizeof *conn);

    conn->events = events;
    conn->arg = arg;
    conn->stream = stream_new(loop, &stream_events, conn);
    return conn;
}

void conn_free(struct conn *conn)
{
    conn_close(conn);
    stream_free(conn->stream);
    free(conn);
}

int conn_open(struct conn *conn, const struct endpoint *to, struct tls *tls, const char *host)
{
    if (stream_open(conn->stream, to, tls, host) != 0)
        return -1;
    conn->reader = mem_checked(redisReaderCreate());
    return 0;
}

int conn_adopt(struct conn *conn, int fd)
{
    if (stream_adopt(conn->stream, fd) != 0)
        return -1;
    conn->reader = mem_checked(redisReaderCreate());
    return 0;
}

void conn_close(struct conn *conn)
{
    stream_close(conn->stream);
    end_reading(conn);
}

bool conn_is_foreign(const struct conn *conn)
{
    return stream_is_foreign(conn->stream);
}

const char *conn_foreign_words(const struct conn *conn)
{
    return conn->foreign;
}

const char *conn_overdue(const struct conn *conn)
{
    return stream_overdue(conn->stream);
}

void conn_send(struct conn *conn, const char *bytes, size_t size)
{
    stream_send(conn->stream, bytes, size);
}

void conn_encode(struct strbuf *bytes, int argc, const char **argv, const size_t *lengths)
{
    char *text = NULL;
    long long length = redisFormatCommandArgv(&text, argc, argv, lengths);

    if (length < 0)
        abort();
    strbuf_add(bytes, text, (size_t)length);
    redisFreeCommand(text);
}
