/* One Redis server as a store: each operation is a call of a script, which is sent again in another
 * way if the reply says that it did not do. */
#include "store/redis/store.h"
#include "base/mem.h"
#include "base/strbuf.h"
#include "net/loop.h"
#include "rules/answer.h"
#include "rules/arguments.h"
#include "rules/error.h"
#include "rules/handover.h"
#include "rules/latch.h"
#include "rules/reply.h"
#include "rules/scripts.h"
#include "store/redis/replicas.h"
#include "store/redis/session.h"
#include "store/redis/survey.h"

#include <hiredis/hiredis.h>
#include <inttypes.h>
#include <stdio.h>

/* How often to try if the server does not grant a channel for wake-ups. */
#define POLL_NS (500 * NS_PER_MS)
/* How often to try while another program holds the lock: most wake no waiter. */
#define POLL_FOREIGN_NS (200 * NS_PER_MS)
/* How long a server that has just answered the greeting may take for a request about a lock or a
 * latch: asking again is harmless, and tells what became of the first request. */
#define REQUEST_NS (2 * NS_PER_SEC)
/* A program of the user's may go far, by ssh and the like, for each request of two or more. */
#define DRIVEN_REQUEST_NS (10 * NS_PER_SEC)
/* A host may have to wait until its database has ended the transaction of a stopped client, which
 * takes 2 s. */
#define HOST_REQUEST_NS (4 * NS_PER_SEC)
/* How long a release waits for the replicas. They get it anyway; a lock that they keep ends with
 * its lease. */
#define RELEASE_REPLICAS_NS (200 * NS_PER_MS)

/* The share of the lease that a renewal may take, as in lease_request_timeout(). */
#define TRIP_SHARE 6

/* How the call goes out. */
enum form {
    FORM_ALONE,     /* with WAIT behind it, if it has to be on replicas */
    FORM_LISTENING, /* in a transaction with SUBSCRIBE; nothing in it can wait for replicas */
    FORM_BOTH,      /* by itself, and then once more, listening */
};

/* The consequence of the replies to a call: it is done, or must be sent again in another way. The
 * ways are bits. */
enum resend {
    RESEND_NOT = 0,
    RESEND_WHOLE = 1,            /* with the script itself */
    RESEND_PLAIN = 2,            /* without a channel */
    RESEND_WITH_CLOCK = 4,       /* with the server's clock, which has been read now: once */
    RESEND_FOR_REPLICAS = 8,     /* granted; the same once more, to wait for replicas */
    RESEND_WITH_MIRRORS = 16,    /* with keys of other programs, which it has told */
    RESEND_ON_OWN_CHANNELS = 32, /* without that of another program */
};

struct redis_store {
    struct store base;
    struct loop *loop;
    struct redis_session *session;
    char *prefix;
    int db;
    struct redis_terms terms;
    char *marker, *pauses; /* which the terms refer to; NULL */
    struct redis_replicas replicas;
    bool in_cluster;
    bool is_driven;              /* its host has a program of the user's move its records */
    char moved[300];             /* store_redis_moved() */
    struct member_report report; /* as one of a quorum */

    /* Known from one operation to the next. */
    bool forbids_channels; /* the server does not let us SUBSCRIBE */
    bool forbids_foreign;  /* or not to another program's channel */
    bool behind_foreign;   /* it may be first, and wait for another program's lock */
    bool knows_renewal;    /* the server has executed that script on this connection */
    char *places;          /* in the queues, as last told; NULL: none */
    char *places_at;       /* the first of those keys */
    struct loop_timer poll;
    struct handover handover; /* the offer of the latest acquisition */
    /* In a Cluster, the channels that the latest renewals of an owner's keys have listened to. */
    char *channels[LOCK_KEYS_MAX];
    size_t channel_count;
    int64_t lease;   /* ns: of the latest acquisition */
    int64_t attempt; /* the number of the latest call */

    /* The operation under way, base.operation. */
    struct moment until; /* for the call or the part of a survey that is under way */
    struct redis_call call;
    bool listen;
    bool offers;        /* an acquisition, to take the lock from a message */
    bool asking;        /* of a Cluster's node that is about to get the slot */
    bool in_time;       /* must not be done after "until" */
    bool unbounded;     /* but may be: it went out when the server had not told its clock */
    enum form form;     /* in which the call was sent last */
    bool hears_foreign; /* its last channel is another program's */
    unsigned resent;    /* in which ways */
    bool by_digest;     /* a release went out so, and its answer is not awaited */
    bool twice; /* it was sent on a second connection, and may be done on the first as well */
    struct redis_survey *survey;
    int64_t part_time;          /* ns for each batch of it */
    struct redis_survey *marks; /* of a pause of a GLOB: the locks to mark next */
    bool listed;                /* the GLOB was paused before, or is now */
};

static struct redis_store *redis_store_of(struct store *base)
{
    return (struct redis_store *)(void *)base;
}

/* -- the call under way ----------------------------------------------------------------------- */

/* Keeps the owner's places in the queues of the call's keys, in the server's words, which it gets
 * back with the next call; they are copied. NULL: there are none. */
static void keep_places(struct redis_store *store, const char *places)
{
    free(store->places);
    free(store->places_at);
    store->places = places ? mem_strdup(places) : NULL;
    store->places_at = places ? mem_strdup(store->call.keys[0]) : NULL;
}

/* Adds ASKING, where the node of a Cluster is only about to get the slot. It counts for the next
 * command, or for a whole transaction. */
static void add_asking(struct redis_store *store)
{
    if (store->asking)
        REDIS_SESSION_ADD(store->session, "ASKING");
}

/* Adds the call to the batch. Each sending of a numbered one has a number of its own, higher than
 * all before (attempts.lua): this host's clock in us, as a process that continues for this one
 * reads it later. */
static void add_call(struct redis_store *store, struct redis_call *call)
{
    int64_t now = loop_now(store->loop).ns / NS_PER_US;
    char number[24];

    if (call->numbered) {
        store->attempt = now > store->attempt ? now : store->attempt + 1;
        snprintf(number, sizeof number, "%" PRId64, store->attempt);
        redis_call_set(call, "attempt", number);
    }
    redis_session_add_call(store->session, call);
}

/* Whether the call, if it is done, makes an entry that a release must remove. */
static bool makes_entry(const struct redis_call *call)
{
    return call->script == &script_acquire || call->script == &script_renew;
}

/* Whether a lesson is due, as the server may lack the script of a release: it lacked that of the
 * call. Another process may have to tell it to release, and end: then the server handles only the
 * 16 KB that it has read when it finds the connection closed, and the script is longer. */
static bool needs_lesson(const struct redis_store *store)
{
    return store->call.whole && makes_entry(&store->call);
}

/* Adds a release of nothing, if that is due, which teaches the server its script. It follows the
 * call: a quorum's member that has run another script before counts as one that has forgotten the
 * quorum (member.lua). */
static void add_lesson(struct redis_store *store)
{
    const struct redis_call nothing = {.script = &script_release, .whole = true};

    if (needs_lesson(store))
        redis_session_add_call(store->session, &nothing);
}

static void forget_channels(struct redis_store *store)
{
    while (store->channel_count > 0)
        free(store->channels[--store->channel_count]);
}

/* Adds a channel to those that the next batch listens to; NULL: none. Takes the name over. Returns
 * whether it was added: it was not there yet, and there was room. */
static bool add_channel(struct redis_store *store, char *channel)
{
    bool known = !channel || store->channel_count == LOCK_KEYS_MAX;

    for (size_t i = 0; i < store->channel_count && !known; i++)
        known = strcmp(store->channels[i], channel) == 0;
    if (known)
        free(channel);
    else
        store->channels[store->channel_count++] = channel;
    return !known;
}

/* Returns how many replies there are to what add_listening() adds. */
static size_t replies_listening(const struct redis_store *store)
{
    size_t lessons = needs_lesson(store) ? 1 : 0;

    return 3 + lessons + store->channel_count; /* 3: MULTI, the call, EXEC */
}

/* Adds the call and the subscription in one transaction: a wake-up that is published right after
 * the call is not missed. */
static void add_listening(struct redis_store *store)
{
    /* A Cluster's node renews one key after the other. A batch ends the subscriptions of the one
     * before, so it listens to those channels as well. */
    if (!store->in_cluster || store->call.script != &script_renew)
        forget_channels(store);
    for (size_t i = 0; i < store->call.key_count; i++) {
        const char *own = redis_call_get(&store->call, "owner");
        const char *owner = own ? own : "latch"; /* as the call of a latch has no owner */
        add_channel(store, strbuf_print("%s:%s", store->call.keys[i], owner));
    }
    /* The first waiter behind another program's lock hears of its end as that program's waiters do:
     * one that asks now and then would hardly ever come before them. */
    const char *mirror = redis_call_get(&store->call, "mirror");
    bool wants_foreign = mirror && store->behind_foreign && !store->forbids_foreign;
    store->hears_foreign = wants_foreign && add_channel(store, redis_mirror_channel(mirror));
    REDIS_SESSION_ADD(store->session, "MULTI");
    add_call(store, &store->call);
    add_lesson(store);
    /* One channel a command: within EXEC, each command has one reply. */
    for (size_t i = 0; i < store->channel_count; i++)
        REDIS_SESSION_ADD(store->session, "SUBSCRIBE", store->channels[i]);
    REDIS_SESSION_ADD(store->session, "EXEC");
}

/* Whether the call must reach replicas: those about locks, if the user requires it; not latches. */
static bool is_replicated(const struct redis_store *store)
{
    return store->replicas.rule != REPLICAS_NONE &&
           (makes_entry(&store->call) || store->call.script == &script_release);
}

/* Whether the call may be sent and done twice: so another connection is tried soon if there is no
 * answer. */
static bool is_repeatable(const struct redis_store *store)
{
    return store->call.script == &script_acquire || store->call.script == &script_latch;
}

/* Whether the call goes out without a subscription: the server forbids all of them, or could not
 * take this one. */
static bool may_not_listen(const struct redis_store *store)
{
    return store->forbids_channels || store->resent & RESEND_PLAIN;
}

/* Returns how the call goes out. Within a transaction no command waits for replicas: so a grant
 * that has to be on them is asked for once more, by itself (RESEND_FOR_REPLICAS), and a renewal
 * goes out by itself first. */
static enum form choose_form(const struct redis_store *store)
{
    if (!store->listen || may_not_listen(store) || store->resent & RESEND_FOR_REPLICAS)
        return FORM_ALONE;
    return is_replicated(store) && store->call.script == &script_renew ? FORM_BOTH : FORM_LISTENING;
}

/* Whether the call goes out with the greeting of a new connection. Not if it depends on the replies
 * to the greeting: which member of a quorum the server is, how many replicas it has. And not to a
 * node of a Cluster: another node can be asked only as long as nothing may have been done. */
static bool goes_ahead(const struct redis_store *store)
{
    /* A lock under which nothing was done need not be gone from replicas. */
    const struct operation *operation = &store->base.operation;
    bool unused = operation->verb == VERB_RELEASE && (operation->release->end.how == LOCK_UNUSED ||
                                                      operation->release->end.how == LOCK_REFUSED);
    bool depends = (is_replicated(store) && !unused) || store->call.names_server;
    return store->call.ahead && choose_form(store) == FORM_ALONE && !depends &&
           !store->in_cluster && !redis_session_is_up(store->session);
}

/* Adds the call, and behind it the WAIT for the replicas, if it needs any. That takes at most half
 * of the time that is left, so that an answer comes before the connection is given up. Returns how
 * many replies there will be. */
static size_t add_alone(struct redis_store *store, struct moment now)
{
    int64_t ns = moment_until(now, store->until) / 2;

    add_call(store, &store->call);
    if (store->call.script == &script_release && ns > RELEASE_REPLICAS_NS)
        ns = RELEASE_REPLICAS_NS;
    return is_replicated(store) ? 1 + redis_replicas_add(&store->replicas, store->session, ns) : 1;
}

/* Returns how long to wait for a reply, in ns: at least two round trips. */
static int64_t request_time(const struct redis_store *store)
{
    int64_t trips = 2 * redis_session_round_trip(store->session);
    int64_t least = store->is_driven        ? DRIVEN_REQUEST_NS
                    : store->terms.has_host ? HOST_REQUEST_NS
                                            : REQUEST_NS;
    return trips > least ? trips : least;
}

/* Has the server not do the call after "until", when the caller does not wait any more: by the
 * server's clock. Before a first connection this host's clock is a guess at that: if it is late,
 * the call comes back STALE and costs another trip; if it is early, it bounds less. A user who may
 * not ask for the clock has no bound. */
static void set_not_after(struct redis_store *store, struct moment now)
{
    bool up = redis_session_is_up(store->session);
    int64_t clock = redis_session_clock(store->session, now); /* 0: not told */
    int64_t left = moment_until(now, store->until) / NS_PER_MS;
    char not_after[24];

    store->unbounded |= !up || !clock;
    if (!up && !clock)
        clock = clock_wall() / NS_PER_MS;
    snprintf(not_after, sizeof not_after, "%" PRId64, clock + left);
    redis_call_set(&store->call, "not_after", clock ? not_after : NULL);
}

/* Sets those arguments of the call that are known only when it is sent: until when it may be done,
 * the server, the places that the server told, and a token for a grant by message. */
static void complete_call(struct redis_store *store, struct moment now)
{
    if (store->in_time)
        set_not_after(store, now);
    if (store->call.names_server)
        redis_call_set(&store->call, "server", store->report.server);
    if (store->call.script == &script_acquire) {
        bool of_this_key = store->places && strcmp(store->places_at, store->call.keys[0]) == 0;
        redis_call_set(&store->call, "places", of_this_key ? store->places : NULL);
    }
    if (store->offers) {
        /* Each sending of the call has a token of its own: one that was not answered may still be
         * done. */
        if (!handover_offer(&store->handover, now))
            store->offers = false;
        redis_call_set(&store->call, "accept_by_message", store->handover.token);
    }
    /* A waiter that may miss the message that its turn is near asks often. */
    if (may_not_listen(store))
        redis_call_set(&store->call, "far_ttl", NULL);
}

/* Sends the call on the connection that is up, in the form that fits (choose_form()): with a
 * subscription, without one, or both. */
static void send_call(struct redis_store *store)
{
    struct moment now = loop_now(store->loop);
    size_t replies = store->asking ? 1 : 0, channels = 0;

    if (is_repeatable(store))
        store->until = moment_min(store->until, moment_plus(now, request_time(store)));
    store->report.sent = true;
    complete_call(store, now);
    add_asking(store);
    store->form = choose_form(store);
    if (store->form != FORM_LISTENING)
        replies += add_alone(store, now);
    if (store->form == FORM_ALONE) {
        add_lesson(store);
        replies += needs_lesson(store) ? 1 : 0;
    } else {
        add_listening(store);
        replies += replies_listening(store);
        channels = store->channel_count;
    }
    redis_session_send(store->session, replies, channels, store->until);
}

/* Frees what the operation has, and sets back what is only its own. */
static void drop_operation(struct redis_store *store)
{
    redis_call_drop(&store->call);
    redis_survey_free(store->survey);
    redis_survey_free(store->marks);
    store->survey = store->marks = NULL;
    store->listed = false;
    store->listen = store->asking = store->offers = store->twice = false;
    store->in_time = store->unbounded = false;
    store->form = FORM_ALONE;
    store->resent = 0;
}

/* Ends the operation with the answer, in which it notes what may be done all the same, as a request
 * was sent again. */
static void finish_operation(struct redis_store *store, struct answer *answer)
{
    bool by_error =
        answer->said[0] && redis_session_is_up(store->session) && !store->terms.has_host;

    /* A server that reports an error may have done the batch all the same, and the connection may
     * listen now: it is of no use any more. */
    if (redis_error_is_senseless(answer) ||
        (answer->verdict == VERDICT_UNKNOWN && answer->maybe_done && by_error))
        redis_session_close(store->session);
    answer->maybe_done |= answer->verdict == VERDICT_UNKNOWN && store->resent & RESEND_FOR_REPLICAS;
    answer->maybe_done |= store->twice && store->call.script == &script_acquire;
    answer->any_time = answer->maybe_done && store->unbounded;
    drop_operation(store);
    store->report.sent = false;
    store->base.operation.done(store->base.operation.arg, answer);
}

static bool is_error(const redisReply *reply)
{
    return reply->type == REDIS_REPLY_ERROR;
}

/* Judges the replies to a transaction (add_listening()). Returns in which other way it must be
 * sent: without what the server refused of it, which is noted for the next calls. Otherwise
 * RESEND_NOT, and *found is the script's own reply, or the error that says why it was not run. */
static enum resend judge_transaction(struct redis_store *store, redisReply *const *replies,
                                     size_t count, const redisReply **found)
{
    const redisReply *multi = replies[0], *call = replies[1], *exec = replies[count - 1];
    size_t refused = 0; /* channels */

    if (!is_error(exec) && exec->elements == count - 2) { /* all but MULTI and EXEC */
        *found = exec->element[0];
        return RESEND_NOT;
    }
    *found = is_error(multi) ? multi : is_error(call) ? call : exec;
    if (is_error(multi))
        return RESEND_NOT;
    /* A full server queues nothing for EXEC, but runs the script that needs no memory. */
    if (is_error(call))
        return redis_error_class(call->str) == REDIS_ERROR_UNFIT ? RESEND_PLAIN : RESEND_NOT;
    for (size_t i = 2; i < count - 1; i++)
        refused += is_error(replies[i]);
    if (refused == 0)
        return RESEND_NOT;
    store->forbids_foreign = store->hears_foreign && refused == 1 && is_error(replies[count - 2]);
    store->forbids_channels = !store->forbids_foreign;
    return store->forbids_channels ? RESEND_PLAIN : RESEND_ON_OWN_CHANNELS;
}

/* Reads the script's reply as an answer, which points into *extra and into the reply. A reply that
 * another script would give (redis_answer_belongs()) makes a senseless answer. */
static void read_reply(struct redis_store *store, const redisReply *reply, struct answer *answer,
                       struct redis_extra *extra)
{
    const char *word = reply->type == REDIS_REPLY_ARRAY ? redis_reply_string(reply, 0) : NULL;

    *extra = (struct redis_extra){0};
    if (store->call.script == &script_latch && !(word && strcmp(word, "STALE") == 0)) {
        const struct latch_request *request = store->base.operation.latch;
        redis_latch_answer(reply, request->each, request->each_arg, answer, &extra->now_ms);
        return;
    }
    redis_answer_script(reply, answer, extra);
    if (extra->word && !redis_answer_belongs(&store->call, extra)) {
        redis_error_senseless(answer);
        *extra = (struct redis_extra){0};
    }
}

/* Ends the operation with the answer to its call, which is not sent again. A waiter that hears no
 * wake-up will ask again after a while. The pause of a GLOB continues with the locks. */
static void finish_call(struct redis_store *store, struct answer *answer)
{
    if (store->marks && (answer->verdict == VERDICT_GRANTED || answer->cause == CAUSE_ABSENT)) {
        /* The pause of the GLOB is stored, or ended, so no lock that is new from now on is missed:
         * the existing ones are marked next. So they are where there was no pause to end (ABSENT):
         * a command that ended it may have died half-way. */
        store->listed = answer->verdict == VERDICT_GRANTED;
        store->survey = store->marks;
        store->marks = NULL;
        redis_call_drop(&store->call);
        store->until = moment_plus(loop_now(store->loop), store->part_time);
        redis_survey_ask(store->survey, store->until);
        return;
    }
    if (answer->said[0] && answer->verdict == VERDICT_UNKNOWN)
        redis_session_annotate(store->session, answer);
    answer->granted.from = redis_session_sent_at(store->session);
    bool could_listen =
        answer->verdict == VERDICT_GRANTED && makes_entry(&store->call) && !store->forbids_channels;
    /* The answer of FORM_BOTH has it from finish_behind(). */
    if (!could_listen || store->form != FORM_BOTH)
        answer->granted.not_listening = could_listen && store->form == FORM_ALONE;
    store->behind_foreign = answer->refused.foreign && answer->refused.position == 1;
    /* ns until a waiter must try again without a wake-up; 0: wake-ups suffice, or the calls that
     * keep its place. */
    int64_t poll = may_not_listen(store) ? POLL_NS : 0;
    if (store->behind_foreign)
        poll = POLL_FOREIGN_NS;
    else if (store->is_driven)
        poll = redis_session_greeting(store->session)->poll_ms * NS_PER_MS;
    /* A waiter listens for a wake-up, not for requests to release the lock. */
    if (store->listen && answer->verdict != VERDICT_GRANTED &&
        store->call.script != &script_renew && poll > 0)
        loop_arm(store->loop, &store->poll, moment_plus(loop_now(store->loop), poll));
    finish_operation(store, answer);
}

/* Finishes a renewal that was sent twice in one batch (FORM_BOTH): without listening, and behind
 * that once more, listening, as only that reply tells who has asked for the lock in between.
 * replies: to the second one; renewed: the answer to the first, a grant. noinline: in its caller it
 * would make each call take a page more of the stack. */
__attribute__((noinline)) static void
finish_behind(struct redis_store *store, redisReply *const *replies, struct answer *renewed)
{
    struct answer answer = {.verdict = VERDICT_UNKNOWN};
    const redisReply *reply;
    struct redis_extra extra;

    if (judge_transaction(store, replies, replies_listening(store), &reply) == RESEND_NOT)
        read_reply(store, reply, &answer, &extra);
    renewed->granted.not_listening = answer.verdict != VERDICT_GRANTED;
    finish_call(store, answer.verdict == VERDICT_REFUSED ? &answer : renewed);
}

/* Adds the mirrors that an answer names to the keys of the call. Returns whether any was new. */
static bool add_mirrors(struct redis_call *call, const redisReply *mirrors)
{
    bool any = false;

    for (size_t i = 0; mirrors && i < mirrors->elements; i++) {
        const char *key = redis_reply_string(mirrors, i);
        any |= key && redis_call_add_mirror(call, key);
    }
    return any;
}

/* Whether a grant must be asked for again, as replicas have to be waited for yet: the same request
 * again changes nothing else. If too few have it in the end, *granted becomes UNKNOWN instead.
 * replies: that to the call, and behind it those to WAIT. */
static bool lacks_replicas(struct redis_store *store, redisReply *const *replies,
                           struct answer *granted)
{
    return store->call.script != &script_release && is_replicated(store) &&
           (store->form == FORM_LISTENING ||
            redis_replicas_hear(&store->replicas, replies + 1, granted) == REPLICAS_MORE);
}

/* Reads the replies to the call. Returns in which way it must be sent again; RESEND_NOT: it need
 * not, and *answer is set, which points into *extra. */
static enum resend judge_call(struct redis_store *store, redisReply *const *replies, size_t count,
                              struct answer *answer, struct redis_extra *extra)
{
    const redisReply *reply = replies[0];
    enum resend resend = store->form == FORM_LISTENING
                             ? judge_transaction(store, replies, count, &reply)
                             : RESEND_NOT;

    if (resend != RESEND_NOT)
        return resend;
    /* The server does not know the script by its digest, and has not been sent it as a whole. */
    if (is_error(reply) && !store->call.whole &&
        redis_error_class(reply->str) == REDIS_ERROR_NOSCRIPT)
        return RESEND_WHOLE;
    store->knows_renewal |= store->call.script == &script_renew && !is_error(reply);
    read_reply(store, reply, answer, extra);
    store->report.seniority = extra->seniority;
    if (extra->now_ms)
        redis_session_set_clock(store->session, extra->now_ms);
    if (extra->word && strcmp(extra->word, "STALE") == 0 && !(store->resent & RESEND_WITH_CLOCK) &&
        !moment_reached(store->until, loop_now(store->loop)))
        return RESEND_WITH_CLOCK;
    if (add_mirrors(&store->call, extra->mirrors))
        return RESEND_WITH_MIRRORS;
    if (store->call.script == &script_acquire && answer->verdict == VERDICT_REFUSED) {
        keep_places(store, extra->places);
        store->handover.open = store->offers && store->form == FORM_LISTENING;
    }
    if (answer->verdict == VERDICT_GRANTED && lacks_replicas(store, replies, answer))
        return RESEND_FOR_REPLICAS;
    return RESEND_NOT;
}

/* Takes the replies to the call: sends it again in another way, or finishes the operation. */
static void hear_call(struct redis_store *store, redisReply *const *replies, size_t count)
{
    struct answer answer;
    struct redis_extra extra;
    enum resend resend = judge_call(store, replies, count, &answer, &extra);

    store->resent |= resend;
    store->call.whole |= resend == RESEND_WHOLE;
    if (resend != RESEND_NOT) {
        send_call(store);
        return;
    }
    if (store->form == FORM_BOTH && answer.verdict == VERDICT_GRANTED)
        finish_behind(store, replies + count - replies_listening(store), &answer);
    else
        finish_call(store, &answer);
}

/* -- operations ------------------------------------------------------------------------------- */

/* Whether the survey belongs to the pause of a GLOB: it marks locks, in place of reporting them. */
static bool is_marking(const struct redis_store *store)
{
    return store->base.operation.verb == VERB_ADJUST;
}

/* Takes the replies to a part of a survey; asks for the next part, or finishes. */
static void hear_survey(struct redis_store *store, struct redisReply *const *replies, size_t count)
{
    struct answer answer = {.verdict = VERDICT_GRANTED};

    if (!redis_survey_hear(store->survey, replies, count, &answer)) {
        if (answer.said[0] && answer.verdict == VERDICT_UNKNOWN)
            redis_session_annotate(store->session, &answer);
        finish_operation(store, &answer);
        return;
    }
    answer = (struct answer){.verdict = VERDICT_GRANTED};
    store->until = moment_plus(loop_now(store->loop), store->part_time);
    if (redis_survey_ask(store->survey, store->until))
        return;
    /* The end of a GLOB's pause that was not there, and of which no lock had a mark. */
    if (is_marking(store) && !store->listed && !redis_survey_has_marked(store->survey))
        answer = (struct answer){.verdict = VERDICT_REFUSED, .cause = CAUSE_ABSENT};
    finish_operation(store, &answer);
}

/* Judges the replies of a wrong server to a batch (events->misdirected). Returns whether it has
 * done what was asked for, and adds a release to an acquisition that got a lock or a place. What
 * other calls have done there stays. */
static bool on_misdirected(void *arg, struct redisReply *const *replies, size_t count)
{
    struct redis_store *store = arg;
    const redisReply *reply = replies[count - 1];
    struct answer answer;
    struct redis_extra extra;

    if (store->survey || is_error(reply)) /* a survey changes nothing */
        return false;
    if (store->call.script != &script_acquire)
        return true;
    read_reply(store, reply, &answer, &extra);
    if (answer.verdict == VERDICT_REFUSED && !extra.places)
        return false;
    struct redis_call call = {.script = NULL};
    redis_call_give_back(&call, &store->call);
    add_call(store, &call);
    redis_call_drop(&call);
    return true;
}

/* The session has connected, so the call goes out. But an acquisition that cannot count for lack of
 * replicas is not sent and fails: the next connection counts them anew. In a Cluster it is sent all
 * the same, as the node must first say whether it has the slot. */
static void on_connected(struct redis_store *store)
{
    struct answer answer;

    if (store->call.script != &script_acquire || store->in_cluster ||
        redis_replicas_possible(&store->replicas, &answer)) {
        send_call(store);
        return;
    }
    redis_session_close(store->session);
    finish_operation(store, &answer);
}

/* Takes the end of the session's batch (redis_session_events.done). A batch without commands
 * (count 0) has only connected. */
static void batch_done(void *arg, struct redisReply *const *replies, size_t count,
                       const struct answer *failure)
{
    struct redis_store *store = arg;
    const struct redis_greeting *greeting = redis_session_greeting(store->session);

    size_t ahead = store->asking ? 1 : 0; /* the reply to ASKING stands before the others */
    store->knows_renewal &= redis_session_is_up(store->session);
    snprintf(store->report.server, sizeof store->report.server, "%s", greeting->node);
    store->twice |= redis_session_sent_twice(store->session);
    if (!failure)
        redis_replicas_greet(&store->replicas, greeting->node, greeting->replicas);
    /* Where a Cluster's node refers to another one (store_redis_moved()). */
    const char *found =
        store->in_cluster ? redis_reply_error(replies, count, redis_error_is_redirection) : NULL;
    snprintf(store->moved, sizeof store->moved, "%s", found ? found : "");
    if (failure) {
        /* A survey changes nothing, whether it is answered or not. */
        struct answer told = *failure;
        told.maybe_done &= !store->survey || is_marking(store);
        finish_operation(store, &told);
    } else if (store->survey) {
        hear_survey(store, replies, count);
    } else if (count == 0) {
        on_connected(store);
    } else if (is_error(replies[0]) && strcasestr(replies[0]->str, "unsubscribe") &&
               !may_not_listen(store)) {
        /* The server does not let the connection stop listening: it is of no use any more, and
         * nothing of the batch was done. */
        store->forbids_channels = true;
        redis_session_close(store->session);
        send_call(store);
    } else {
        hear_call(store, replies + ahead, count - ahead);
    }
}

/* The connection broke while no batch was under way: a wake-up may be missed, and the next server
 * may not know the scripts. */
static void on_broken(void *arg)
{
    struct redis_store *store = arg;

    store->knows_renewal = false;
    store_changed(&store->base);
}

/* Takes a message; NULL: it came during a call. One with the token of this store's offer grants the
 * lock; any other only says that asking may be worthwhile. */
static void on_message(void *arg, const char *message)
{
    struct redis_store *store = arg;
    struct answer grant;

    if (message && handover_take(&store->handover, message, store->lease, &grant))
        store_granted(&store->base, &grant);
    else
        store_changed(&store->base);
}

/* Closes the store (store_ops.close). */
static void redis_close(struct store *base)
{
    struct redis_store *store = redis_store_of(base);

    loop_disarm(store->loop, &store->poll);
    /* Behind a call, a release whose answer is not awaited went out by its digest (needs_lesson()).
     * But the server may have forgotten scripts since that call was done. It gets that of the
     * release now, and then all releases again. */
    const struct redis_call nothing = {.script = &script_release, .whole = true};
    if (store->by_digest) {
        redis_session_add_call(store->session, &nothing);
        redis_session_repeat_nowait(store->session);
    }
    redis_session_free(store->session);
    drop_operation(store);
    keep_places(store, NULL);
    forget_channels(store);
    free(store->prefix);
    free(store->marker);
    free(store->pauses);
    free(store);
}

/* Fills store->call for an acquisition; redis_start() has it sent. settled: what a quorum has
 * settled on; of any other store it is empty. */
static void call_acquire(struct redis_store *store, const struct acquire_request *request,
                         const struct member_terms *settled)
{
    store->listen = request->listen;
    /* A grant by message is the word of one server, about one key, to an owner that is not
     * nested. */
    store->offers = request->accept_by_message && request->listen && request->queue &&
                    request->key_count == 1 && !request->mirror && !request->unless_done &&
                    !strchr(request->owner, '.') && !store->terms.grace && !store->terms.member &&
                    store->replicas.rule == REPLICAS_NONE;
    store->lease = request->lease;
    redis_session_set_lease(store->session, request->lease);
    redis_call_acquire(&store->call, &store->terms, store->prefix, request, settled, store->offers);
}

/* Fills store->call for a renewal. On a new connection it goes out with the greeting, and does not
 * listen: the next one does. On a long way the script itself goes out, until the server is known to
 * have it. */
static void call_renew(struct redis_store *store, const struct renew_request *request,
                       const struct member_terms *settled)
{
    redis_call_renew(&store->call, &store->terms, store->prefix, request, settled);
    int64_t lease = request->lock->lease;
    /* There may be no time for a second trip: the command would have to end before. */
    store->call.whole = lease && !store->knows_renewal &&
                        2 * redis_session_round_trip(store->session) > lease / TRIP_SHARE;
    store->listen = request->listen && redis_session_is_up(store->session);
}

/* Fills store->call for a release. */
static void call_release(struct redis_store *store, const struct release_request *request)
{
    redis_call_release(&store->call, &store->terms, store->prefix, request);
    /* A release that may come late (redis_call_release()) tells the server no time after which it
     * must not be done: its process may have ended by then, and would not send another one. */
    store->in_time = !store->call.ahead;
    if (!request->returns) /* an owner that comes back for another try keeps its places */
        keep_places(store, NULL);
}

/* See store_release_nowait(). The release goes out behind the operation under way, which so is done
 * before it, or is refused. */
static enum release_sent redis_release_nowait(struct store *base,
                                              const struct release_request *request)
{
    static const struct redis_terms plain;
    struct redis_store *store = redis_store_of(base);
    bool asking = store->asking, asked = store->call.script; /* asked: a call is under way */
    bool waits = asked && redis_session_is_up(store->session) && is_replicated(store) &&
                 store->form != FORM_LISTENING; /* the server, for replicas, as far as is known */

    /* A server reads nothing while it waits for replicas, and then finds the connection closed. */
    if (waits)
        redis_session_close(store->session);
    drop_operation(store);
    store->asking = asking;
    redis_call_release(&store->call, &plain, store->prefix, request);
    redis_call_set(&store->call, "unread", "1");
    store->call.db = redis_session_is_up(store->session) ? 0 : store->db;
    /* Behind a call, the script is known if that is done, and must be: see needs_lesson(). So it is
     * behind another release. */
    store->call.whole = !asked && redis_session_is_up(store->session);
    store->by_digest |= asked;
    add_asking(store);
    add_call(store, &store->call);
    bool sent = redis_session_send_nowait(store->session);
    drop_operation(store);
    return sent ? RELEASE_SENT : waits ? RELEASE_BLOCKED : RELEASE_UNSENT;
}

/* Fills store->call for a pause or a limit. A pause of a GLOB is stored first; then a survey marks
 * the locks that are there (finish_call()). */
static void call_adjust(struct redis_store *store, const struct adjust_request *request)
{
    if (request->glob) {
        const struct survey_request which = {.patterns = &request->key,
                                             .pattern_count = 1,
                                             .heard = request->heard,
                                             .heard_arg = request->heard_arg};
        store->marks =
            redis_survey_new(store->session, store->prefix, &store->terms, &which, SURVEY_MARKS);
        store->part_time = moment_until(loop_now(store->loop), store->until);
    }
    redis_call_adjust(&store->call, &store->terms, store->prefix, request);
}

/* Begins a survey. Each of its batches has as much time as the operation was given. A replica would
 * answer it as well, so the first batch asks for the server's role again. */
static void call_survey(struct redis_store *store, const struct survey_request *request)
{
    store->survey = redis_survey_new(store->session, store->prefix, &store->terms, request,
                                     store->asking ? SURVEY_LOOKS_ASKING : SURVEY_LOOKS);
    store->part_time = moment_until(loop_now(store->loop), store->until);
    redis_session_check_role(store->session);
    redis_survey_ask(store->survey, store->until);
}

/* Fills store->call for an operation on a latch. One that changes it must not be done too late; one
 * that only reads must not be answered by a replica. */
static void call_latch(struct redis_store *store, const struct latch_request *request)
{
    bool changes = request->verb >= LATCH_SET; /* as the verbs behind that one do */

    store->listen = request->listen;
    store->in_time = changes;
    redis_call_latch(&store->call, store->prefix, request);
    if (!changes)
        redis_session_check_role(store->session);
}

/* Starts an operation (store_ops.start): makes its call, and sends it now, behind the greeting, or
 * when connected. */
static void redis_start(struct store *base, const struct operation *operation)
{
    static const struct member_terms nothing_settled;
    const struct member_terms *settled = operation->terms ? operation->terms : &nothing_settled;
    struct redis_store *store = redis_store_of(base);

    store->until = operation->until;
    store->in_time = true; /* others may have said something else since */
    switch (operation->verb) {
    case VERB_ACQUIRE: call_acquire(store, operation->acquire, settled); break;
    case VERB_RENEW: call_renew(store, operation->renew, settled); break;
    case VERB_RELEASE: call_release(store, operation->release); break;
    case VERB_FORCE:
        redis_call_force(&store->call, &store->terms, store->prefix, operation->force);
        break;
    case VERB_SURVEY: call_survey(store, operation->survey); return;
    case VERB_LATCH: call_latch(store, operation->latch); break;
    case VERB_ADJUST: call_adjust(store, operation->adjust); break;
    case VERB_MARK: redis_call_mark(&store->call, &store->terms, operation->mark); break;
    case VERB_NONE: return;
    }
    store->report.seniority = (struct seniority){0};
    store->handover.open = false;
    loop_disarm(store->loop, &store->poll);
    if (goes_ahead(store)) {
        /* The server may turn out to be the wrong one. A release is done even if its reply is never
         * read, so the script itself goes out. */
        store->call.db = store->db;
        store->call.whole |= store->call.script == &script_release;
        complete_call(store, loop_now(store->loop));
        add_asking(store);
        add_call(store, &store->call);
        redis_session_send_ahead(store->session, store->asking ? 2 : 1, store->until,
                                 is_repeatable(store) ? request_time(store) : 0);
    } else if (redis_session_is_up(store->session)) {
        send_call(store);
    } else {
        redis_session_send(store->session, 0, 0, store->until); /* only connects: on_connected() */
    }
}

bool store_redis_is_up(const struct store *node)
{
    return redis_session_is_up(((const struct redis_store *)(const void *)node)->session);
}

const char *store_redis_moved(const struct store *node)
{
    return ((const struct redis_store *)(const void *)node)->moved;
}

void store_redis_asking(struct store *node)
{
    redis_store_of(node)->asking = true;
}

/* Makes a store of one server, master or Cluster node, which connects with its first request. NULL
 * with a message in "fault": the address cannot be used. */
static struct redis_store *open_server(struct loop *loop, const struct store_address *address,
                                       char *fault, size_t size)
{
    static const struct store_ops ops = {redis_close, redis_start, redis_release_nowait};
    static const struct redis_session_events events = {batch_done, on_message, on_broken,
                                                       on_misdirected};
    struct redis_store *store = mem_zeroed(sizeof *store);

    store->base.ops = &ops;
    store->loop = loop;
    store->poll = (struct loop_timer){.fire = store_changed_due, .owner = store};
    store->session = redis_session_new(loop, address, &events, store, fault, size);
    if (!store->session) {
        free(store);
        return NULL;
    }
    store->db = address->urls->db;
    store->prefix = address->prefix ? mem_strdup(address->prefix) : NULL;
    store->in_cluster = address->urls->kind->is_sharded;
    store->terms.has_host = address->urls->kind->program != NULL;
    store->is_driven = address->urls->kind->is_driven;
    store->forbids_channels = store->is_driven; /* such a host sends no messages */
    store->base.frugal = address->urls->kind->is_conditional;
    store->behind_foreign = true; /* until an answer says otherwise */
    store->replicas = (struct redis_replicas){
        .rule = address->replicas, .number = address->replica_count, .known = -1};
    if (redis_replicas_are_counted(&store->replicas))
        redis_session_identify(store->session, IDENTITY_WANTED);
    return store;
}

/* Names the key that tells, in that role ("epoch", "quorum"), what the server has forgotten. */
static void set_marker(struct redis_store *store, const char *what)
{
    if (store->prefix)
        store->terms.marker = store->marker = redis_marker(store->prefix, what);
}

struct store *store_redis_open(struct loop *loop, const struct store_address *address, char *fault,
                               size_t size)
{
    struct redis_store *store = open_server(loop, address, fault, size);

    if (!store)
        return NULL;
    store->terms.grace = address->grace;
    set_marker(store, "epoch");
    /* That key may be out of reach: in a Cluster it would be on another node than the locks. */
    if (store->prefix && store_can(address, STORE_GLOB_PAUSES))
        store->terms.pauses = store->pauses = redis_marker(store->prefix, "paused");
    return &store->base;
}

bool store_redis_open_member(struct loop *loop, const struct store_address *address,
                             struct member *member, char *fault, size_t size)
{
    struct redis_store *store = open_server(loop, address, fault, size);

    if (!store)
        return false;
    redis_session_identify(store->session, IDENTITY_NEEDED);
    store->terms.member = true;
    set_marker(store, "quorum");
    *member = (struct member){&store->base, &store->report};
    return true;
}
