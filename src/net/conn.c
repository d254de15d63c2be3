/* Carries commands and replies over a stream. A callback may close the connection, and connect it
 * anew: then what is left of the bytes at hand belongs to the former one (conn->generation). */
#include "net/conn.h"
#include "base/mem.h"
#include "base/strbuf.h"

#include <hiredis/hiredis.h>
#include <stdio.h>
#include <string.h>

/* No answer to rlock has so many elements in an array, arrays in arrays so deep, or so many bytes.
 * hiredis makes room for all elements that an array claims to have before one has come, its version
 * 1 nests arrays without end and frees them by recursion, and both keep what has no end. */
#define ELEMENTS_MAX (1 << 22)
#define DEPTH_MAX    8
#define ANSWER_MAX   (64 << 20)

#if HIREDIS_MAJOR < 1
typedef int array_size;
#else
typedef size_t array_size;
#endif

/* The functions by which a reader of hiredis makes a reply. */
static redisReplyObjectFunctions *of_hiredis;

/* For hiredis: makes an array of a reply, as hiredis does itself. NULL: it is too large or too
 * deep, which is an error of the reader. */
static void *create_array(const redisReadTask *task, array_size size)
{
    unsigned depth = 0;

    for (const redisReadTask *outer = task->parent; outer; outer = outer->parent)
        depth++;
    return size <= ELEMENTS_MAX && depth < DEPTH_MAX ? of_hiredis->createArray(task, size) : NULL;
}

/* Makes a reader with limits. conn->reader owns it. */
static redisReader *new_reader(void)
{
    static redisReplyObjectFunctions functions;
    redisReader *reader = mem_checked(redisReaderCreate());

    of_hiredis = reader->fn;
    functions = *of_hiredis;
    functions.createArray = create_array;
    reader->fn = &functions;
    return reader;
}

/* Drops the reader, with a reply that is half read. */
static void end_reading(struct conn *conn)
{
    conn->generation++;
    redisReaderFree(conn->reader);
    conn->reader = NULL;
}

/* For the stream: the connection is up. */
static void on_connected(void *arg)
{
    struct conn *conn = arg;

    conn->reader = new_reader();
    conn->unread = 0;
    conn->events->connected(conn->arg);
}

/* For the stream: takes bytes that have come, and hands out every reply that is whole by now. */
static void on_bytes(void *arg, const char *bytes, size_t size)
{
    struct conn *conn = arg;
    unsigned generation = conn->generation;

    redisReaderFeed(conn->reader, bytes, size);
    conn->unread += size;
    for (;;) {
        void *reply = NULL;
        bool is_resp = redisReaderGetReply(conn->reader, &reply) == REDIS_OK;
        if (!is_resp || (!reply && conn->unread > ANSWER_MAX)) {
            snprintf(conn->foreign, sizeof conn->foreign, "%.*s", (int)size, bytes);
            conn->foreign[strcspn(conn->foreign, "\r\n")] = '\0';
            stream_refuse(conn->stream, "what answers there is not a Redis server");
            return;
        }
        if (!reply)
            return;
        conn->unread = 0;
        stream_trust(conn->stream);
        conn->events->reply(conn->arg, reply);
        if (conn->generation != generation) /* that has closed the connection */
            return;
    }
}

/* For the stream: the connection has ended. */
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

    if (length < 0) /* hiredis fails for want of memory only */
        mem_refused();
    strbuf_add(bytes, text, (size_t)length);
    redisFreeCommand(text);
}
