/* One Redis server as a store: each operation is a call of a script, which is sent again in another
 * way where the reply says that it was in vain. */
#include "store/redis/store.h"
#include "base/mem.h"
#include "base/percent.h"
#include "lock/key.h"
#include "net/loop.h"
#include "store/redis/answer.h"
#include "store/redis/error.h"
#include "store/redis/grace.h"
#include "store/redis/handover.h"
#include "store/redis/latch.h"
#include "store/redis/replicas.h"
#include "store/redis/scripts.h"
#include "store/redis/session.h"
#include "store/redis/survey.h"

#include <hiredis/hiredis.h>
#include <inttypes.h>
#include <stdio.h>

/* How often to try where the server grants no channel to be woken by. */
#define POLL_NS (500 * NS_PER_MS)
/* How often to try behind another program, which calls nobody. */
#define POLL_FOREIGN_NS (200 * NS_PER_MS)
/* How long a request for a lock or about a latch may go unanswered by a server that has just
 * answered the greeting: asking again is harmless, and finds out what became of the first. */
#define REQUEST_NS (2 * NS_PER_SEC)
/* How long a release waits for the replicas. They get it anyway; what they miss ends with the
 * lease. */
#define RELEASE_REPLICAS_NS (200 * NS_PER_MS)
/* A place in the queue is kept this long after the last call of its waiter. */
#define QUEUE_PLACE_MS 7000
/* How long an owner is barred whose acquisition may still be under way somewhere. */
#define BAR_MS 60000

/* Arguments that are filled in at the moment of sending; acquire.lua, renew.lua and release.lua
 * have the first one at the same place. */
enum { ARGUMENT_NOT_AFTER = 3, ARGUMENT_PLACES = 4, ARGUMENT_TOKEN = 12 };

/* One call of a script. */
struct call {
    const struct script *script; /* NULL: none */
    bool whole;  /* send the script itself: the server does not know it by its digest */
    bool ahead;  /* may come to a server that turns out to be the wrong one */
    int db;      /* the script itself selects it, as nobody may have done so; 0: it need not */
    char **keys; /* as they are called in the store */
    size_t key_count;
    size_t take; /* so many of the keys; 0: all */
    char **argv;
    size_t argc;
    size_t node_at; /* the argument that tells a quorum's member which it is; 0: none does */
};

/* What is asked of a server besides. */
struct terms {
    char *marker; /* a key that tells for how long the server remembers; NULL */
    bool grace;   /* and it is to say whether it may have forgotten locks */
    bool member;  /* of a quorum: how long it has been one */
    char *pauses; /* the key of the pauses of GLOBs (globs.lua); NULL: there are none */
};

struct redis_store {
    struct store base;
    struct loop *loop;
    struct redis_session *session;
    char *prefix;
    int db;
    struct terms terms;
    struct redis_replicas replicas;
    bool in_cluster;
    char moved[300];             /* store_redis_moved() */
    struct member_report report; /* as one of a quorum */

    /* Known from one operation to the next. */
    bool no_channel; /* the server forbids SUBSCRIBE */
    bool fresh;      /* the server did not know one of the scripts */
    char *places;    /* in the queues, as last told; NULL: none */
    char *places_at; /* the first of those keys */
    struct loop_timer poll;
    struct handover handover; /* what the latest acquisition has offered */
    int64_t lease;            /* ns: that it has asked for */

    /* The operation under way. */
    store_done *done;
    void *done_arg;
    struct moment until;
    struct call call;
    bool listen;
    bool offers;      /* an acquisition, to take the lock from a message */
    bool deaf;        /* this time without a channel */
    bool asking;      /* of a Cluster's node that is about to get the slot */
    bool transaction; /* the batch under way is one: nothing in it can wait for replicas */
    bool granted;     /* by the server; the replicas are yet to be heard */
    bool in_time;     /* not to be done after "until" */
    bool resent;      /* with another reading of the server's clock: once, not again and again */
    struct redis_survey *survey;
    int64_t part_time;                          /* ns for each part of it */
    struct redis_survey *marks; /* of a pause of a GLOB: the locks that are to be marked next */
    bool listed;                /* the GLOB was paused before, or is now */
    void (*each_id)(void *arg, const char *id); /* of a latch; NULL */
    void *each_id_arg;
};

static struct redis_store *of(struct store *base)
{
    return (struct redis_store *)(void *)base;
}

/* -- a call of a script ----------------------------------------------------------------------- */

static void call_begin(struct call *call, const struct script *script, const char *prefix,
                       const char *const *keys, size_t count)
{
    call->script = script;
    call->keys = mem_zeroed((count + 1) * sizeof *call->keys); /* a script may have none */
    call->key_count = count;
    for (size_t i = 0; i < count; i++)
        call->keys[i] = key_in_store(prefix, keys[i]);
}

static void call_text(struct call *call, const char *text)
{
    call->argv = mem_checked(realloc(call->argv, (call->argc + 1) * sizeof *call->argv));
    call->argv[call->argc++] = mem_strdup(text);
}

static void call_number(struct call *call, int64_t number)
{
    char text[24];

    snprintf(text, sizeof text, "%" PRId64, number);
    call_text(call, text);
}

static void call_replace(struct call *call, size_t i, const char *text)
{
    free(call->argv[i]);
    call->argv[i] = mem_strdup(text);
}

static void call_add(const struct call *call, struct redis_session *session)
{
    size_t count = 0;
    const char **argv = mem_zeroed((4 + call->key_count + call->argc) * sizeof *argv);
    char key_count[24], select[24];

    snprintf(key_count, sizeof key_count, "%zu", call->key_count);
    argv[count++] = call->whole ? "EVAL" : "EVALSHA";
    argv[count++] = call->whole ? call->script->text : call->script->sha1;
    argv[count++] = key_count;
    for (size_t i = 0; i < call->key_count; i++)
        argv[count++] = call->keys[i];
    for (size_t i = 0; i < call->argc; i++)
        argv[count++] = call->argv[i];
    if (call->db) {
        snprintf(select, sizeof select, "SELECT %d", call->db);
        argv[count++] = select;
    }
    redis_session_add(session, (int)count, argv, NULL);
    free(argv);
}

static void call_drop(struct call *call)
{
    for (size_t i = 0; i < call->argc; i++)
        free(call->argv[i]);
    for (size_t i = 0; i < call->key_count; i++)
        free(call->keys[i]);
    free(call->argv);
    free(call->keys);
    *call = (struct call){.script = NULL};
}

/* -- the scripts' arguments, in their order --------------------------------------------------- */

static void add_text(void *arg, const char *text)
{
    call_text(arg, text);
}

static void add_member(struct call *call, const struct terms *terms)
{
    call_text(call, "member");
    call_text(call, terms->marker);
    call->node_at = call->argc;
    call_text(call, "");
}

static void add_fences(struct call *call, const uint64_t *fences, size_t count)
{
    for (size_t i = 0; fences && i < count; i++)
        call_number(call, (int64_t)fences[i]);
}

static void note_text(char **who, const char *name, const char *value)
{
    const char *line = **who ? *who : IDENTITY_UNKNOWN;
    char *noted = mem_zeroed(strlen(line) + strlen(name) + strlen(value) + sizeof " =");

    sprintf(noted, "%s %s=%s", line, name, value);
    free(*who);
    *who = noted;
}

static void note_number(char **who, const char *name, int64_t value)
{
    char text[24];

    snprintf(text, sizeof text, "%" PRId64, value);
    note_text(who, name, text);
}

/* Who asks, with notes about the place in the queue that it asks for. */
static void add_who(struct call *call, const struct lock_request *request)
{
    bool bounds = request->priority_bound && request->priority_bound != LOCK_PRIORITY_BOUND_NS;
    char *who = mem_strdup(request->who);

    if (request->queue && request->group)
        note_text(&who, LOCK_NOTE_GROUP, request->group);
    if (request->replace)
        note_number(&who, LOCK_NOTE_REPLACE, 1);
    if (request->queue && request->priority)
        note_number(&who, LOCK_NOTE_PRIORITY, request->priority);
    if (request->queue && bounds)
        note_number(&who, LOCK_NOTE_BOUND, request->priority_bound / NS_PER_MS);
    if (request->take) {
        char take[48];
        snprintf(take, sizeof take, "%zu/%zu", request->take,
                 request->of ? request->of : request->key_count);
        note_text(&who, LOCK_NOTE_TAKE, take);
    }
    call_text(call, who);
    free(who);
}

static void call_acquire(struct call *call, const struct terms *terms, const char *prefix,
                         const struct lock_request *request, const struct member_terms *settled,
                         bool offers)
{
    call_begin(call, &script_acquire, prefix, request->keys, request->key_count);
    call->take = request->of ? 0 : request->take;
    call->ahead = true; /* what it grants can be given back */
    call_text(call, request->owner);
    call_number(call, request->lease / NS_PER_MS);
    call_number(call, request->stand ? -QUEUE_PLACE_MS : request->queue ? QUEUE_PLACE_MS : 0);
    call_text(call, "0");
    call_text(call, "");
    call_text(call, request->listen ? "1" : "0");
    call_text(call, redis_grace_mode(request->mode));
    if (request->mirror)
        call_text(call, request->mirror);
    else
        call_number(call, request->mode == LOCK_LIMIT ? request->limit : 0);
    call_text(call, request->no_nesting ? "0" : "1");
    add_who(call, request);
    call_text(call, terms->pauses ? terms->pauses : "");
    if (terms->grace) {
        call_text(call, "grace");
        call_text(call, terms->marker);
    } else if (terms->member) {
        add_member(call, terms);
        call_number(call, (int64_t)settled->proposal);
        add_fences(call, settled->fences, request->key_count);
    } else if (offers) {
        call_text(call, "offer");
        call_text(call, "");
        call_number(call, HANDOVER_MS);
    }
    if (request->unless_done) {
        call_text(call, "unless-done");
        call_number(call, request->unless_done / NS_PER_MS);
    }
}

static void call_renew(struct call *call, const struct terms *terms, const char *prefix,
                       const struct lock_request *request, const struct member_terms *settled)
{
    call_begin(call, &script_renew, prefix, request->keys, request->key_count);
    call->ahead = !terms->grace; /* then it may make a lock */
    call_text(call, request->owner);
    call_number(call, request->lease / NS_PER_MS);
    call_text(call, request->strict ? "1" : "0");
    call_text(call, "0");
    if (terms->grace) {
        redis_grace_renewal(terms->marker, request, add_text, call);
    } else if (terms->member) {
        add_member(call, terms);
        add_fences(call, settled->fences, request->key_count);
    } else if (request->handed) {
        call_text(call, "handed");
    }
}

/* The notes behind the record of a holder, when it has come to its end. */
static char *print_end(const struct lock_end *end, char *out, size_t size)
{
    static const char *const notes[] = {[LOCK_USED] = "",
                                        [LOCK_UNUSED] = LOCK_NOTE_UNUSED "=1",
                                        [LOCK_REFUSED] = LOCK_NOTE_REFUSED "=1",
                                        [LOCK_TIMED_OUT] = LOCK_NOTE_TIMED_OUT "=1",
                                        [LOCK_LOST] = LOCK_NOTE_LOST "=1",
                                        [LOCK_EXPIRED] = LOCK_NOTE_EXPIRED "=1",
                                        [LOCK_REVOKED] = LOCK_NOTE_REVOKED "=1"};
    int used = snprintf(out, size, "%s", notes[end->how]);

    if (end->known)
        snprintf(out + used, size - (size_t)used, "%s" LOCK_NOTE_RAN "=%" PRId64 " %s=%d",
                 used ? " " : "", end->ran_ms > 0 ? end->ran_ms : 1,
                 end->signal ? LOCK_NOTE_SIGNAL : LOCK_NOTE_EXIT,
                 end->signal ? end->signal : end->status);
    return out;
}

static void call_release(struct call *call, const struct terms *terms, const char *prefix,
                         const struct lock_request *request, bool uncertain)
{
    char notes[80];

    call_begin(call, &script_release, prefix, request->keys, request->key_count);
    call->ahead = !request->in_time; /* which takes the server's clock */
    call_text(call, request->owner);
    call_number(call, uncertain ? BAR_MS : 0);
    call_number(call, request->at_least / NS_PER_MS);
    call_text(call, "0");
    call_text(call, request->strict ? "1" : "0");
    call_text(call, print_end(&request->end, notes, sizeof notes));
    if (terms->grace) {
        call_text(call, terms->marker);
        call_number(call, request->lease / NS_PER_MS);
    }
}

/* By whom a lock is taken, and why, as notes: "by=… why=…". */
static char *print_revocation(const struct force_request *request, char *out, size_t size)
{
    char coded[3 * IDENTITY_WORD_MAX + 1];
    int used = 0;

    out[0] = '\0';
    if (*request->by && percent_encode(request->by, "", coded, sizeof coded))
        used = snprintf(out, size, LOCK_NOTE_BY "=%s", coded);
    if (*request->why && percent_encode(request->why, "", coded, sizeof coded))
        snprintf(out + used, size - (size_t)used, "%s" LOCK_NOTE_WHY "=%s", used ? " " : "", coded);
    return out;
}

static void call_unmirror(struct call *call, const char *prefix,
                          const struct force_request *request)
{
    call_begin(call, &script_unmirror, prefix, &request->key, 1);
    call_text(call, request->mirror);
    call_text(call, request->owner_count ? request->owners[0] : "");
}

static void call_force(struct call *call, const char *prefix, const struct force_request *request)
{
    static const char *const words[] = {[FORCE_NOW] = "now",
                                        [FORCE_ASK] = "ask",
                                        [FORCE_ASK_AGAIN] = "again",
                                        [FORCE_ASKED_OVER] = "over"};
    char notes[2 * (3 * IDENTITY_WORD_MAX + 8)];

    if (request->mirror) {
        call_unmirror(call, prefix, request);
        return;
    }
    call_begin(call, &script_force, prefix, &request->key, 1);
    call_text(call, request->purge ? "1" : "0");
    call_text(call, words[request->how]);
    call_text(call, print_revocation(request, notes, sizeof notes));
    for (size_t i = 0; i < request->owner_count; i++)
        call_text(call, request->owners[i]);
}

static void call_adjust(struct call *call, const struct terms *terms, const char *prefix,
                        const struct adjust_request *request)
{
    static const char *const verbs[] = {[ADJUST_LIMIT] = "limit",
                                        [ADJUST_NO_LIMIT] = "limit",
                                        [ADJUST_PAUSE] = "pause",
                                        [ADJUST_RESUME] = "resume"};

    call_begin(call, &script_adjust, prefix, &request->key, 1);
    call_text(call, verbs[request->what]);
    if (request->what == ADJUST_LIMIT)
        call_number(call, request->limit);
    if (request->what == ADJUST_NO_LIMIT)
        call_text(call, "");
    if (request->what == ADJUST_PAUSE || request->what == ADJUST_RESUME)
        call_text(call, terms->pauses ? terms->pauses : "");
    if (request->what == ADJUST_PAUSE) {
        call_number(call, request->duration / NS_PER_MS);
        call_text(call, request->who);
    }
}

/* The pause of a GLOB, which is written down in the words of SCAN, and in the user's. */
static void call_pauses(struct call *call, const struct terms *terms, const char *prefix,
                        const struct adjust_request *request)
{
    char coded[3 * KEY_MAX_BYTES + 1];
    char *glob = redis_survey_glob(prefix, request->key);

    call->script = &script_pauses;
    call->keys = mem_zeroed(sizeof *call->keys);
    call->keys[call->key_count++] = mem_strdup(terms->pauses);
    call_text(call, request->what == ADJUST_PAUSE ? "pause" : "resume");
    call_text(call, glob);
    if (request->what == ADJUST_PAUSE) {
        char *who = mem_strdup(request->who);
        percent_encode(request->key, "", coded, sizeof coded);
        note_text(&who, LOCK_NOTE_GLOB, coded);
        call_number(call, request->duration / NS_PER_MS);
        call_text(call, who);
        free(who);
    }
    free(glob);
}

static void call_latch(struct call *call, const char *prefix, const struct latch_request *request)
{
    call_begin(call, &script_latch, prefix, &request->key, 1);
    call->ahead = request->verb != LATCH_DELETE; /* twice would not be once */
    redis_latch_arguments(request, add_text, call);
}

static void call_mark(struct call *call, const struct terms *terms, bool force)
{
    call_begin(call, &script_init, NULL, NULL, 0);
    call_text(call, terms->marker);
    call_text(call, force ? "1" : "0");
}

/* -- the call under way ----------------------------------------------------------------------- */

static void set_places(struct redis_store *store, const char *places)
{
    free(store->places);
    free(store->places_at);
    store->places = places ? mem_strdup(places) : NULL;
    store->places_at = places ? mem_strdup(store->call.keys[0]) : NULL;
}

static bool has_places(const struct redis_store *store)
{
    return store->places && strcmp(store->places_at, store->call.keys[0]) == 0;
}

static void add_plain(struct redis_store *store, const char *first, const char *second)
{
    const char *argv[] = {first, second};

    redis_session_add(store->session, second ? 2 : 1, argv, NULL);
}

/* ASKING counts for the next command alone, or for a whole transaction. */
static void add_asking(struct redis_store *store)
{
    if (store->asking)
        add_plain(store, "ASKING", NULL);
}

/* The call and the subscription in one transaction: a wake-up that is published right after the
 * call is not missed. */
static void send_listening(struct redis_store *store)
{
    const char *owner = store->call.argv[0];

    add_plain(store, "MULTI", NULL);
    call_add(&store->call, store->session);
    for (size_t i = 0; i < store->call.key_count; i++) {
        char *channel = mem_zeroed(strlen(store->call.keys[i]) + strlen(owner) + 2);
        sprintf(channel, "%s:%s", store->call.keys[i], owner);
        /* One channel a command: within EXEC, each command has one reply. */
        add_plain(store, "SUBSCRIBE", channel);
        free(channel);
    }
    add_plain(store, "EXEC", NULL);
    redis_session_send(store->session, store->asking + 3 + store->call.key_count,
                       store->call.key_count, store->until);
}

/* Locks have to be on the replicas, where that is asked for; latches have not. */
static bool is_replicated(const struct redis_store *store)
{
    return store->replicas.rule != REPLICAS_NONE &&
           (store->call.script == &script_acquire || store->call.script == &script_renew ||
            store->call.script == &script_release);
}

/* Whether it listens for who is called, not for who asks for what is held. */
static bool is_called(const struct redis_store *store)
{
    return store->listen && store->call.script != &script_renew;
}

/* Asking the same again does no harm, so a new connection is tried soon. */
static bool is_harmless(const struct redis_store *store)
{
    return store->call.script == &script_acquire || store->call.script == &script_latch;
}

/* Whether it subscribes as well. */
static bool is_transaction(const struct redis_store *store)
{
    return store->listen && !store->no_channel && !store->deaf && !store->granted;
}

/* Whether the call goes out with the greeting, on a connection yet to be made. Not where the
 * answers to the greeting are a part of it: a quorum's member is told which it is, and how many
 * replicas there are to wait for is counted. And not to a node of a Cluster: another one may be
 * asked as long as nothing may have been done. */
static bool goes_ahead(const struct redis_store *store)
{
    return store->call.ahead && !is_transaction(store) && !is_replicated(store) &&
           !store->call.node_at && !store->in_cluster && !redis_session_is_up(store->session);
}

/* The call, and behind it, in the same write, the WAIT for the replicas: for half of the time that
 * is left, so that an answer comes before the connection is given up. */
static void send_alone(struct redis_store *store, struct moment now)
{
    int64_t ns = moment_until(now, store->until) / 2;
    size_t replies = store->asking + 1u;

    call_add(&store->call, store->session);
    if (store->call.script == &script_release && ns > RELEASE_REPLICAS_NS)
        ns = RELEASE_REPLICAS_NS;
    if (is_replicated(store))
        replies += redis_replicas_add(&store->replicas, store->session, ns);
    redis_session_send(store->session, replies, 0, store->until);
}

/* The server's clock; 0: it does not tell. Before it can have told, ours is a guess at it. One that
 * is late costs another trip, as the call comes back STALE; one that is early bounds less. */
static int64_t clock_at(const struct redis_store *store, struct moment now)
{
    int64_t told = redis_session_clock(store->session, now);
    return told || redis_session_is_up(store->session) ? told : clock_wall() / NS_PER_MS;
}

/* Nobody waits for the answer after "until": the call must not be done later. */
static void set_not_after(struct redis_store *store, struct moment now)
{
    int64_t clock = clock_at(store, now);
    int64_t left = moment_until(now, store->until) / NS_PER_MS;
    char not_after[24];

    snprintf(not_after, sizeof not_after, "%" PRId64, clock ? clock + left : 0);
    call_replace(&store->call, ARGUMENT_NOT_AFTER, not_after);
}

/* A server is not given up before it can have answered, as far away as it is. */
static int64_t request_time(const struct redis_store *store)
{
    int64_t trips = 2 * redis_session_round_trip(store->session);
    return trips > REQUEST_NS ? trips : REQUEST_NS;
}

/* Each time that the call is sent it has a token of its own: one that was not answered may be done
 * yet. */
static void offer(struct redis_store *store, struct moment now)
{
    if (!handover_offer(&store->handover, now))
        store->offers = false;
    call_replace(&store->call, ARGUMENT_TOKEN, store->handover.token);
}

/* What the call says is filled in. */
static void complete_call(struct redis_store *store, struct moment now)
{
    if (store->in_time)
        set_not_after(store, now);
    if (store->call.node_at)
        call_replace(&store->call, store->call.node_at, store->report.server);
    if (store->call.script == &script_acquire)
        call_replace(&store->call, ARGUMENT_PLACES, has_places(store) ? store->places : "");
    if (store->offers)
        offer(store, now);
}

static void send_call(struct redis_store *store)
{
    struct moment now = loop_now(store->loop);

    if (is_harmless(store))
        store->until = moment_min(store->until, moment_plus(now, request_time(store)));
    store->report.sent = true;
    complete_call(store, now);
    add_asking(store);
    store->transaction = is_transaction(store);
    if (store->transaction)
        send_listening(store);
    else
        send_alone(store, now);
}

/* To a server that may turn out to be the wrong one. A release need not be answered to be done: the
 * script itself goes out. */
static void send_ahead(struct redis_store *store)
{
    store->call.db = store->db;
    store->call.whole |= store->call.script == &script_release;
    complete_call(store, loop_now(store->loop));
    add_asking(store);
    call_add(&store->call, store->session);
    redis_session_send_ahead(store->session, store->asking + 1u, store->until,
                             is_harmless(store) ? request_time(store) : 0);
}

static void drop_operation(struct redis_store *store)
{
    call_drop(&store->call);
    if (store->survey)
        redis_survey_free(store->survey);
    if (store->marks)
        redis_survey_free(store->marks);
    store->survey = store->marks = NULL;
    store->listed = false;
    store->listen = store->deaf = store->in_time = store->asking = store->offers = false;
    store->transaction = store->granted = store->resent = false;
}

static void finish(struct redis_store *store, struct answer *answer)
{
    if (redis_error_is_senseless(answer))
        redis_session_drop(store->session);
    answer->maybe_done |= answer->verdict == VERDICT_UNKNOWN && store->granted;
    drop_operation(store);
    store->report.sent = false;
    store->done(store->done_arg, answer);
}

static bool is_error(const redisReply *reply)
{
    return reply->type == REDIS_REPLY_ERROR;
}

/* The script's own reply within a batch; NULL if the call is to be made again, in another way. */
static const redisReply *script_reply(struct redis_store *store, redisReply *const *replies,
                                      size_t count)
{
    if (!store->transaction)
        return replies[0];
    const redisReply *multi = replies[0], *call = replies[1], *exec = replies[count - 1];
    bool refused = false;
    if (!is_error(exec) && exec->elements == count - 2)
        return exec->element[0];
    if (is_error(multi))
        return multi;
    /* A full server queues nothing for EXEC, but runs the script that needs no memory. */
    store->deaf = is_error(call) && redis_error_class(call->str) == REDIS_ERROR_UNFIT;
    for (size_t i = 2; i < count - 1; i++)
        refused |= is_error(replies[i]);
    store->no_channel |= !is_error(call) && refused;
    if (store->deaf || store->no_channel)
        return NULL;
    return is_error(call) ? call : exec;
}

/* False if what was granted has to be asked for again, because replicas are yet to be waited for:
 * the same request again changes nothing else. */
static bool is_settled(struct redis_store *store, redisReply *const *replies, struct answer *answer)
{
    if (answer->verdict != VERDICT_GRANTED || store->call.script == &script_release ||
        !is_replicated(store))
        return true;
    if (!store->transaction &&
        redis_replicas_hear(&store->replicas, replies + 1, answer) != REPLICAS_MORE)
        return true;
    store->granted = true;
    return false;
}

/* What the script's reply says to the call. */
static void read_reply(struct redis_store *store, const redisReply *reply, struct answer *answer,
                       struct redis_extra *extra)
{
    const struct call *call = &store->call;
    const struct redis_question question = {call->script, call->key_count, call->take,
                                            store->terms.member};

    *extra = (struct redis_extra){0};
    if (call->script == &script_latch) {
        redis_latch_answer(reply, store->each_id, store->each_id_arg, answer, &extra->now_ms);
        return;
    }
    redis_answer_script(reply, answer, extra);
    if (extra->word && !redis_answer_belongs(&question, extra)) {
        redis_error_senseless(answer);
        *extra = (struct redis_extra){0};
    }
}

/* The server does not know the script by its digest, and has not been sent the script itself. */
static bool lacks_script(const struct redis_store *store, const redisReply *reply)
{
    return is_error(reply) && !store->call.whole &&
           redis_error_class(reply->str) == REDIS_ERROR_NOSCRIPT;
}

/* After how many ns one that waits is to try again though nobody has called it; 0: it is called. */
static int64_t poll_time(const struct redis_store *store, const struct answer *answer)
{
    if (answer->foreign && answer->position == 1)
        return POLL_FOREIGN_NS;
    return store->no_channel || store->deaf ? POLL_NS : 0;
}

/* The GLOB is told, so that no lock that is new from now on is missed; then those that are there.
 * Also where it was not: whoever has ended its pause may not have come to the end. */
static void start_marks(struct redis_store *store, const struct answer *answer)
{
    store->listed = answer->verdict == VERDICT_GRANTED;
    store->survey = store->marks;
    store->marks = NULL;
    call_drop(&store->call);
    store->until = moment_plus(loop_now(store->loop), store->part_time);
    redis_survey_ask(store->survey, store->until);
}

/* That it is to go on with marks. */
static bool is_listing(const struct redis_store *store, const struct answer *answer)
{
    return store->marks &&
           (answer->verdict == VERDICT_GRANTED || answer->cause == CAUSE_ABSENT);
}

static void finish_call(struct redis_store *store, struct answer *answer)
{
    if (is_listing(store, answer)) {
        start_marks(store, answer);
        return;
    }
    if (answer->said[0] && answer->verdict == VERDICT_UNKNOWN)
        redis_session_sign(store->session, answer);
    answer->from = redis_session_sent_at(store->session);
    int64_t poll = poll_time(store, answer);
    if (is_called(store) && poll > 0)
        loop_arm(store->loop, &store->poll, moment_plus(loop_now(store->loop), poll));
    finish(store, answer);
}

/* Takes the replies to the call; sends it again, or finishes. */
static void hear_call(struct redis_store *store, redisReply *const *replies, size_t count)
{
    struct answer answer;
    struct redis_extra extra;
    const redisReply *reply = script_reply(store, replies, count);

    if (reply && lacks_script(store, reply)) {
        store->call.whole = store->fresh = true;
        reply = NULL;
    }
    if (!reply) {
        send_call(store);
        return;
    }
    read_reply(store, reply, &answer, &extra);
    store->report.seniority = extra.seniority;
    if (extra.now_ms)
        redis_session_set_clock(store->session, extra.now_ms);
    if (extra.stale && !store->resent && !moment_reached(store->until, loop_now(store->loop))) {
        store->resent = true;
        send_call(store);
        return;
    }
    if (store->call.script == &script_acquire && answer.verdict == VERDICT_REFUSED) {
        set_places(store, extra.places);
        store->handover.open = store->offers && store->transaction;
    }
    if (is_settled(store, replies, &answer))
        finish_call(store, &answer);
    else
        send_call(store);
}

/* -- operations ------------------------------------------------------------------------------- */

/* Starts what was put together. */
static void start(struct redis_store *store, struct moment until, store_done *done, void *arg)
{
    store->until = until;
    store->done = done;
    store->done_arg = arg;
    store->report.seniority = (struct seniority){0};
    store->handover.open = false;
    loop_disarm(store->loop, &store->poll);
    if (goes_ahead(store))
        send_ahead(store);
    else if (redis_session_is_up(store->session))
        send_call(store);
    else
        redis_session_greet(store->session, until);
}

static void hear_survey(struct redis_store *store, struct redisReply *const *replies, size_t count)
{
    struct answer answer = {.verdict = VERDICT_GRANTED};

    if (!redis_survey_hear(store->survey, replies, count, &answer)) {
        if (answer.said[0] && answer.verdict == VERDICT_UNKNOWN)
            redis_session_sign(store->session, &answer);
        finish(store, &answer);
        return;
    }
    answer = (struct answer){.verdict = VERDICT_GRANTED};
    store->until = moment_plus(loop_now(store->loop), store->part_time);
    if (redis_survey_ask(store->survey, store->until))
        return;
    if (redis_survey_is_marking(store->survey) && !store->listed &&
        !redis_survey_has_marked(store->survey))
        answer = (struct answer){.verdict = VERDICT_REFUSED, .cause = CAUSE_ABSENT};
    finish(store, &answer);
}

/* On a new connection. An acquisition that cannot count for lack of replicas is not made; but a
 * Cluster's node first says whether it has the slot. */
static void greeted(struct redis_store *store)
{
    struct answer answer;

    if (store->call.script == &script_acquire && !store->in_cluster &&
        !redis_replicas_possible(&store->replicas, &answer))
        finish(store, &answer);
    else
        send_call(store);
}

/* A lock or a place that was granted by a server which is not the right one is given back there. */
static void give_back(struct redis_store *store)
{
    struct call call = store->call;
    char *argv[] = {store->call.argv[0], "0", "0", "0", "0"};

    call.script = &script_release;
    call.whole = true;
    call.argv = argv;
    call.argc = sizeof argv / sizeof *argv;
    call_add(&call, store->session);
}

/* A question does nothing, and what was refused was not done. */
static bool astray(void *arg, struct redisReply *const *replies, size_t count)
{
    struct redis_store *store = arg;
    const redisReply *reply = replies[count - 1];
    struct answer answer;
    struct redis_extra extra;

    if (store->survey || is_error(reply))
        return false;
    if (store->call.script != &script_acquire)
        return true;
    read_reply(store, reply, &answer, &extra);
    if (answer.verdict == VERDICT_REFUSED && !extra.places)
        return false;
    give_back(store);
    return true;
}

/* The first error that refers to another node; NULL: there is none. */
static const char *redirection_in(const redisReply *reply)
{
    const char *found = NULL;

    if (reply->type == REDIS_REPLY_ERROR)
        return redis_error_is_redirection(reply->str) ? reply->str : NULL;
    for (size_t i = 0; reply->type == REDIS_REPLY_ARRAY && !found && i < reply->elements; i++)
        found = redirection_in(reply->element[i]);
    return found;
}

static void note_redirection(struct redis_store *store, redisReply *const *replies, size_t count)
{
    const char *found = NULL;

    for (size_t i = 0; store->in_cluster && !found && i < count; i++)
        found = redirection_in(replies[i]);
    snprintf(store->moved, sizeof store->moved, "%s", found ? found : "");
}

/* A question does nothing, whether it is answered or not. */
static void fail(struct redis_store *store, const struct answer *failure)
{
    struct answer told = *failure;

    told.maybe_done &= !store->survey || redis_survey_is_marking(store->survey);
    finish(store, &told);
}

static void batch_done(void *arg, struct redisReply *const *replies, size_t count,
                       const struct answer *failure)
{
    struct redis_store *store = arg;

    snprintf(store->report.server, sizeof store->report.server, "%s",
             redis_session_node(store->session));
    store->replicas.known = redis_session_replicas(store->session);
    note_redirection(store, replies, count);
    if (failure)
        fail(store, failure);
    else if (store->survey)
        hear_survey(store, replies, count);
    else if (count == 0)
        greeted(store);
    else
        hear_call(store, replies + store->asking, count - store->asking);
}

static void poked(void *arg)
{
    struct redis_store *store = arg;

    store_poke(&store->base);
}

/* Whatever is not what a script has written is worth no more than a question. */
static void heard(void *arg, const char *message)
{
    struct redis_store *store = arg;
    struct answer grant;

    if (handover_take(&store->handover, message, store->lease, &grant))
        store_hand(&store->base, &grant);
    else
        store_poke(&store->base);
}

static void poll_due(struct loop_timer *timer)
{
    poked(timer->owner);
}

static void redis_close(struct store *base)
{
    struct redis_store *store = of(base);

    loop_disarm(store->loop, &store->poll);
    redis_session_free(store->session);
    drop_operation(store);
    set_places(store, NULL);
    free(store->prefix);
    free(store->terms.marker);
    free(store->terms.pauses);
    free(store);
}

static const struct member_terms nothing_settled;

/* A grant by message is one server's word, about one key alone, to nobody's descendant. */
static bool may_offer(const struct redis_store *store, const struct lock_request *request)
{
    return request->offer && request->listen && request->queue && request->key_count == 1 &&
           !request->mirror && !request->unless_done && !strchr(request->owner, '.') &&
           !store->terms.grace && !store->terms.member && store->replicas.rule == REPLICAS_NONE;
}

/* As one of a quorum; any other server is told nothing more. */
static void acquire_as_member(struct store *base, const struct lock_request *request,
                              const struct member_terms *settled, struct moment until,
                              store_done *done, void *arg)
{
    struct redis_store *store = of(base);

    store->listen = request->listen;
    store->offers = may_offer(store, request);
    store->lease = request->lease;
    store->in_time = true;
    redis_session_mind(store->session, request->lease);
    call_acquire(&store->call, &store->terms, store->prefix, request, settled, store->offers);
    start(store, until, done, arg);
}

static void redis_acquire(struct store *base, const struct lock_request *request,
                          struct moment until, store_done *done, void *arg)
{
    acquire_as_member(base, request, &nothing_settled, until, done, arg);
}

/* A renewal that waits for replicas would end the subscription at once, and one on a new connection
 * goes out with the greeting: the next one listens. */
static bool may_listen(const struct redis_store *store, const struct lock_request *request)
{
    return request->listen && store->replicas.rule == REPLICAS_NONE &&
           redis_session_is_up(store->session);
}

static void renew_as_member(struct store *base, const struct lock_request *request,
                            const struct member_terms *settled, struct moment until,
                            store_done *done, void *arg)
{
    struct redis_store *store = of(base);

    call_renew(&store->call, &store->terms, store->prefix, request, settled);
    store->in_time = true;
    store->listen = may_listen(store, request);
    start(store, until, done, arg);
}

static void redis_renew(struct store *base, const struct lock_request *request, struct moment until,
                        store_done *done, void *arg)
{
    renew_as_member(base, request, &nothing_settled, until, done, arg);
}

static const struct member_report *report_of_member(const struct store *base)
{
    return &((const struct redis_store *)(const void *)base)->report;
}

static void redis_release(struct store *base, const struct lock_request *request, bool uncertain,
                          struct moment until, store_done *done, void *arg)
{
    struct redis_store *store = of(base);

    call_release(&store->call, &store->terms, store->prefix, request, uncertain);
    /* A server that did not know another script will not know this one, and perhaps nobody stays to
     * hear it say so. */
    store->call.whole = store->fresh;
    store->in_time = request->in_time;
    if (!request->returns)
        set_places(store, NULL);
    start(store, until, done, arg);
}

static bool redis_release_nowait(struct store *base, const struct lock_request *request)
{
    static const struct terms plain;
    struct redis_store *store = of(base);
    bool asking = store->asking;

    drop_operation(store);
    store->asking = asking;
    call_release(&store->call, &plain, store->prefix, request, true);
    store->call.db = redis_session_is_up(store->session) ? 0 : store->db;
    /* A server that has yet to answer what came before finds the connection closed when it does,
     * and goes on with no more than it has read: 16 KB. Nobody will be there to hear whether it
     * knows the script by its digest, so the script itself follows. */
    for (int whole = 0; whole <= 1; whole++) {
        store->call.whole = whole;
        add_asking(store);
        call_add(&store->call, store->session);
    }
    bool gone = redis_session_send_nowait(store->session);
    drop_operation(store);
    return gone;
}

static void redis_force(struct store *base, const struct force_request *request,
                        struct moment until, store_done *done, void *arg)
{
    struct redis_store *store = of(base);

    call_force(&store->call, store->prefix, request);
    start(store, until, done, arg);
}

static void redis_adjust(struct store *base, const struct adjust_request *request,
                         struct moment until, store_done *done, void *arg)
{
    struct redis_store *store = of(base);

    if (request->glob) {
        const struct survey_request which = {.patterns = &request->key, .pattern_count = 1};
        store->marks = redis_survey_new(store->session, store->prefix, &which);
        redis_survey_pauses(store->marks, store->terms.pauses);
        redis_survey_mark(store->marks);
        store->part_time = moment_until(loop_now(store->loop), until);
        call_pauses(&store->call, &store->terms, store->prefix, request);
    } else {
        call_adjust(&store->call, &store->terms, store->prefix, request);
    }
    start(store, until, done, arg);
}

static void start_survey(struct redis_store *store, struct redis_survey *survey,
                         struct moment until, store_done *done, void *arg)
{
    store->survey = survey;
    store->part_time = moment_until(loop_now(store->loop), until);
    store->until = until;
    store->done = done;
    store->done_arg = arg;
    redis_survey_ask(survey, until);
}

static void redis_survey(struct store *base, const struct survey_request *request,
                         struct moment until, store_done *done, void *arg)
{
    struct redis_store *store = of(base);
    struct redis_survey *survey = redis_survey_new(store->session, store->prefix, request);

    redis_survey_at_node(survey, store->asking, NULL, NULL);
    if (store->terms.pauses)
        redis_survey_pauses(survey, store->terms.pauses);
    start_survey(store, survey, until, done, arg);
}

static void redis_latch(struct store *base, const struct latch_request *request,
                        struct moment until, store_done *done, void *arg)
{
    struct redis_store *store = of(base);

    store->listen = request->listen;
    store->each_id = request->each;
    store->each_id_arg = request->each_arg;
    call_latch(&store->call, store->prefix, request);
    start(store, until, done, arg);
}

static void redis_mark(struct store *base, bool force, struct moment until, store_done *done,
                       void *arg)
{
    struct redis_store *store = of(base);

    call_mark(&store->call, &store->terms, force);
    start(store, until, done, arg);
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
    of(node)->asking = true;
}

void store_redis_survey(struct store *node, const struct survey_request *request,
                        void (*elsewhere)(void *arg, const char *key), void *elsewhere_arg,
                        struct moment until, store_done *done, void *arg)
{
    struct redis_store *store = of(node);
    struct redis_survey *survey = redis_survey_new(store->session, store->prefix, request);

    redis_survey_at_node(survey, false, elsewhere, elsewhere_arg);
    start_survey(store, survey, until, done, arg);
}

static struct redis_store *open_server(struct loop *loop, const struct store_address *address,
                                       char *fault, size_t size)
{
    static const struct store_ops ops = {
        redis_close, redis_acquire, redis_renew, redis_release, redis_release_nowait,
        redis_force, redis_survey,  redis_latch, redis_mark,    redis_adjust};
    static const struct redis_session_events events = {batch_done, heard, poked, astray};
    struct redis_store *store = mem_zeroed(sizeof *store);

    store->base.ops = &ops;
    store->loop = loop;
    store->poll = (struct loop_timer){.fire = poll_due, .owner = store};
    store->session = redis_session_new(loop, address, &events, store, fault, size);
    if (!store->session) {
        free(store);
        return NULL;
    }
    store->db = address->urls->db;
    store->prefix = address->prefix ? mem_strdup(address->prefix) : NULL;
    store->in_cluster = address->urls->record->is_sharded;
    store->replicas = (struct redis_replicas){
        .rule = address->replicas, .number = address->replica_count, .known = -1};
    return store;
}

static void set_marker(struct redis_store *store, const char *what)
{
    if (store->prefix)
        store->terms.marker = redis_grace_marker(store->prefix, what);
}

struct store *store_redis_open(struct loop *loop, const struct store_address *address, char *fault,
                               size_t size)
{
    struct redis_store *store = open_server(loop, address, fault, size);

    if (!store)
        return NULL;
    store->terms.grace = address->grace;
    set_marker(store, "epoch");
    /* Elsewhere than where the locks are in a Cluster. */
    if (store->prefix && !store->in_cluster)
        store->terms.pauses = redis_grace_marker(store->prefix, "paused");
    return &store->base;
}

bool store_redis_open_member(struct loop *loop, const struct store_address *address,
                             struct member *member, char *fault, size_t size)
{
    static const struct member_ops ops = {acquire_as_member, renew_as_member, report_of_member};
    struct redis_store *store = open_server(loop, address, fault, size);

    if (!store)
        return false;
    redis_session_identify(store->session);
    store->terms.member = true;
    set_marker(store, "quorum");
    *member = (struct member){&store->base, &ops};
    return true;
}
