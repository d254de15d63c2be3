/* The link to one Redis server. */
#include "store/redis/link.h"
#include "base/backoff.h"
#include "base/mem.h"
#include "net/conn.h"
#include "net/loop.h"
#include "net/tls.h"
#include "os/helper_process.h"
#include "os/program.h"
#include "os/secret.h"
#include "rules/error.h"
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
    PHASE_UNDOING, /* refused; the batch that came with the greeting may be done all the same */
    PHASE_FAILED,  /* reported when the loop turns: the caller must return first */
    PHASE_PAUSING, /* before the server is searched for again */
    PHASE_UP,
    PHASE_DETACHED
};

/* On a server that refuses the greeting, the replies that are still to come, in this order. */
struct undo {
    enum { UNDO_GREETING, UNDO_BATCH, UNDO_COMMAND } expects;
    int greeting_left; /* replies to the rest of the greeting */
};

struct redis_link {
    struct loop *loop;
    struct store_address address;
    const struct url *url;
    char name[300]; /* the URL without its password */
    struct redis_batch *batch;
    const struct redis_link_events *events;
    void *arg;

    enum phase phase;
    struct conn *conn;
    struct tls *tls; /* NULL: plain */
    struct locator *locator;
    struct helper_process *program; /* a host, which is asked in place of a server; NULL: none */
    struct loop_timer timer;        /* armed on the way */
    struct moment until;            /* to be up */
    int endpoint_next;              /* of those that the locator knows */
    bool searched;                  /* for this connection: searching again is useless */
    bool repeated;                  /* for this connection: the latest one was silent */
    unsigned attempts;              /* that failed on the way to this connection */
    struct answer failure;          /* to be reported later, annotated */
    const char *password;
    char *file_password; /* read from the file again, after a refusal */
    bool reread;
    bool identify;
    struct redis_greeting greeting;
    struct moment greeting_sent;
    int64_t round_trip; /* ns, of the latest greeting */
    struct undo undo;
};

static void connect_next(struct redis_link *link);
static void search(struct redis_link *link);

void redis_batch_drop_replies(struct redis_batch *batch)
{
    for (size_t i = 0; i < batch->got; i++)
        freeReplyObject(batch->replies[i]);
    batch->got = 0;
}

static bool may_be_done(const struct redis_link *link)
{
    return link->batch->state == BATCH_SENT;
}

/* A host finishes what it was told last, and ends by itself. */
static void end_program(struct redis_link *link)
{
    if (link->program && link->phase == PHASE_DETACHED)
        helper_process_leave(link->program);
    else if (link->program)
        helper_process_stop(link->program);
    link->program = NULL;
}

void redis_link_close(struct redis_link *link)
{
    loop_disarm(link->loop, &link->timer);
    locator_stop(link->locator);
    conn_close(link->conn);
    end_program(link);
    link->phase = PHASE_DOWN;
}

/* -- whose an answer is ---------------------------------------------------------------------- */

/* Prints "user NAME: " if the server has refused what this user may not do. */
static void print_user(const struct redis_link *link, const struct answer *answer, char *out,
                       size_t size)
{
    const char *user = link->url->user ? link->url->user : "default";
    bool userless = link->url->record->program || link->phase == PHASE_LOCATING ||
                    strncmp(answer->said, "NOAUTH", 6) == 0 ||
                    strncmp(answer->said, "DENIED", 6) == 0;

    *out = '\0';
    if (answer->cause == CAUSE_DENIED && !userless)
        snprintf(out, size, "user %.40s: ", user);
}

/* Whether the server, or its Sentinels, ask for a password that rlock has kept no longer. */
static bool misses_password(const struct redis_link *link, const struct answer *answer)
{
    bool asked = link->phase == PHASE_LOCATING || answer->hint == HINT_PASSWORD_OR_USER ||
                 strncmp(answer->said, "NOAUTH", 6) == 0 ||
                 strncmp(answer->said, "WRONGPASS", 9) == 0;

    return answer->cause == CAUSE_DENIED && asked && store_lost_password(&link->address);
}

void redis_link_annotate(const struct redis_link *link, struct answer *answer)
{
    bool locating = link->phase == PHASE_LOCATING;
    const char *found = locating ? "" : locator_found(link->locator);
    bool reached = !locating && answer->cause != CAUSE_UNREACHABLE;
    char why[sizeof answer->text], user[64];

    memcpy(why, answer->text, sizeof why);
    print_user(link, answer, user, sizeof user);
    snprintf(answer->text, sizeof answer->text, "%s%.120s: %.60s%s%s%s",
             reached ? "" : "cannot reach ", link->name, found, *found ? ": " : "", user, why);
    if (answer->cause == CAUSE_UNREACHABLE && link->address.assumed)
        answer->hint = HINT_LOCAL;
    if (misses_password(link, answer))
        answer->hint = HINT_KEPT_PASSWORD;
}

static void describe_unreachable(const struct redis_link *link, const char *why,
                                 struct answer *answer)
{
    answer_fail(answer, CAUSE_UNREACHABLE, "%s", why);
    redis_link_annotate(link, answer);
}

/* -- the end of an attempt ------------------------------------------------------------------- */

static void fail(struct redis_link *link, const struct answer *why)
{
    struct answer failure = *why;

    redis_link_close(link);
    failure.verdict = VERDICT_UNKNOWN;
    link->events->failed(link->arg, &failure);
}

/* A server that may just be moving to another host is searched for again, as long as there is time;
 * but what may have been done is reported first. Of several failures, the one that says most is
 * reported. */
static void retry_or_fail(struct redis_link *link, const struct answer *why)
{
    struct moment now = loop_now(link->loop);
    bool first = link->attempts == 0;
    struct moment again = backoff_next(&link->attempts, now);

    if (!locator_fails_over(link->locator) || may_be_done(link)) {
        fail(link, why);
        return;
    }
    if (first)
        link->failure = *why;
    else
        store_note_failure(&link->failure, why);
    redis_link_close(link);
    link->phase = PHASE_PAUSING;
    loop_arm(link->loop, &link->timer, moment_min(link->until, again));
}

/* A program that could not even start sends words in place of replies: the system's, or the dynamic
 * linker's. */
static void describe_no_start(const struct redis_link *link, struct answer *answer)
{
    static const char linker[] = "error while loading shared libraries: ";
    const char *words = link->conn->foreign, *found = strstr(words, linker);

    answer_fail(answer, CAUSE_UNFIT, "the program %s cannot be started: %s",
                link->url->record->program, found ? found + strlen(linker) : words);
    redis_link_annotate(link, answer);
    answer->hint = HINT_LIBRARY;
}

/* Retrying does not help if the other end does not speak RESP. */
static void retry_or_fail_with(struct redis_link *link, const char *why)
{
    struct answer answer;

    describe_unreachable(link, why, &answer);
    if (link->program && stream_is_foreign(link->conn->stream)) {
        describe_no_start(link, &answer);
    } else if (stream_is_foreign(link->conn->stream)) {
        answer.cause = CAUSE_UNFIT;
        answer.hint = HINT_NONE;
    }
    retry_or_fail(link, &answer);
}

/* On another connection, as if there had been none. */
static void start_over(struct redis_link *link)
{
    redis_link_close(link);
    link->endpoint_next = 0;
    link->searched = false;
    connect_next(link);
}

/* The password may have been changed while a lock was held: the file is read again, once. */
static bool try_file_again(struct redis_link *link)
{
    if (link->url->password || !link->address.password_file || link->reread)
        return false;
    char *fresh = secret_read_again(link->address.password_file);
    if (!fresh)
        return false;
    link->reread = true;
    free(link->file_password);
    link->password = link->file_password = fresh;
    start_over(link);
    return true;
}

/* The server, or its Sentinels, were there, and refused. */
static void turn_away(struct redis_link *link, const struct answer *why)
{
    if (why->cause == CAUSE_DENIED && try_file_again(link))
        return;
    if (why->cause == CAUSE_NOT_READY)
        retry_or_fail(link, why);
    else
        fail(link, why);
}

static void leave_refused(struct redis_link *link)
{
    struct answer why = link->failure;

    turn_away(link, &why);
}

/* -- finding --------------------------------------------------------------------------------- */

static void located(void *arg, const struct answer *failure)
{
    struct redis_link *link = arg;

    if (!failure) {
        link->endpoint_next = 0;
        connect_next(link);
        return;
    }
    struct answer why = *failure;
    redis_link_annotate(link, &why);
    turn_away(link, &why);
}

static void search(struct redis_link *link)
{
    link->phase = PHASE_LOCATING;
    link->searched = true;
    loop_arm(link->loop, &link->timer, link->until);
    locator_search(link->locator, link->password, link->until, located, link);
}

static bool may_search(const struct redis_link *link)
{
    return !link->searched && locator_can_search(link->locator);
}

static void search_overdue(struct redis_link *link)
{
    retry_or_fail_with(link, locator_overdue(link->locator));
}

static void pause_over(struct redis_link *link)
{
    struct answer failure = link->failure;

    if (moment_reached(link->until, loop_now(link->loop)))
        fail(link, &failure);
    else
        search(link);
}

/* -- connecting ------------------------------------------------------------------------------ */

static bool has_next(const struct redis_link *link)
{
    const struct endpoint *endpoints;
    return link->endpoint_next < locator_known(link->locator, &endpoints);
}

/* Returns until when one of "ways" ways to the server may take. If the server may move, there is
 * one way more, as long as nothing may have been done. */
static struct moment share_of_time(const struct redis_link *link, int ways)
{
    struct moment now = loop_now(link->loop);

    ways += locator_fails_over(link->locator) && !may_be_done(link);
    return moment_plus(now, moment_until(now, link->until) / ways);
}

/* There was not even an attempt to connect: reports the failure when the loop turns. */
static void fail_soon(struct redis_link *link)
{
    link->phase = PHASE_FAILED;
    loop_arm(link->loop, &link->timer, loop_now(link->loop));
}

static void failed_soon(struct redis_link *link)
{
    struct answer failure = link->failure;

    retry_or_fail(link, &failure);
}

static void start_program(struct redis_link *link)
{
    const char *name = link->url->record->program;
    char path[4096];
    int fd;

    link->phase = PHASE_CONNECTING;
    end_program(link);
    if (!program_find(name, path, sizeof path)) {
        answer_fail(&link->failure, CAUSE_UNFIT, "the program %s is not installed", name);
        redis_link_annotate(link, &link->failure);
        link->failure.hint = HINT_DRIVER;
        fail_soon(link);
        return;
    }
    link->program = helper_process_execute(link->loop, path, &fd);
    if (link->program && stream_adopt(link->conn->stream, fd) == 0) {
        loop_arm(link->loop, &link->timer, link->until);
        return;
    }
    describe_unreachable(link, strerror(errno), &link->failure);
    fail_soon(link);
}

/* Tries the next address. */
static void connect_next(struct redis_link *link)
{
    const struct endpoint *endpoints;
    int count = locator_known(link->locator, &endpoints);

    if (link->url->record->program) {
        start_program(link);
        return;
    }
    link->phase = PHASE_CONNECTING;
    errno = 0;
    while (link->endpoint_next < count) {
        int left = count - link->endpoint_next;

        if (stream_open(link->conn->stream, &endpoints[link->endpoint_next++], link->tls,
                        locator_host(link->locator)) == 0) {
            loop_arm(link->loop, &link->timer, share_of_time(link, left));
            return;
        }
    }
    if (may_search(link)) {
        search(link);
        return;
    }
    describe_unreachable(link, strerror(errno), &link->failure);
    fail_soon(link);
}

static void connect_broken(struct redis_link *link, const char *why)
{
    if (has_next(link) || may_search(link))
        connect_next(link);
    else
        retry_or_fail_with(link, why);
}

static void connect_overdue(struct redis_link *link)
{
    if (has_next(link)) {
        conn_close(link->conn);
        connect_next(link);
    } else {
        retry_or_fail_with(link, stream_overdue(link->conn->stream));
    }
}

/* -- undoing --------------------------------------------------------------------------------- */

static void leave_undone(struct redis_link *link, bool undone)
{
    if (undone)
        link->batch->state = BATCH_WAITING;
    leave_refused(link);
}

/* All replies to the batch have come. The batch itself stays, for another server. */
static void undo(struct redis_link *link)
{
    struct strbuf bytes = {0};
    bool done = link->events->misdirected(link->arg, &bytes);

    redis_batch_drop_replies(link->batch);
    link->undo.expects = UNDO_COMMAND;
    if (bytes.size > 0)
        redis_link_send(link, &bytes);
    else
        leave_undone(link, !done);
    strbuf_free(&bytes);
}

/* A batch that came with a greeting that is refused is refused as well, unless other users may do
 * it: its own replies tell. */
static void hear_undoing(struct redis_link *link, redisReply *reply)
{
    struct redis_batch *batch = link->batch;
    bool undone = reply->type != REDIS_REPLY_ERROR;

    if (link->undo.expects == UNDO_BATCH) {
        batch->replies[batch->got++] = reply;
        if (batch->got == batch->wanted)
            undo(link);
        return;
    }
    freeReplyObject(reply);
    if (link->undo.expects == UNDO_COMMAND)
        leave_undone(link, undone);
    else if (--link->undo.greeting_left == 0)
        link->undo.expects = UNDO_BATCH;
}

static void undoing_broken(struct redis_link *link, const char *why)
{
    (void)why;
    leave_undone(link, redis_error_turns_away(link->failure.said));
}

/* -- greeting -------------------------------------------------------------------------------- */

/* A batch that went out may go out once more, on another connection: a server that is silent on one
 * may answer on the next. */
static bool may_repeat(const struct redis_link *link)
{
    return link->batch->ahead && link->batch->patience && !link->repeated;
}

static void connected(void *arg)
{
    struct redis_link *link = arg;
    struct redis_batch *batch = link->batch;
    struct moment now = loop_now(link->loop);
    struct strbuf first = {0};

    link->phase = PHASE_GREETING;
    link->greeting_sent = now;
    redis_batch_drop_replies(batch);
    if (batch->ahead) {
        batch->state = BATCH_SENT;
        batch->sent_at = now;
    }
    loop_arm(link->loop, &link->timer, share_of_time(link, 1 + may_repeat(link)));
    if (link->program)
        redis_greeting_begin_host(&link->greeting, &link->address, link->password,
                                  moment_until(now, link->until) / NS_PER_MS, &first);
    else
        redis_greeting_begin(&link->greeting, link->url, link->password, link->address.client,
                             link->identify, &first);
    if (batch->ahead)
        strbuf_add(&first, batch->commands.text, batch->commands.size);
    redis_link_send(link, &first);
    explicit_bzero(first.text, first.size);
    strbuf_free(&first);
}

static void moved(void *arg);

static void accepted(struct redis_link *link)
{
    link->phase = PHASE_UP;
    link->reread = false;
    link->round_trip = moment_until(link->greeting_sent, loop_now(link->loop));
    loop_disarm(link->loop, &link->timer);
    locator_watch(link->locator, link->password, moved, link);
    link->events->up(link->arg);
}

/* A server that may have moved is looked for elsewhere. */
static void explain_refusal(struct redis_link *link, struct answer *why)
{
    if (link->greeting.replica && locator_fails_over(link->locator))
        why->cause = CAUSE_NOT_READY;
    redis_link_annotate(link, why);
}

static void refused(struct redis_link *link)
{
    int left = redis_greeting_left(&link->greeting);

    explain_refusal(link, &link->failure);
    link->undo = (struct undo){left > 0 ? UNDO_GREETING : UNDO_BATCH, left};
    if (may_be_done(link))
        link->phase = PHASE_UNDOING;
    else
        leave_refused(link);
}

static void hear_greeting(struct redis_link *link, redisReply *reply)
{
    enum greeting_state state = redis_greeting_hear(&link->greeting, reply, &link->failure);

    freeReplyObject(reply);
    switch (state) {
    case GREETING_GOING: break;
    case GREETING_DONE: accepted(link); break;
    case GREETING_REFUSED: refused(link); break;
    }
}

static void greeting_overdue(struct redis_link *link)
{
    if (may_repeat(link)) {
        link->repeated = true;
        start_over(link);
    } else {
        retry_or_fail_with(link, stream_overdue(link->conn->stream));
    }
}

/* -- up, or detached ------------------------------------------------------------------------- */

static void hand_on(struct redis_link *link, redisReply *reply)
{
    link->events->reply(link->arg, reply);
}

static void lose(struct redis_link *link, const char *why)
{
    redis_link_close(link);
    link->events->lost(link->arg, why);
}

static void ignore(struct redis_link *link, redisReply *reply)
{
    (void)link;
    freeReplyObject(reply);
}

static void end(struct redis_link *link, const char *why)
{
    (void)why;
    redis_link_close(link);
}

/* -- the phases ------------------------------------------------------------------------------ */

/* The phases, and their reaction to each event; NULL: it cannot happen. */
static const struct {
    void (*overdue)(struct redis_link *link);
    void (*broken)(struct redis_link *link, const char *why);
    void (*reply)(struct redis_link *link, redisReply *reply);
} phases[] = {
    [PHASE_DOWN] = {NULL, NULL, NULL},
    [PHASE_LOCATING] = {search_overdue, NULL, NULL},
    [PHASE_CONNECTING] = {connect_overdue, connect_broken, NULL},
    [PHASE_GREETING] = {greeting_overdue, retry_or_fail_with, hear_greeting},
    [PHASE_UNDOING] = {leave_refused, undoing_broken, hear_undoing},
    [PHASE_FAILED] = {failed_soon, NULL, NULL},
    [PHASE_PAUSING] = {pause_over, NULL, NULL},
    [PHASE_UP] = {NULL, lose, hand_on},
    [PHASE_DETACHED] = {NULL, end, ignore},
};

static void timed_out(struct loop_timer *timer)
{
    struct redis_link *link = timer->owner;
    phases[link->phase].overdue(link);
}

static void replied(void *arg, redisReply *reply)
{
    struct redis_link *link = arg;
    phases[link->phase].reply(link, reply);
}

static void broken(void *arg, const char *why)
{
    struct redis_link *link = arg;
    phases[link->phase].broken(link, why);
}

static void moved(void *arg)
{
    broken(arg, "the sentinels name another master");
}

/* -- from outside ---------------------------------------------------------------------------- */

struct redis_link *redis_link_new(struct loop *loop, const struct store_address *address,
                                  struct redis_batch *batch, const struct redis_link_events *events,
                                  void *arg, char *fault, size_t size)
{
    static const struct conn_events conn_events = {connected, replied, broken};
    struct redis_link *link = mem_zeroed(sizeof *link);

    /* A literal would touch two pages, most of which a short run never needs. */
    link->loop = loop;
    link->address = *address;
    link->url = address->urls;
    link->batch = batch;
    link->events = events;
    link->arg = arg;
    link->timer = (struct loop_timer){.fire = timed_out, .owner = link};
    link->password = store_address_password(address);
    url_print(link->url, link->name, sizeof link->name);
    if (link->url->record->start_server)
        strcpy(link->name, "the local server");
    bool over_tls = link->url->tls && !link->url->record->program;
    if (over_tls)
        link->tls = tls_new(&link->address.tls, fault, size);
    if (!over_tls || link->tls)
        link->locator = locator_new(loop, link->url, link->tls, fault, size);
    if (!link->locator) {
        tls_discard(link->tls);
        free(link);
        return NULL;
    }
    link->conn = conn_new(loop, &conn_events, link);
    return link;
}

void redis_link_free(struct redis_link *link)
{
    redis_link_close(link);
    conn_free(link->conn);
    locator_free(link->locator);
    tls_discard(link->tls);
    free(link->file_password);
    free(link);
}

void redis_link_identify(struct redis_link *link)
{
    link->identify = true;
}

void redis_link_set_lease(struct redis_link *link, int64_t lease)
{
    locator_set_lease(link->locator, lease);
}

void redis_link_start(struct redis_link *link)
{
    struct moment now = loop_now(link->loop);

    link->until = moment_min(link->batch->until, moment_plus(now, link->address.connect_timeout));
    link->endpoint_next = 0;
    link->searched = link->repeated = false;
    link->attempts = 0;
    connect_next(link);
}

void redis_link_send(struct redis_link *link, const struct strbuf *bytes)
{
    stream_send(link->conn->stream, bytes->text, bytes->size);
}

bool redis_link_detach(struct redis_link *link)
{
    bool open = link->phase == PHASE_UP || (link->phase == PHASE_GREETING && may_be_done(link));

    loop_disarm(link->loop, &link->timer);
    link->phase = PHASE_DETACHED;
    if (!open)
        redis_link_close(link);
    return open;
}

bool redis_link_is_up(const struct redis_link *link)
{
    return link->phase == PHASE_UP;
}

bool redis_link_fails_over(const struct redis_link *link)
{
    return locator_fails_over(link->locator);
}

const struct redis_greeting *redis_link_greeting(const struct redis_link *link)
{
    return &link->greeting;
}

int64_t redis_link_round_trip(const struct redis_link *link)
{
    return link->round_trip;
}

bool redis_link_is_master(struct redis_link *link, const struct redisReply *role,
                          struct answer *answer)
{
    if (role->type == REDIS_REPLY_ERROR || redis_greeting_is_master(&link->greeting, role, answer))
        return true;
    explain_refusal(link, answer);
    return false;
}
