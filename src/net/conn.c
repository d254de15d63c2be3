#include "net/conn.h"
#include "base/mem.h"
#include "base/strbuf.h"

#include <hiredis/hiredis.h>
#include <stdio.h>
#include <string.h>

/* Drops the reader, with replies that are half read. The generation tells a caller in the middle of
 * them. */
static void end_reading(struct conn *conn)
{
    conn->generation++;
    redisReaderFree(conn->reader);
    conn->reader = NULL;
}

/* The connection is up. */
static void on_connected(void *arg)
{
    struct conn *conn = arg;

    conn->reader = mem_checked(redisReaderCreate());
    conn->events->connected(conn->arg);
}

/* Hands out every whole reply. */
static void on_bytes(void *arg, const char *bytes, size_t size)
{
    struct conn *conn = arg;
    unsigned generation = conn->generation;

    redisReaderFeed(conn->reader, bytes, size);
    for (;;) {
        void *reply = NULL;
        if (redisReaderGetReply(conn->reader, &reply) != REDIS_OK) {
            if (conn->reader->err == REDIS_ERR_OOM)
                mem_refused();
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

/* The connection has ended. */
static void on_broken(void *arg, const char *why)
{
    struct conn *conn = arg;

    end_reading(conn);
    conn->events->broken(conn->arg, why);
}

struct conn *conn_new(struct loop *loop, const struct conn_events *events, void *arg)
{
    static const struct stream_events stream_events = {on_connected, on_bytes, on_broken};
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

void conn_close(struct conn *conn)
{
    stream_close(conn->stream);
    end_reading(conn);
}

void conn_encode(struct strbuf *bytes, int argc, const char **argv)
{
    char *text = NULL;
    long long length = redisFormatCommandArgv(&text, argc, argv, NULL);

    if (length < 0)
        mem_refused();
    strbuf_add(bytes, text, (size_t)length);
    redisFreeCommand(text);
}
