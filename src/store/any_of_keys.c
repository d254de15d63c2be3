/* Some of several keys.
 *
 * An acquisition goes through these phases:
 *
 *   TRY        Takes key after key, in the order given, without waiting for any, until it has
 *              enough. Left out by an owner that may have places in the queues already.
 *   STAND      Asks all keys at the same time for a place in the queue. Enough are free, and the
 *              owner comes first there: TAKE. Otherwise it is refused.
 *   TAKE       Takes those. Nobody else can get them meanwhile but by way of a pause or the like:
 *              then GIVE_BACK, and STAND once more.
 *   GIVE_BACK  Of what is held, nothing stays that is not enough.
 *   LEAVE      It has enough: leaves the other queues, and gives back what was granted beyond that.
 *              What does not answer soon is left to itself: a place is over when nobody asks for it
 *              any more. A lock that may have been granted without an answer is given back as soon
 *              as its server answers, and otherwise ends with its lease.
 *
 * Owners that want several of the keys could wait for each other: each comes first at a free key
 * that is of no use to it alone. Their places are not taken at all keys at once, so there is no
 * order among them that is the same everywhere. Whoever sees another one first at a free key for a
 * while goes to the end of those queues where it comes first itself: soon if it came later than the
 * other one, after a longer time otherwise, and after twice the time again and again. In a circle
 * there is always one that does.
 *
 * All leases count from the earliest of the grants. */
#include "store/any_of_keys.h"

#include <stdlib.h>
#include <string.h>

#include "base/jitter.h"
#include "base/mem.h"
#include "net/loop.h"
#include "store/any_part.h"
#include "store/layer.h"

/* How long a place may be asked for at a server that has not answered before: the places at the
 * others are kept for 7 s. And how long at most to take. */
#define STAND_NS (3 * NS_PER_SEC)
/* How long the other queues are left before the grant is told, which the rest follows. */
#define PARTING_NS (200 * NS_PER_MS)
/* What was told so short a time ago is still so, unless somebody has called since. */
#define FRESH_NS NS_PER_SEC
/* How often a key is asked about in one acquisition, whoever calls; and how often is taken. */
#define TIMES_MAX  3
#define ROUNDS_MAX 4
/* How long another one may be first at a free key before one gives way that came later, or one
 * that came earlier; and the most that this grows to. */
#define GIVE_WAY_NS      (500 * NS_PER_MS)
#define GIVE_WAY_LATE_NS (2 * NS_PER_SEC)
#define GIVE_WAY_MAX_NS  (16 * NS_PER_SEC)

enum task { TASK_NONE, TASK_ACQUIRE, TASK_EACH };
enum phase { TRY, STAND, TAKE, GIVE_BACK, LEAVE };

struct any_of_keys {
    struct store_layer layer; /* above a store for all that is not about some of several keys */
    struct loop *loop;

    struct part_home home;
    struct part *parts;
    bool granted; /* the latest acquisition */

    /* The operation under way. */
    enum task task;
    enum phase phase;
    bool releases, uncertain; /* TASK_EACH */
    struct moment until;
    store_done *done;
    void *arg;
    struct answer result;
    bool again; /* GIVE_BACK: and then STAND */
    unsigned rounds;
    struct loop_timer timer; /* its beginning, and its end at the latest */

    /* Giving way. */
    struct moment began;       /* since when the owner stands in queues; zero */
    struct moment stuck_since; /* zero: it is not */
    unsigned given_way;        /* how often */
    struct loop_timer later;   /* between operations: what is to be done then */
};

static struct any_of_keys *of(struct store *base)
{
    return (struct any_of_keys *)(void *)base;
}

static struct moment now_of(const struct any_of_keys *any)
{
    return loop_now(any->loop);
}

static struct moment in(const struct any_of_keys *any, int64_t ns)
{
    return moment_plus(now_of(any), ns);
}

static void advance(struct any_of_keys *any);
static void arm_later(struct any_of_keys *any);

/* Some part has been called. */
static void poked(void *arg)
{
    struct any_of_keys *any = arg;

    if (any->task == TASK_NONE)
        store_poke(&any->layer.base);
    else if (any->task == TASK_ACQUIRE && any->phase == STAND)
        advance(any);
}

static void answered(void *arg)
{
    advance(arg);
}

/* -- parts ------------------------------------------------------------------------------------- */

static void drop_parts(struct any_of_keys *any)
{
    for (size_t i = 0; i < any->home.count; i++) {
        part_close(&any->parts[i]);
        free(any->parts[i].key);
    }
    free(any->parts);
    free(any->home.owner);
    any->parts = NULL;
    any->home.owner = NULL;
    any->home.count = 0;
    any->granted = false;
    any->began = any->stuck_since = (struct moment){0};
    any->given_way = 0;
    loop_disarm(any->loop, &any->later);
}

static struct part *find_part(struct any_of_keys *any, const char *key)
{
    for (size_t i = 0; i < any->home.count; i++) {
        if (strcmp(any->parts[i].key, key) == 0)
            return &any->parts[i];
    }
    return NULL;
}

/* Whether what is known is about this owner, and all of these keys. */
static bool knows(struct any_of_keys *any, const struct lock_request *request)
{
    bool known = any->home.owner && strcmp(any->home.owner, request->owner) == 0;

    for (size_t i = 0; known && i < request->key_count; i++)
        known = find_part(any, request->keys[i]) != NULL;
    return known;
}

/* inherited: another process has asked for the same until now. */
static void make_parts(struct any_of_keys *any, const struct lock_request *request)
{
    struct moment now = now_of(any);

    drop_parts(any);
    any->home.owner = mem_strdup(request->owner);
    any->home.count = request->key_count;
    any->parts = mem_zeroed(any->home.count * sizeof *any->parts);
    for (size_t i = 0; i < any->home.count; i++) {
        any->parts[i] = (struct part){.home = &any->home, .key = mem_strdup(request->keys[i])};
        if (!request->inherited)
            continue;
        any->parts[i].hold = HOLD_PLACE;
        any->parts[i].unsure = true;
        any->parts[i].loose_until = now;
        any->parts[i].stray_until = moment_plus(now, request->lease);
    }
}

static size_t count_doing(const struct any_of_keys *any, enum doing doing)
{
    size_t found = 0;

    for (size_t i = 0; i < any->home.count; i++)
        found += any->parts[i].doing == doing;
    return found;
}

/* The places and locks that are left to themselves do not count. */
static bool is_busy(const struct any_of_keys *any)
{
    return count_doing(any, IDLE) < any->home.count;
}

static size_t count_locks(const struct any_of_keys *any)
{
    size_t found = 0;

    for (size_t i = 0; i < any->home.count; i++)
        found += any->parts[i].hold == HOLD_LOCK;
    return found;
}

static size_t count_ready(const struct any_of_keys *any)
{
    size_t found = 0;

    for (size_t i = 0; i < any->home.count; i++)
        found += part_is_ready(&any->parts[i]);
    return found;
}

/* -- the end of an operation ------------------------------------------------------------------- */

static void finish(struct any_of_keys *any)
{
    struct answer result = any->result; /* "done" may begin the next operation */

    any->task = TASK_NONE;
    loop_disarm(any->loop, &any->timer);
    arm_later(any);
    any->done(any->arg, &result);
}

/* -- acquiring --------------------------------------------------------------------------------- */

static void begin_phase(struct any_of_keys *any, enum phase phase)
{
    any->phase = phase;
    advance(any);
}

/* all: places as well. again: the owner wants them back, and to stand in the queues once more. */
static void give_back(struct any_of_keys *any, bool all, bool again)
{
    any->again = again;
    any->phase = GIVE_BACK;
    for (size_t i = 0; i < any->home.count; i++) {
        struct part *part = &any->parts[i];
        if (part->doing == IDLE && (part->hold == HOLD_LOCK || (all && part_has_something(part))))
            part_leave(part, again);
    }
    advance(any);
}

/* The share of the time that is left for each key that was not tried yet, and for the queues. */
static struct moment share(const struct any_of_keys *any)
{
    struct moment now = now_of(any);
    int64_t left = any->home.request.queue;

    for (size_t i = 0; i < any->home.count; i++)
        left += !any->parts[i].tried;
    return moment_plus(now, moment_until(now, any->until) / (left > 1 ? left : 1));
}

/* The next one in the order given; first those that may be held already, last those that did not
 * answer, which are not waited for where there is a queue. NULL: all were tried. */
static struct part *next_to_try(const struct any_of_keys *any)
{
    struct part *next = NULL, *late = NULL;

    for (size_t i = 0; i < any->home.count; i++) {
        struct part *part = &any->parts[i];
        if (part->tried || !part_may_be_asked(part))
            continue;
        if (part->unsure)
            return part;
        if (!part->failed && !next)
            next = part;
        if (part->failed && !any->home.request.queue && !late)
            late = part;
    }
    return next ? next : late;
}

/* What is told of all: of those that are not free, rather one that others hold than one where
 * nobody is let in. The best place, and when the first may be free where the owner comes first. */
static void describe(struct any_of_keys *any)
{
    const struct part *told = NULL;
    int64_t position = 0, soonest = 0;
    bool requeued = false;
    int best = 0;

    for (size_t i = 0; i < any->home.count; i++) {
        const struct part *part = &any->parts[i];
        const struct answer *answer = &part->answer;
        if (!part->heard.ns || answer->verdict == VERDICT_GRANTED)
            continue;
        bool refused = answer->verdict == VERDICT_REFUSED;
        int rank = !refused                        ? 1
                   : part_is_ready(part)           ? 2
                   : answer->cause == CAUSE_CLOSED ? 3
                   : answer->holders == 0          ? 4
                                                   : 5;
        if (rank > best) {
            best = rank;
            told = part;
        }
        requeued |= refused && answer->requeued;
        if (refused && !part_is_ready(part) && (position == 0 || answer->position < position))
            position = answer->position;
        if (refused && answer->position == 1 && answer->left_ms > 0 &&
            (soonest == 0 || answer->left_ms < soonest))
            soonest = answer->left_ms;
    }
    if (!told) {
        answer_fail(&any->result, CAUSE_UNREACHABLE, "no answer in time");
        return;
    }
    any->result = told->answer;
    any->result.key = (size_t)(told - any->parts);
    if (any->result.verdict != VERDICT_REFUSED || !any->home.request.queue)
        return;
    any->result.position = position ? position : 1;
    any->result.requeued = requeued;
    if (soonest)
        any->result.left_ms = soonest;
}

/* What is neither granted nor refused may be granted: nobody can tell whether enough are free. Or
 * they cannot be, and that one may be held all the same. */
static void describe_try(struct any_of_keys *any)
{
    size_t open = count_locks(any);
    const struct part *failed = NULL;
    bool maybe_done = false;

    for (size_t i = 0; i < any->home.count; i++) {
        maybe_done |= any->parts[i].unsure;
        if (any->parts[i].answer.verdict != VERDICT_UNKNOWN)
            continue;
        open++;
        failed = &any->parts[i];
    }
    describe(any);
    any->result.maybe_done |= maybe_done;
    if (!failed || open < any->home.request.take)
        return;
    any->result = failed->answer;
    any->result.key = (size_t)(failed - any->parts);
}

/* Refused in a way that no other key makes up for. */
static const struct part *find_end(const struct any_of_keys *any)
{
    for (size_t i = 0; i < any->home.count; i++) {
        const struct answer *answer = &any->parts[i].answer;
        bool end = answer->cause == CAUSE_MISFIT || answer->cause == CAUSE_SUPERSEDED ||
                   answer->cause == CAUSE_DONE;
        if (any->parts[i].heard.ns && answer->verdict == VERDICT_REFUSED && end)
            return &any->parts[i];
    }
    return NULL;
}

static void end_by(struct any_of_keys *any, const struct part *end)
{
    any->result = end->answer;
    any->result.key = (size_t)(end - any->parts);
    give_back(any, true, false);
}

static void try_next(struct any_of_keys *any)
{
    struct part *next = next_to_try(any);

    if (count_doing(any, TAKING) > 0)
        return;
    if (count_locks(any) >= any->home.request.take) {
        begin_phase(any, LEAVE);
    } else if (find_end(any)) {
        end_by(any, find_end(any));
    } else if (!next) {
        if (!any->home.request.queue)
            describe_try(any);
        give_back(any, false, any->home.request.queue);
    } else {
        part_ask(next, TAKING, share(any));
        if (next->doing == IDLE)
            try_next(any);
    }
}

static bool needs_asking(const struct any_of_keys *any, const struct part *part)
{
    bool fresh = part->heard.ns && moment_until(part->heard, now_of(any)) < FRESH_NS;

    if (!part_may_be_asked(part) || part->hold == HOLD_LOCK)
        return false;
    if (part->times == 0)
        return part->hold != HOLD_PLACE || part->poked || part->unsure || !fresh;
    return (part->poked || !part->heard.ns) && part->times < TIMES_MAX;
}

static void stand_where_needed(struct any_of_keys *any)
{
    for (size_t i = 0; i < any->home.count; i++) {
        struct part *part = &any->parts[i];
        struct moment until = part->failed ? moment_min(any->until, in(any, STAND_NS)) : any->until;
        if (needs_asking(any, part))
            part_ask(part, STANDING, until);
    }
}

/* Who came first has more time. It is known for how long the other one has waited there. */
static int64_t patience(const struct any_of_keys *any)
{
    int64_t age = moment_until(any->began, now_of(any));
    int64_t most = GIVE_WAY_LATE_NS;
    unsigned times = any->given_way < 5 ? any->given_way : 5;

    for (size_t i = 0; i < any->home.count; i++) {
        const struct part *part = &any->parts[i];
        if (part_is_kept_by_another(part) && part->answer.first.age_ms * NS_PER_MS > age)
            most = GIVE_WAY_NS;
    }
    most <<= times;
    return most < GIVE_WAY_MAX_NS ? most : GIVE_WAY_MAX_NS;
}

/* Whether it comes first at a free key, and not at enough, and another one does at another. */
static bool is_stuck(const struct any_of_keys *any)
{
    bool kept = false;

    for (size_t i = 0; i < any->home.count; i++)
        kept |= part_is_kept_by_another(&any->parts[i]);
    return kept && count_ready(any) > 0;
}

/* When to give way; MOMENT_NEVER: there is no reason to. */
static struct moment gives_way_at(const struct any_of_keys *any)
{
    return any->stuck_since.ns ? moment_plus(any->stuck_since, patience(any)) : MOMENT_NEVER;
}

/* Goes to the end of the queues where it comes first. */
static void give_way(struct any_of_keys *any)
{
    any->given_way++;
    any->stuck_since = (struct moment){0};
    any->again = true;
    any->phase = GIVE_BACK;
    for (size_t i = 0; i < any->home.count; i++) {
        if (part_is_ready(&any->parts[i]))
            part_leave(&any->parts[i], false);
    }
}

static void refuse_for_now(struct any_of_keys *any)
{
    if (!is_stuck(any))
        any->stuck_since = (struct moment){0};
    else if (!any->stuck_since.ns)
        any->stuck_since = moment_plus(now_of(any), -jitter_between(0, GIVE_WAY_NS / 2));
    else if (moment_reached(gives_way_at(any), now_of(any)) && any->rounds++ < ROUNDS_MAX) {
        give_way(any);
        return;
    }
    describe(any);
    finish(any);
}

/* Asks the holders of as many keys as it lacks. False: there is nobody to ask. */
static bool replace(struct any_of_keys *any)
{
    size_t lacking = any->home.request.take - count_ready(any);
    bool asked = false;

    for (size_t i = 0; any->home.request.replace && i < any->home.count && lacking > 0; i++) {
        struct part *part = &any->parts[i];
        if (part->hold != HOLD_PLACE || part->failed || part->answer.holders == 0)
            continue;
        part->replaces = true;
        part_ask(part, STANDING, any->until);
        asked |= part->doing == STANDING;
        lacking--;
    }
    any->home.request.replace = false;
    return asked;
}

static void take_those_that_are_ready(struct any_of_keys *any)
{
    size_t wanted = any->home.request.take - count_locks(any);
    bool ready[LOCK_KEYS_MAX];

    any->phase = TAKE;
    for (size_t i = 0; i < any->home.count; i++)
        ready[i] = part_is_ready(&any->parts[i]);
    for (size_t i = 0; i < any->home.count && wanted > 0; i++) {
        if (!ready[i])
            continue;
        part_ask(&any->parts[i], TAKING, moment_min(any->until, in(any, STAND_NS)));
        wanted--;
    }
}

static void stand(struct any_of_keys *any)
{
    const struct part *end = find_end(any);
    size_t locks = count_locks(any);

    if (!any->began.ns)
        any->began = now_of(any);
    if (end) {
        if (!is_busy(any))
            end_by(any, end);
        return;
    }
    stand_where_needed(any);
    if (locks >= any->home.request.take) {
        begin_phase(any, LEAVE);
    } else if (locks + count_ready(any) >= any->home.request.take && any->rounds < ROUNDS_MAX) {
        any->rounds++;
        take_those_that_are_ready(any);
    } else if (is_busy(any)) {
        return;
    } else if (locks > 0) {
        describe(any);
        give_back(any, false, any->rounds++ < ROUNDS_MAX);
    } else if (!replace(any)) {
        refuse_for_now(any);
    }
}

/* Not enough after all: what did not answer may be ours, and the next acquisition finds out. */
static void take(struct any_of_keys *any)
{
    if (count_doing(any, TAKING) > 0)
        return;
    if (count_locks(any) >= any->home.request.take)
        begin_phase(any, LEAVE);
    else
        give_back(any, false, true);
}

static void given_back(struct any_of_keys *any)
{
    bool locked = false;

    if (count_doing(any, LEAVING) > 0)
        return;
    for (size_t i = 0; i < any->home.count; i++) {
        const struct part *part = &any->parts[i];
        locked |= part->unsure && !moment_reached(part->until_gone, now_of(any));
    }
    if (locked) {
        answer_fail(&any->result, CAUSE_UNREACHABLE, "no answer in time");
        any->result.maybe_done = true;
    } else if (any->again && !moment_reached(any->until, now_of(any))) {
        for (size_t i = 0; i < any->home.count; i++)
            any->parts[i].times = any->parts[i].times ? 1 : 0;
        begin_phase(any, STAND);
        return;
    } else if (any->again) {
        describe(any);
    }
    finish(any);
}

/* As many as wanted, in the order given. */
static void choose(struct any_of_keys *any)
{
    size_t wanted = any->home.request.take;

    any->result = (struct answer){.verdict = VERDICT_GRANTED};
    for (size_t i = 0; i < any->home.count; i++) {
        struct part *part = &any->parts[i];
        const struct answer *answer = &part->answer;
        part->chosen = part->hold == HOLD_LOCK && wanted > 0;
        any->result.grants[i] = (struct lock_grant){.absent = !part->chosen};
        if (!part->chosen)
            continue;
        struct moment from = answer->from.ns ? answer->from : part->sent;
        wanted--;
        any->result.grants[i] = answer->grants[0];
        if (!any->result.from.ns || from.ns < any->result.from.ns)
            any->result.from = from;
        if (answer->lease > 0 && (any->result.lease == 0 || answer->lease < any->result.lease))
            any->result.lease = answer->lease;
    }
}

/* Whatever is left of what was not chosen. */
static bool leave_others(struct any_of_keys *any)
{
    bool all_left = true;

    for (size_t i = 0; i < any->home.count; i++) {
        struct part *part = &any->parts[i];
        if (part->chosen)
            continue;
        if (part->doing == IDLE && part_has_something(part) && !part->failed && !part->retry.ns)
            part_leave(part, false);
        all_left &= part->doing == IDLE || part->failed;
    }
    return all_left;
}

static void leave_and_finish(struct any_of_keys *any)
{
    if (!any->granted) {
        any->granted = true;
        any->began = any->stuck_since = (struct moment){0};
        any->given_way = 0;
        for (size_t i = 0; i < any->home.count; i++) {
            any->parts[i].poked = false;
            any->parts[i].retry = (struct moment){0};
        }
        choose(any);
        loop_arm(any->loop, &any->timer, moment_min(any->until, in(any, PARTING_NS)));
    }
    if (leave_others(any))
        finish(any);
}

/* -- renewing and releasing each --------------------------------------------------------------- */

/* A refusal counts more than that all is well, silence more than a refusal, which is not forgotten
 * for it. */
static void merge(struct any_of_keys *any, const struct part *part, const struct answer *answer)
{
    struct answer *all = &any->result;
    bool done = all->maybe_done || answer->maybe_done || answer->verdict != VERDICT_UNKNOWN;
    size_t lost = answer->verdict == VERDICT_REFUSED ? part->at + 1 : all->lost;

    if (answer->verdict == VERDICT_GRANTED) {
        struct moment from = answer->from.ns ? answer->from : part->sent;
        all->grants[part->at] = answer->grants[0];
        all->forgotten |= answer->forgotten;
        if (!all->from.ns || from.ns < all->from.ns)
            all->from = from;
        if (answer->lease > 0 && (all->lease == 0 || answer->lease < all->lease))
            all->lease = answer->lease;
    } else if (answer->verdict > all->verdict) {
        *all = *answer;
        all->key = part->at;
    }
    all->maybe_done = done;
    all->lost = lost;
}

static void each_done(void *arg, const struct answer *answer)
{
    struct part *part = arg;
    struct any_of_keys *any = part->home->arg;

    if (part->doing == RELEASING && answer->verdict != VERDICT_UNKNOWN) {
        part->hold = HOLD_NOTHING;
        part->unsure &= any->home.request.in_time;
        part_note_sure(part);
    } else if (part->doing == RELEASING) {
        part_doubt(part);
        part->stray_until = moment_plus(now_of(any), any->home.request.lease);
    }
    part->doing = IDLE;
    if (any->task == TASK_EACH)
        merge(any, part, answer);
    advance(any);
}

static void begin_each(struct any_of_keys *any)
{
    static const struct answer absent = {.verdict = VERDICT_REFUSED, .cause = CAUSE_NOT_HOLDER};
    const struct lock_request *request = &any->home.request;
    bool releases = any->releases;

    for (size_t i = 0; i < any->home.count; i++) {
        struct part *part = &any->parts[i];
        struct lock_request one = *request;
        if (!part->wanted || part->doing != IDLE)
            continue;
        part->wanted = false;
        if (releases && !part_has_something(part)) {
            merge(any, part, &absent);
            continue;
        }
        if (!part_open(part)) {
            merge(any, part, &part->answer);
            continue;
        }
        one.keys = (const char *const[]){part->key};
        one.key_count = 1;
        one.grants = request->grants ? &request->grants[part->at] : NULL;
        part_begin(part, releases ? RELEASING : RENEWING, any->until);
        if (releases)
            store_release(part->store, &one, any->uncertain || (part->unsure && !one.in_time),
                          any->until, each_done, part);
        else
            store_renew(part->store, &one, any->until, each_done, part);
    }
}

static void go_through_each(struct any_of_keys *any)
{
    bool busy = false;

    begin_each(any);
    for (size_t i = 0; i < any->home.count; i++) {
        enum doing doing = any->parts[i].doing;
        busy |= any->parts[i].wanted || doing == RENEWING || doing == RELEASING;
    }
    if (busy)
        return;
    if (any->result.verdict != VERDICT_UNKNOWN)
        any->result.maybe_done = false;
    finish(any);
}

/* -- what is next ------------------------------------------------------------------------------ */

static void advance(struct any_of_keys *any)
{
    if (any->task == TASK_NONE) {
        arm_later(any);
        return;
    }
    if (any->task == TASK_EACH) {
        go_through_each(any);
        return;
    }
    switch (any->phase) {
    case TRY: try_next(any); break;
    case STAND: stand(any); break;
    case TAKE: take(any); break;
    case GIVE_BACK: given_back(any); break;
    case LEAVE: leave_and_finish(any); break;
    }
}

/* Begins, or ends at the latest. */
static void timer_due(struct loop_timer *timer)
{
    struct any_of_keys *any = timer->owner;

    if (any->task == TASK_ACQUIRE && any->phase == LEAVE)
        finish(any);
    else
        advance(any);
}

/* Of what was not chosen: gives back what may be held, and closes what is not needed any more. */
static struct moment tidy_up(struct any_of_keys *any)
{
    struct moment now = now_of(any), next = MOMENT_NEVER;

    for (size_t i = 0; i < any->home.count; i++) {
        struct part *part = &any->parts[i];
        if (part->chosen || part->doing != IDLE)
            continue;
        bool left = part_may_be_lock(part)
                        ? moment_reached(part->stray_until, now)
                        : part->hold == HOLD_NOTHING || part->failed || part->retry.ns;
        if (!left && moment_reached(part->retry, now)) {
            part_leave(part, false);
        } else if (!left) {
            next = moment_min(next, part->retry);
        } else {
            part->hold = HOLD_NOTHING;
            part->unsure = false;
            part_close(part);
        }
    }
    return next;
}

static void later_due(struct loop_timer *timer)
{
    struct any_of_keys *any = timer->owner;

    if (any->task != TASK_NONE)
        return;
    if (any->granted) {
        struct moment next = tidy_up(any);
        if (next.ns < MOMENT_NEVER.ns)
            loop_arm(any->loop, &any->later, next);
        return;
    }
    if (any->stuck_since.ns && moment_reached(gives_way_at(any), now_of(any))) {
        for (size_t i = 0; i < any->home.count; i++)
            any->parts[i].poked |=
                part_is_ready(&any->parts[i]) || part_is_kept_by_another(&any->parts[i]);
    }
    store_poke(&any->layer.base);
}

/* Nothing is done while somebody is still calling us. */
static void arm_later(struct any_of_keys *any)
{
    struct moment due = gives_way_at(any);

    for (size_t i = 0; i < any->home.count; i++) {
        if (any->parts[i].poked && any->parts[i].doing == IDLE)
            due = moment_min(due, moment_max(any->parts[i].until_gone, now_of(any)));
    }
    if (any->granted)
        due = now_of(any);
    if (due.ns < MOMENT_NEVER.ns)
        loop_arm(any->loop, &any->later, due);
    else
        loop_disarm(any->loop, &any->later);
}

/* -- operations -------------------------------------------------------------------------------- */

static void begin(struct any_of_keys *any, enum task task, const struct lock_request *request,
                  struct moment until, store_done *done, void *arg)
{
    any->task = task;
    any->home.request = *request;
    any->until = until;
    any->done = done;
    any->arg = arg;
    any->result = (struct answer){.verdict = VERDICT_GRANTED};
    loop_disarm(any->loop, &any->later);
    loop_arm(any->loop, &any->timer, now_of(any));
}

static void acquire(struct store *base, const struct lock_request *request, struct moment until,
                    store_done *done, void *arg)
{
    struct any_of_keys *any = of(base);
    bool stands = false;

    if (request->take == 0) {
        drop_parts(any);
        store_acquire(any->layer.below, request, until, done, arg);
        return;
    }
    if (!knows(any, request) || any->home.count != request->key_count)
        make_parts(any, request);
    begin(any, TASK_ACQUIRE, request, until, done, arg);
    any->rounds = 0;
    any->granted = false;
    for (size_t i = 0; i < any->home.count; i++) {
        struct part *part = &any->parts[i];
        part_doubt(part); /* the same request again */
        part->times = 0;
        part->tried = part->chosen = false;
        part->retry = (struct moment){0};
        stands |= part_has_something(part);
    }
    any->phase = stands && request->queue ? STAND : TRY;
    for (size_t i = 0; any->phase == TRY && i < any->home.count; i++)
        any->parts[i].heard = (struct moment){0};
}

static void begin_for_each(struct any_of_keys *any, const struct lock_request *request,
                           struct moment until, store_done *done, void *arg)
{
    begin(any, TASK_EACH, request, until, done, arg);
    for (size_t i = 0; i < request->key_count; i++) {
        struct part *part = find_part(any, request->keys[i]);
        part->wanted = true;
        part->at = i;
    }
}

static void renew(struct store *base, const struct lock_request *request, struct moment until,
                  store_done *done, void *arg)
{
    struct any_of_keys *any = of(base);

    if (!knows(any, request)) {
        store_renew(any->layer.below, request, until, done, arg);
        return;
    }
    any->releases = false;
    begin_for_each(any, request, until, done, arg);
}

static void release(struct store *base, const struct lock_request *request, bool uncertain,
                    struct moment until, store_done *done, void *arg)
{
    struct any_of_keys *any = of(base);

    if (!knows(any, request)) {
        store_release(any->layer.below, request, uncertain, until, done, arg);
        return;
    }
    any->releases = true;
    any->uncertain = uncertain;
    begin_for_each(any, request, until, done, arg);
}

static bool release_nowait(struct store *base, const struct lock_request *request)
{
    struct any_of_keys *any = of(base);
    bool sent = true;

    if (!knows(any, request))
        return store_release_nowait(any->layer.below, request);
    any->task = TASK_NONE;
    loop_disarm(any->loop, &any->timer);
    loop_disarm(any->loop, &any->later);
    for (size_t i = 0; i < request->key_count; i++) {
        struct part *part = find_part(any, request->keys[i]);
        struct lock_request one = *request;
        if (!part_has_something(part) && part->doing == IDLE)
            continue;
        one.keys = &request->keys[i];
        one.key_count = 1;
        part->doing = IDLE;
        part->wanted = false;
        sent &= part->store && store_release_nowait(part->store, &one);
    }
    return sent;
}

/* -- the whole --------------------------------------------------------------------------------- */

static void close_any(struct store *base)
{
    struct any_of_keys *any = of(base);

    drop_parts(any);
    loop_disarm(any->loop, &any->timer);
    store_close(any->layer.below);
    free(any);
}

struct store *any_of_keys_open(struct loop *loop, struct store *all, any_of_keys_open_one *open_one,
                               const struct store_address *address)
{
    static const struct store_events events = {layer_poked, layer_handed, layer_lost};
    static const struct store_ops ops = {
        .close = close_any,
        .acquire = acquire,
        .renew = renew,
        .release = release,
        .release_nowait = release_nowait,
        .force = layer_force,
        .survey = layer_survey,
        .latch = layer_latch,
        .mark = layer_mark,
        .adjust = layer_adjust,
    };
    struct any_of_keys *any = mem_zeroed(sizeof *any);

    any->layer.base.ops = &ops;
    any->loop = loop;
    any->layer.below = all;
    any->home = (struct part_home){.loop = loop,
                                   .open_one = open_one,
                                   .address = address,
                                   .answered = answered,
                                   .poked = poked,
                                   .arg = any};
    any->timer = (struct loop_timer){.fire = timer_due, .owner = any};
    any->later = (struct loop_timer){.fire = later_due, .owner = any};
    store_on_event(all, &events, &any->layer.base);
    return &any->layer.base;
}
