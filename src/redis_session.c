/* A session with one Redis server. */
#include "redis_session.h"
#include "conn.h"
#include "lease.h"
#include "locate.h"
#include "loop.h"
#include "mem.h"
#include "redis_error.h"
#include "redis_greeting.h"
#include "secret.h"
#include "tls.h"

#include <errno.h>
#include <hiredis/hiredis.h>
#include <stdio.h>

enum phase {
    PHASE_DOWN,
    PHASE_LOCATING,
    PHASE_CONNECTING,
    PHASE_GREETING,
    PHASE_FAILED,  /* which is told when the loop turns: somebody is still calling us */
    PHASE_PAUSING, /* before it is searched for again */
    PHASE_UP
};

struct redis_session {
    struct loop *loop;
    struct store_address address;
    const struct url *url;
    char name[300]; /* the URL without its password */
    const struct redis_session_events *events;
    void *arg;

    enum phase phase;
    struct conn *conn;
    struct tls *tls; /* NULL: plain */
    struct locator *locator;
    struct loop_timer timer; /* armed on the way there */
    struct moment until;     /* to be there */
    int endpoint_next;       /* of those that the locator knows */
    bool searched;           /* for this connection: there is no use in asking again */
    unsigned setbacks;       /* on the way to this connection */
    struct answer failure;   /* with a text: to be told at the next turn */
    const char *password;
    char *file_password; /* read from the file again, after a refusal */
    bool reread;
    struct redis_greeting greeting;
};

static void connect_next(struct redis_session *session);
static void search(struct redis_session *session);

void redis_session_end(struct redis_session *session)
{
    loop_disarm(session->loop, &session->timer);
    locator_stop(session->locator);
    conn_close(session->conn);
    session->phase = PHASE_DOWN;
}

struct answer redis_session_failure(const struct redis_session *session, enum cause cause,
                                    const char *why)
{
    struct answer answer = {.verdict = VERDICT_UNKNOWN, .cause = cause};
    bool locating = session->phase == PHASE_LOCATING;
    const char *found = locating ? "" : locator_found(session->locator);
    bool reached = !locating && cause != CAUSE_UNREACHABLE;

    snprintf(answer.text, sizeof answer.text, "%s%.120s: %.60s%s%s", reached ? "" : "cannot reach ",
             session->name, found, *found ? ": " : "", why);
    return answer;
}

static void fail(struct redis_session *session, const struct answer *why)
{
    struct answer failure = *why;

    redis_session_end(session);
    session->events->failed(session->arg, &failure);
}

/* The way there ended here. Where the server may be moving to another host right now, it is searched for again,
 * as long as there is time. */
static void set_back(struct redis_session *session, const struct answer *why)
{
    struct moment now = loop_now(session->loop);
    int64_t pause = lease_backoff(session->setbacks++, (uint32_t)now.ns);

    if (!locator_roams(session->locator)) {
        fail(session, why);
        return;
    }
    session->failure = *why;
    redis_session_end(session);
    session->phase = PHASE_PAUSING;
    loop_arm(session->loop, &session->timer, moment_min(session->until, moment_plus(now, pause)));
}

static void set_back_by(struct redis_session *session, const char *why)
{
    struct answer answer = redis_session_failure(session, CAUSE_UNREACHABLE, why);
    set_back(session, &answer);
}

/* The password may have been changed while we held a lock: the file is read again, once. */
static bool try_file_again(struct redis_session *session)
{
    char fault[256];

    if (session->url->password || !session->address.password_file || session->reread)
        return false;
    char *fresh = secret_read(session->address.password_file, fault, sizeof fault);
    if (!fresh)
        return false;
    session->reread = true;
    free(session->file_password);
    session->password = session->file_password = fresh;
    redis_session_end(session);
    session->endpoint_next = 0;
    session->searched = false;
    connect_next(session);
    return true;
}

/* -- finding --------------------------------------------------------------------------------- */

static void located(void *arg, const struct answer *failure)
{
    struct redis_session *session = arg;

    if (!failure) {
        session->endpoint_next = 0;
        connect_next(session);
        return;
    }
    struct answer why = redis_session_failure(session, failure->cause, failure->text);
    if (why.cause == CAUSE_NOT_READY)
        set_back(session, &why);
    else if (why.cause != CAUSE_DENIED || !try_file_again(session))
        fail(session, &why);
}

static void search(struct redis_session *session)
{
    session->phase = PHASE_LOCATING;
    session->searched = true;
    loop_arm(session->loop, &session->timer, session->until);
    locator_search(session->locator, session->password, session->until, located, session);
}

static bool may_search(const struct redis_session *session)
{
    return !session->searched && locator_can_search(session->locator);
}

/* -- connecting ------------------------------------------------------------------------------ */

static bool has_next(const struct redis_session *session)
{
    const struct endpoint *endpoints;
    return session->endpoint_next < locator_known(session->locator, &endpoints);
}

/* The time that one of so many ways to the server has. Where it may move, there is one way more. */
static struct moment share_of_time(const struct redis_session *session, int ways)
{
    struct moment now = loop_now(session->loop);

    ways += locator_roams(session->locator);
    return moment_plus(now, moment_until(now, session->until) / ways);
}

/* Tries the next address. */
static void connect_next(struct redis_session *session)
{
    const struct endpoint *endpoints;
    int count = locator_known(session->locator, &endpoints);

    session->phase = PHASE_CONNECTING;
    errno = 0;
    while (session->endpoint_next < count) {
        int left = count - session->endpoint_next;

        if (conn_open(session->conn, &endpoints[session->endpoint_next++], session->tls,
                      locator_host(session->locator)) == 0) {
            loop_arm(session->loop, &session->timer, share_of_time(session, left));
            return;
        }
    }
    if (may_search(session)) {
        search(session);
        return;
    }
    session->failure = redis_session_failure(session, CAUSE_UNREACHABLE, strerror(errno));
    session->phase = PHASE_FAILED;
    loop_arm(session->loop, &session->timer, loop_now(session->loop));
}

static void timed_out(struct loop_timer *timer)
{
    struct redis_session *session = timer->owner;
    struct answer failure = session->failure;

    switch (session->phase) {
    case PHASE_LOCATING: set_back_by(session, locator_overdue(session->locator)); break;
    case PHASE_CONNECTING:
        if (has_next(session)) {
            conn_close(session->conn);
            connect_next(session);
            break;
        }
        set_back_by(session, conn_overdue(session->conn));
        break;
    case PHASE_FAILED: set_back(session, &failure); break;
    case PHASE_PAUSING:
        if (moment_reached(session->until, loop_now(session->loop)))
            fail(session, &failure);
        else
            search(session);
        break;
    default: set_back_by(session, conn_overdue(session->conn)); break;
    }
}

static void broken(void *arg, const char *why)
{
    struct redis_session *session = arg;

    if (session->phase == PHASE_CONNECTING && (has_next(session) || may_search(session))) {
        connect_next(session);
    } else if (session->phase != PHASE_UP) {
        set_back_by(session, why);
    } else {
        redis_session_end(session);
        session->events->broken(session->arg, why);
    }
}

static void moved(void *arg)
{
    broken(arg, "the sentinels name another master");
}

/* -- greeting -------------------------------------------------------------------------------- */

static void greet(void *arg)
{
    struct redis_session *session = arg;
    char *bytes = NULL;
    size_t size = 0;

    session->phase = PHASE_GREETING;
    loop_arm(session->loop, &session->timer, share_of_time(session, 1));
    redis_greeting_begin(&session->greeting, session->url, session->password,
                         session->address.member, &bytes, &size);
    conn_send(session->conn, bytes, size);
    free(bytes);
}

static void greeted(struct redis_session *session)
{
    session->phase = PHASE_UP;
    session->reread = false;
    loop_disarm(session->loop, &session->timer);
    locator_watch(session->locator, session->password, moved, session);
    session->events->up(session->arg, session->greeting.clock_ms);
}

static void refused(struct redis_session *session, const struct answer *answer)
{
    bool moving = session->greeting.replica && locator_roams(session->locator);
    enum cause cause = moving ? CAUSE_NOT_READY : answer->cause;

    if (cause == CAUSE_DENIED && try_file_again(session))
        return;
    struct answer failure = redis_session_failure(session, cause, answer->text);
    if (cause == CAUSE_NOT_READY)
        set_back(session, &failure);
    else
        fail(session, &failure);
}

static void replied(void *arg, redisReply *reply)
{
    struct redis_session *session = arg;
    struct answer answer;

    if (session->phase == PHASE_UP) {
        session->events->reply(session->arg, reply);
        return;
    }
    switch (redis_greeting_hear(&session->greeting, reply, &answer)) {
    case GREETING_GOING: break;
    case GREETING_DONE: greeted(session); break;
    case GREETING_REFUSED: refused(session, &answer); break;
    }
    freeReplyObject(reply);
}

/* -- from outside ---------------------------------------------------------------------------- */

struct redis_session *redis_session_new(struct loop *loop, const struct store_address *address,
                                        const struct redis_session_events *events, void *arg,
                                        char *fault, size_t size)
{
    static const struct conn_events conn_events = {greet, replied, broken};
    struct redis_session *session = mem_zeroed(sizeof *session);

    *session = (struct redis_session){
        .loop = loop, .address = *address, .url = address->urls, .events = events, .arg = arg};
    session->timer = (struct loop_timer){.fire = timed_out, .owner = session};
    session->password = session->url->password ? session->url->password : address->password;
    url_print(session->url, session->name, sizeof session->name);
    if (strcmp(session->name, "local:") == 0)
        strcpy(session->name, "the local server");
    if (session->url->tls)
        session->tls = tls_new(&session->address.tls, fault, size);
    if (!session->url->tls || session->tls)
        session->locator = locator_new(loop, session->url, session->tls, fault, size);
    if (!session->locator) {
        tls_discard(session->tls);
        free(session);
        return NULL;
    }
    session->conn = conn_new(loop, &conn_events, session);
    return session;
}

void redis_session_free(struct redis_session *session)
{
    redis_session_end(session);
    conn_free(session->conn);
    locator_free(session->locator);
    tls_discard(session->tls);
    free(session->file_password);
    free(session);
}

void redis_session_start(struct redis_session *session, struct moment until)
{
    struct moment now = loop_now(session->loop);

    session->until = moment_min(until, moment_plus(now, session->address.connect_timeout));
    session->endpoint_next = 0;
    session->searched = false;
    session->setbacks = 0;
    connect_next(session);
}

void redis_session_mind(struct redis_session *session, int64_t lease)
{
    locator_mind(session->locator, lease);
}

bool redis_session_is_up(const struct redis_session *session)
{
    return session->phase == PHASE_UP;
}

const char *redis_session_node(const struct redis_session *session)
{
    return session->greeting.node;
}

void redis_session_send(struct redis_session *session, const char *bytes, size_t size)
{
    conn_send(session->conn, bytes, size);
}

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

int redis_session_replicas(const struct redis_session *session)
{
    return session->greeting.replicas;
}

bool redis_session_is_over(const struct redis_session *session, const redisReply *reply,
                           const char **why)
{
    *why = locator_roams(session->locator) ? trouble_in(reply) : NULL;
    return *why != NULL;
}
