#include "store/redis/former_conn.h"
#include "base/strbuf.h"
#include "net/conn.h"

#include <hiredis/hiredis.h>
#include <string.h>

/* The reply to the last command that is sent on a kept connection. */
#define LAST "all answered"
/* A server that works again may refuse another connection before it has come to LAST. */
#define REFUSALS_MAX 2

/* Takes a reply on the kept connection. LAST shows that it works; replies to what was sent before
 * that are dropped. */
static void on_reply(void *arg, redisReply *reply)
{
    struct former_conn *former = arg;

    former->answers |= reply->type == REDIS_REPLY_STRING && strcmp(reply->str, LAST) == 0;
    freeReplyObject(reply);
}

/* The kept connection has ended. */
static void on_broken(void *arg, const char *why)
{
    struct former_conn *former = arg;

    (void)why;
    former->kept = false;
}

/* Swaps the former connection and *conn, the present one: each gets the other's events. */
static void exchange_events(struct former_conn *former, struct conn **conn)
{
    struct conn *mine = former->conn, *other = *conn;
    const struct conn_events *events = mine->events;
    void *arg = mine->arg;

    mine->events = other->events;
    mine->arg = other->arg;
    other->events = events;
    other->arg = arg;
    former->conn = other;
    *conn = mine;
}

void former_conn_keep(struct former_conn *former, struct loop *loop, struct conn **conn,
                      const struct endpoint *at, const struct redis_greeting *greeting)
{
    static const struct conn_events events = {.reply = on_reply, .broken = on_broken};
    const char *stop[] = {"UNSUBSCRIBE"}, *last[] = {"EVAL", "return '" LAST "'", "0"};
    struct strbuf bytes = {0};

    if (!former->conn)
        former->conn = conn_new(loop, &events, former);
    exchange_events(former, conn);
    former->kept = true;
    former->answers = false;
    former->refusals = 0;
    former->at = *at;
    former->greeting = *greeting;
    conn_encode(&bytes, 1, stop);
    conn_encode(&bytes, 3, last);
    stream_send(former->conn->stream, bytes.text, bytes.size);
    strbuf_free(&bytes);
}

void former_conn_note_refusal(struct former_conn *former, const struct endpoint *at)
{
    if (former->kept && endpoint_is_same(&former->at, at))
        former->refusals++;
}

bool former_conn_reconsider(struct former_conn *former)
{
    bool wanted = former->kept && former->refusals > 0 && former->answers;

    if (!wanted && former->refusals >= REFUSALS_MAX)
        former_conn_leave(former);
    return wanted;
}

void former_conn_take(struct former_conn *former, struct conn **conn)
{
    exchange_events(former, conn);
    former->kept = false;
}

void former_conn_leave(struct former_conn *former)
{
    if (former->kept)
        conn_close(former->conn);
    former->kept = false;
}

void former_conn_free(struct former_conn *former)
{
    if (former->conn)
        conn_free(former->conn);
}
