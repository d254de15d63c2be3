/* A greeted connection to one Redis server. */
#include "redis_link.h"
#include "conn.h"
#include "loop.h"
#include "mem.h"
#include "redis_session.h"

#include <hiredis/hiredis.h>

struct redis_link {
    struct loop *loop;
    const struct redis_link_events *events;
    void *arg;
    struct redis_session *session;
    struct loop_timer timer; /* armed while busy on a session that is up */

    size_t listening;   /* to how many channels it is subscribed */
    size_t unlistening; /* replies that are due to an UNSUBSCRIBE that went out */

    bool busy, sent;
    size_t will_listen;
    struct moment until;
    char *batch;
    size_t batch_size;
    redisReply **replies;
    size_t wanted, got;

    int64_t clock_ms;
    struct moment clock_read;
};

static void free_replies(struct redis_link *link)
{
    for (size_t i = 0; i < link->got; i++)
        freeReplyObject(link->replies[i]);
    free(link->replies);
    link->replies = NULL;
    link->got = link->wanted = 0;
}

static void empty_batch(struct redis_link *link)
{
    free(link->batch);
    link->batch = NULL;
    link->batch_size = 0;
}

static void hang_up(struct redis_link *link)
{
    redis_session_end(link->session);
    link->listening = link->unlistening = 0;
}

/* Ends the batch under way: with its replies, or with a failure. */
static void complete(struct redis_link *link, const struct answer *failure)
{
    size_t count = failure ? 0 : link->got;
    redisReply **replies = link->replies;
    size_t owned = link->got;

    loop_disarm(link->loop, &link->timer);
    empty_batch(link);
    link->replies = NULL;
    link->got = link->wanted = 0;
    link->busy = false;
    link->events->done(link->arg, replies, count, failure);
    for (size_t i = 0; i < owned; i++)
        freeReplyObject(replies[i]);
    free(replies);
}

static void fail(struct redis_link *link, const struct answer *why)
{
    struct answer failure = *why;

    hang_up(link);
    failure.verdict = VERDICT_UNKNOWN;
    failure.maybe_done = link->sent;
    complete(link, &failure);
}

static void fail_unreachable(struct redis_link *link, const char *why)
{
    struct answer answer = redis_session_failure(link->session, CAUSE_UNREACHABLE, why);

    fail(link, &answer);
}

static void timed_out(struct loop_timer *timer)
{
    struct redis_link *link = timer->owner;

    if (link->wanted == 0)
        complete(link, NULL);
    else
        fail_unreachable(link, "no answer in time");
}

static void send_batch(struct redis_link *link)
{
    static const char unsubscribe[] = "*1\r\n$11\r\nUNSUBSCRIBE\r\n";

    if (link->listening) {
        /* One write for both, so that the server finds them together. */
        link->batch = mem_checked(realloc(link->batch, link->batch_size + sizeof unsubscribe - 1));
        memmove(link->batch + sizeof unsubscribe - 1, link->batch, link->batch_size);
        memcpy(link->batch, unsubscribe, sizeof unsubscribe - 1);
        link->batch_size += sizeof unsubscribe - 1;
        link->unlistening += link->listening;
        link->listening = 0;
    }
    redis_session_send(link->session, link->batch, link->batch_size);
    empty_batch(link);
    link->sent = true;
}

/* What was asked for can go out. */
static void up(void *arg, int64_t clock_ms)
{
    struct redis_link *link = arg;

    if (clock_ms)
        redis_link_set_clock(link, clock_ms);
    if (!link->busy)
        return;
    if (link->wanted == 0) {
        complete(link, NULL);
        return;
    }
    loop_arm(link->loop, &link->timer, link->until);
    send_batch(link);
}

static void failed(void *arg, const struct answer *why)
{
    struct redis_link *link = arg;

    if (link->busy)
        fail(link, why);
}

/* A server that may have moved is not believed to be in trouble: the next batch looks for it anew. */
static bool is_over(struct redis_link *link)
{
    const char *why;

    for (size_t i = 0; i < link->got; i++) {
        if (!redis_session_is_over(link->session, link->replies[i], &why))
            continue;
        struct answer failure = redis_session_failure(link->session, CAUSE_NOT_READY, why);
        fail(link, &failure);
        return true;
    }
    return false;
}

static void batch_reply(struct redis_link *link, redisReply *reply)
{
    if (!link->busy || link->got == link->wanted) {
        freeReplyObject(reply);
        return;
    }
    link->replies[link->got++] = reply;
    if (link->got < link->wanted || is_over(link))
        return;
    /* Not if the server refused to subscribe: it may refuse UNSUBSCRIBE as well. */
    link->listening = reply->type == REDIS_REPLY_ARRAY ? link->will_listen : 0;
    complete(link, NULL);
}

static bool is_push(const redisReply *reply, const char *kind)
{
    return reply->type == REDIS_REPLY_ARRAY && reply->elements == 3 &&
           reply->element[0]->type == REDIS_REPLY_STRING &&
           strcmp(reply->element[0]->str, kind) == 0;
}

static void replied(void *arg, redisReply *reply)
{
    struct redis_link *link = arg;

    if ((link->listening || link->unlistening) && is_push(reply, "message")) {
        freeReplyObject(reply);
        /* With a batch under way, that one sees what the message is about. */
        if (!link->busy)
            link->events->poked(link->arg);
    } else if (link->unlistening && is_push(reply, "unsubscribe")) {
        link->unlistening--;
        freeReplyObject(reply);
    } else {
        batch_reply(link, reply);
    }
}

static void broken(void *arg, const char *why)
{
    struct redis_link *link = arg;

    if (link->busy) {
        fail_unreachable(link, why);
    } else {
        hang_up(link);
        link->events->poked(link->arg);
    }
}

struct redis_link *redis_link_new(struct loop *loop, const struct store_address *address,
                                  const struct redis_link_events *events, void *arg, char *fault,
                                  size_t size)
{
    static const struct redis_session_events session_events = {up, failed, replied, broken};
    struct redis_link *link = mem_zeroed(sizeof *link);

    *link = (struct redis_link){.loop = loop, .events = events, .arg = arg};
    link->timer = (struct loop_timer){.fire = timed_out, .owner = link};
    link->session = redis_session_new(loop, address, &session_events, link, fault, size);
    if (link->session)
        return link;
    free(link);
    return NULL;
}

void redis_link_free(struct redis_link *link)
{
    hang_up(link);
    loop_disarm(link->loop, &link->timer);
    redis_session_free(link->session);
    empty_batch(link);
    free_replies(link);
    free(link);
}

void redis_link_mind(struct redis_link *link, int64_t lease)
{
    redis_session_mind(link->session, lease);
}

void redis_link_add(struct redis_link *link, int argc, const char **argv, const size_t *lengths)
{
    conn_encode(&link->batch, &link->batch_size, argc, argv, lengths);
}

void redis_link_send(struct redis_link *link, size_t replies, size_t channels, struct moment until)
{
    link->busy = true;
    link->sent = false;
    link->will_listen = channels;
    link->until = until;
    link->wanted = replies;
    link->replies = mem_zeroed((replies + 1) * sizeof *link->replies);
    if (!redis_session_is_up(link->session)) {
        redis_session_start(link->session, until);
    } else if (replies == 0) {
        loop_arm(link->loop, &link->timer, loop_now(link->loop));
    } else {
        loop_arm(link->loop, &link->timer, until);
        send_batch(link);
    }
}

void redis_link_send_blindly(struct redis_link *link)
{
    /* What is under way may have subscribed by the time that the server comes to this. */
    if (link->busy && link->sent)
        link->listening = link->will_listen;
    loop_disarm(link->loop, &link->timer);
    link->busy = false;
    free_replies(link);
    if (redis_session_is_up(link->session))
        send_batch(link);
    empty_batch(link);
}

void redis_link_greet(struct redis_link *link, struct moment until)
{
    redis_link_send(link, 0, 0, until);
}

bool redis_link_is_up(const struct redis_link *link)
{
    return redis_session_is_up(link->session);
}

const char *redis_link_node(const struct redis_link *link)
{
    return redis_session_node(link->session);
}

int redis_link_replicas(const struct redis_link *link)
{
    return redis_session_replicas(link->session);
}

int64_t redis_link_clock(const struct redis_link *link, struct moment now)
{
    return link->clock_ms ? link->clock_ms + moment_until(link->clock_read, now) / NS_PER_MS : 0;
}

void redis_link_set_clock(struct redis_link *link, int64_t ms)
{
    link->clock_ms = ms;
    link->clock_read = loop_now(link->loop);
}
