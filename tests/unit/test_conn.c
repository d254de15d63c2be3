/* Answers that a connection takes, and those that it leaves: the other end may be anything. The
 * stream is one of this test. */
#include "base/mem.h"
#include "base/strbuf.h"
#include "net/conn.h"

#include "tap.h"

#include <hiredis/hiredis.h>

#define MB (1u << 20)

struct stream {
    const struct stream_events *events;
    void *arg;
    bool refused;
};

/* In place of net/stream.c's. */
struct stream *stream_new(struct loop *loop, const struct stream_events *events, void *arg)
{
    struct stream *stream = mem_zeroed(sizeof *stream);

    (void)loop;
    stream->events = events;
    stream->arg = arg;
    return stream;
}

void stream_free(struct stream *stream)
{
    free(stream);
}

void stream_close(struct stream *stream)
{
    (void)stream;
}

void stream_trust(struct stream *stream)
{
    (void)stream;
}

void stream_refuse(struct stream *stream, const char *why)
{
    stream->refused = true;
    stream->events->broken(stream->arg, why);
}

static unsigned replies;

static void on_connected(void *arg)
{
    (void)arg;
}

static void on_reply(void *arg, struct redisReply *reply)
{
    (void)arg;
    replies++;
    freeReplyObject(reply);
}

static void on_broken(void *arg, const char *why)
{
    (void)arg;
    (void)why;
}

/* An answer: a head, then "times" times the same. */
static const struct {
    const char *name;
    const char *head;
    const char *repeated;
    size_t times;
    unsigned replies;
    bool refused;
} answers[] = {
    {"an answer", "+OK\r\n", "", 0, 1, false},
    {"many answers: each is one of its own", "", ":1\r\n", 100000, 100000, false},
    {"a string of 60 MB", "$62914560\r\n", "0123456789abcdef", 60 * MB / 16, 0, false},
    {"a string of more than 64 MB", "$100000000\r\n", "0123456789abcdef", 65 * MB / 16, 0, true},
    {"an array of a million elements", "*1000000\r\n", ":1\r\n", 1000000, 1, false},
    {"an array that claims to have too many for memory", "*2147483647\r\n", "", 0, 0, true},
    {"an array that claims to have more than rlock asks for", "*5000000\r\n", "", 0, 0, true},
    {"eight arrays, one in the other", "", "*1\r\n", 8, 0, false},
    {"nine arrays, one in the other", "", "*1\r\n", 9, 0, true},
    {"a million arrays, one in the other", "", "*1\r\n", 1000000, 0, true},
};

/* Gives all that comes to the connection, in pieces as a socket does. */
static void receive(struct stream *stream, const struct strbuf *all)
{
    for (size_t at = 0; at < all->size && !stream->refused; at += 4096) {
        size_t left = all->size - at;
        stream->events->received(stream->arg, all->text + at, left < 4096 ? left : 4096);
    }
}

int main(void)
{
    static const struct conn_events events = {on_connected, on_reply, on_broken};

    for (size_t i = 0; i < sizeof answers / sizeof *answers; i++) {
        struct strbuf all = {0};
        struct conn *conn = conn_new(NULL, &events, NULL);
        struct stream *stream = conn->stream;
        replies = 0;
        stream->events->connected(stream->arg);
        strbuf_add(&all, answers[i].head, strlen(answers[i].head));
        for (size_t n = 0; n < answers[i].times; n++)
            strbuf_add(&all, answers[i].repeated, strlen(answers[i].repeated));
        receive(stream, &all);
        if (!tap_ok(replies == answers[i].replies && stream->refused == answers[i].refused, "%s",
                    answers[i].name))
            tap_note("%u replies, %s", replies, stream->refused ? "refused" : "not refused");
        strbuf_free(&all);
        conn_free(conn);
    }
    return tap_done();
}
