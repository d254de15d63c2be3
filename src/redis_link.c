/* A greeted connection to one Redis server. */
#include "redis_link.h"
#include "conn.h"
#include "locate.h"
#include "loop.h"
#include "mem.h"
#include "redis_greeting.h"
#include "secret.h"
#include "tls.h"

#include <errno.h>
#include <hiredis/hiredis.h>
#include <stdio.h>

enum phase { PHASE_DOWN, PHASE_LOCATING, PHASE_CONNECTING, PHASE_GREETING, PHASE_UP };

struct redis_link {
    struct loop *loop;
    struct store_address address;
    const struct url *url;
    char name[300]; /* the URL without its password */
    const struct redis_link_events *events;
    void *arg;
    struct conn *conn;
    struct loop_timer timer; /* armed while busy */

    enum phase phase;
    struct tls *tls; /* NULL: plain */
    struct locator *locator;
    int endpoint_next; /* of those that the locator knows */
    bool searched;     /* for this connection: there is no use in asking again */
    struct moment connect_until;
    const char *password;
    char *file_password; /* read from the file again, after a refusal */
    bool reread;
    struct redis_greeting greeting;

    size_t listening;   /* to how many channels it is subscribed */
    size_t unlistening; /* replies that are due to an UNSUBSCRIBE that went out */

    bool busy, sent;
    size_t will_listen;
    struct moment until;
    char *batch;
    size_t batch_size;
    redisReply **replies;
    size_t wanted, got;
    struct answer failure; /* with a text: to be told at the next turn */

    int64_t clock_ms;
    struct moment clock_read;
};

static void connect_next(struct redis_link *link);

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
    locator_stop(link->locator);
    conn_close(link->conn);
    link->phase = PHASE_DOWN;
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

static struct answer unreachable(const struct redis_link *link, const char *why)
{
    struct answer answer = {.verdict = VERDICT_UNKNOWN, .cause = CAUSE_UNREACHABLE};

    snprintf(answer.text, sizeof answer.text, "cannot reach %.120s: %s", link->name, why);
    return answer;
}

static void fail_unreachable(struct redis_link *link, const char *why)
{
    struct answer answer = unreachable(link, why);

    fail(link, &answer);
}

/* A failure found while somebody is still calling us: told when the loop turns. */
static void fail_later(struct redis_link *link, const char *why)
{
    link->failure = unreachable(link, why);
    loop_arm(link->loop, &link->timer, loop_now(link->loop));
}

static bool has_next(const struct redis_link *link)
{
    const struct endpoint *endpoints;
    return link->endpoint_next < locator_known(link->locator, &endpoints);
}

static bool may_search(const struct redis_link *link)
{
    return !link->searched && locator_can_search(link->locator);
}

static void timed_out(struct loop_timer *timer)
{
    struct redis_link *link = timer->owner;

    if (link->failure.text[0]) {
        struct answer failure = link->failure;
        link->failure.text[0] = '\0';
        fail(link, &failure);
    } else if (link->phase == PHASE_UP && link->wanted == 0) {
        complete(link, NULL);
    } else if (link->phase == PHASE_CONNECTING && has_next(link)) {
        conn_close(link->conn);
        connect_next(link);
    } else if (link->phase == PHASE_LOCATING) {
        fail_unreachable(link, locator_overdue(link->locator));
    } else {
        fail_unreachable(link, conn_overdue(link->conn));
    }
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
    conn_send(link->conn, link->batch, link->batch_size);
    empty_batch(link);
    link->sent = true;
}

/* Connected and greeted: what was asked for can go out. */
static void greeted(struct redis_link *link)
{
    link->phase = PHASE_UP;
    link->reread = false;
    if (link->wanted == 0) {
        complete(link, NULL);
        return;
    }
    loop_arm(link->loop, &link->timer, link->until);
    send_batch(link);
}

static void greet(void *arg)
{
    struct redis_link *link = arg;
    char *bytes = NULL;
    size_t size = 0;

    link->phase = PHASE_GREETING;
    loop_arm(link->loop, &link->timer, link->connect_until);
    redis_greeting_begin(&link->greeting, link->url, link->password, link->address.member, &bytes,
                         &size);
    conn_send(link->conn, bytes, size);
    free(bytes);
}

/* The password may have been changed while we held a lock: the file is read again, once. */
static bool try_file_again(struct redis_link *link)
{
    char fault[256];

    if (link->url->password || !link->address.password_file || link->reread)
        return false;
    char *fresh = secret_read(link->address.password_file, fault, sizeof fault);
    if (!fresh)
        return false;
    link->reread = true;
    free(link->file_password);
    link->password = link->file_password = fresh;
    hang_up(link);
    link->endpoint_next = 0;
    connect_next(link);
    return true;
}

static void greeting_reply(struct redis_link *link, const redisReply *reply)
{
    struct answer answer;
    char why[sizeof answer.text];

    switch (redis_greeting_hear(&link->greeting, reply, &answer)) {
    case GREETING_GOING: break;
    case GREETING_DONE:
        if (link->greeting.clock_ms)
            redis_link_set_clock(link, link->greeting.clock_ms);
        greeted(link);
        break;
    case GREETING_REFUSED:
        if (answer.cause == CAUSE_DENIED && try_file_again(link))
            break;
        snprintf(why, sizeof why, "%s", answer.text);
        snprintf(answer.text, sizeof answer.text, "%.120s: %.120s", link->name, why);
        fail(link, &answer);
        break;
    }
}

static void batch_reply(struct redis_link *link, redisReply *reply)
{
    if (!link->busy || link->got == link->wanted) {
        freeReplyObject(reply);
        return;
    }
    link->replies[link->got++] = reply;
    if (link->got < link->wanted)
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
    } else if (link->phase == PHASE_GREETING) {
        greeting_reply(link, reply);
        freeReplyObject(reply);
    } else {
        batch_reply(link, reply);
    }
}

static void broken(void *arg, const char *why)
{
    struct redis_link *link = arg;

    if (link->phase == PHASE_CONNECTING && (has_next(link) || may_search(link))) {
        connect_next(link);
    } else if (link->busy) {
        fail_unreachable(link, why);
    } else {
        hang_up(link);
        link->events->poked(link->arg);
    }
}

static void located(void *arg, const char *fault)
{
    struct redis_link *link = arg;

    struct answer answer;

    if (fault) {
        answer = unreachable(link, fault);
        /* What keeps the local server from starting does not pass by itself. */
        if (strcmp(link->url->scheme, "local") == 0)
            answer.cause = CAUSE_UNFIT;
        fail(link, &answer);
        return;
    }
    link->endpoint_next = 0;
    connect_next(link);
}

static void search(struct redis_link *link)
{
    link->phase = PHASE_LOCATING;
    link->searched = true;
    loop_arm(link->loop, &link->timer, link->connect_until);
    locator_search(link->locator, located, link);
}

/* Tries the next address; every one gets its share of the time that is left. */
static void connect_next(struct redis_link *link)
{
    const struct endpoint *endpoints;
    int count = locator_known(link->locator, &endpoints);

    link->phase = PHASE_CONNECTING;
    errno = 0;
    while (link->endpoint_next < count) {
        struct moment now = loop_now(link->loop);
        int64_t left = moment_until(now, link->connect_until);
        int share = count - link->endpoint_next;

        if (conn_open(link->conn, &endpoints[link->endpoint_next++], link->tls,
                      locator_host(link->locator)) == 0) {
            loop_arm(link->loop, &link->timer, moment_plus(now, left / share));
            return;
        }
    }
    if (may_search(link))
        search(link);
    else
        fail_later(link, strerror(errno));
}

static void start_connecting(struct redis_link *link)
{
    struct moment now = loop_now(link->loop);

    link->connect_until = moment_min(link->until, moment_plus(now, link->address.connect_timeout));
    link->endpoint_next = 0;
    link->searched = false;
    connect_next(link);
}

struct redis_link *redis_link_new(struct loop *loop, const struct store_address *address,
                                  const struct redis_link_events *events, void *arg, char *fault,
                                  size_t size)
{
    static const struct conn_events conn_events = {greet, replied, broken};
    struct redis_link *link = mem_zeroed(sizeof *link);

    *link = (struct redis_link){.loop = loop, .address = *address, .events = events, .arg = arg};
    link->timer = (struct loop_timer){.fire = timed_out, .owner = link};
    link->url = address->urls;
    link->password = link->url->password ? link->url->password : address->password;
    url_print(link->url, link->name, sizeof link->name);
    if (strcmp(link->name, "local:") == 0)
        strcpy(link->name, "the local server");
    link->locator = locator_new(loop, link->url, fault, size);
    if (link->locator && link->url->tls)
        link->tls = tls_new(&link->address.tls, fault, size);
    if (!link->locator || (link->url->tls && !link->tls)) {
        if (link->locator)
            locator_free(link->locator);
        free(link);
        return NULL;
    }
    link->conn = conn_new(loop, &conn_events, link);
    return link;
}

void redis_link_free(struct redis_link *link)
{
    hang_up(link);
    loop_disarm(link->loop, &link->timer);
    conn_free(link->conn);
    locator_free(link->locator);
    tls_free(link->tls);
    empty_batch(link);
    free_replies(link);
    free(link->file_password);
    free(link);
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
    if (link->phase == PHASE_UP && replies == 0) {
        loop_arm(link->loop, &link->timer, loop_now(link->loop));
    } else if (link->phase == PHASE_UP) {
        loop_arm(link->loop, &link->timer, until);
        send_batch(link);
    } else {
        start_connecting(link);
    }
}

void redis_link_send_blindly(struct redis_link *link)
{
    loop_disarm(link->loop, &link->timer);
    link->busy = false;
    free_replies(link);
    if (link->phase == PHASE_UP)
        send_batch(link);
    empty_batch(link);
}

void redis_link_greet(struct redis_link *link, struct moment until)
{
    redis_link_send(link, 0, 0, until);
}

bool redis_link_is_up(const struct redis_link *link)
{
    return link->phase == PHASE_UP;
}

const char *redis_link_node(const struct redis_link *link)
{
    return link->greeting.node;
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
