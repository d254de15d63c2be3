/* Start reading at zk_session_send(): it sends the batch if a connection is up, and otherwise
 * begins to connect. timed_out(), on_bytes() and on_broken() have what each phase does next. */
#include "store/zookeeper/session.h"

#include <errno.h>
#include <stdio.h>

#include "base/jitter.h"
#include "base/mem.h"
#include "net/stream.h"
#include "net/tls.h"

/* On the wire both are an int. */
#define TIMEOUT_MAX_MS (1 << 30)
#define XID_MAX        (1 << 30)
/* How soon a server that was full is tried again for a lock that is held. */
#define PLACE_NS (20 * NS_PER_MS)
/* A server that is full does not stay so long on a new connection that says nothing. */
#define LISTEN_NS (200 * NS_PER_MS)

/* Returns the server that is tried or used now. */
static const struct url_host *host_of(const struct zk_session *session)
{
    return &session->url->hosts[session->at];
}

/* Returns the addresses of that server. */
static struct resolver *resolver_of(const struct zk_session *session)
{
    return &session->resolvers[session->at];
}

/* Closes a connection. on_bytes() sees by the generation that the frames it was reading are
 * gone. */
static void close_link(struct zk_link *link)
{
    stream_close(link->stream);
    strbuf_cut(&link->in, 0);
    link->generation++;
}

/* Ends the connection, or the attempt to make one; the former connection stays. */
static void hang_up(struct zk_session *session)
{
    loop_disarm(session->loop, &session->timer);
    resolver_stop(resolver_of(session));
    close_link(session->link);
    session->phase = ZK_PHASE_DOWN;
}

/* Closes the former connection, as another one is up, or is wanted at its server. */
static void leave_former(struct zk_session *session)
{
    if (session->former)
        close_link(session->former);
    session->former = NULL;
}

/* Ends the connection and the former one. */
static void end_links(struct zk_session *session)
{
    hang_up(session);
    leave_former(session);
}

void zk_session_sign(const struct zk_session *session, struct answer *answer)
{
    bool reached = !cause_lacks_contact(answer->cause);
    bool denied = answer->cause == CAUSE_DENIED && session->url->user;

    answer_prepend(answer, "%s%s: %s%s%s", reached ? "" : "cannot reach ", session->name,
                   denied ? "user " : "", denied ? session->url->user : "", denied ? ": " : "");
    if (denied && store_lost_password(&session->address))
        answer->hint = HINT_KEPT_PASSWORD;
}

/* Returns an UNKNOWN answer, signed; of several servers, it says which one has failed. */
static struct answer failure_of(const struct zk_session *session, enum cause cause, const char *why)
{
    const struct url_host *host = host_of(session);
    struct answer answer;

    if (session->url->host_count > 1)
        answer_fail(&answer, cause, "%s:%d: %s", host->name, host->port, why);
    else
        answer_fail(&answer, cause, "%s", why);
    zk_session_sign(session, &answer);
    return answer;
}

/* -- the end of a batch ------------------------------------------------------------------------ */

void zk_session_drop_batch(struct zk_session *session)
{
    int32_t next = session->batch.xid + (int32_t)session->batch.count;

    strbuf_free(&session->batch.out);
    session->batch = (struct zk_batch){.xid = next < XID_MAX ? next : 1};
}

/* Frees the replies that have come so far, and the room for others. */
static void free_replies(struct zk_replies *replies)
{
    for (size_t i = 0; i < replies->got; i++)
        free(replies->all[i].frame);
    free(replies->all);
    *replies = (struct zk_replies){0};
}

/* Reports the end of the batch, which is over before that: "done" may send the next one. failure:
 * with ZK_FAILED, why; otherwise NULL. */
static void complete_batch(struct zk_session *session, enum zk_outcome outcome,
                           const struct answer *failure)
{
    struct zk_replies replies = session->replies;

    loop_disarm(session->loop, &session->timer);
    zk_session_drop_batch(session);
    session->replies = (struct zk_replies){0};
    session->busy = false;
    if (session->noticed) /* a watch has told of a change, perhaps of what was read before it */
        breaks_soon(&session->breaks);
    session->noticed = false;
    session->events->done(session->arg, outcome, replies.all, failure);
    free_replies(&replies);
}

/* Ends the connection, or the way to one, and the batch, if there is one, which may be done if it
 * went out and writes. */
static void fail_batch(struct zk_session *session, const struct answer *why)
{
    struct answer failure = *why;

    hang_up(session);
    /* The former connection is used again, if it is there: the session is open on it. */
    if (session->former) {
        session->link = session->former;
        session->at = session->former_at;
        session->former = NULL;
        session->phase = ZK_PHASE_UP;
    }
    if (!session->busy)
        return;
    failure.maybe_done = session->sent && session->writes;
    complete_batch(session, ZK_FAILED, &failure);
}

/* Fails the batch, as fail_batch(), for a cause and words of the server's. */
static void fail_because(struct zk_session *session, enum cause cause, const char *why)
{
    struct answer answer = failure_of(session, cause, why);

    fail_batch(session, &answer);
}

/* -- the way to a server ----------------------------------------------------------------------- */

/* Has the timer try the next address or server, as the caller must return first. */
static void look_soon(struct zk_session *session)
{
    session->phase = ZK_PHASE_NEXT;
    loop_arm(session->loop, &session->timer, loop_now(session->loop));
}

/* After a failure on the way to a server: tries the next address or server, as long as there are
 * any, and time; or else fails the batch. */
static void try_on_or_fail(struct zk_session *session, const struct answer *failure)
{
    bool over = moment_reached(session->until, loop_now(session->loop));

    hang_up(session);
    session->listens = false;
    store_note_failure(&session->failure, failure);
    if ((session->untried > 0 || session->ways > 0) && !over) {
        look_soon(session);
    } else if (session->insists && session->failure.full && !over) {
        /* All servers are full: gives up the former connection, whose place is free a little later,
         * and begins with its server. */
        size_t count = session->url->host_count;
        if (session->former) /* look_for_next() goes to the one behind */
            session->at = (session->former_at + count - 1) % count;
        leave_former(session);
        session->ways = count;
        session->phase = ZK_PHASE_NEXT;
        loop_arm(session->loop, &session->timer, moment_plus(loop_now(session->loop), PLACE_NS));
    } else {
        fail_batch(session, &session->failure);
    }
}

/* Does what try_on_or_fail() does, for a cause and words of the server's. */
static void try_on_or_fail_because(struct zk_session *session, enum cause cause, const char *why)
{
    struct answer failure = failure_of(session, cause, why);

    try_on_or_fail(session, &failure);
}

/* Returns when one of so many equal parts of the time from now to "until" is over. */
static struct moment part_of_time(const struct zk_session *session, struct moment until,
                                  size_t parts)
{
    struct moment now = loop_now(session->loop);
    int64_t left = moment_until(now, until);

    return moment_plus(now, left > 0 ? left / (int64_t)parts : 0);
}

/* Begins to connect to the server's address that is tried now (endpoint), until "give_up". */
static void open_address(struct zk_session *session)
{
    session->phase = ZK_PHASE_CONNECTING;
    loop_arm(session->loop, &session->timer, session->give_up);
    if (stream_open(session->link->stream, &resolver_of(session)->found[session->endpoint],
                    session->tls, host_of(session)->name) != 0)
        try_on_or_fail_because(session, cause_of_errno(errno), strerror(errno));
}

/* Tries another of the server's addresses, in turn, for its part of the time. */
static void try_next_address(struct zk_session *session)
{
    session->endpoint = session->turn++ % (unsigned)resolver_of(session)->count;
    session->give_up = part_of_time(session, session->leave, (size_t)session->untried);
    session->untried--;
    open_address(session);
}

/* The server's name was looked up: tries its addresses, or those known before where the look-up did
 * not succeed (count 0; -1: there is no such name). Without any, this way has failed. */
static void on_resolved(void *arg, int count, const char *fault)
{
    struct zk_session *session = arg;

    session->untried = resolver_of(session)->count;
    if (session->untried > 0) {
        try_next_address(session);
        return;
    }
    struct answer failure = failure_of(session, CAUSE_UNREACHABLE, fault);
    failure.nowhere = count < 0;
    failure.hint = failure.nowhere ? HINT_NAME : HINT_NONE;
    try_on_or_fail(session, &failure);
}

/* Looks up the next server's name. Where an address is known, half of the time is left to try
 * it. */
static void look_for_next(struct zk_session *session)
{
    session->phase = ZK_PHASE_SEARCHING;
    session->leave = part_of_time(session, session->until, session->ways);
    session->ways--;
    session->at = (session->at + 1) % session->url->host_count;
    const struct url_host *host = host_of(session);
    loop_arm(session->loop, &session->timer,
             part_of_time(session, session->leave, resolver_of(session)->count > 0 ? 2 : 1));
    if (!resolver_start(resolver_of(session), session->loop, host->name, host->port, on_resolved,
                        session))
        try_on_or_fail_because(session, cause_of_errno(errno), strerror(errno));
}

/* Sends the request that opens the session again, or begins one. The server counts the session's
 * timeout from this, so "opened" is when it is sent. */
static void say_first_words(struct zk_session *session)
{
    struct zk_link *link = session->link;
    struct strbuf out = {0};
    int64_t wish = session->wish / NS_PER_MS;

    session->phase = ZK_PHASE_OPENING;
    link->opened = loop_now(session->loop);
    zk_put_connect(&out, &session->identity,
                   (int32_t)(wish < TIMEOUT_MAX_MS ? wish : TIMEOUT_MAX_MS), session->zxid);
    stream_send(link->stream, out.text, out.size);
    strbuf_free(&out);
    loop_arm(session->loop, &session->timer, session->give_up);
}

/* The connection is made: opens the session on it. But where the server has reset one before
 * (listens), waits for a moment first: one that is full would do so again, and what it was sent
 * would be lost. */
static void on_connected(void *arg)
{
    const struct zk_link *link = arg;
    struct zk_session *session = link->session;
    struct moment heard = moment_plus(loop_now(session->loop), LISTEN_NS);

    if (!session->listens) {
        say_first_words(session);
        return;
    }
    session->phase = ZK_PHASE_LISTENING;
    loop_arm(session->loop, &session->timer, moment_min(heard, session->give_up));
}

/* -- the connection ---------------------------------------------------------------------------- */

/* Sends the batch, which may be done from now on. */
static void send_batch(struct zk_session *session)
{
    stream_send(session->link->stream, session->batch.out.text, session->batch.out.size);
    session->sent = true;
    session->writes = session->batch.writes;
    session->first = session->batch.xid;
    zk_session_drop_batch(session);
}

/* The server has ended the session, and with it all its nodes: forgets it, and says so. */
static void expire_session(struct zk_session *session)
{
    end_links(session);
    session->identity = (struct zk_identity){0};
    complete_batch(session, ZK_EXPIRED, NULL);
}

/* The session is open on this connection: tells who the user is, and sends the batch that waits. */
static void bring_up(struct zk_session *session)
{
    struct strbuf out = {0};

    session->phase = ZK_PHASE_UP;
    session->listens = false;
    session->opened = session->link->opened;
    leave_former(session);
    breaks_up(&session->breaks);
    loop_arm(session->loop, &session->timer, session->answer_by);
    if (session->url->user) {
        zk_put_digest(&out, session->url->user, session->password);
        stream_send(session->link->stream, out.text, out.size);
        strbuf_free(&out);
    }
    if (session->replies.wanted > 0)
        send_batch(session);
    else
        complete_batch(session, ZK_ANSWERED, NULL);
}

/* Takes the server's answer to the opening of the session: a new one, the same one again, or word
 * that it has expired, which is an identity of 0. */
static void hear_opened(struct zk_session *session, struct jute_in *in)
{
    struct zk_identity is = {0};
    int32_t timeout_ms;

    if (!zk_read_connected(in, &is, &timeout_ms)) {
        stream_refuse(session->link->stream, "what answers there is not a ZooKeeper server");
        return;
    }
    stream_trust(session->link->stream);
    if (is.id == 0 && session->identity.id == 0) {
        try_on_or_fail_because(session, CAUSE_NOT_READY, "the server begins no session");
    } else if (is.id == 0) {
        expire_session(session);
    } else if (session->identity.id && session->identity.id != is.id) {
        /* ClickHouse Keeper begins a new session where one cannot be opened again: that is
         * closed. */
        struct zk_batch batch = {.xid = 1};
        zk_close(&batch);
        stream_send(session->link->stream, batch.out.text, batch.out.size);
        strbuf_free(&batch.out);
        expire_session(session);
    } else {
        session->identity = is;
        session->timeout = timeout_ms * NS_PER_MS;
        bring_up(session);
    }
}

/* Tells the owner of the session that a node that is watched has changed, or may have. */
static void poke_listener(void *arg)
{
    struct zk_session *session = arg;

    session->events->poked(session->arg);
}

/* Takes the reply to the next request of the batch, and keeps a copy of its frame; the last one
 * completes the batch. */
static void hear_reply(struct zk_session *session, const struct zk_reply *heard,
                       const struct jute_in *frame)
{
    struct zk_replies *replies = &session->replies;
    size_t size = (size_t)(frame->end - frame->at);

    if (!session->busy || replies->got == replies->wanted ||
        heard->xid != session->first + (int32_t)replies->got) {
        stream_refuse(session->link->stream, "the server answers what it was not asked");
        return;
    }
    char *copy = memcpy(mem_zeroed(size + 1), frame->at, size);
    struct zk_reply *reply = &replies->all[replies->got++];
    *reply = *heard;
    reply->frame = copy;
    reply->body = (struct jute_in){copy + (heard->body.at - frame->at), copy + size, false};
    if (replies->got == replies->wanted)
        complete_batch(session, ZK_ANSWERED, NULL);
}

/* Takes a frame of a session that is up: an event of a watch, word on the user, or the reply to
 * the oldest request. */
static void hear_frame(struct zk_session *session, struct jute_in *frame)
{
    struct jute_in in = *frame;
    struct zk_reply reply;

    if (!zk_read_reply(&in, &reply)) {
        stream_refuse(session->link->stream, "what answers there is not a ZooKeeper server");
        return;
    }
    if (reply.zxid > session->zxid)
        session->zxid = reply.zxid;
    if (reply.xid == ZK_XID_EVENT && session->busy)
        session->noticed = true; /* it is not known which of the two is newer */
    else if (reply.xid == ZK_XID_EVENT)
        poke_listener(session);
    else if (reply.xid == ZK_XID_AUTH && reply.error != ZK_OK)
        fail_because(session, CAUSE_DENIED, "the server refuses the user");
    else if (reply.xid != ZK_XID_AUTH)
        hear_reply(session, &reply, frame);
}

/* Takes bytes of a connection, and each frame that is complete. */
static void on_bytes(void *arg, const char *bytes, size_t size)
{
    struct zk_link *link = arg;
    struct zk_session *session = link->session;
    unsigned generation = link->generation;
    struct jute_in frame;
    size_t done = 0;
    int64_t taken;

    strbuf_add(&link->in, bytes, size);
    /* The former connection hears only of what is watched: that is told later, and where it stays,
     * the next batch takes the frames that are left. */
    if (link == session->former) {
        session->noticed = true;
        return;
    }
    while ((taken = jute_frame(link->in.text + done, link->in.size - done, &frame)) > 0) {
        done += (size_t)taken;
        if (session->phase == ZK_PHASE_OPENING)
            hear_opened(session, &frame);
        else
            hear_frame(session, &frame);
        if (link->generation != generation)
            return;
    }
    strbuf_drop(&link->in, done);
    if (taken < 0)
        stream_refuse(link->stream, "what answers there is not a ZooKeeper server");
}

/* A connection has ended, and the phase tells what that means. */
static void on_broken(void *arg, const char *why)
{
    struct zk_link *link = arg;
    struct zk_session *session = link->session;
    if (link == session->former) {
        leave_former(session);
        return;
    }
    bool foreign = stream_is_foreign(link->stream);
    enum cause cause = foreign ? CAUSE_UNFIT : CAUSE_UNREACHABLE;
    /* A server without a majority ends each connection that says something, without a word. */
    bool mute = session->phase == ZK_PHASE_OPENING && !foreign;
    bool reset = session->phase != ZK_PHASE_UP && stream_was_reset(link->stream);
    bool crossed = mute && session->identity.id != 0; /* perhaps by another one's opening */

    if (session->phase == ZK_PHASE_LISTENING || (reset && session->phase != ZK_PHASE_OPENING)) {
        /* A server that takes no more clients ends each new connection unheard. */
        struct answer failure = failure_of(
            session, CAUSE_NOT_READY, "too many clients from here: it resets each new connection");
        failure.full = true;
        failure.hint = HINT_MAX_CLIENT_CNXNS;
        try_on_or_fail(session, &failure);
    } else if ((reset || crossed) && !session->listens) {
        /* Both a server that is full and one without a majority reset a connection with an unread
         * request on it. The former also does so where nothing was said. And a server on which two
         * connections open one session at once, as a release does beside its renewer, may end both:
         * listening lets the other one come to an end. */
        hang_up(session);
        session->listens = true;
        look_soon(session);
    } else if (session->phase != ZK_PHASE_UP) {
        try_on_or_fail_because(
            session, cause,
            mute ? "the server ends the connection: it has no majority, or speaks TLS" : why);
    } else if (session->busy) {
        fail_because(session, cause, why);
    } else {
        hang_up(session);
        breaks_down(&session->breaks);
    }
}

/* The one timer of the session: what it means depends on the phase. */
static void timed_out(struct loop_timer *timer)
{
    struct zk_session *session = timer->owner;

    if (session->phase == ZK_PHASE_UP) {
        fail_because(session, CAUSE_UNREACHABLE, "no answer in time");
    } else if (session->phase == ZK_PHASE_LISTENING) {
        say_first_words(session);
    } else if (session->phase == ZK_PHASE_NEXT && session->listens) {
        open_address(session);
    } else if (session->phase == ZK_PHASE_NEXT && session->untried > 0) {
        try_next_address(session);
    } else if (session->phase == ZK_PHASE_NEXT) {
        look_for_next(session);
    } else if (session->phase == ZK_PHASE_SEARCHING) {
        resolver_stop(resolver_of(session));
        on_resolved(session, 0, "looking up its name timed out");
    } else {
        try_on_or_fail_because(session, CAUSE_UNREACHABLE, stream_overdue(session->link->stream));
    }
}

/* -- from outside ------------------------------------------------------------------------------ */

struct zk_session *zk_session_new(struct loop *loop, const struct store_address *address,
                                  const struct zk_session_events *events, void *arg, char *fault,
                                  size_t size)
{
    static const struct stream_events stream_events = {on_connected, on_bytes, on_broken};
    struct zk_session *session = mem_zeroed(sizeof *session);

    *session = (struct zk_session){
        .loop = loop, .url = address->urls, .address = *address, .events = events, .arg = arg};
    session->timer = (struct loop_timer){.fire = timed_out, .owner = session};
    breaks_init(&session->breaks, loop, poke_listener, session);
    session->batch.xid = 1;
    session->password = store_address_password(address) ? store_address_password(address) : "";
    url_print(session->url, session->name, sizeof session->name);
    if (session->url->tls && !(session->tls = tls_new(&session->address.tls, fault, size))) {
        free(session);
        return NULL;
    }
    session->at = jitter() % session->url->host_count; /* so that clients spread over the servers */
    session->resolvers = mem_zeroed(session->url->host_count * sizeof *session->resolvers);
    session->link = session->links;
    for (size_t i = 0; i < 2; i++)
        session->links[i] = (struct zk_link){
            .session = session,
            .stream = stream_new(loop, &stream_events, &session->links[i]),
        };
    return session;
}

void zk_session_free(struct zk_session *session)
{
    end_links(session);
    breaks_cancel(&session->breaks);
    for (size_t i = 0; i < 2; i++) {
        stream_free(session->links[i].stream);
        strbuf_free(&session->links[i].in);
    }
    tls_discard(session->tls);
    free(session->resolvers);
    strbuf_free(&session->batch.out);
    free_replies(&session->replies);
    free(session);
}

void zk_session_wish(struct zk_session *session, int64_t timeout)
{
    session->wish = timeout > ZK_TIMEOUT_LEAST ? timeout : ZK_TIMEOUT_LEAST;
}

void zk_session_send(struct zk_session *session, enum zk_way way, struct moment until)
{
    breaks_cancel(&session->breaks); /* this batch finds out */
    if (way != ZK_ANY_CONNECTION && session->phase == ZK_PHASE_UP) {
        /* The way to another connection begins beside the one that is up. */
        session->former = session->link;
        session->former_at = session->at;
        session->link = &session->links[session->link == &session->links[0] ? 1 : 0];
        session->phase = ZK_PHASE_DOWN;
    }
    session->insists = way == ZK_NEW_BY_ALL_MEANS;
    session->busy = true;
    session->sent = session->noticed = false;
    session->answer_by = until;
    session->replies.wanted = session->batch.count;
    session->replies.all = mem_zeroed((session->batch.count + 1) * sizeof(struct zk_reply));
    if (session->phase == ZK_PHASE_UP) {
        loop_arm(session->loop, &session->timer, until);
        send_batch(session);
    } else {
        struct moment now = loop_now(session->loop);
        session->until =
            moment_min(session->answer_by, moment_plus(now, session->address.connect_timeout));
        session->ways = session->url->host_count;
        session->untried = 0;
        session->listens = false;
        session->failure.cause = CAUSE_NONE;
        look_soon(session);
    }
}

bool zk_session_send_nowait(struct zk_session *session)
{
    bool up = session->phase == ZK_PHASE_UP;
    bool sends = up && session->batch.count > 0;

    loop_disarm(session->loop, &session->timer);
    breaks_cancel(&session->breaks);
    session->busy = false;
    free_replies(&session->replies);
    if (sends)
        send_batch(session);
    else if (!up)
        hang_up(session);
    leave_former(session);
    zk_session_drop_batch(session);
    return sends;
}

void zk_session_take(struct zk_session *session, const struct zk_identity *identity)
{
    end_links(session);
    session->identity = *identity;
}
