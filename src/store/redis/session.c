/* A session with one Redis server: the way to it, and the batches once it is there. */
#include "store/redis/session.h"
#include "base/backoff.h"
#include "base/mem.h"
#include "net/conn.h"
#include "net/loop.h"
#include "net/tls.h"
#include "os/helper_process.h"
#include "os/program.h"
#include "os/secret.h"
#include "rules/error.h"
#include "store/breaks.h"
#include "store/redis/find/locate.h"
#include "store/redis/greeting.h"

#include <errno.h>
#include <hiredis/hiredis.h>
#include <stdio.h>

enum phase {
    PHASE_DOWN,
    PHASE_LOCATING,
    PHASE_CONNECTING,
    PHASE_GREETING,
    PHASE_REFUSED, /* the batch that came with the greeting may be done all the same */
    PHASE_FAILED,  /* the failure is told when the loop turns: the caller has yet to return */
    PHASE_PAUSING, /* before the server is searched for again */
    PHASE_UP
};

struct bytes {
    char *data;
    size_t size;
};

struct redis_session {
    struct loop *loop;
    struct store_address address;
    const struct url *url;
    char name[300]; /* the URL without its password */
    const struct redis_session_events *events;
    void *arg;

    /* The way to the server. */
    enum phase phase;
    struct conn *conn;
    struct tls *tls; /* NULL: plain */
    struct locator *locator;
    struct helper_process *program; /* a host, which is asked in place of a server; NULL: none */
    struct loop_timer timer;        /* armed on the way, and while a batch is under way */
    struct moment until;            /* to be there */
    int endpoint_next;              /* of those that the locator knows */
    bool searched;                  /* for this connection: there is no use in asking again */
    bool repeated;                  /* for this connection: the latest one was silent */
    unsigned attempts;              /* that failed on the way to this connection */
    struct answer failure;          /* to be told later, with its text */
    const char *password;
    char *file_password; /* read from the file again, after a refusal */
    bool reread;
    bool identify; /* the server is asked which one it is */
    struct redis_greeting greeting;
    struct moment greeting_sent;
    int64_t round_trip; /* ns, of the latest greeting */
    int unheard;        /* PHASE_REFUSED: replies that come before those to the batch */
    bool undoing;       /* PHASE_REFUSED: what the batch did is being taken back */

    /* The connection that is up. */
    struct breaks breaks;
    size_t listening;   /* to how many channels it is subscribed */
    size_t unlistening; /* replies that are due to an UNSUBSCRIBE that went out */
    int64_t clock_ms;
    struct moment clock_read;

    struct bytes adding; /* what is being put together */

    /* The batch that is under way. */
    struct bytes batch; /* kept while it may have to be sent once more */
    bool busy;
    bool ahead;  /* it goes out with the greeting */
    bool sent;   /* it has gone out, and may be done */
    bool nowait; /* nobody waits for any reply any more */
    struct moment sent_at;
    struct moment answer_by;
    int64_t patience; /* ahead: ns for its replies once the greeting is answered; 0: answer_by */
    bool role_due;    /* before the replies to the batch itself */
    size_t will_listen;
    redisReply **replies;
    size_t wanted, got;
};

static void connect_next(struct redis_session *session);
static void search(struct redis_session *session);

/* What a host was told last, and nobody waits for, it does before it ends by itself. */
static void end_program(struct redis_session *session)
{
    if (session->program && session->nowait)
        helper_process_leave(session->program);
    else if (session->program)
        helper_process_stop(session->program);
    session->program = NULL;
}

static void hang_up(struct redis_session *session)
{
    loop_disarm(session->loop, &session->timer);
    locator_stop(session->locator);
    conn_close(session->conn);
    end_program(session);
    session->phase = PHASE_DOWN;
    session->listening = session->unlistening = 0;
    session->role_due = false;
}

/* -- whose an answer is ---------------------------------------------------------------------- */

/* "user NAME: " where the server has refused what this user may not do. */
static void print_user(const struct redis_session *session, const struct answer *answer, char *out,
                       size_t size)
{
    const char *user = session->url->user ? session->url->user : "default";
    bool nobody = session->url->record->program || session->phase == PHASE_LOCATING ||
                  strncmp(answer->said, "NOAUTH", 6) == 0 ||
                  strncmp(answer->said, "DENIED", 6) == 0;

    *out = '\0';
    if (answer->cause == CAUSE_DENIED && !nobody)
        snprintf(out, size, "user %.40s: ", user);
}

/* Whether the server, or its Sentinels, ask for a password where there is none. */
static bool misses_password(const struct redis_session *session, const struct answer *answer)
{
    bool asked = session->phase == PHASE_LOCATING || answer->hint == HINT_PASSWORD_OR_USER ||
                 strncmp(answer->said, "NOAUTH", 6) == 0 ||
                 strncmp(answer->said, "WRONGPASS", 9) == 0;

    return answer->cause == CAUSE_DENIED && asked && store_lost_password(&session->address);
}

void redis_session_sign(const struct redis_session *session, struct answer *answer)
{
    bool locating = session->phase == PHASE_LOCATING;
    const char *found = locating ? "" : locator_found(session->locator);
    bool reached = !locating && answer->cause != CAUSE_UNREACHABLE;
    char why[sizeof answer->text], user[64];

    memcpy(why, answer->text, sizeof why);
    print_user(session, answer, user, sizeof user);
    snprintf(answer->text, sizeof answer->text, "%s%.120s: %.60s%s%s%s",
             reached ? "" : "cannot reach ", session->name, found, *found ? ": " : "", user, why);
    if (answer->cause == CAUSE_UNREACHABLE && session->address.assumed)
        answer->hint = HINT_LOCAL;
    if (misses_password(session, answer))
        answer->hint = HINT_KEPT_PASSWORD;
}

/* An UNKNOWN answer, signed. */
static void describe_unreachable(const struct redis_session *session, const char *why,
                                 struct answer *answer)
{
    answer_fail(answer, CAUSE_UNREACHABLE, "%s", why);
    redis_session_sign(session, answer);
}

/* -- the end of a batch ---------------------------------------------------------------------- */

static void empty(struct bytes *bytes)
{
    free(bytes->data);
    *bytes = (struct bytes){0};
}

static void append(struct bytes *bytes, const char *data, size_t size)
{
    bytes->data = mem_checked(realloc(bytes->data, bytes->size + size));
    memcpy(bytes->data + bytes->size, data, size);
    bytes->size += size;
}

static void drop_replies(struct redis_session *session)
{
    for (size_t i = 0; i < session->got; i++)
        freeReplyObject(session->replies[i]);
    session->got = 0;
}

static void free_replies(struct redis_session *session)
{
    drop_replies(session);
    free(session->replies);
    session->replies = NULL;
    session->wanted = 0;
}

/* Ends the batch under way: with its replies, or with a failure. */
static void complete(struct redis_session *session, const struct answer *failure)
{
    size_t count = failure ? 0 : session->got;
    redisReply **replies = session->replies;
    size_t owned = session->got;

    loop_disarm(session->loop, &session->timer);
    empty(&session->batch);
    session->replies = NULL;
    session->got = session->wanted = 0;
    session->busy = false;
    session->events->done(session->arg, replies, count, failure);
    for (size_t i = 0; i < owned; i++)
        freeReplyObject(replies[i]);
    free(replies);
}

static void fail(struct redis_session *session, const struct answer *why)
{
    struct answer failure = *why;

    hang_up(session);
    if (!session->busy)
        return;
    failure.verdict = VERDICT_UNKNOWN;
    failure.maybe_done = session->sent;
    failure.any_time = session->sent && session->ahead;
    complete(session, &failure);
}

static void fail_unreachable(struct redis_session *session, const char *why)
{
    struct answer answer;

    describe_unreachable(session, why, &answer);
    fail(session, &answer);
}

/* -- a way that ended before the server was reached ------------------------------------------ */

/* Where the server may be moving to another host right now, it is searched for again, as long as
 * there is time; but what may have been done is told first. Of several attempts, the one is told
 * that says why. */
static void retry_or_fail(struct redis_session *session, const struct answer *why)
{
    struct moment now = loop_now(session->loop);
    bool first = session->attempts == 0;
    struct moment again = backoff_next(&session->attempts, now);

    if (!locator_roams(session->locator) || session->sent) {
        fail(session, why);
        return;
    }
    if (first)
        session->failure = *why;
    else
        store_note_failure(&session->failure, why);
    hang_up(session);
    session->phase = PHASE_PAUSING;
    loop_arm(session->loop, &session->timer, moment_min(session->until, again));
}

/* A program that has not even begun says so in words, in place of replies: the system's, or the
 * dynamic linker's. */
static void describe_no_start(const struct redis_session *session, struct answer *answer)
{
    static const char linker[] = "error while loading shared libraries: ";
    const char *words = conn_foreign_words(session->conn), *found = strstr(words, linker);

    answer_fail(answer, CAUSE_UNFIT, "the program %s cannot be started: %s",
                session->url->record->program, found ? found + strlen(linker) : words);
    redis_session_sign(session, answer);
    answer->hint = HINT_LIBRARY;
}

/* An end that does not speak as a Redis server does is not going to. */
static void retry_or_fail_with(struct redis_session *session, const char *why)
{
    struct answer answer;

    describe_unreachable(session, why, &answer);
    if (session->program && conn_is_foreign(session->conn)) {
        describe_no_start(session, &answer);
    } else if (conn_is_foreign(session->conn)) {
        answer.cause = CAUSE_UNFIT;
        answer.hint = HINT_NONE;
    }
    retry_or_fail(session, &answer);
}

/* On another connection, as if there had been none. */
static void start_over(struct redis_session *session)
{
    hang_up(session);
    session->endpoint_next = 0;
    session->searched = false;
    connect_next(session);
}

/* The password may have been changed while a lock was held: the file is read again, once. */
static bool try_file_again(struct redis_session *session)
{
    if (session->url->password || !session->address.password_file || session->reread)
        return false;
    char *fresh = secret_read_again(session->address.password_file);
    if (!fresh)
        return false;
    session->reread = true;
    free(session->file_password);
    session->password = session->file_password = fresh;
    start_over(session);
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
    struct answer why = *failure;
    redis_session_sign(session, &why);
    if (why.cause == CAUSE_NOT_READY)
        retry_or_fail(session, &why);
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

/* The time that one of so many ways to the server has. Where it may move, there is one way more,
 * as long as nothing may have been done. */
static struct moment share_of_time(const struct redis_session *session, int ways)
{
    struct moment now = loop_now(session->loop);

    ways += locator_roams(session->locator) && !session->sent;
    return moment_plus(now, moment_until(now, session->until) / ways);
}

/* There was not even an attempt to connect: told when the loop turns. */
static void fail_soon(struct redis_session *session)
{
    session->phase = PHASE_FAILED;
    loop_arm(session->loop, &session->timer, loop_now(session->loop));
}

static void start_program(struct redis_session *session)
{
    const char *name = session->url->record->program;
    char path[4096];
    int fd;

    session->phase = PHASE_CONNECTING;
    end_program(session);
    if (!program_find(name, path, sizeof path)) {
        answer_fail(&session->failure, CAUSE_UNFIT, "the program %s is not installed", name);
        redis_session_sign(session, &session->failure);
        session->failure.hint = HINT_DRIVER;
        fail_soon(session);
        return;
    }
    session->program = helper_process_execute(session->loop, path, &fd);
    if (session->program && conn_adopt(session->conn, fd) == 0) {
        loop_arm(session->loop, &session->timer, session->until);
        return;
    }
    describe_unreachable(session, strerror(errno), &session->failure);
    fail_soon(session);
}

/* Tries the next address. */
static void connect_next(struct redis_session *session)
{
    const struct endpoint *endpoints;
    int count = locator_known(session->locator, &endpoints);

    if (session->url->record->program) {
        start_program(session);
        return;
    }
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
    describe_unreachable(session, strerror(errno), &session->failure);
    fail_soon(session);
}

static void start(struct redis_session *session)
{
    struct moment now = loop_now(session->loop);

    session->until =
        moment_min(session->answer_by, moment_plus(now, session->address.connect_timeout));
    session->endpoint_next = 0;
    session->searched = session->repeated = false;
    session->attempts = 0;
    connect_next(session);
}

/* -- sending --------------------------------------------------------------------------------- */

/* Sends what is not to be sent again. */
static void send_bytes(struct redis_session *session, struct bytes *bytes)
{
    static const char unsubscribe[] = "*1\r\n$11\r\nUNSUBSCRIBE\r\n";
    struct bytes all = {0};

    if (session->listening) {
        append(&all, unsubscribe, sizeof unsubscribe - 1);
        session->unlistening += session->listening;
        session->listening = 0;
    }
    /* One write for both, so that the server finds them together. */
    append(&all, bytes->data, bytes->size);
    conn_send(session->conn, all.data, all.size);
    empty(&all);
    empty(bytes);
}

static void send_batch(struct redis_session *session)
{
    send_bytes(session, &session->batch);
    session->sent = true;
    session->sent_at = loop_now(session->loop);
}

/* The greeting was accepted: what went out with it will be answered, what did not can go out. */
static void begin_on_connection(struct redis_session *session)
{
    struct moment now = loop_now(session->loop);

    if (session->wanted == 0) {
        complete(session, NULL);
        return;
    }
    if (session->ahead) {
        if (session->patience)
            session->answer_by =
                moment_min(session->answer_by, moment_plus(now, session->patience));
        empty(&session->batch);
    } else {
        send_batch(session);
    }
    loop_arm(session->loop, &session->timer, session->answer_by);
}

/* -- an end of the connection ---------------------------------------------------------------- */

static void poke(void *arg)
{
    struct redis_session *session = arg;
    session->events->poked(session->arg);
}

static void lose_connection(struct redis_session *session, const char *why)
{
    if (session->busy) {
        fail_unreachable(session, why);
    } else {
        hang_up(session);
        breaks_down(&session->breaks);
    }
}

/* The server was there, and refused. */
static void leave_refused(struct redis_session *session)
{
    struct answer why = session->failure;

    if (why.cause == CAUSE_DENIED && try_file_again(session))
        return;
    if (why.cause == CAUSE_NOT_READY)
        retry_or_fail(session, &why);
    else
        fail(session, &why);
}

static void broken(void *arg, const char *why)
{
    struct redis_session *session = arg;

    if (session->nowait) {
        hang_up(session);
    } else if (session->phase == PHASE_REFUSED) {
        if (redis_error_turns_away(session->failure.said))
            session->sent = false;
        leave_refused(session);
    } else if (session->phase == PHASE_CONNECTING && (has_next(session) || may_search(session))) {
        connect_next(session);
    } else if (session->phase == PHASE_UP) {
        lose_connection(session, why);
    } else {
        retry_or_fail_with(session, why);
    }
}

static void moved(void *arg)
{
    broken(arg, "the sentinels name another master");
}

/* Where there was nothing to ask, that is the end of the batch. */
static void answer_overdue(struct redis_session *session)
{
    if (session->wanted == 0)
        complete(session, NULL);
    else
        fail_unreachable(session, "no answer in time");
}

/* Whether what went out first may go out once more, on another connection: a server that is silent
 * on one may answer on the next. */
static bool may_repeat(const struct redis_session *session)
{
    return session->ahead && session->patience && !session->repeated;
}

static void timed_out(struct loop_timer *timer)
{
    struct redis_session *session = timer->owner;
    struct answer failure = session->failure;

    switch (session->phase) {
    case PHASE_LOCATING: retry_or_fail_with(session, locator_overdue(session->locator)); break;
    case PHASE_CONNECTING:
        if (has_next(session)) {
            conn_close(session->conn);
            connect_next(session);
            break;
        }
        retry_or_fail_with(session, conn_overdue(session->conn));
        break;
    case PHASE_REFUSED: leave_refused(session); break;
    case PHASE_FAILED: retry_or_fail(session, &failure); break;
    case PHASE_PAUSING:
        if (moment_reached(session->until, loop_now(session->loop)))
            fail(session, &failure);
        else
            search(session);
        break;
    case PHASE_UP: answer_overdue(session); break;
    case PHASE_GREETING:
        if (may_repeat(session)) {
            session->repeated = true;
            start_over(session);
            break;
        }
        retry_or_fail_with(session, conn_overdue(session->conn));
        break;
    case PHASE_DOWN: retry_or_fail_with(session, conn_overdue(session->conn)); break;
    }
}

/* -- greeting -------------------------------------------------------------------------------- */

/* The first write of a connection: the greeting and, behind it, a batch that need not wait until
 * the server is known to be the right one. */
static void greet(void *arg)
{
    struct redis_session *session = arg;
    struct bytes first = {0};

    session->phase = PHASE_GREETING;
    session->sent = session->ahead;
    session->greeting_sent = session->sent_at = loop_now(session->loop);
    drop_replies(session);
    loop_arm(session->loop, &session->timer, share_of_time(session, 1 + may_repeat(session)));
    if (session->program)
        redis_greeting_begin_host(&session->greeting, &session->address, session->password,
                                  moment_until(loop_now(session->loop), session->until) / NS_PER_MS,
                                  &first.data, &first.size);
    else
        redis_greeting_begin(&session->greeting, session->url, session->password,
                             session->address.client, session->identify, &first.data, &first.size);
    if (session->ahead)
        append(&first, session->batch.data, session->batch.size);
    conn_send(session->conn, first.data, first.size);
    explicit_bzero(first.data, first.size);
    empty(&first);
}

static void greeted(struct redis_session *session)
{
    session->phase = PHASE_UP;
    session->reread = false;
    breaks_up(&session->breaks);
    session->round_trip = moment_until(session->greeting_sent, loop_now(session->loop));
    loop_disarm(session->loop, &session->timer);
    locator_watch(session->locator, session->password, moved, session);
    if (session->greeting.clock_ms)
        redis_session_set_clock(session, session->greeting.clock_ms);
    if (session->busy)
        begin_on_connection(session);
}

/* A server that may have moved is looked for elsewhere. */
static void explain_refusal(struct redis_session *session)
{
    if (session->greeting.replica && locator_roams(session->locator))
        session->failure.cause = CAUSE_NOT_READY;
    redis_session_sign(session, &session->failure);
}

/* What came with a greeting that is refused is refused as well, unless others than this user may do
 * it: its own replies tell. */
static void refused(struct redis_session *session)
{
    explain_refusal(session);
    session->unheard = redis_greeting_left(&session->greeting);
    session->undoing = false;
    if (session->sent)
        session->phase = PHASE_REFUSED;
    else
        leave_refused(session);
}

static void hear_greeting(struct redis_session *session, const redisReply *reply)
{
    switch (redis_greeting_hear(&session->greeting, reply, &session->failure)) {
    case GREETING_GOING: break;
    case GREETING_DONE: greeted(session); break;
    case GREETING_REFUSED: refused(session); break;
    }
}

/* All replies to a batch have come from a server that is not the right one. What it granted is
 * taken back there; the batch itself stays, for another server. */
static void undo(struct redis_session *session)
{
    session->sent = session->events->astray(session->arg, session->replies, session->got);
    session->undoing = session->adding.size > 0;
    drop_replies(session);
    if (session->undoing)
        send_bytes(session, &session->adding);
    else
        leave_refused(session);
}

static void hear_after_refusal(struct redis_session *session, redisReply *reply)
{
    if (session->unheard == 0 && !session->undoing) {
        session->replies[session->got++] = reply;
        if (session->got == session->wanted)
            undo(session);
        return;
    }
    bool undone = reply->type != REDIS_REPLY_ERROR;
    freeReplyObject(reply);
    if (session->unheard > 0) {
        session->unheard--;
    } else {
        session->sent = !undone;
        leave_refused(session);
    }
}

/* -- replies to batches ---------------------------------------------------------------------- */

/* The error in a reply that is a reason to look for the server anew: it is a replica, or in a
 * trouble that another one might not be in. NULL: there is none. */
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
    redis_session_sign(session, &failure);
    fail(session, &failure);
}

/* A server that may have moved is not believed to be in trouble: the next batch looks for it. */
static bool has_to_move(struct redis_session *session)
{
    const char *why = NULL;

    for (size_t i = 0; locator_roams(session->locator) && !why && i < session->got; i++)
        why = trouble_in(session->replies[i]);
    if (why)
        fail_for_move(session, why);
    return why;
}

/* It went out before the batch. An error instead of its pushes is the answer to all. */
static bool is_refused_unsubscribe(const struct redis_session *session, const redisReply *reply)
{
    return session->unlistening && reply->type == REDIS_REPLY_ERROR;
}

/* What only reads has done nothing on a server that is no master any more. One that does not say
 * what it is says why in its next replies as well. */
static void hear_role(struct redis_session *session, redisReply *reply)
{
    bool master = reply->type == REDIS_REPLY_ERROR ||
                  redis_greeting_is_master(&session->greeting, reply, &session->failure);

    freeReplyObject(reply);
    session->role_due = false;
    if (master)
        return;
    explain_refusal(session);
    session->sent = false;
    fail(session, &session->failure);
}

static void batch_reply(struct redis_session *session, redisReply *reply)
{
    if (!session->busy || session->got == session->wanted) {
        freeReplyObject(reply);
        /* One too many: what follows would be taken for the answer to something else. */
        lose_connection(session, "the server answers what it was not asked");
        return;
    }
    if (session->role_due && !is_refused_unsubscribe(session, reply)) {
        hear_role(session, reply);
        return;
    }
    session->role_due = false;
    session->replies[session->got++] = reply;
    if (session->got < session->wanted || has_to_move(session))
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

static void connection_reply(struct redis_session *session, redisReply *reply)
{
    if ((session->listening || session->unlistening) && is_push(reply, "message")) {
        const redisReply *message = reply->element[2];
        const char *text = message->type == REDIS_REPLY_STRING ? message->str : "";
        session->events->heard(session->arg, session->busy ? NULL : text);
        freeReplyObject(reply);
    } else if (session->unlistening && is_push(reply, "unsubscribe")) {
        session->unlistening--;
        freeReplyObject(reply);
    } else {
        batch_reply(session, reply);
    }
}

static void replied(void *arg, redisReply *reply)
{
    struct redis_session *session = arg;

    if (session->nowait) {
        freeReplyObject(reply);
    } else if (session->phase == PHASE_UP) {
        connection_reply(session, reply);
    } else if (session->phase == PHASE_REFUSED) {
        hear_after_refusal(session, reply);
    } else {
        hear_greeting(session, reply);
        freeReplyObject(reply);
    }
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
    breaks_init(&session->breaks, loop, poke, session);
    session->password = store_address_password(address);
    url_print(session->url, session->name, sizeof session->name);
    if (session->url->record->start_server)
        strcpy(session->name, "the local server");
    bool over_tls = session->url->tls && !session->url->record->program;
    if (over_tls)
        session->tls = tls_new(&session->address.tls, fault, size);
    if (!over_tls || session->tls)
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
    hang_up(session);
    breaks_cancel(&session->breaks);
    conn_free(session->conn);
    locator_free(session->locator);
    tls_discard(session->tls);
    free(session->file_password);
    empty(&session->adding);
    empty(&session->batch);
    free_replies(session);
    free(session);
}

void redis_session_identify(struct redis_session *session)
{
    session->identify = true;
}

void redis_session_mind(struct redis_session *session, int64_t lease)
{
    locator_mind(session->locator, lease);
}

void redis_session_add(struct redis_session *session, int argc, const char **argv,
                       const size_t *lengths)
{
    conn_encode(&session->adding.data, &session->adding.size, argc, argv, lengths);
}

void redis_session_verify(struct redis_session *session)
{
    const char *role[] = {"ROLE"};
    bool told = session->greeting.replicas >= 0 && !session->greeting.cluster;

    if (!redis_session_is_up(session) || !told)
        return;
    redis_session_add(session, 1, role, NULL);
    session->role_due = true;
}

static void begin(struct redis_session *session, size_t replies, size_t channels,
                  struct moment until)
{
    breaks_cancel(&session->breaks); /* whoever sends finds out */
    session->batch = session->adding;
    session->adding = (struct bytes){0};
    session->busy = true;
    session->ahead = session->sent = session->nowait = false;
    session->will_listen = channels;
    session->answer_by = until;
    session->wanted = replies;
    session->replies = mem_zeroed((replies + 1) * sizeof *session->replies);
}

void redis_session_send(struct redis_session *session, size_t replies, size_t channels,
                        struct moment until)
{
    begin(session, replies, channels, until);
    if (!redis_session_is_up(session)) {
        start(session);
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
    if (redis_session_is_up(session)) {
        redis_session_send(session, replies, 0, until);
        return;
    }
    begin(session, replies, 0, until);
    session->ahead = true;
    session->patience = patience;
    start(session);
}

bool redis_session_send_nowait(struct redis_session *session)
{
    bool under_way = session->busy && session->sent;
    bool open = session->phase == PHASE_UP || (session->phase == PHASE_GREETING && under_way);

    /* What is under way may have subscribed by the time that the server comes to this. */
    if (under_way)
        session->listening = session->will_listen;
    loop_disarm(session->loop, &session->timer);
    session->busy = false;
    session->nowait = true;
    free_replies(session);
    empty(&session->batch);
    if (open)
        send_bytes(session, &session->adding);
    else
        hang_up(session);
    empty(&session->adding);
    return open;
}

void redis_session_greet(struct redis_session *session, struct moment until)
{
    redis_session_send(session, 0, 0, until);
}

void redis_session_drop(struct redis_session *session)
{
    hang_up(session);
}

bool redis_session_is_up(const struct redis_session *session)
{
    return session->phase == PHASE_UP;
}

struct moment redis_session_sent_at(const struct redis_session *session)
{
    return session->sent_at;
}

int64_t redis_session_round_trip(const struct redis_session *session)
{
    return session->round_trip;
}

int redis_session_replicas(const struct redis_session *session)
{
    return session->greeting.replicas;
}

const char *redis_session_node(const struct redis_session *session)
{
    return session->greeting.node;
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
