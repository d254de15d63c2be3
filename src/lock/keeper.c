/* The keeper: one lock's life. The states, and what leads out of each:
 *
 *   TRYING      An acquisition is under way, or due after a failure. Granted in time: HELD; granted
 *               late: CONFIRMING; refused: WAITING, or the end without "wait"; failed: again, or
 *               the end. Granted before, to a request without an answer, and asked for since:
 *               RELEASING, then TRYING.
 *   WAITING     In the queue. The store pokes, or the heartbeat is due: TRYING. The store hands the
 *               lock over: HELD. The user's time is up: the end.
 *   PAUSED      The owner is absent, so nothing is acquired, and a hand-over is released. The store
 *               pokes: RELEASING, as the place in the queue may keep others out. keeper_resume():
 *               TRYING.
 *   CONFIRMING  A grant that came late is renewed before it is called held. Renewed in time: HELD;
 *               refused or not answered: TRYING; late too often: the end.
 *   HELD        Renewed whenever that is due. Refused, or the lease has run out: LOST.
 *   LOST        keeper_release() is still due.
 *   RELEASING   The lock and the place in the queue are released, with attempts until
 *               "release_until". Done: OVER, or TRYING if keeper_restart() asked for it.
 *   OVER        The last event was sent.
 *
 * "The end" is OVER, by way of RELEASING where something may be left in the store. Each of
 * keeper_release(), keeper_cancel() and keeper_restart() leads to RELEASING from any state. There
 * is one request at a time ("busy"): an event during a request waits for its answer.
 *
 * A request may be executed long after the keeper has gone on: it was not answered in time, the
 * connection broke, the process that sent it died, it went out on two connections, or something on
 * the way delivers it twice. It must not undo what came after it:
 *
 *   request      | arrives when the store has        | what stops it
 *   -------------|-----------------------------------|-------------------------------------------
 *   any          | the work of a later one: an entry | its number ("numbered"), at a store with
 *                | or a place of this owner          | scripts (lua/attempts.lua)
 *   acquisition  | nothing of this owner             | its timeout; before that, or if it went out
 *                |                                   | before the store had told its clock, the
 *                |                                   | bar of the release, where a request may be
 *                |                                   | under way ("doubt": it was not answered, or
 *                |                                   | sent twice, or its process has died). If
 *                |                                   | one that was answered comes once more, its
 *                |                                   | grant is nobody's for a lease.
 *   renewal      | nothing of this owner             | it makes nothing; where the store has
 *                |                                   | forgotten a lock, as an acquisition
 *   release      | nothing later of this owner       | nothing: its sender was done
 *   release of   | an entry or a place that a later  | its timeout ("in_time"), and nothing is
 *   one that     | request has made, at a store      | acquired before that is over (try_again()).
 *   tries again  | without numbers                   | At ZooKeeper also of an agent that died: it
 *                |                                   | names what it deletes (zookeeper/leave.c)
 *
 * The next agent's requests come after those of one that has died: the number is the clock of this
 * host. A renewal or release by a command of its own has no number, as it may come from another
 * host; of these a renewal, and the release of a reservation, are stopped by their timeout. */
#include "lock/keeper.h"

#include <stdio.h>
#include <string.h>

#include "base/jitter.h"
#include "base/mem.h"
#include "lock/lease.h"
#include "lock/throttle.h"
#include "net/loop.h"

/* After a hand-over the store must confirm the lock before its command would have to end: with less
 * time left than this, the waiter asks before it holds. */
#define CONFIRM_NS (1 * NS_PER_SEC)
/* How long after a hand-over the store is asked, where no other waiter comes in by that answer: a
 * machine that is starting a command has no processor to spare, and a short command may have ended
 * by then. */
#define CONFIRM_AFTER_NS (10 * NS_PER_MS)
/* A holder listens for requests for its lock within a second: a renewal that listens is sent this
 * long after a grant or a renewal that did not. Where the store cannot listen then either, the next
 * one is sent after twice as long. */
#define LISTEN_AFTER_NS (950 * NS_PER_MS)
#define LISTEN_MOST     10 /* doublings */
/* The heartbeat of a waiter. The store keeps its place for 7 s. For how much longer it keeps the
 * place of a waiter that is far from its turn, it says, and pokes when the turn is near: such a
 * place has room for some heartbeats, too. */
#define HEARTBEAT_NS     (2500 * NS_PER_MS)
#define BEATS_IN_A_PLACE 3
/* By which part of it a heartbeat is spread. */
#define SPREAD 10
/* How many grants and confirmations may come too late: one by chance, one from a server that has to
 * be sent the script first. */
#define LATE_MAX 3
/* How long to wait for the answer to the request under way when the user cancels. A server that
 * writes it after the connection is closed drops that connection, with the release in it unread. */
#define LAST_ANSWER_NS (200 * NS_PER_MS)
/* A timer this late was not delayed by other work: the machine or the process stood still. */
#define STAND_STILL_NS (2 * NS_PER_SEC)
/* One attempt to release; there may be several. */
#define RELEASE_NS (2 * NS_PER_SEC)
/* So much time to release there is anew if this process has overslept the end of it. */
#define ANEW_NS (800 * NS_PER_MS)

enum state { TRYING, WAITING, PAUSED, CONFIRMING, HELD, LOST, RELEASING, OVER };

/* The traces that this owner may have in the store: a lock, a place in a queue, a request. */
struct doubt {
    enum {
        STORE_IS_EMPTY,  /* nothing: no request can have been executed */
        STORE_HAS_TOLD,  /* as the latest answer to an acquisition says */
        STORE_MAY_GRANT, /* besides, an acquisition was not answered, and may be granted */
    } state;
    struct moment until; /* a request that was not answered may be executed until then */
    bool unlimited;      /* or at any time */
};

struct keeper {
    struct loop *loop;
    struct store *store;
    struct keeper_plan plan;
    const struct keeper_events *events;
    void *arg;

    enum state state;
    struct loop_timer next; /* when to do something without being told to */
    struct loop_timer end;  /* while held: the end of the lease */
    struct throttle pace;   /* of the requests */
    struct outage outage;

    /* The request that is under way, or was the latest, and the lock that it is about. */
    struct acquire_request lock;
    union {
        struct renew_request renew;
        struct release_request release;
    } request;
    bool busy;           /* it is under way */
    struct moment sent;  /* when */
    struct moment until; /* it is given up then */
    int64_t took;        /* ns: the latest answer took so long; 0: none has come */
    int64_t round_trip;  /* ns: the quicker of the latest two: one may be slow by chance */

    struct doubt doubt;

    /* Trying and waiting. */
    struct moment began;         /* since when */
    char *who;                   /* the identity in the latest acquisition; NULL: as in the plan */
    struct kept_answer *refusal; /* the latest; NULL: none yet */
    bool refused;                /* the latest acquisition was; false while it is under way */
    bool replaced;               /* the holders were asked to release it */
    bool called;                 /* the store has poked since the latest acquisition was sent */
    bool disturbed;              /* it did so during that acquisition, so its answer may be old */
    unsigned late;               /* how many grants and confirmations came too late */

    /* Holding: the lease as the store has granted it last. */
    struct moment since; /* it is held */
    struct moment from;  /* it counts from then */
    struct lease lease;
    struct lock_grant grants[LOCK_KEYS_MAX]; /* for each key of the plan */
    struct held_keys granted; /* those of the latest grant; none: nothing was granted since the
                                 latest acquisition was sent */
    bool on_hold;             /* nothing is renewed */
    bool handed;              /* the store has handed it over, and no renewal was answered since */
    bool poked;               /* the store has poked since the renewal under way was sent, or a
                               * renewal became due on hold */
    unsigned unheard;         /* how many answers in a row said that the store does not listen */
    bool loss_told;           /* no loss is told twice */

    /* Releasing. */
    struct lock_end use; /* how the use ended; UNUSED, LOST: at_least does not count */
    bool again;          /* TRYING follows, not OVER */
    struct moment release_until;
    bool release_unanswered;        /* one was: if the next finds nothing, that one has worked */
    struct answer *release_failure; /* why it is not released yet; NULL, or cause NONE: no reason */
    struct keeper_end result;
};

static const struct answer no_answer;

/* Whether an acquisition has the store say when the lock may be granted: see send_acquire(). */
enum listening { NOT_LISTENING, LISTENING };

static void send_acquire(struct keeper *keeper, enum listening listening);
static void renew_lease(struct keeper *keeper);
static void send_release(struct keeper *keeper);

/* The time at which the present event has begun. */
static struct moment now_of(const struct keeper *keeper)
{
    return loop_now(keeper->loop);
}

/* Notes, at each answer, whether its request may still be executed: until its time is over, or at
 * any time. */
static void note_in_flight(struct keeper *keeper, const struct answer *answer)
{
    if (answer->maybe_done) /* an earlier request may have more time */
        keeper->doubt.until = moment_max(keeper->doubt.until, keeper->until);
    keeper->doubt.unlimited |= answer->any_time;
}

/* Whether an acquisition that was not answered may be granted, or has been. */
static bool may_be_granted(const struct keeper *keeper)
{
    return keeper->doubt.state == STORE_MAY_GRANT;
}

/* Whether any request that was not answered may be executed yet, or an acquisition has been. */
static bool may_be_executed(const struct keeper *keeper)
{
    return may_be_granted(keeper) || keeper->doubt.unlimited ||
           !moment_reached(keeper->doubt.until, now_of(keeper));
}

/* Notes what was granted. grants: one for each key of the plan. */
static void note_grants(struct keeper *keeper, const struct lock_grant *grants)
{
    const struct acquire_request *plan = &keeper->plan.request;

    memcpy(keeper->grants, grants, sizeof keeper->grants);
    held_keys_choose(&keeper->granted, plan->keys, plan->key_count, keeper->grants);
}

/* Sets keeper->lock for the next renewal or release: to the keys that were granted, or to all keys
 * of the plan if it is not known which, or if another grant may be under way. */
static void choose_keys(struct keeper *keeper)
{
    keeper->lock = keeper->plan.request;
    if (keeper->granted.count == 0 || may_be_granted(keeper))
        return;
    keeper->lock.keys = keeper->granted.keys;
    keeper->lock.key_count = keeper->granted.count;
}

/* Starts an operation of the store. There is one at a time, until its "done". */
static void start_operation(struct keeper *keeper, struct operation operation)
{
    keeper->busy = true;
    operation.arg = keeper;
    store_start(keeper->store, &operation);
}

/* Called first with each answer to an acquisition or a renewal: the request is not under way any
 * more. False if its answer does not count: all is over, or a release has waited for it, and is
 * sent now. */
static bool finish_request(struct keeper *keeper, const struct answer *answer)
{
    keeper->busy = false;
    /* A store that had to connect first says when it has sent the request. */
    if (answer->verdict != VERDICT_UNKNOWN) {
        struct moment sent = moment_max(keeper->sent, answer->granted.from);
        int64_t took = moment_until(sent, now_of(keeper));
        keeper->round_trip = keeper->took > 0 && keeper->took < took ? keeper->took : took;
        keeper->took = took;
    }
    if (keeper->state != RELEASING)
        return keeper->state != OVER;
    send_release(keeper);
    return false;
}

/* The latest refusal; an empty answer: there was none. */
static const struct answer *refusal_of(const struct keeper *keeper)
{
    return keeper->refusal ? &keeper->refusal->answer : &no_answer;
}

/* Whether the keeper's owner says that it cannot take a grant now (keeper_events). */
static bool owner_is_absent(const struct keeper *keeper)
{
    return keeper->events->absent && keeper->events->absent(keeper->arg);
}

/* Arms the timer for what the state asks for next: see on_timer(). */
static void schedule_next(struct keeper *keeper, struct moment due)
{
    loop_arm(keeper->loop, &keeper->next, due);
}

/* -- the end --------------------------------------------------------------------------------- */

/* If the time for a release is over as this process stood still, gives it ANEW_NS more. */
static void make_up_time(struct keeper *keeper)
{
    struct moment now = now_of(keeper);

    if (moment_overslept(keeper->release_until, now))
        keeper->release_until = moment_plus(now, ANEW_NS);
}

static void disarm_timers(struct keeper *keeper)
{
    outage_end(&keeper->outage);
    loop_disarm(keeper->loop, &keeper->next);
    loop_disarm(keeper->loop, &keeper->end);
}

/* Enters OVER, and tells the owner of the keeper the result. */
static void end_keeper(struct keeper *keeper)
{
    keeper->state = OVER;
    disarm_timers(keeper);
    keeper->result.refusal = refusal_of(keeper);
    keeper->events->over(keeper->arg, &keeper->result);
}

/* Sets how the keeper will end. why: borrowed until then. */
static void set_result(struct keeper *keeper, enum keeper_ending ending, const struct answer *why)
{
    keeper->result.ending = ending;
    keeper->result.why = why;
}

/* Enters RELEASING: releases what is or may be in the store, with attempts until "until", and ends,
 * or tries for the lock again ("again"). A request under way is waited for, as its answer tells
 * what is in the store. */
static void start_release(struct keeper *keeper, struct moment until)
{
    keeper->state = RELEASING;
    keeper->release_until = until;
    if (keeper->release_failure)
        keeper->release_failure->cause = CAUSE_NONE;
    disarm_timers(keeper);
    if (!keeper->busy)
        send_release(keeper);
    else if (!keeper->again)
        schedule_next(keeper, until); /* go_without_answer(); with "again", the answer comes */
}

enum end_when {
    END_AT_ONCE,       /* nothing can be left in the store */
    END_AFTER_RELEASE, /* of what is, or may be, left there */
};

/* Returns whether a release must come before the end: the store may have a grant or a place that no
 * answer has reported, or may get one. */
static enum end_when when_to_end(const struct keeper *keeper)
{
    struct moment until = keeper->doubt.until;
    /* The grant of a request that was executed at the last moment is there for a lease. */
    struct moment over = moment_plus(until, keeper->plan.request.lease);
    bool in_store = may_be_executed(keeper) || (until.ns && !moment_reached(over, now_of(keeper)));

    return in_store ? END_AFTER_RELEASE : END_AT_ONCE;
}

/* Ends with that result, at once, or after a release of what may be held. */
static void end_with(struct keeper *keeper, enum keeper_ending ending, const struct answer *why,
                     enum end_when when)
{
    set_result(keeper, ending, why);
    if (when == END_AT_ONCE)
        end_keeper(keeper);
    else
        start_release(keeper, moment_plus(now_of(keeper), LEASE_LAST_CALL_NS));
}

/* Whether set_result() was called: KEEPER_RELEASED (0) is the result until then. */
static bool result_is_known(const struct keeper *keeper)
{
    return keeper->result.ending != KEEPER_RELEASED;
}

/* -- holding -------------------------------------------------------------------------------- */

/* Tells the owner of the keeper that the lock is lost. */
static void report_loss(struct keeper *keeper, const struct keeper_loss *loss)
{
    keeper->loss_told = true;
    keeper->events->lost(keeper->arg, loss);
}

/* Enters LOST, and tells the owner of the keeper, which has to call keeper_release(). */
static void lose_lock(struct keeper *keeper, const struct keeper_loss *loss)
{
    keeper->state = LOST;
    /* The release will be of all the plan's keys: a late acquisition may be granted any of them. */
    keeper->granted.count = 0;
    loop_disarm(keeper->loop, &keeper->next);
    loop_disarm(keeper->loop, &keeper->end);
    report_loss(keeper, loss);
}

/* The timer of the lease: it has ended, and no renewal was answered. The latest failure of the
 * store says why. */
static void on_lease_end(struct loop_timer *timer)
{
    struct keeper *keeper = timer->owner;

    lose_lock(keeper, &(struct keeper_loss){.cause = LOSS_NOT_RENEWED,
                                            .by = "",
                                            .text = outage_trouble(&keeper->outage)});
}

/* Whether the store's pokes matter while the lock is held: it is renewed, or the holder's record
 * promises that it hears requests for the lock. */
static bool needs_events(const struct keeper *keeper)
{
    const char *who = keeper->plan.request.who;

    return keeper->plan.renew || (who && identity_noted(who, strlen(who), LOCK_NOTE_HEARS) > 0);
}

/* Returns when the next renewal is due: after a third of the lease; earlier to confirm a hand-over,
 * or to have the store listen for requests. MOMENT_NEVER: none is. */
static struct moment renew_at(const struct keeper *keeper)
{
    struct moment now = now_of(keeper), due = MOMENT_NEVER;

    if (keeper->handed && keeper->plan.request.mode == LOCK_EXCLUSIVE) {
        /* At a store where requests are in each other's way ("frugal"), it comes later, so that a
         * short command has ended before. */
        int64_t late = keeper->store->frugal ? moment_until(now, keeper->lease.end) / 3 : 0;
        if (late > LISTEN_AFTER_NS)
            late = LISTEN_AFTER_NS;
        return moment_plus(now, late > CONFIRM_AFTER_NS ? late : CONFIRM_AFTER_NS);
    }
    if (keeper->plan.renew)
        due = lease_renew_at(keeper->from, keeper->lease.length);
    if (keeper->unheard && needs_events(keeper)) { /* ask the store to listen, ever more rarely */
        unsigned doublings = keeper->unheard - 1 < LISTEN_MOST ? keeper->unheard - 1 : LISTEN_MOST;
        due = moment_min(due, moment_plus(now, LISTEN_AFTER_NS << doublings));
    }
    return due;
}

/* Arms the timers for the end of the lease, and for the next renewal. */
static void schedule_renewal(struct keeper *keeper)
{
    struct moment renewal = renew_at(keeper);

    loop_arm(keeper->loop, &keeper->end, keeper->lease.end);
    if (keeper->poked) /* during the renewal that was just answered */
        renewal = now_of(keeper);
    keeper->poked = false;
    if (renewal.ns == MOMENT_NEVER.ns)
        loop_disarm(keeper->loop, &keeper->next);
    else /* a lease that counts from long ago makes it due at once, again and again */
        schedule_next(keeper, moment_max(renewal, throttle_next(&keeper->pace)));
}

/* Notes the lease of a grant: it may be shorter than requested. */
static void take_lease(struct keeper *keeper, const struct answer *answer)
{
    int64_t asked = keeper->plan.request.lease, granted = answer->granted.lease;
    int64_t length = granted > 0 && granted < asked ? granted : asked;

    /* Where the store does not say from when the lease counts, it counts from the call. */
    keeper->from = answer->granted.from.ns ? answer->granted.from : keeper->sent;
    keeper->lease = (struct lease){lease_end(keeper->from, length), length};
}

/* Returns the identity of the owner, with a note of how long (ns) it has waited so far. Valid until
 * the next call. */
static const char *identity_with_wait(struct keeper *keeper, int64_t waited)
{
    const char *who = keeper->plan.request.who;

    if (!who || waited < NS_PER_MS)
        return who;
    free(keeper->who);
    keeper->who = identity_note(who, LOCK_NOTE_WAITED, waited / NS_PER_MS);
    return keeper->who;
}

/* Enters HELD: tells the owner of the keeper, and renews the lock from now on. */
static void begin_holding(struct keeper *keeper)
{
    keeper->state = HELD;
    keeper->since = now_of(keeper);
    schedule_renewal(keeper);
    keeper->events->held(keeper->arg, keeper->lease, keeper->grants);
}

/* Enters HELD for a lock that another process had acquired, which has died. */
static void continue_holding(struct keeper *keeper, const struct keeper_past *past)
{
    keeper->state = HELD;
    keeper->since = moment_plus(past->began, past->waited);
    keeper->doubt.state = STORE_HAS_TOLD;
    keeper->lease = past->lease;
    keeper->release_unanswered = past->released;
    note_grants(keeper, past->grants);
    identity_with_wait(keeper, past->waited);
    if (past->released)
        return; /* a lease that ends now is not lost: its user has left it */
    loop_arm(keeper->loop, &keeper->end, past->lease.end);
    if (needs_events(keeper))
        renew_lease(keeper);
}

/* Returns which of the plan's keys the answer to the latest request names, from 1; 0: none. */
static size_t lost_key(const struct keeper *keeper, const struct answer *answer)
{
    const struct acquire_request *lock = &keeper->lock;
    bool chosen = lock->keys == keeper->granted.keys; /* the request has only those */

    if (lock->key_count == 1 || answer->refused.key >= lock->key_count)
        return 0;
    return 1 + (chosen ? keeper->granted.asked[answer->refused.key] : answer->refused.key);
}

#define HOLDER_SIZE 200

/* Returns why the lock is lost, by the answer that refuses a renewal or a release. holder: room for
 * the text of a new holder. The loss borrows both. */
static struct keeper_loss loss_of(const struct keeper *keeper, const struct answer *answer,
                                  char holder[HOLDER_SIZE])
{
    const struct lock_party *now = answer->refused.holder;
    struct keeper_loss loss = {.cause = LOSS_GONE,
                               /* it was asked for: the store has it until the release */
                               .kept = answer->cause == CAUSE_REVOKED,
                               .key = lost_key(keeper, answer),
                               .by = "",
                               .text = answer->text};

    if (answer->cause == CAUSE_MISFIT) {
        loss.cause = LOSS_STATED;
    } else if (answer->refused.foreign) { /* another program holds the mirror, or has deleted it */
        loss.cause = answer->refused.holders > 0 ? LOSS_MIRROR_TAKEN : LOSS_MIRROR_DELETED;
    } else if (answer->refused.revoked) {
        loss.cause = LOSS_REVOKED;
        loss.by = answer->refused.revoked->by;
        loss.text = answer->refused.revoked->why;
    } else if (now) {
        loss.cause = LOSS_TAKEN_BY_UNKNOWN;
        if (now->who.host[0]) {
            loss.cause = LOSS_TAKEN;
            snprintf(holder, HOLDER_SIZE, "%s@%s pid %ld", BRIEF_TEXT(now->who.user, 60),
                     BRIEF_TEXT(now->who.host, 80), now->who.pid);
            loss.by = holder;
        }
    }
    return loss;
}

/* Takes the answer to a renewal. An unknown one is not a loss: the lease runs on until it ends. */
static void on_renewed(void *arg, const struct answer *answer)
{
    struct keeper *keeper = arg;
    char holder[HOLDER_SIZE];

    note_in_flight(keeper, answer); /* a store that has forgotten the lock grants it anew */
    if (!finish_request(keeper, answer) || keeper->state != HELD)
        return; /* the lock was lost or released meanwhile */
    if (answer->verdict != VERDICT_UNKNOWN)
        outage_answered(&keeper->outage, now_of(keeper));
    if (answer->verdict == VERDICT_GRANTED) {
        keeper->handed = false;
        keeper->unheard = answer->granted.not_listening ? keeper->unheard + 1 : 0;
        if (keeper->plan.renew)
            take_lease(keeper, answer);
        schedule_renewal(keeper);
        keeper->events->extended(keeper->arg, keeper->lease, answer->granted.forgotten);
    } else if (answer->verdict == VERDICT_REFUSED) {
        const struct keeper_loss loss = loss_of(keeper, answer, holder);
        lose_lock(keeper, &loss);
    } else if (keeper->plan.renew) {
        schedule_next(keeper, outage_note(&keeper->outage, now_of(keeper), answer));
    } else {
        keeper->unheard++; /* a fixed lease does not depend on it, so the user is told nothing */
        schedule_renewal(keeper);
    }
}

/* Sends the renewal of a held lock, or one that confirms a late grant. done: takes the answer, or
 * the failure at "until". The renewal of a lease that is fixed (not plan.renew) only has the store
 * listen. */
static void send_renewal(struct keeper *keeper, struct moment until, store_done *done)
{
    struct renew_request *request = &keeper->request.renew;
    struct moment now = now_of(keeper);
    bool held = keeper->state == HELD;

    throttle_note(&keeper->pace, now);
    keeper->sent = now;
    keeper->until = until;
    keeper->poked = false;
    choose_keys(keeper);
    if (keeper->who)
        keeper->lock.who = keeper->who;
    if (held)
        keeper->lock.held = moment_until(keeper->since, now);
    if (held && !keeper->plan.renew)
        keeper->lock.lease = lease_rest(now, keeper->lease.end); /* it ends when it would have */
    /* With the grants, a store that has forgotten a held lock makes it again. */
    *request = (struct renew_request){.lock = &keeper->lock,
                                      .grants = held ? keeper->granted.grants : NULL,
                                      .handed = keeper->handed,
                                      .listen = held && !keeper->handed};
    start_operation(
        keeper,
        (struct operation){.verb = VERB_RENEW, .renew = request, .until = until, .done = done});
}

/* Returns how many ns are left until a command would have to end. */
static int64_t time_left(const struct keeper *keeper)
{
    return moment_until(now_of(keeper), lease_term_at(keeper->lease, keeper->plan.kill_after));
}

/* Renews a held lock now. */
static void renew_lease(struct keeper *keeper)
{
    int64_t timeout = lease_request_timeout(keeper->lease.length, keeper->round_trip);
    int64_t least = lease_request_timeout(0, keeper->round_trip), share = time_left(keeper) / 3;

    /* The lease of a hand-over ends soon: time for two more attempts must be left. */
    if (keeper->handed && share <= timeout)
        timeout = share > least ? share : least;
    struct moment until = moment_plus(now_of(keeper), timeout);
    send_renewal(keeper, moment_min(until, keeper->lease.end), on_renewed);
}

/* -- trying and waiting ----------------------------------------------------------------------- */

/* Ends the keeper as the lock was refused: not acquired; or failed, where the store grants nothing
 * at all (GRACE). */
static void end_refused(struct keeper *keeper, enum end_when when)
{
    const struct answer *refusal = refusal_of(keeper);
    bool held = refusal->cause != CAUSE_GRACE;

    end_with(keeper, held ? KEEPER_NOT_ACQUIRED : KEEPER_FAILED, refusal, when);
}

/* Returns when to ask again at the earliest, where a refusal says how long its reason lasts: grace,
 * a pause, or the lease of the first holder. MOMENT_NEVER: it does not say. */
static struct moment refused_until(const struct keeper *keeper, const struct answer *refusal)
{
    int64_t ms = refusal->cause == CAUSE_GRACE    ? refusal->grace_ms
                 : refusal->cause == CAUSE_CLOSED ? refusal->refused.opens_ms
                                                  : refusal->refused.left_ms;
    /* 2 ms more, as the store counts in whole milliseconds. */
    struct moment over = moment_plus(now_of(keeper), (ms + 2) * NS_PER_MS);

    return ms > 0 ? moment_max(over, throttle_next(&keeper->pace)) : MOMENT_NEVER;
}

/* Enters WAITING, until the next heartbeat is due, or the user's time is up. */
static void wait_in_queue(struct keeper *keeper)
{
    const struct answer *refusal = refusal_of(keeper);
    /* Often enough to keep the place, and spread, so that waiters do not ask together. */
    int64_t beat = refusal->refused.next_call_ms * NS_PER_MS / BEATS_IN_A_PLACE;
    if (beat < HEARTBEAT_NS || keeper->disturbed) /* by a poke: the answer may be old */
        beat = HEARTBEAT_NS;
    struct moment due = moment_plus(now_of(keeper), jitter_spread(beat, beat / SPREAD));

    if (refusal->refused.position == 1) /* the first in the queue asks when the lock may be free */
        due = moment_min(due, refused_until(keeper, refusal));
    due = moment_max(due, throttle_next(&keeper->pace));
    keeper->state = WAITING;
    schedule_next(keeper, moment_min(due, keeper->plan.wait_until));
}

/* Enters TRYING, to send an acquisition then, or at the end of the wait. */
static void try_again_at(struct keeper *keeper, struct moment again)
{
    keeper->state = TRYING;
    schedule_next(keeper, keeper->plan.wait ? moment_min(again, keeper->plan.wait_until) : again);
}

/* Takes a refusal: waits; or asks once more, with a request that listens; or ends. */
static void take_refusal(struct keeper *keeper, const struct answer *answer)
{
    bool placed = refusal_of(keeper)->refused.position > 0; /* in the queue, before this answer */
    struct moment again = refused_until(keeper, answer);
    struct moment server_wait = moment_plus(keeper->began, keeper->plan.server_wait);
    /* A user who does not wait for locks waits for a store that grants nothing yet as for one that
     * is away. */
    bool outlasts_grace =
        !keeper->plan.wait && answer->cause == CAUSE_GRACE && !moment_reached(server_wait, again);

    if (!keeper->refusal)
        keeper->refusal = mem_zeroed(sizeof *keeper->refusal);
    answer_keep(keeper->refusal, answer);
    keeper->result.refused_at = now_of(keeper);
    keeper->replaced |= answer->refused.holders > 0; /* with plan.replace, they were asked */
    if (answer->cause == CAUSE_MISFIT) {
        end_with(keeper, KEEPER_FAILED, refusal_of(keeper),
                 placed ? END_AFTER_RELEASE : when_to_end(keeper));
    } else if (outlasts_grace) {
        keeper->events->waiting(keeper->arg, answer);
        try_again_at(keeper, again);
    } else if (!keeper->plan.wait || answer->cause == CAUSE_SUPERSEDED ||
               answer->cause == CAUSE_DONE) {
        end_refused(keeper, when_to_end(keeper));
    } else if (moment_reached(keeper->plan.wait_until, now_of(keeper))) {
        end_refused(keeper, END_AFTER_RELEASE); /* its place would keep others waiting */
    } else if (!keeper->lock.listen) {
        send_acquire(keeper, LISTENING);
    } else {
        keeper->events->waiting(keeper->arg, answer);
        wait_in_queue(keeper);
    }
}

/* Returns when a request that is sent now times out: after ns, and not long after the user stops
 * waiting. */
static struct moment request_deadline(const struct keeper *keeper, int64_t ns)
{
    struct moment now = now_of(keeper), until = moment_plus(now, ns);

    if (!keeper->plan.wait)
        return until;
    return moment_min(until, lease_last_call(now, keeper->plan.wait_until));
}

/* Whether the time that the user waits for the lock is over, for "late" ns at least. */
static bool time_is_up(const struct keeper *keeper, int64_t late)
{
    struct moment end = moment_plus(keeper->plan.wait_until, late);

    return keeper->plan.wait && moment_reached(end, now_of(keeper));
}

/* Whether to try again after a failure. */
static bool may_try_again(struct keeper *keeper, const struct answer *failure)
{
    struct moment now = now_of(keeper);

    /* A server that takes no more clients is waited for as the lock is: others hold what it
     * lacks. */
    if (failure->full && keeper->plan.wait)
        outage_full(&keeper->outage, now);
    return !time_is_up(keeper, 0) && (!failure->full || keeper->plan.wait) &&
           outage_may_pass(&keeper->outage, now, failure);
}

/* Takes an answer that says nothing of the lock (UNKNOWN): tries again, and tells the user of the
 * store's trouble; or ends. */
static void take_failure(struct keeper *keeper, const struct answer *answer)
{
    if (may_try_again(keeper, answer))
        try_again_at(keeper, outage_note(&keeper->outage, now_of(keeper), answer));
    else
        end_with(keeper, KEEPER_FAILED, outage_give_up(&keeper->outage, now_of(keeper), answer),
                 when_to_end(keeper));
}

static void on_confirmed(void *arg, const struct answer *answer);

/* Returns how many ns an answer may take so that its grant is of use. */
static int64_t longest_useful_answer(const struct keeper *keeper)
{
    return lease_round_trip_most(keeper->lease.length, keeper->plan.renew);
}

/* Ends, as the store is too far away for such a lease: it would be over when its grant arrives, or
 * could not be renewed in time. Tells by result.far how long a round trip is, and which lease would
 * do. */
static void end_too_far(struct keeper *keeper)
{
    static const struct answer unfit = {.cause = CAUSE_UNFIT};
    bool granted_less = keeper->lease.length != keeper->plan.request.lease;
    /* An answer that has not come takes longer than it was waited for. */
    int64_t waited = longest_useful_answer(keeper),
            trip = keeper->took > waited ? keeper->took : waited;

    keeper->result.far.round_trip = trip;
    keeper->result.far.lease = keeper->lease.length;
    keeper->result.far.needed = granted_less ? 0 : lease_for_round_trip(trip, keeper->plan.renew);
    end_with(keeper, KEEPER_FAILED, &unfit, END_AFTER_RELEASE);
}

/* Takes a grant: holds the lock; or renews it first, if the grant is late: perhaps its request was
 * the connection's first one, or this process was stopped; or releases it, if its owner is
 * absent. */
static void take_grant(struct keeper *keeper, const struct answer *answer)
{
    take_lease(keeper, answer);
    int64_t worth = longest_useful_answer(keeper);
    if (owner_is_absent(keeper)) {
        keeper_restart(keeper);
    } else if (moment_until(keeper->from, now_of(keeper)) <= worth) {
        begin_holding(keeper);
    } else if (keeper->took > worth && ++keeper->late == LATE_MAX) {
        end_too_far(keeper);
    } else { /* also if its answer was quick, and the lease counts from long before */
        keeper->state = CONFIRMING;
        send_renewal(keeper, request_deadline(keeper, worth), on_confirmed);
    }
}

/* The renewal of a late grant was not answered (UNKNOWN): tries for the lock again, or ends. */
static void take_unconfirmed(struct keeper *keeper, const struct answer *answer)
{
    /* The user is not told of one slow answer. */
    bool slow = answer->cause == CAUSE_UNREACHABLE && answer->maybe_done;

    keeper->doubt.state = STORE_MAY_GRANT; /* the lock may be held all the same */
    if (slow && ++keeper->late == LATE_MAX) {
        end_too_far(keeper);
    } else if (slow && may_try_again(keeper, answer)) {
        try_again_at(keeper, outage_pause(&keeper->outage, now_of(keeper)));
    } else {
        take_failure(keeper, answer);
    }
}

/* Takes the answer to the renewal of a grant that came late. */
static void on_confirmed(void *arg, const struct answer *answer)
{
    struct keeper *keeper = arg;

    if (!finish_request(keeper, answer))
        return;
    if (answer->verdict != VERDICT_UNKNOWN)
        outage_answered(&keeper->outage, now_of(keeper));
    if (answer->verdict == VERDICT_GRANTED) {
        /* The grants of the keys that were granted, as they are now, in both lists of them. */
        for (size_t i = 0; i < keeper->granted.count; i++)
            keeper->grants[keeper->granted.asked[i]] = keeper->granted.grants[i] =
                answer->granted.grants[i];
        keeper->unheard = answer->granted.not_listening;
        take_grant(keeper, answer);
    } else if (answer->verdict == VERDICT_REFUSED) {
        send_acquire(keeper, NOT_LISTENING);
    } else {
        take_unconfirmed(keeper, answer);
    }
}

/* Takes the answer to an acquisition. */
static void on_acquired(void *arg, const struct answer *answer)
{
    struct keeper *keeper = arg;

    /* The possible contents of the store are noted even if the answer does not count any more. */
    note_in_flight(keeper, answer);
    keeper->refused = answer->verdict == VERDICT_REFUSED;
    if (answer->maybe_done)
        keeper->doubt.state = STORE_MAY_GRANT;
    else if (answer->verdict != VERDICT_UNKNOWN && keeper->doubt.state == STORE_IS_EMPTY)
        keeper->doubt.state = STORE_HAS_TOLD;
    if (!finish_request(keeper, answer))
        return;
    if (answer->verdict != VERDICT_UNKNOWN) {
        keeper->doubt.state = STORE_HAS_TOLD;
        keeper->plan.request.from_dead_agent = false;
        outage_answered(&keeper->outage, now_of(keeper));
    }
    switch (answer->verdict) {
    case VERDICT_GRANTED:
        note_grants(keeper, answer->granted.grants);
        keeper->unheard = answer->granted.not_listening;
        take_grant(keeper, answer);
        break;
    case VERDICT_REFUSED:
        if (answer->cause == CAUSE_REVOKED) {
            /* An older request was granted, and the lock was asked for since, or some of the keys
             * were taken away. Nothing runs under it. It has to be gone before it is acquired
             * again, so the release has as much time as an acquisition. */
            keeper->again = true;
            start_release(keeper, moment_plus(now_of(keeper), keeper->plan.connect_timeout));
        } else {
            take_refusal(keeper, answer);
        }
        break;
    case VERDICT_UNKNOWN: take_failure(keeper, answer); break;
    }
}

/* Enters PAUSED, as the owner is absent: no acquisition is sent. A waiter without heartbeats is
 * passed by those behind it, and may return to its place. */
static void pause_trying(struct keeper *keeper)
{
    keeper->state = PAUSED;
    loop_disarm(keeper->loop, &keeper->next);
    if (may_be_granted(keeper)) /* that grant is released when the request's time is over */
        schedule_next(keeper, keeper->doubt.until);
    else if (refusal_of(keeper)->cause != CAUSE_NONE)
        schedule_next(keeper, keeper->plan.wait_until);
}

/* Sends an acquisition after an earlier one. */
static void send_another(struct keeper *keeper)
{
    /* At a store that has answered, a waiter most likely waits on: that saves a round trip. */
    bool listens = keeper->outage.contacted && keeper->plan.wait;

    send_acquire(keeper, listens ? LISTENING : NOT_LISTENING);
}

void keeper_resume(struct keeper *keeper)
{
    if (keeper->state == PAUSED)
        send_another(keeper);
}

/* The store has poked an absent owner, whose turn it may be: releases its place in the queue, which
 * would keep all others out. The owner gets the place again later, if the store can. */
static void step_aside(struct keeper *keeper)
{
    keeper->called = false;
    keeper_restart(keeper);
}

/* Enters TRYING, and sends an acquisition; PAUSED for an absent owner. The first one does not
 * listen: at most stores that costs less, and most are granted. After a refusal, and with every
 * heartbeat, one that listens follows, so that no release goes unnoticed. */
static void send_acquire(struct keeper *keeper, enum listening listening)
{
    if (owner_is_absent(keeper)) {
        if (keeper->called)
            step_aside(keeper);
        else
            pause_trying(keeper);
        return;
    }

    struct acquire_request *request = &keeper->lock;
    struct moment now = now_of(keeper);
    int64_t attempt = keeper->plan.connect_timeout;

    *request = keeper->plan.request;
    request->waited = moment_until(keeper->began, now);
    request->who = identity_with_wait(keeper, request->waited);
    request->queue = keeper->plan.wait;
    /* At a frugal store, one request is better than two. */
    request->listen = listening == LISTENING || (request->queue && keeper->store->frugal);
    request->replace &= !keeper->replaced; /* holders are asked to release once */
    request->uncertain = !moment_reached(keeper->doubt.until, now);
    /* The lease of a hand-over ends soon: it must be renewed. */
    request->accept_by_message =
        request->listen && keeper->plan.renew && !keeper->plan.whole && request->key_count == 1;
    throttle_note(&keeper->pace, now);
    keeper->state = TRYING;
    keeper->handed = keeper->called = keeper->disturbed = keeper->refused = false;
    keeper->granted.count = 0;
    keeper->sent = now;
    keeper->until =
        moment_min(request_deadline(keeper, attempt), outage_limit(&keeper->outage, now, attempt));
    loop_disarm(keeper->loop, &keeper->next);
    start_operation(keeper, (struct operation){.verb = VERB_ACQUIRE,
                                               .acquire = request,
                                               .until = keeper->until,
                                               .done = on_acquired});
}

/* -- releasing ------------------------------------------------------------------------------- */

/* A release is done, or has failed, or was not needed: ends the keeper, or acquires the lock anew
 * if "again" asks for it. */
static void end_release(struct keeper *keeper)
{
    /* A release that was not answered may still be executed: nothing is acquired before that time
     * is over. */
    bool in_flight = keeper->release_unanswered && !moment_reached(keeper->until, now_of(keeper));

    if (!keeper->again) {
        end_keeper(keeper);
        return;
    }
    keeper->again = false;
    keeper->loss_told = false;
    keeper->release_unanswered = false;
    keeper->late = 0;
    keeper->state = TRYING;
    if (in_flight)
        schedule_next(keeper, keeper->until);
    else
        send_acquire(keeper, NOT_LISTENING);
}

/* A release has not found the lock, or not all of its keys: reports that it was lost before, unless
 * an earlier release may have freed it. */
static void report_release_loss(struct keeper *keeper, const struct answer *answer)
{
    static const struct answer late = {.cause = CAUSE_NOT_HOLDER,
                                       .text = "the store no longer has it"};
    /* For a release that has worked, but lacked a key: its number, from 1, is answer->lost. */
    const struct answer missing = {.cause = CAUSE_NOT_HOLDER, .refused.key = answer->lost - 1};
    char holder[HOLDER_SIZE];

    if (keeper->loss_told || (keeper->release_unanswered && !answer->refused.revoked))
        return;
    /* After the end of the lease it is not lost, as its user has left it before. */
    if (!answer->refused.revoked && moment_reached(keeper->lease.end, now_of(keeper))) {
        set_result(keeper, KEEPER_UNRELEASED, &late);
        return;
    }
    const struct keeper_loss loss =
        loss_of(keeper, answer->verdict == VERDICT_REFUSED ? answer : &missing, holder);
    report_loss(keeper, &loss);
}

/* Takes the answer to a release. A release that is not answered is repeated until its time is over;
 * then it has failed. */
static void on_released(void *arg, const struct answer *answer)
{
    struct keeper *keeper = arg;
    bool known = result_is_known(keeper) || keeper->again;

    keeper->busy = false;
    if (!known && (answer->verdict == VERDICT_REFUSED || answer->lost))
        report_release_loss(keeper, answer);
    if (answer->verdict == VERDICT_UNKNOWN) {
        keeper->release_unanswered |= answer->maybe_done;
        if (!keeper->release_failure)
            keeper->release_failure = mem_zeroed(sizeof *keeper->release_failure);
        store_note_failure(keeper->release_failure, answer);
        struct moment now = now_of(keeper);
        make_up_time(keeper);
        if (answer->cause != CAUSE_DENIED && !moment_reached(keeper->release_until, now)) {
            schedule_next(keeper,
                          moment_min(outage_pause(&keeper->outage, now), keeper->release_until));
            return;
        }
        if (keeper->again && answer->cause == CAUSE_DENIED) {
            /* The lock is never free for another try. */
            end_with(keeper, KEEPER_FAILED, answer, END_AT_ONCE);
            return;
        }
        /* The store fails now: whether others hold the lock is not known. */
        if (keeper->result.ending == KEEPER_NOT_ACQUIRED)
            set_result(keeper, KEEPER_FAILED, keeper->release_failure);
        else if (!known)
            set_result(keeper, KEEPER_UNRELEASED, keeper->release_failure);
    }
    if (answer->verdict != VERDICT_UNKNOWN && !known)
        outage_answered(&keeper->outage, now_of(keeper));
    end_release(keeper);
}

/* Returns the request that releases "lock", and says how its use has ended. */
static struct release_request release_of(const struct keeper *keeper,
                                         const struct acquire_request *lock)
{
    bool used = keeper->use.how != LOCK_UNUSED && keeper->use.how != LOCK_LOST;
    struct release_request request = {
        .lock = lock, .at_least = used ? keeper->plan.at_least : 0, .end = keeper->use};

    if (keeper->result.ending == KEEPER_NOT_ACQUIRED)
        request.end.how = LOCK_REFUSED;
    return request;
}

/* Whether the lock must stay in the store: the owner had it before this keeper (request.had), and
 * the store has not said otherwise. */
static bool leaves_lock(const struct keeper *keeper)
{
    return keeper->plan.request.had && !keeper->refused;
}

/* Sends a release, or ends the release at once, if nothing can be in the store, or what is there
 * should stay. */
static void send_release(struct keeper *keeper)
{
    struct release_request *request = &keeper->request.release;
    struct moment now = now_of(keeper);
    int64_t timeout = lease_request_timeout(0, keeper->round_trip);

    loop_disarm(keeper->loop, &keeper->next);
    if (keeper->doubt.state == STORE_IS_EMPTY || leaves_lock(keeper)) {
        end_release(keeper);
        return;
    }
    make_up_time(keeper);
    keeper->until = moment_min(keeper->release_until,
                               moment_plus(now, timeout > RELEASE_NS ? timeout : RELEASE_NS));
    choose_keys(keeper);
    *request = release_of(keeper, &keeper->lock);
    /* The release must not undo that acquisition later, and gives the place in the queue back. */
    request->in_time = request->returns = keeper->again;
    /* An owner that acquires again may be granted the lock by an older request of its own. */
    request->uncertain = may_be_granted(keeper) || (!keeper->again && may_be_executed(keeper));
    start_operation(keeper, (struct operation){.verb = VERB_RELEASE,
                                               .release = request,
                                               .until = keeper->until,
                                               .done = on_released});
}

/* -- timers and the store's events ------------------------------------------------------------- */

/* In RELEASING, the request that was under way is not answered in time: gives it up, and releases
 * what it may leave. */
static void go_without_answer(struct keeper *keeper)
{
    static const struct answer silence = {.cause = CAUSE_UNREACHABLE, .text = "no answer in time"};
    struct release_request request = release_of(keeper, &keeper->plan.request);

    request.uncertain = true;
    /* Over a connection that is up, without an answer; else there may be time for another one. */
    enum release_sent sent =
        leaves_lock(keeper) ? RELEASE_SENT : store_release_nowait(keeper->store, &request);
    keeper->busy = false;
    if (sent == RELEASE_BLOCKED) /* the request may be done all the same */
        keeper->doubt.state = STORE_MAY_GRANT;
    if (!result_is_known(keeper))
        set_result(keeper, KEEPER_UNRELEASED, &silence);
    make_up_time(keeper);
    if (sent == RELEASE_SENT || moment_reached(keeper->release_until, now_of(keeper)) ||
        keeper->doubt.state == STORE_IS_EMPTY)
        end_keeper(keeper);
    else
        send_release(keeper);
}

/* The timer: does what is due in this state. */
static void on_timer(struct loop_timer *timer)
{
    struct keeper *keeper = timer->owner;

    if (keeper->busy) { /* a request has its own deadline, but a release does not wait for it */
        if (keeper->state == RELEASING)
            go_without_answer(keeper);
        return;
    }
    switch (keeper->state) {
    case WAITING:
        /* Where the machine or this process stood still, the latest answer is old: the store is
         * asked once more. */
        if (time_is_up(keeper, 0) && !time_is_up(keeper, STAND_STILL_NS))
            end_refused(keeper, END_AFTER_RELEASE);
        else
            send_acquire(keeper, LISTENING);
        break;
    case PAUSED:
        if (may_be_granted(keeper)) { /* its time is over: see pause_trying() */
            keeper->doubt.state = STORE_HAS_TOLD;
            keeper_restart(keeper);
        } else { /* the user's time is up */
            end_refused(keeper, END_AFTER_RELEASE);
        }
        break;
    case TRYING: send_another(keeper); break;
    case HELD:
        if (keeper->on_hold)
            keeper->poked = true; /* keeper_allow_renewals() renews it */
        else
            renew_lease(keeper);
        break;
    case RELEASING: send_release(keeper); break;
    case CONFIRMING:
    case LOST:
    case OVER: break;
    }
}

/* The store pokes: asks it at once, as far as the throttle allows; in PAUSED, gives up the turn. A
 * poke during a request is noted for when that is answered. */
static void on_poked(void *arg)
{
    struct keeper *keeper = arg;
    struct moment next = throttle_next(&keeper->pace);
    bool held = keeper->state == HELD && needs_events(keeper);
    bool paused = keeper->state == PAUSED && keeper->doubt.state != STORE_IS_EMPTY;

    keeper->poked = held && keeper->busy;
    keeper->disturbed |= keeper->busy && keeper->state == TRYING;
    if (keeper->busy || (keeper->state != WAITING && !held && !paused))
        return;
    keeper->called = !held;
    if (paused)
        step_aside(keeper);
    else if ((held && keeper->on_hold) || !moment_reached(next, now_of(keeper))) /* not yet */
        schedule_next(keeper, moment_min(keeper->next.due, next));
    else if (held)
        renew_lease(keeper);
    else
        send_acquire(keeper, NOT_LISTENING);
}

/* The store hands the lock over: holds it, if there is time for a renewal, due soon, that confirms
 * it; otherwise asks the store. The lease counts from the heartbeat before. */
static void on_handed(void *arg, const struct answer *grant)
{
    struct keeper *keeper = arg;
    int64_t trips = lease_request_timeout(0, keeper->round_trip);

    if (keeper->busy || (keeper->state != WAITING && keeper->state != PAUSED))
        return; /* an answer to the request will tell */
    take_lease(keeper, grant);
    if (owner_is_absent(keeper)) {
        keeper_restart(keeper);
    } else if (time_left(keeper) >= (trips > CONFIRM_NS ? trips : CONFIRM_NS)) {
        keeper->handed = true;
        keeper->unheard = 0;
        note_grants(keeper, grant->granted.grants);
        begin_holding(keeper);
    } else {
        keeper->doubt.state = STORE_MAY_GRANT;
        on_poked(keeper);
    }
}

static const struct store_events store_events = {on_poked, on_handed};

/* Makes a keeper, which has not sent anything yet. The time that the store may take for its first
 * answer begins. */
static struct keeper *make_keeper(struct loop *loop, struct store *store,
                                  const struct keeper_plan *plan,
                                  const struct keeper_events *events, void *arg)
{
    struct keeper *keeper = mem_checked(malloc(sizeof *keeper));
    int64_t lease = plan->request.lease, connecting = plan->connect_timeout;

    *keeper =
        (struct keeper){.loop = loop, .store = store, .plan = *plan, .events = events, .arg = arg};
    keeper->plan.request.numbered = !plan->reused;
    keeper->next = (struct loop_timer){.fire = on_timer, .owner = keeper};
    keeper->use.how = LOCK_UNUSED;
    keeper->result.why = &no_answer;
    keeper->end = (struct loop_timer){.fire = on_lease_end, .owner = keeper, .urgent = true};
    keeper->began = now_of(keeper);
    /* A store that has answered before and fails is given up after a lease: by then all its holders
     * are gone. */
    outage_begin(&keeper->outage, loop, keeper->began, plan->server_wait,
                 lease > connecting ? lease : connecting, &events->outage, arg);
    keeper->outage.patient = plan->wait;
    store_on_event(store, &store_events, keeper);
    return keeper;
}

struct keeper *keeper_start(struct loop *loop, struct store *store, const struct keeper_plan *plan,
                            const struct keeper_events *events, void *arg)
{
    struct keeper *keeper = make_keeper(loop, store, plan, events, arg);

    send_acquire(keeper, NOT_LISTENING);
    return keeper;
}

struct keeper *keeper_take_over(struct loop *loop, struct store *store,
                                const struct keeper_plan *plan, const struct keeper_past *past,
                                const struct keeper_events *events, void *arg)
{
    struct keeper *keeper = make_keeper(loop, store, plan, events, arg);

    keeper->began = past->began;
    keeper->plan.request.from_dead_agent = true;
    /* A request of the process that died may have gone out before the store had told its clock. */
    keeper->doubt.unlimited = true;
    if (past->held) {
        outage_inherit(&keeper->outage, past->lease.end);
        continue_holding(keeper, past);
    } else {
        keeper->doubt.state = STORE_MAY_GRANT;
        keeper->doubt.until = moment_plus(now_of(keeper), plan->connect_timeout);
        /* The process that died would have ended by now, had the store never answered it. */
        if (moment_reached(moment_plus(past->began, plan->server_wait), now_of(keeper)))
            outage_inherit(&keeper->outage, keeper->doubt.until);
        schedule_next(keeper, now_of(keeper));
    }
    return keeper;
}

void keeper_free(struct keeper *keeper)
{
    disarm_timers(keeper);
    outage_free(&keeper->outage);
    free(keeper->release_failure);
    free(keeper->refusal);
    free(keeper->who);
    free(keeper);
}

const char *keeper_trouble(const struct keeper *keeper)
{
    return outage_trouble(&keeper->outage);
}

void keeper_verify(struct keeper *keeper)
{
    if (keeper->state == HELD && !keeper->busy)
        renew_lease(keeper);
}

void keeper_hold_renewals(struct keeper *keeper)
{
    keeper->on_hold = true;
}

void keeper_allow_renewals(struct keeper *keeper)
{
    /* on_timer() has noted a renewal that became due as a poke. */
    bool missed = keeper->on_hold && keeper->state == HELD && keeper->poked;

    keeper->on_hold = false;
    if (missed && !keeper->busy && !keeper->next.armed)
        renew_lease(keeper);
}

void keeper_release(struct keeper *keeper, struct moment until, const struct lock_end *end)
{
    keeper->use = end ? *end : (struct lock_end){.how = LOCK_UNUSED};
    start_release(keeper, until);
}

void keeper_cancel(struct keeper *keeper, struct moment until)
{
    bool under_way = keeper->busy;

    set_result(keeper, KEEPER_CANCELLED, &no_answer);
    keeper->again = false;
    start_release(keeper, until);
    if (under_way) /* its answer is waited for, but not long: go_without_answer() */
        schedule_next(keeper, moment_min(until, moment_plus(now_of(keeper), LAST_ANSWER_NS)));
}

void keeper_restart(struct keeper *keeper)
{
    struct moment until = moment_plus(now_of(keeper), LEASE_LAST_CALL_NS);

    if (owner_is_absent(keeper)) /* it waits for nothing: there is time to release the lock */
        until = moment_max(until, lease_end(keeper->sent, keeper->plan.request.lease));
    keeper->again = true;
    start_release(keeper, until);
}
