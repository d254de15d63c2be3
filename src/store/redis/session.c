/* Start reading at the table of the phases, near the end. It says what each phase does when its
 * time is up, when the connection breaks, and with a reply. A new phase is a row there, a new
 * command to each server that it meets a step in greeting.c. find/locate.c finds the server. */
#include "store/redis/session.h"
#include "base/backoff.h"
#include "base/mem.h"
#include "base/strbuf.h"
#include "net/conn.h"
#include "net/loop.h"
#include "net/tls.h"
#include "os/file.h"
#include "os/helper_process.h"
#include "os/program.h"
#include "rules/arguments.h"
#include "rules/error.h"
#include "rules/reply.h"
#include "store/breaks.h"
#include "store/redis/find/locate.h"
#include "store/redis/former_conn.h"

#include <errno.h>
#include <hiredis/hiredis.h>
#include <stdio.h>
#include <sys/stat.h>

enum phase {
    PHASE_DOWN,
    PHASE_LOCATING,
    PHASE_CONNECTING,
    PHASE_GREETING,
    PHASE_UNDOING, /* refused; the batch that came with the greeting may be done all the same */
    PHASE_FAILED,  /* reported when the loop turns: the caller must return first */
    PHASE_PAUSING, /* before the server is searched for again */
    PHASE_UP,
    PHASE_DETACHED
};

/* A batch of commands. */
struct batch {
    enum { BATCH_NONE, BATCH_WAITING, BATCH_SENT } state; /* SENT: it may be done */
    bool ahead;                                           /* it goes out with the greeting */
    bool twice;             /* it has gone out on two connections, and may be done on both */
    int64_t patience;       /* of one that goes ahead: ns for its replies once the greeting is
                             * answered, and it may be sent twice; 0: until "until", once */
    struct strbuf commands; /* encoded; kept while they may have to be sent again */
    struct moment until;
    struct moment sent_at;
    redisReply **replies; /* "got" of the "wanted" ones that there is room for */
    size_t wanted, got;
};

/* A password, which may be changed while a lock is held. */
struct secret {
    const char *word; /* NULL: none */
    const char *file; /* read again where the word is refused; NULL: it cannot be */
    char *fresh;      /* as it was read again */
};

struct redis_session {
    struct loop *loop;
    struct store_address address;
    const struct url *url;
    char name[300]; /* the URL without its password */
    const struct redis_session_events *events;
    void *arg;
    struct breaks breaks;

    struct strbuf adding; /* commands of the next batch */
    struct strbuf unread; /* those that were sent last, without waiting for answers */
    struct batch batch;

    enum phase phase;
    struct conn *conn;
    struct former_conn former;
    struct tls *tls; /* NULL: plain */
    struct locator *locator;
    struct helper_process *program; /* a host, which is asked in place of a server; NULL: none */
    struct loop_timer timer;        /* armed on the way, and for the replies to a batch */
    struct moment until;            /* to be up */
    int endpoint_next;              /* the one to try next, of those that the locator knows */
    bool searched;                  /* for this connection: searching again is useless */
    bool repeated;                  /* for this connection: the latest one was silent */
    unsigned attempts;              /* that failed on the way to this connection */
    struct answer failure;          /* to be reported later, annotated */
    struct secret password, sentinel_password;
    enum redis_identity identity;
    struct redis_greeting greeting;
    struct moment greeting_sent;
    int64_t round_trip; /* ns, of the latest greeting */
    /* On a server that refuses the greeting: how many replies to the rest of it are still to come,
     * before those to the batch; and whether then the batch is undone. */
    int greeting_left;
    bool undoing;

    /* The state of the connection that is up. */
    bool role_due;      /* before the replies to the batch itself */
    size_t listening;   /* to how many channels it is subscribed */
    size_t will_listen; /* once the batch is done */
    size_t unlistening; /* replies that are due to an UNSUBSCRIBE that went out */
    int64_t clock_ms;
    struct moment clock_read;
};

static void connect_next(struct redis_session *session);
static bool go_back(struct redis_session *session);
static void search_server(struct redis_session *session);

/* Whether another search may find another server. */
static bool may_search(const struct redis_session *session)
{
    return !session->searched && !session->locator->fixed;
}

/* Whether the server may have done the batch, as it went out. */
static bool may_be_done(const struct redis_session *session)
{
    return session->batch.state == BATCH_SENT;
}

/* Ends the program that is asked in place of a server. One that was told something without waiting
 * (PHASE_DETACHED) is left to finish that, and ends by itself. */
static void end_program(struct redis_session *session)
{
    if (session->program && session->phase == PHASE_DETACHED)
        helper_process_leave(session->program);
    else if (session->program)
        helper_process_stop(session->program);
    session->program = NULL;
}

/* Ends the connection, or the attempt to make one; the former connection stays. */
static void hang_up(struct redis_session *session)
{
    loop_disarm(session->loop, &session->timer);
    locator_stop(session->locator);
    conn_close(session->conn);
    end_program(session);
    session->phase = PHASE_DOWN;
}

void redis_session_close(struct redis_session *session)
{
    hang_up(session);
    former_conn_leave(&session->former);
}

/* -- whose an answer is ---------------------------------------------------------------------- */

void redis_session_annotate(const struct redis_session *session, struct answer *answer)
{
    bool locating = session->phase == PHASE_LOCATING;
    const char *found = locating ? "" : session->locator->found;
    bool reached = !locating && !cause_lacks_contact(answer->cause);
    /* NOAUTH asks for a password, DENIED is protected mode: neither is about a user's rights. */
    bool of_nobody = text_behind("NOAUTH", answer->said) || text_behind("DENIED", answer->said);
    /* The server has refused what this user may not do. A host's words name the user themselves. */
    bool by_rights =
        answer->cause == CAUSE_DENIED && !session->url->kind->program && !locating && !of_nobody;
    const char *user = session->url->user ? session->url->user : "default";

    answer_prepend(answer, "%s%s: %s%s%s%s%s", reached ? "" : "cannot reach ", session->name, found,
                   *found ? ": " : "", by_rights ? "user " : "", by_rights ? user : "",
                   by_rights ? ": " : "");
    if (answer->cause == CAUSE_UNREACHABLE && session->address.assumed)
        answer->hint = HINT_LOCAL;
    if (locating && answer->cause == CAUSE_DENIED)
        answer->hint = HINT_SENTINEL_PASSWORD;
    /* The server, or its Sentinels, ask for a password that rlock has kept no longer. */
    if (answer->login_refused && !(locating && session->sentinel_password.word) &&
        store_lost_password(&session->address))
        answer->hint = HINT_KEPT_PASSWORD;
}

/* Makes *answer say that the server could not be reached, and why, with the session's URL. */
static void describe_unreachable(const struct redis_session *session, const char *why,
                                 struct answer *answer)
{
    answer_fail(answer, CAUSE_UNREACHABLE, "%s", why);
    redis_session_annotate(session, answer);
}

/* -- the end of a batch ---------------------------------------------------------------------- */

/* Frees the replies that have come so far. */
static void drop_replies(struct batch *batch)
{
    for (size_t i = 0; i < batch->got; i++)
        freeReplyObject(batch->replies[i]);
    batch->got = 0;
}

/* Frees what the batch has; it may be freed again. */
static void free_batch(struct batch *batch)
{
    drop_replies(batch);
    free(batch->replies);
    strbuf_free(&batch->commands);
    batch->replies = NULL;
    batch->wanted = 0;
}

/* Reports the batch's replies, or the failure (NULL: there is none) without any. The batch is over
 * before "done" is called, which may begin the next one. Until that is sent,
 * redis_session_sent_at() and redis_session_sent_twice() still tell of this one. */
static void complete_batch(struct redis_session *session, const struct answer *failure)
{
    struct batch ended = session->batch;

    loop_disarm(session->loop, &session->timer);
    session->batch = (struct batch){.sent_at = ended.sent_at, .twice = ended.twice};
    session->events->done(session->arg, ended.replies, failure ? 0 : ended.got, failure);
    free_batch(&ended);
}

/* Ends the connection and the batch, which may be done all the same if it went out. */
static void fail_batch(struct redis_session *session, const struct answer *why)
{
    struct answer failure = *why;

    hang_up(session);
    failure.verdict = VERDICT_UNKNOWN;
    failure.maybe_done = may_be_done(session);
    complete_batch(session, &failure);
}

/* Ends the connection and the batch, as the server cannot be reached. */
static void fail_unreachable(struct redis_session *session, const char *why)
{
    struct answer failure;

    describe_unreachable(session, why, &failure);
    fail_batch(session, &failure);
}

/* -- the end of an attempt ------------------------------------------------------------------- */

/* After a failure on the way to a server: searches for the server again after a pause, as its
 * Sentinels may name another one by then, or fails the batch. Of several failures, the one that
 * says most is reported in the end. */
static void retry_or_fail(struct redis_session *session, const struct answer *why)
{
    struct moment now = loop_now(session->loop);
    bool first = session->attempts == 0;
    struct moment again = backoff_next(&session->attempts, now);

    /* A batch that may have been done is reported at once. */
    if (!session->locator->sentinels || may_be_done(session) || why->nowhere) {
        fail_batch(session, why);
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

/* After the end of a connection, or of the attempt to make one, for the reason "why": retries later
 * or fails. If the other end does not speak RESP, what it speaks gives the cause and the hint. */
static void retry_or_fail_with(struct redis_session *session, const char *why)
{
    static const enum hint hints[] = {[STREAM_TLS] = HINT_TLS, [STREAM_PLAIN] = HINT_NO_TLS};
    static const char linker[] = "error while loading shared libraries: ";
    struct answer answer;
    enum stream_language language = stream_language(session->conn->stream);

    describe_unreachable(session, why, &answer);
    if (session->program && stream_is_foreign(session->conn->stream)) {
        /* A program that could not even start sends words in place of replies: the system's, or
         * the dynamic linker's. */
        const char *words = session->conn->foreign, *found = strstr(words, linker);
        answer_fail(&answer, CAUSE_UNFIT, "the program %s cannot be started: %s",
                    session->url->kind->program, found ? found + strlen(linker) : words);
        redis_session_annotate(session, &answer);
        answer.hint = HINT_LIBRARY;
    } else if (stream_is_foreign(session->conn->stream)) {
        answer.cause = CAUSE_UNFIT;
        answer.hint = HINT_NONE;
    }
    if (hints[language])
        answer.hint = hints[language];
    retry_or_fail(session, &answer);
}

/* Has the timer report the failure, since the caller of the session must return first. */
static void fail_soon(struct redis_session *session)
{
    redis_session_annotate(session, &session->failure);
    session->phase = PHASE_FAILED;
    loop_arm(session->loop, &session->timer, loop_now(session->loop));
}

/* Returns what is wrong with the file of a Unix socket, or NULL: Linux says of any file that it
 * refuses a connection. path: NULL for a server without one. */
static const char *fault_of_socket(const char *path)
{
    struct stat file;

    if (!path || stat(path, &file) < 0 || S_ISSOCK(file.st_mode))
        return NULL;
    return S_ISDIR(file.st_mode) ? "it is a directory, not a socket" : "it is not a socket";
}

/* Fails, as no connection could be begun, for the reason in errno. The former connection is closed:
 * it may have the last descriptor that this process is allowed. */
static void fail_by_errno(struct redis_session *session)
{
    int error = errno;
    const char *path = session->url->path;
    const char *fault = error == ECONNREFUSED ? fault_of_socket(path) : NULL;

    answer_fail(&session->failure, cause_of_errno(error), "%s", fault ? fault : strerror(error));
    session->failure.hint = fault                     ? HINT_NO_SOCKET
                            : error == EACCES && path ? HINT_SOCKET
                                                      : HINT_NONE;
    former_conn_leave(&session->former);
    fail_soon(session);
}

/* The timer of fail_soon() has fired. */
static void failure_due(struct redis_session *session)
{
    retry_or_fail(session, &session->failure);
}

/* Returns the address that was tried last, which is the one before the next. */
static const struct endpoint *current_endpoint(const struct redis_session *session)
{
    return &session->locator->addresses.found[session->endpoint_next - 1];
}

/* The server that was reached, or tried, last cannot serve: where it has a name, the next
 * connection goes where that leads then. */
static void leave_server(struct redis_session *session)
{
    locator_leave(session->locator, session->endpoint_next - 1);
}

/* Notes that the server has ended a connection before it answered: over TLS, one that is full does
 * so without a word, and the former connection may be all that it allows. */
static void note_refusal(struct redis_session *session)
{
    if (!session->program)
        former_conn_note_refusal(&session->former, current_endpoint(session));
}

/* Leaves the server, which does not answer, but keeps the connection to it as the former one until
 * another is up: it may only be slow. A host ends with its connection. */
static void leave_silent(struct redis_session *session)
{
    leave_server(session);
    if (!session->program)
        former_conn_keep(&session->former, session->loop, &session->conn, current_endpoint(session),
                         &session->greeting);
    hang_up(session);
}

/* Begins anew, on another connection. */
static void start_over(struct redis_session *session)
{
    hang_up(session);
    session->endpoint_next = 0;
    session->searched = false;
    connect_next(session);
}

/* Reads the file of a secret again, whose word was refused. Returns whether that has another word,
 * which is the secret's from now on. */
static bool renew_secret(struct secret *secret)
{
    char *fresh = secret->file ? secret_read_again(secret->file) : NULL;
    bool other = fresh && !(secret->word && strcmp(fresh, secret->word) == 0);

    if (other) {
        free(secret->fresh);
        secret->word = secret->fresh = fresh;
    } else {
        free(fresh);
    }
    return other;
}

/* After a refusal by the server or its Sentinels: tries what is in the file of its password by now,
 * retries, or fails. */
static void turn_away(struct redis_session *session, const struct answer *why)
{
    /* A database that asks LDAP or PAM tells a wrong password as a user who may not log in. */
    bool refused = why->cause == CAUSE_DENIED || why->login_refused;

    if (refused && renew_secret(&session->password))
        start_over(session);
    else if (why->cause == CAUSE_NOT_READY)
        retry_or_fail(session, why);
    else
        fail_batch(session, why);
}

/* Leaves a server that refuses to serve. If its address was found for an earlier connection, it may
 * be another server's by now: so the name is looked up once more, and the batch goes there, if
 * nothing may have been done. Returns whether it does. */
static bool go_elsewhere(struct redis_session *session)
{
    bool found_before = may_search(session);

    leave_server(session);
    bool knows_others = locator_known(session->locator) > 0; /* no search would be made */
    if (!found_before || knows_others || may_be_done(session))
        return false;
    start_over(session);
    return true;
}

/* Goes to another server, or fails. A server that is full is the right one, so it is not left. */
static void leave_refused(struct redis_session *session)
{
    if (session->failure.full || !go_elsewhere(session))
        turn_away(session, &session->failure);
}

/* -- finding --------------------------------------------------------------------------------- */

/* The search is over: connects to the addresses that are known now; or the search has failed, which
 * is reported, or leads to another search. */
static void on_located(void *arg, const struct answer *failure)
{
    struct redis_session *session = arg;

    if (!failure) {
        session->endpoint_next = 0;
        connect_next(session);
        return;
    }
    struct answer why = *failure;
    redis_session_annotate(session, &why);
    /* As long as there was no server, the user is to hear why. */
    if (session->locator->addresses.count == 0 && why.cause == CAUSE_NOT_READY)
        fail_batch(session, &why);
    else
        turn_away(session, &why);
}

/* Returns user and password for the Sentinels; it borrows them from the session. */
static struct sentinel_login login_of(const struct redis_session *session)
{
    return sentinel_login(&session->address, session->sentinel_password.word,
                          session->password.word);
}

/* The Sentinels have refused the password: takes what its file has by now. Returns whether that is
 * another one. Sentinels without a password of their own have the server's. */
static bool on_login_refused(void *arg, struct sentinel_login *login)
{
    struct redis_session *session = arg;
    bool own = session->sentinel_password.word;
    bool other = renew_secret(own ? &session->sentinel_password : &session->password);

    *login = login_of(session);
    return other;
}

/* Searches for the server's addresses. If those known before can be tried again after the search
 * has failed (search_overdue()), half of the time that is left is kept for that. */
static void search_server(struct redis_session *session)
{
    struct moment now = loop_now(session->loop);
    int64_t left = moment_until(now, session->until);
    struct sentinel_login login = login_of(session);

    session->phase = PHASE_LOCATING;
    session->searched = true;
    if (locator_may_stay(session->locator))
        left /= 2;
    loop_arm(session->loop, &session->timer, moment_plus(now, left));
    if (!locator_search(session->locator, &login, session->until))
        fail_by_errno(session);
}

/* No address was found in time: tries the last ones again, if that may be, or fails. */
static void search_overdue(struct redis_session *session)
{
    if (locator_may_stay(session->locator)) {
        locator_stay(session->locator);
        on_located(session, NULL);
        return;
    }
    retry_or_fail_with(session, session->locator->startable ? "it did not start in time"
                                                            : "no answer from the name service");
}

/* After the pause of retry_or_fail(): fails if no time is left, or else tries the former
 * connection, or searches. */
static void pause_over(struct redis_session *session)
{
    if (moment_reached(session->until, loop_now(session->loop)))
        fail_batch(session, &session->failure);
    else if (!go_back(session))
        search_server(session);
}

/* -- connecting ------------------------------------------------------------------------------ */

/* Whether an address of the server is left to try. */
static bool has_next(const struct redis_session *session)
{
    return session->endpoint_next < locator_known(session->locator);
}

/* Returns until when an attempt to reach the server may take: it and those that can follow share
 * the time that is left. attempts: how many connections can be tried, this one included. As long as
 * nothing may have been done, asking Sentinels for another server is one attempt more. */
static struct moment attempt_deadline(const struct redis_session *session, int attempts)
{
    struct moment now = loop_now(session->loop);

    if (session->locator->sentinels && !may_be_done(session))
        attempts++;
    return moment_plus(now, moment_until(now, session->until) / attempts);
}

/* Starts the program that talks to the database, in place of a connection: one end of a socket is
 * its standard input and error, the other end becomes the session's stream. */
static void start_program(struct redis_session *session)
{
    const char *name = session->url->kind->program;
    char path[4096];
    int fd;

    session->phase = PHASE_CONNECTING;
    end_program(session);
    if (!program_find(name, path, sizeof path)) {
        answer_fail(&session->failure, CAUSE_UNFIT, "the program %s is not installed", name);
        session->failure.hint = HINT_DRIVER;
        fail_soon(session);
        return;
    }
    /* Only a host that runs a program of the user's needs the environment. */
    session->program = helper_process_execute(session->loop, path,
                                              session->url->kind->is_driven ? environ : NULL, &fd);
    if (session->program && stream_adopt(session->conn->stream, fd) == 0) {
        loop_arm(session->loop, &session->timer, session->until);
        return;
    }
    fail_by_errno(session);
}

/* Tries the next address of the server, or starts the program that talks to the database.
 * When no address is left, the server is searched for again, where that can help, or the
 * connecting has failed. */
static void connect_next(struct redis_session *session)
{
    struct locator *locator = session->locator;
    int count = locator_known(locator);

    if (session->url->kind->program) {
        start_program(session);
        return;
    }
    session->phase = PHASE_CONNECTING;
    errno = 0; /* for fail_by_errno(): as stream_open() leaves it */
    while (session->endpoint_next < count) {
        int left = count - session->endpoint_next;

        if (stream_open(session->conn->stream, &locator->addresses.found[session->endpoint_next++],
                        session->tls, locator_host(locator)) == 0) {
            loop_arm(session->loop, &session->timer, attempt_deadline(session, left));
            return;
        }
    }
    if (may_search(session)) {
        search_server(session);
        return;
    }
    fail_by_errno(session);
}

/* The address has refused the connection: tries the next one, or searches for others, or fails. */
static void connect_broken(struct redis_session *session, const char *why)
{
    note_refusal(session);
    if (has_next(session) || may_search(session))
        connect_next(session);
    else
        retry_or_fail_with(session, why);
}

/* The address is silent: tries the next one. After the last one no time is left to search. */
static void connect_overdue(struct redis_session *session)
{
    if (has_next(session)) {
        conn_close(session->conn);
        connect_next(session);
    } else {
        leave_server(session);
        retry_or_fail_with(session, stream_overdue(session->conn->stream));
    }
}

/* -- sending --------------------------------------------------------------------------------- */

static void send_bytes(struct redis_session *session, const struct strbuf *bytes)
{
    stream_send(session->conn->stream, bytes->text, bytes->size);
}

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
    send_bytes(session, &all);
    strbuf_free(&all);
    strbuf_free(commands);
}

/* Sends the batch, which may be done from now on. */
static void send_batch(struct redis_session *session)
{
    send_commands(session, &session->batch.commands);
    session->batch.state = BATCH_SENT;
    session->batch.sent_at = loop_now(session->loop);
}

/* Bounds the time of a batch whose server has answered the greeting, so is there: it waits for its
 * replies no longer than its patience, if it has one. */
static void give_patience(struct batch *batch, struct moment now)
{
    if (batch->patience)
        batch->until = moment_min(batch->until, moment_plus(now, batch->patience));
}

/* Sends the batch on the connection that is up. One without commands ends when the loop turns. */
static void send_on(struct redis_session *session)
{
    bool empty = session->batch.wanted == 0;

    loop_arm(session->loop, &session->timer,
             empty ? loop_now(session->loop) : session->batch.until);
    if (!empty)
        send_batch(session);
}

/* Sends the batch on the former connection, if that is wanted and its server is still among those
 * found. Returns whether it has. */
static bool go_back(struct redis_session *session)
{
    struct locator *locator = session->locator;
    struct sentinel_login login = login_of(session);
    int at =
        former_conn_reconsider(&session->former) ? locator_find(locator, &session->former.at) : -1;

    if (at < 0)
        return false;
    former_conn_take(&session->former, &session->conn);
    session->greeting = session->former.greeting;
    session->endpoint_next = at + 1;
    session->phase = PHASE_UP;
    session->role_due = false;
    session->listening = session->unlistening = 0;
    locator_watch(locator, &login);
    give_patience(&session->batch, loop_now(session->loop));
    send_on(session);
    return true;
}

/* The time of the batch on the connection that is up is over, or it has no commands: that one has
 * only had to connect, and is done. Another one was not answered in time and fails; the next batch
 * goes over another connection. */
static void batch_overdue(struct redis_session *session)
{
    if (session->batch.wanted == 0) {
        complete_batch(session, NULL);
        return;
    }
    leave_silent(session);
    fail_unreachable(session, "no answer in time");
}

/* -- undoing --------------------------------------------------------------------------------- */

/* After a refused greeting: leaves the server, and goes to another one or reports a failure.
 * undone: the server has not done the batch, or not any more; the batch counts as not sent then,
 * unless it was sent on another connection before. */
static void leave_undone(struct redis_session *session, bool undone)
{
    if (undone && !session->batch.twice)
        session->batch.state = BATCH_WAITING;
    leave_refused(session);
}

/* All replies are there to a batch that came with a refused greeting: if it was done, its owner
 * adds a command that undoes it (events->misdirected), and the reply to that is waited for. The
 * batch itself stays, for another server. */
static void undo_batch(struct redis_session *session)
{
    struct batch *batch = &session->batch;
    bool done = session->events->misdirected(session->arg, batch->replies, batch->got);
    struct strbuf bytes = session->adding;

    session->adding = (struct strbuf){0};
    drop_replies(batch);
    session->undoing = true;
    if (bytes.size > 0)
        send_bytes(session, &bytes);
    else
        leave_undone(session, !done);
    strbuf_free(&bytes);
}

/* Takes a reply of a server that has refused the greeting. There are replies to the rest of the
 * greeting, then to the batch that came with it, which is refused as well unless users who have not
 * logged in may do it, and then the reply to the command that undoes the batch. */
static void hear_undoing(struct redis_session *session, redisReply *reply)
{
    struct batch *batch = &session->batch;
    bool undone = reply->type != REDIS_REPLY_ERROR;

    if (session->greeting_left == 0 && !session->undoing) {
        batch->replies[batch->got++] = reply;
        if (batch->got == batch->wanted)
            undo_batch(session);
        return;
    }
    freeReplyObject(reply);
    if (session->undoing)
        leave_undone(session, undone);
    else
        session->greeting_left--;
}

/* The connection has broken before the batch was undone. A server that turns this user away (said)
 * has not done it either. */
static void undoing_broken(struct redis_session *session, const char *why)
{
    (void)why;
    leave_undone(session, redis_error_turns_away(session->failure.said));
}

/* -- greeting -------------------------------------------------------------------------------- */

/* Whether the batch, which goes out with the greeting, may go out once more, on another connection:
 * once, if its owner lets it. A server that is silent on one may answer on the next. */
static bool may_repeat(const struct redis_session *session)
{
    return session->batch.ahead && session->batch.patience && !session->repeated;
}

/* The connection is made: greets the server. A batch that goes ahead follows in the same write,
 * which saves a round trip. One that went out on an earlier connection may now be done on both. */
static void on_connected(void *arg)
{
    struct redis_session *session = arg;
    struct batch *batch = &session->batch;
    struct moment now = loop_now(session->loop);
    struct strbuf first = {0};

    session->phase = PHASE_GREETING;
    session->greeting_sent = now;
    drop_replies(batch);
    if (batch->ahead) {
        batch->twice |= batch->state == BATCH_SENT;
        batch->state = BATCH_SENT;
        batch->sent_at = now;
    }
    int attempts = may_repeat(session) ? 2 : 1;
    loop_arm(session->loop, &session->timer, attempt_deadline(session, attempts));
    if (session->program)
        redis_greeting_begin_host(&session->greeting, &session->address, session->password.word,
                                  moment_until(now, session->until) / NS_PER_MS, &first);
    else
        redis_greeting_begin(&session->greeting, session->url, session->password.word,
                             session->address.client, session->identity, &first);
    if (batch->ahead)
        strbuf_add(&first, batch->commands.text, batch->commands.size);
    send_bytes(session, &first);
    explicit_bzero(first.text, first.size);
    strbuf_free(&first);
}

/* The greeting is answered: this is the right server, and it lets the user in. Sends the batch,
 * unless that went out with the greeting. */
static void on_accepted(struct redis_session *session)
{
    struct batch *batch = &session->batch;
    struct sentinel_login login = login_of(session);

    session->phase = PHASE_UP;
    former_conn_leave(&session->former);
    session->round_trip = moment_until(session->greeting_sent, loop_now(session->loop));
    loop_disarm(session->loop, &session->timer);
    locator_watch(session->locator, &login);
    session->role_due = false;
    session->listening = session->unlistening = 0;
    breaks_up(&session->breaks);
    if (session->greeting.clock_ms)
        redis_session_set_clock(session, session->greeting.clock_ms);
    /* A batch that went out with the greeting will be answered; another one can go out now. */
    if (batch->wanted == 0) {
        complete_batch(session, NULL);
        return;
    }
    if (!batch->ahead)
        send_batch(session);
    give_patience(batch, loop_now(session->loop));
    strbuf_free(&batch->commands);
    loop_arm(session->loop, &session->timer, batch->until);
}

/* Completes *why, the reason why the server refuses, for the user. A replica in a quorum (MISFIT)
 * that was a master before, as it has answered a greeting, fails now and may come back; one that
 * never was a master is a mistake of the user. */
static void explain_refusal(struct redis_session *session, struct answer *why)
{
    if (why->cause == CAUSE_MISFIT && session->round_trip)
        why->cause = CAUSE_NOT_READY;
    redis_session_annotate(session, why);
}

/* Takes a reply to the greeting. After a refusal, a batch that went out behind the greeting may
 * have been done, and is undone first. */
static void hear_greeting(struct redis_session *session, redisReply *reply)
{
    enum greeting_state state = redis_greeting_hear(&session->greeting, reply, &session->failure);

    freeReplyObject(reply);
    if (state == GREETING_DONE)
        on_accepted(session);
    if (state != GREETING_REFUSED)
        return;
    explain_refusal(session, &session->failure);
    session->greeting_left = redis_greeting_left(&session->greeting);
    session->undoing = false;
    if (session->failure.full)
        note_refusal(session);
    if (may_be_done(session))
        session->phase = PHASE_UNDOING;
    else
        leave_refused(session);
}

/* The connection has broken before the greeting was answered: the server is full perhaps, or it is
 * not the right one any more. */
static void greeting_broken(struct redis_session *session, const char *why)
{
    note_refusal(session);
    if (!go_elsewhere(session))
        retry_or_fail_with(session, why);
}

/* The greeting is not answered in time: tries another connection, or fails. */
static void greeting_overdue(struct redis_session *session)
{
    leave_server(session);
    if (may_repeat(session)) {
        session->repeated = true;
        start_over(session);
    } else {
        retry_or_fail_with(session, stream_overdue(session->conn->stream));
    }
}

/* -- replies --------------------------------------------------------------------------------- */

/* Whether the error says that the server is a replica, which does not write. */
static bool is_of_replica(const char *error)
{
    return redis_error_class(error) == REDIS_ERROR_READONLY;
}

/* Whether the error is of a replica, or of a server in a trouble that another one might not be
 * in. */
static bool is_trouble(const char *error)
{
    return is_of_replica(error) || redis_error_class(error) == REDIS_ERROR_PASSING;
}

/* Takes the reply to ROLE, which stands before a batch that only reads. On a server that is not a
 * master any more, that has done nothing (BATCH_WAITING) and fails. A server that does not tell its
 * role gives the reason in its next replies as well. */
static void hear_role(struct redis_session *session, redisReply *reply)
{
    struct answer failure;
    bool master = reply->type == REDIS_REPLY_ERROR ||
                  redis_greeting_is_master(&session->greeting, reply, &failure);

    freeReplyObject(reply);
    session->role_due = false;
    if (master)
        return;
    explain_refusal(session, &failure);
    session->batch.state = BATCH_WAITING;
    leave_server(session);
    fail_batch(session, &failure);
}

/* The connection that is up is of no use any more: fails the batch, or else says so
 * (events->broken), unless it is up again soon (store/breaks.h). */
static void lose_connection(struct redis_session *session, const char *why)
{
    hang_up(session);
    if (session->batch.state != BATCH_NONE)
        fail_unreachable(session, why);
    else if (session->events->broken)
        breaks_down(&session->breaks);
}

/* Takes a reply to the batch, the first of which may be about the server's role; the last one
 * completes it. */
static void hear_batch(struct redis_session *session, redisReply *reply)
{
    struct batch *batch = &session->batch;

    if (batch->state == BATCH_NONE || batch->got == batch->wanted) {
        freeReplyObject(reply);
        /* A reply too many: those that follow would be taken for answers to something else. */
        lose_connection(session, "the server answers what it was not asked");
        return;
    }
    /* UNSUBSCRIBE went out before the batch. An error instead of its pushes answers all of it. */
    if (session->role_due && !(session->unlistening && reply->type == REDIS_REPLY_ERROR)) {
        hear_role(session, reply);
        return;
    }
    session->role_due = false;
    batch->replies[batch->got++] = reply;
    if (batch->got < batch->wanted)
        return;
    /* Not if the server refused to subscribe: it may refuse UNSUBSCRIBE as well. */
    session->listening = reply->type == REDIS_REPLY_ARRAY ? session->will_listen : 0;
    /* A server that is not the one any more is left. One that Sentinels named is not believed to be
     * in trouble either: they may name another one by now. */
    if (redis_reply_error(batch->replies, batch->got,
                          session->locator->sentinels ? is_trouble : is_of_replica))
        leave_silent(session);
    complete_batch(session, NULL);
}

/* Whether the reply is a push of that kind to a subscriber: {kind, channel, text or number}. */
static bool is_push(const redisReply *reply, const char *kind)
{
    return reply->type == REDIS_REPLY_ARRAY && reply->elements == 3 &&
           reply->element[0]->type == REDIS_REPLY_STRING &&
           strcmp(reply->element[0]->str, kind) == 0;
}

/* Takes what comes on a connection that is up: a message, the word that a subscription has ended,
 * or a reply of the batch. */
static void hear_message(struct redis_session *session, redisReply *reply)
{
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

/* Drops a reply to what redis_session_send_nowait() has sent. */
static void ignore_reply(struct redis_session *session, redisReply *reply)
{
    (void)session;
    freeReplyObject(reply);
}

static void drop_connection(struct redis_session *session, const char *why)
{
    (void)why;
    hang_up(session);
}

/* -- the phases ------------------------------------------------------------------------------ */

/* The phases, and their reaction to each event; NULL: it cannot happen. */
static const struct {
    void (*overdue)(struct redis_session *session);
    void (*broken)(struct redis_session *session, const char *why);
    void (*reply)(struct redis_session *session, redisReply *reply);
} phases[] = {
    [PHASE_DOWN] = {NULL, NULL, NULL},
    [PHASE_LOCATING] = {search_overdue, NULL, NULL},
    [PHASE_CONNECTING] = {connect_overdue, connect_broken, NULL},
    [PHASE_GREETING] = {greeting_overdue, greeting_broken, hear_greeting},
    [PHASE_UNDOING] = {leave_refused, undoing_broken, hear_undoing},
    [PHASE_FAILED] = {failure_due, NULL, NULL},
    [PHASE_PAUSING] = {pause_over, NULL, NULL},
    [PHASE_UP] = {batch_overdue, lose_connection, hear_message},
    [PHASE_DETACHED] = {NULL, drop_connection, ignore_reply},
};

static void timed_out(struct loop_timer *timer)
{
    struct redis_session *session = timer->owner;
    phases[session->phase].overdue(session);
}

static void on_reply(void *arg, redisReply *reply)
{
    struct redis_session *session = arg;
    phases[session->phase].reply(session, reply);
}

static void on_broken(void *arg, const char *why)
{
    struct redis_session *session = arg;
    phases[session->phase].broken(session, why);
}

/* The Sentinels name another master than the one that the connection leads to. */
static void on_master_moved(void *arg)
{
    on_broken(arg, "the sentinels name another master");
}

/* -- from outside ---------------------------------------------------------------------------- */

struct redis_session *redis_session_new(struct loop *loop, const struct store_address *address,
                                        const struct redis_session_events *events, void *arg,
                                        char *fault, size_t size)
{
    static const struct conn_events conn_events = {on_connected, on_reply, on_broken};
    static const struct locator_events locator_events = {on_located, on_master_moved,
                                                         on_login_refused};
    struct redis_session *session = mem_zeroed(sizeof *session);

    /* A literal would touch two pages, and a short run never needs most of them. */
    session->loop = loop;
    session->address = *address;
    session->url = address->urls;
    session->events = events;
    session->arg = arg;
    session->timer = (struct loop_timer){.fire = timed_out, .owner = session};
    session->password.word = store_address_password(address);
    session->password.file = session->url->password ? NULL : address->password_file;
    session->sentinel_password.word = address->sentinel_password;
    session->sentinel_password.file = address->sentinel_password_file;
    breaks_init(&session->breaks, loop, events->broken, arg);
    url_print(session->url, session->name, sizeof session->name);
    if (session->url->kind->start_server)
        strcpy(session->name, "the local server");
    bool over_tls = session->url->tls && !session->url->kind->program;
    if (over_tls)
        session->tls = tls_new(&session->address.tls, fault, size);
    if (!over_tls || session->tls)
        session->locator =
            locator_new(loop, session->url, session->tls, &locator_events, session, fault, size);
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
    former_conn_free(&session->former);
    locator_free(session->locator);
    tls_discard(session->tls);
    free(session->password.fresh);
    free(session->sentinel_password.fresh);
    strbuf_free(&session->adding);
    strbuf_free(&session->unread);
    free_batch(&session->batch);
    free(session);
}

void redis_session_identify(struct redis_session *session, enum redis_identity identity)
{
    session->identity = identity;
}

void redis_session_set_lease(struct redis_session *session, int64_t lease)
{
    locator_set_lease(session->locator, lease);
}

bool redis_session_is_up(const struct redis_session *session)
{
    return session->phase == PHASE_UP;
}

const struct redis_greeting *redis_session_greeting(const struct redis_session *session)
{
    return &session->greeting;
}

int64_t redis_session_round_trip(const struct redis_session *session)
{
    return session->round_trip;
}

void redis_session_add(struct redis_session *session, int argc, const char **argv)
{
    conn_encode(&session->adding, argc, argv);
}

void redis_session_add_call(struct redis_session *session, const struct redis_call *call)
{
    const size_t words = 5; /* EVAL, the script, a number; and "database" with a number */
    size_t count = 0;
    const char **argv =
        mem_zeroed((words + call->key_count + call->mirror_count + call->argc) * sizeof *argv);
    char key_count[24], db[12];

    snprintf(key_count, sizeof key_count, "%zu", call->key_count + call->mirror_count);
    argv[count++] = call->whole ? "EVAL" : "EVALSHA";
    argv[count++] = call->whole ? call->script->text : call->script->sha1;
    argv[count++] = key_count;
    for (size_t i = 0; i < call->key_count; i++)
        argv[count++] = call->keys[i];
    for (size_t i = 0; i < call->mirror_count; i++)
        argv[count++] = call->mirrors[i];
    for (size_t i = 0; i < call->argc; i++)
        argv[count++] = call->argv[i];
    if (call->db) {
        snprintf(db, sizeof db, "%d", call->db);
        argv[count++] = "database";
        argv[count++] = db;
    }
    redis_session_add(session, (int)count, argv);
    free(argv);
}

void redis_session_check_role(struct redis_session *session)
{
    const struct redis_greeting *greeting = &session->greeting;

    session->role_due =
        redis_session_is_up(session) && greeting->replicas >= 0 && !greeting->cluster;
    if (session->role_due)
        REDIS_SESSION_ADD(session, "ROLE");
}

/* Begins the way to a connection for the batch: the former one, if that is wanted, or a new one. */
static void start_batch(struct redis_session *session)
{
    session->until =
        moment_min(session->batch.until,
                   moment_plus(loop_now(session->loop), session->address.connect_timeout));
    session->endpoint_next = 0;
    session->searched = session->repeated = false;
    session->attempts = 0;
    if (!go_back(session))
        connect_next(session);
}

/* Makes a batch of the commands that were added, to which so many replies will come. */
static void begin_batch(struct redis_session *session, size_t replies, struct moment until)
{
    breaks_cancel(&session->breaks); /* a broken connection is found now */
    session->batch = (struct batch){
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
    begin_batch(session, replies, until);
    session->will_listen = channels;
    if (redis_session_is_up(session))
        send_on(session);
    else
        start_batch(session);
}

void redis_session_send_ahead(struct redis_session *session, size_t replies, struct moment until,
                              int64_t patience)
{
    if (redis_session_is_up(session)) {
        redis_session_send(session, replies, 0, until);
        return;
    }
    begin_batch(session, replies, until);
    session->will_listen = 0;
    session->batch.ahead = true;
    session->batch.patience = patience;
    start_batch(session);
}

bool redis_session_send_nowait(struct redis_session *session)
{
    /* The batch under way may have subscribed by the time that the server reads this. */
    if (session->batch.state == BATCH_SENT)
        session->listening = session->will_listen;
    loop_disarm(session->loop, &session->timer);
    /* Behind a greeting only if a batch went ahead with it: that one may have to be undone. */
    bool open = session->phase == PHASE_UP || session->phase == PHASE_DETACHED ||
                (session->phase == PHASE_GREETING && may_be_done(session));
    session->phase = PHASE_DETACHED;
    if (!open)
        redis_session_close(session);
    session->batch.state = BATCH_NONE;
    free_batch(&session->batch);
    if (open) {
        strbuf_add(&session->unread, session->adding.text, session->adding.size);
        send_commands(session, &session->adding);
    }
    strbuf_free(&session->adding);
    return open;
}

void redis_session_repeat_nowait(struct redis_session *session)
{
    if (session->phase != PHASE_DETACHED)
        return;
    strbuf_add(&session->adding, session->unread.text, session->unread.size);
    send_commands(session, &session->adding);
}

bool redis_session_sent_twice(const struct redis_session *session)
{
    return session->batch.twice;
}

void redis_session_expiry(const struct redis_session *session, struct tls_expiry *expiry)
{
    stream_expiry(session->conn->stream, expiry);
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
