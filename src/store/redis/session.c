/* Batches of commands for one Redis server, on a link. */
#include "store/redis/session.h"
#include "base/mem.h"
#include "net/conn.h"
#include "net/loop.h"
#include "rules/error.h"
#include "store/breaks.h"
#include "store/redis/greeting.h"

#include <hiredis/hiredis.h>

struct redis_session {
    struct loop *loop;
    const struct redis_session_events *events;
    void *arg;
    struct redis_link *link;
    struct breaks breaks;

    struct strbuf adding; /* commands of the next batch */
    struct redis_batch batch;
    struct loop_timer timer; /* for the replies on a link that is up */

    /* Of the connection that is up. */
    bool role_due;      /* before the replies to the batch itself */
    size_t listening;   /* to how many channels it is subscribed */
    size_t will_listen; /* once the batch is done */
    size_t unlistening; /* replies that are due to an UNSUBSCRIBE that went out */
    int64_t clock_ms;
    struct moment clock_read;
};

/* -- the end of a batch ---------------------------------------------------------------------- */

static void free_replies(struct redis_batch *batch)
{
    redis_batch_drop_replies(batch);
    free(batch->replies);
    batch->replies = NULL;
    batch->wanted = 0;
}

/* Ends the batch with its replies, or with a failure. */
static void complete(struct redis_session *session, const struct answer *failure)
{
    struct redis_batch ended = session->batch;

    loop_disarm(session->loop, &session->timer);
    session->batch = (struct redis_batch){.sent_at = ended.sent_at};
    session->events->done(session->arg, ended.replies, failure ? 0 : ended.got, failure);
    strbuf_free(&ended.commands);
    free_replies(&ended);
}

static void fail(struct redis_session *session, const struct answer *why)
{
    struct answer failure = *why;

    redis_link_close(session->link);
    failure.verdict = VERDICT_UNKNOWN;
    failure.maybe_done = session->batch.state == BATCH_SENT;
    failure.any_time = failure.maybe_done && session->batch.ahead;
    complete(session, &failure);
}

static void fail_unreachable(struct redis_session *session, const char *why)
{
    struct answer failure;

    answer_fail(&failure, CAUSE_UNREACHABLE, "%s", why);
    redis_link_annotate(session->link, &failure);
    fail(session, &failure);
}

static void link_failed(void *arg, const struct answer *why)
{
    fail(arg, why);
}

static void link_lost(void *arg, const char *why)
{
    struct redis_session *session = arg;

    if (session->batch.state == BATCH_NONE)
        breaks_down(&session->breaks);
    else
        fail_unreachable(session, why);
}

static bool link_misdirected(void *arg, struct strbuf *undo)
{
    struct redis_session *session = arg;
    const struct redis_batch *batch = &session->batch;
    bool done = session->events->misdirected(session->arg, batch->replies, batch->got);

    *undo = session->adding;
    session->adding = (struct strbuf){0};
    return done;
}

/* -- sending --------------------------------------------------------------------------------- */

/* Sends commands and empties *commands. Ends listening first, in the same write, so that the server
 * finds both together. */
static void send_commands(struct redis_session *session, struct strbuf *commands)
{
    struct strbuf all = {0};

    if (session->listening) {
        strbuf_puts(&all, "*1\r\n$11\r\nUNSUBSCRIBE\r\n");
        session->unlistening += session->listening;
        session->listening = 0;
    }
    strbuf_add(&all, commands->text, commands->size);
    redis_link_send(session->link, &all);
    strbuf_free(&all);
    strbuf_free(commands);
}

static void send_batch(struct redis_session *session)
{
    send_commands(session, &session->batch.commands);
    session->batch.state = BATCH_SENT;
    session->batch.sent_at = loop_now(session->loop);
}

/* A batch that went out with the greeting will be answered; another one can go out now. */
static void link_up(void *arg)
{
    struct redis_session *session = arg;
    struct redis_batch *batch = &session->batch;
    int64_t clock_ms = redis_link_greeting(session->link)->clock_ms;
    struct moment now = loop_now(session->loop);

    session->role_due = false;
    session->listening = session->unlistening = 0;
    breaks_up(&session->breaks);
    if (clock_ms)
        redis_session_set_clock(session, clock_ms);
    if (batch->wanted == 0) {
        complete(session, NULL);
        return;
    }
    if (!batch->ahead)
        send_batch(session);
    else if (batch->patience)
        batch->until = moment_min(batch->until, moment_plus(now, batch->patience));
    strbuf_free(&batch->commands);
    loop_arm(session->loop, &session->timer, batch->until);
}

/* A batch without commands ends when the loop turns. */
static void timed_out(struct loop_timer *timer)
{
    struct redis_session *session = timer->owner;

    if (session->batch.wanted == 0)
        complete(session, NULL);
    else
        fail_unreachable(session, "no answer in time");
}

/* -- replies --------------------------------------------------------------------------------- */

/* Returns the error in a reply that is a reason to look for the server anew: it is a replica, or in
 * a trouble that another server might not be in. NULL: none. */
static const char *trouble_in(const redisReply *reply)
{
    const char *trouble = NULL;

    if (reply->type == REDIS_REPLY_ERROR) {
        enum redis_error class = redis_error_class(reply->str);
        return class == REDIS_ERROR_READONLY || class == REDIS_ERROR_PASSING ? reply->str : NULL;
    }
    for (size_t i = 0; reply->type == REDIS_REPLY_ARRAY && !trouble && i < reply->elements; i++)
        trouble = trouble_in(reply->element[i]);
    return trouble;
}

static void fail_for_move(struct redis_session *session, const char *why)
{
    struct answer failure = {.verdict = VERDICT_UNKNOWN};

    redis_error_answer(why, &failure);
    failure.cause = CAUSE_NOT_READY;
    redis_link_annotate(session->link, &failure);
    fail(session, &failure);
}

/* A server that may have moved is not believed to be in trouble: the next batch looks for it. */
static bool has_to_move(struct redis_session *session)
{
    const struct redis_batch *batch = &session->batch;
    const char *why = NULL;

    for (size_t i = 0; redis_link_fails_over(session->link) && !why && i < batch->got; i++)
        why = trouble_in(batch->replies[i]);
    if (why)
        fail_for_move(session, why);
    return why;
}

/* UNSUBSCRIBE went out before the batch. An error instead of its pushes answers all of it. */
static bool is_refused_unsubscribe(const struct redis_session *session, const redisReply *reply)
{
    return session->unlistening && reply->type == REDIS_REPLY_ERROR;
}

/* A batch that only reads has done nothing on a server that is not a master any more. A server that
 * does not tell its role gives the reason in its next replies as well. */
static void hear_role(struct redis_session *session, redisReply *reply)
{
    struct answer failure;
    bool master = redis_link_is_master(session->link, reply, &failure);

    freeReplyObject(reply);
    session->role_due = false;
    if (master)
        return;
    session->batch.state = BATCH_WAITING;
    fail(session, &failure);
}

static void hear_batch(struct redis_session *session, redisReply *reply)
{
    struct redis_batch *batch = &session->batch;

    if (batch->state == BATCH_NONE || batch->got == batch->wanted) {
        freeReplyObject(reply);
        /* A reply too many: those that follow would be taken for answers to something else. */
        redis_link_close(session->link);
        link_lost(session, "the server answers what it was not asked");
        return;
    }
    if (session->role_due && !is_refused_unsubscribe(session, reply)) {
        hear_role(session, reply);
        return;
    }
    session->role_due = false;
    batch->replies[batch->got++] = reply;
    if (batch->got < batch->wanted || has_to_move(session))
        return;
    /* Not if the server refused to subscribe: it may refuse UNSUBSCRIBE as well. */
    session->listening = reply->type == REDIS_REPLY_ARRAY ? session->will_listen : 0;
    complete(session, NULL);
}

static bool is_push(const redisReply *reply, const char *kind)
{
    return reply->type == REDIS_REPLY_ARRAY && reply->elements == 3 &&
           reply->element[0]->type == REDIS_REPLY_STRING &&
           strcmp(reply->element[0]->str, kind) == 0;
}

static void link_reply(void *arg, redisReply *reply)
{
    struct redis_session *session = arg;

    if ((session->listening || session->unlistening) && is_push(reply, "message")) {
        const redisReply *message = reply->element[2];
        const char *text = message->type == REDIS_REPLY_STRING ? message->str : "";
        session->events->message(session->arg, session->batch.state == BATCH_NONE ? text : NULL);
        freeReplyObject(reply);
    } else if (session->unlistening && is_push(reply, "unsubscribe")) {
        session->unlistening--;
        freeReplyObject(reply);
    } else {
        hear_batch(session, reply);
    }
}

/* -- from outside ---------------------------------------------------------------------------- */

static void tell_broken(void *arg)
{
    struct redis_session *session = arg;
    session->events->broken(session->arg);
}

struct redis_session *redis_session_new(struct loop *loop, const struct store_address *address,
                                        const struct redis_session_events *events, void *arg,
                                        char *fault, size_t size)
{
    static const struct redis_link_events link_events = {link_up, link_failed, link_misdirected,
                                                         link_reply, link_lost};
    struct redis_session *session = mem_zeroed(sizeof *session);

    *session = (struct redis_session){.loop = loop, .events = events, .arg = arg};
    session->timer = (struct loop_timer){.fire = timed_out, .owner = session};
    breaks_init(&session->breaks, loop, tell_broken, session);
    session->link =
        redis_link_new(loop, address, &session->batch, &link_events, session, fault, size);
    if (session->link)
        return session;
    free(session);
    return NULL;
}

void redis_session_free(struct redis_session *session)
{
    loop_disarm(session->loop, &session->timer);
    breaks_cancel(&session->breaks);
    redis_link_free(session->link);
    strbuf_free(&session->adding);
    strbuf_free(&session->batch.commands);
    free_replies(&session->batch);
    free(session);
}

struct redis_link *redis_session_link(const struct redis_session *session)
{
    return session->link;
}

void redis_session_add(struct redis_session *session, int argc, const char **argv)
{
    conn_encode(&session->adding, argc, argv);
}

void redis_session_check_role(struct redis_session *session)
{
    const char *role[] = {"ROLE"};
    const struct redis_greeting *greeting = redis_link_greeting(session->link);

    session->role_due =
        redis_link_is_up(session->link) && greeting->replicas >= 0 && !greeting->cluster;
    if (session->role_due)
        redis_session_add(session, 1, role);
}

static void begin(struct redis_session *session, size_t replies, struct moment until)
{
    breaks_cancel(&session->breaks); /* a broken connection is found now */
    session->batch = (struct redis_batch){
        .state = BATCH_WAITING,
        .commands = session->adding,
        .until = until,
        .sent_at = session->batch.sent_at,
        .replies = mem_zeroed((replies + 1) * sizeof *session->batch.replies),
        .wanted = replies,
    };
    session->adding = (struct strbuf){0};
}

void redis_session_send(struct redis_session *session, size_t replies, size_t channels,
                        struct moment until)
{
    begin(session, replies, until);
    session->will_listen = channels;
    if (!redis_link_is_up(session->link)) {
        redis_link_start(session->link);
    } else if (replies == 0) {
        loop_arm(session->loop, &session->timer, loop_now(session->loop));
    } else {
        loop_arm(session->loop, &session->timer, until);
        send_batch(session);
    }
}

void redis_session_send_ahead(struct redis_session *session, size_t replies, struct moment until,
                              int64_t patience)
{
    if (redis_link_is_up(session->link)) {
        redis_session_send(session, replies, 0, until);
        return;
    }
    begin(session, replies, until);
    session->will_listen = 0;
    session->batch.ahead = true;
    session->batch.patience = patience;
    redis_link_start(session->link);
}

bool redis_session_send_nowait(struct redis_session *session)
{
    /* The batch under way may have subscribed by the time that the server reads this. */
    if (session->batch.state == BATCH_SENT)
        session->listening = session->will_listen;
    loop_disarm(session->loop, &session->timer);
    bool open = redis_link_detach(session->link);
    session->batch.state = BATCH_NONE;
    free_replies(&session->batch);
    strbuf_free(&session->batch.commands);
    if (open)
        send_commands(session, &session->adding);
    strbuf_free(&session->adding);
    return open;
}

void redis_session_connect(struct redis_session *session, struct moment until)
{
    redis_session_send(session, 0, 0, until);
}

struct moment redis_session_sent_at(const struct redis_session *session)
{
    return session->batch.sent_at;
}

int64_t redis_session_clock(const struct redis_session *session, struct moment now)
{
    return session->clock_ms
               ? session->clock_ms + moment_until(session->clock_read, now) / NS_PER_MS
               : 0;
}

void redis_session_set_clock(struct redis_session *session, int64_t ms)
{
    session->clock_ms = ms;
    session->clock_read = loop_now(session->loop);
}
