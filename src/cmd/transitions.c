/* Compares what two surveys show of each lock, "before" and "after", and adds the transitions in
 * between to pair.found. Runs that the store remembers tell what no survey has seen. */
#include "cmd/transitions.h"

#include "base/mem.h"
#include "cli/describe.h"

/* One lock in two surveys; a view without holders and waiters if there was no such lock. */
struct pair {
    struct transitions *found;
    const struct lock_view *before, *after;
    const struct lock_run *runs; /* that ended in between, as far as the store remembers */
    size_t run_count;
    int64_t now_ms;  /* of the survey "after" */
    int64_t gap_ms;  /* since the survey "before" began */
    int64_t gone_ms; /* runs that the store does not remember have ended by then */
};

/* Adds a transition of the lock, at that time (ms since 1970), by that party. Returns it, for the
 * caller to add more. */
static struct transition *add_transition(const struct pair *pair, enum transition_kind kind,
                                         int64_t at_ms, const struct lock_party *by)
{
    struct transition *one = MEM_APPEND(pair->found->all, pair->found->count);

    *one = (struct transition){
        .kind = kind, .key = pair->after->key, .at_ms = at_ms, .by = by, .held_ms = -1};
    return one;
}

/* For qsort() and bsearch(): locks by key. */
static int by_key(const void *a, const void *b)
{
    const struct lock_view *left = a, *right = b;

    return strcmp(left->key, right->key);
}

/* -- the same party, seen again ---------------------------------------------------------------- */

/* Finds the party of that owner; NULL: there is none. Most parties are where they were, or a little
 * before: the search begins at *from, which moves behind the one found, and wraps around. from:
 * NULL for a single search. */
static const struct lock_party *find_party(const struct lock_party *parties, size_t count,
                                           const char *owner, size_t *from)
{
    size_t start = from ? *from : 0;

    for (size_t i = 0; i < count; i++) {
        const struct lock_party *one = &parties[(start + i) % count];
        if (strcmp(one->owner, owner) == 0) {
            if (from)
                *from = (size_t)(one - parties) + 1;
            return one;
        }
    }
    return NULL;
}

/* Whether "holder" is among the holders of that view, by the same acquisition: an owner may acquire
 * the same lock again. "from" is as of find_party(). */
static bool still_holds(const struct lock_view *lock, const struct lock_party *holder, size_t *from)
{
    const struct lock_party *same =
        find_party(lock->holders, lock->holder_count, holder->owner, from);

    return same && same->since_ms == holder->since_ms;
}

/* Whether one of these runs, which have ended, is that of the holder. */
static bool has_run(const struct lock_run *runs, size_t count, const struct lock_party *holder)
{
    for (size_t i = 0; i < count; i++)
        if (runs[i].by.since_ms == holder->since_ms && strcmp(runs[i].by.owner, holder->owner) == 0)
            return true;
    return false;
}

/* -- what has happened ------------------------------------------------------------------------- */

/* Adds that a holder acquired the lock. The holder tells that it had to wait, even if no survey saw
 * it wait. */
static void add_acquisition(const struct pair *pair, const struct lock_party *holder)
{
    if (holder->waited_ms > 0 && !lock_waiter_of(pair->before, holder->owner))
        add_transition(pair, TRANSITION_WAITING, holder->since_ms - holder->waited_ms, holder);
    add_transition(pair, TRANSITION_ACQUIRED, holder->since_ms, holder);
}

/* Adds what a run that has ended since tells: its end; and its beginning, if the survey before did
 * not show it as a holder, though it ended later than that. */
static void add_run(const struct pair *pair, const struct lock_run *run)
{
    static const enum transition_kind kinds[] = {[LOCK_TIMED_OUT] = TRANSITION_TIMED_OUT,
                                                 [LOCK_LOST] = TRANSITION_LOST,
                                                 [LOCK_EXPIRED] = TRANSITION_EXPIRED,
                                                 [LOCK_REVOKED] = TRANSITION_REVOKED};
    enum lock_ending how = run->by.end.how;
    enum transition_kind kind = TRANSITION_RELEASED;

    if ((size_t)how < sizeof kinds / sizeof *kinds && kinds[how] != 0)
        kind = kinds[how]; /* the other endings are releases */
    /* One that ended earlier was told of when it acquired the lock, and died unnoticed. */
    if (!still_holds(pair->before, &run->by, NULL) && run->ended_ago_ms <= pair->gap_ms)
        add_acquisition(pair, &run->by);
    add_transition(pair, kind, run->ended_ms, &run->by)->held_ms = run->held_ms;
}

/* Adds the holders that have come, and those that have left. A holder that --at-least keeps was
 * remembered as a run when its command ended. */
static void compare_holders(const struct pair *pair)
{
    const struct lock_view *before = pair->before, *after = pair->after;
    size_t from = 0;

    for (size_t i = 0; i < after->holder_count; i++)
        if (!still_holds(before, &after->holders[i], &from) &&
            !has_run(pair->runs, pair->run_count, &after->holders[i]))
            add_acquisition(pair, &after->holders[i]);
    from = 0;
    for (size_t i = 0; i < before->holder_count; i++) {
        const struct lock_party *then = &before->holders[i];
        /* The store makes a run of a holder whose lease has run out when a client next wants the
         * lock: its end is told then. */
        bool died = after->fence > 0 && then->left_ms <= pair->gap_ms;
        if (!still_holds(after, then, &from) && !then->kept && !died &&
            !has_run(after->runs, after->run_count, then))
            add_transition(pair, TRANSITION_RELEASED, pair->gone_ms, then);
    }
}

/* Whether a waiter has got the lock since: it holds it, or has held it. */
static bool has_acquired(const struct pair *pair, const char *owner)
{
    bool ran = lock_holder_of(pair->after, owner);

    for (size_t i = 0; i < pair->run_count && !ran; i++)
        ran = strcmp(pair->runs[i].by.owner, owner) == 0;
    return ran;
}

/* Whether "later" is a party of the waiter's group (--latest) that came after the waiter. */
static bool comes_instead(const struct lock_party *later, const struct lock_party *waiter)
{
    return later->in_group && later->since_ms >= waiter->since_ms &&
           strcmp(later->group, waiter->group) == 0;
}

/* Whether a waiter was superseded by a later one. The waiter that came instead is waiting, or has
 * had the lock since. */
static bool is_superseded(const struct pair *pair, const struct lock_party *waiter)
{
    const struct lock_view *after = pair->after;
    bool superseded = false;

    for (size_t i = 0; waiter->in_group && i < after->waiter_count; i++)
        superseded |= comes_instead(&after->waiters[i], waiter);
    for (size_t i = 0; waiter->in_group && i < after->holder_count; i++)
        superseded |= comes_instead(&after->holders[i], waiter);
    for (size_t i = 0; waiter->in_group && i < pair->run_count; i++)
        superseded |= comes_instead(&pair->runs[i].by, waiter);
    return superseded;
}

/* Adds those that have come to wait, and those that have left without the lock. */
static void compare_waiters(const struct pair *pair)
{
    const struct lock_view *before = pair->before, *after = pair->after;
    size_t from = 0;

    for (size_t i = 0; i < after->waiter_count; i++)
        if (!find_party(before->waiters, before->waiter_count, after->waiters[i].owner, &from))
            add_transition(pair, TRANSITION_WAITING, after->waiters[i].since_ms,
                           &after->waiters[i]);
    from = 0;
    for (size_t i = 0; i < before->waiter_count; i++)
        if (!find_party(after->waiters, after->waiter_count, before->waiters[i].owner, &from) &&
            !has_acquired(pair, before->waiters[i].owner)) {
            if (is_superseded(pair, &before->waiters[i]))
                add_transition(pair, TRANSITION_SUPERSEDED, pair->now_ms, &before->waiters[i]);
            else if (!before->waiters[i].take) /* one with --any may have got another of its KEYs */
                add_transition(pair, TRANSITION_REFUSED, pair->now_ms, &before->waiters[i]);
        }
}

static bool is_paused(const struct lock_view *lock)
{
    return lock->pause.owner[0] != '\0';
}

/* Adds pauses that have begun or ended. The store does not remember who ended a pause: it ended by
 * itself if its time is up. A pause replaces an earlier one. */
static void compare_pauses(const struct pair *pair)
{
    const struct lock_party *then = &pair->before->pause, *now = &pair->after->pause;
    bool was = is_paused(pair->before), is = is_paused(pair->after);
    int64_t end = then->since_ms + then->age_ms + then->left_ms;

    if (was && !is)
        add_transition(pair, TRANSITION_RESUMED, end < pair->now_ms ? end : pair->now_ms, then);
    if (is && (!was || now->since_ms != then->since_ms))
        add_transition(pair, TRANSITION_PAUSED, now->since_ms, now);
}

/* Chooses the runs that ended in between: the last ones, by how many more have ended. Adds MISSED
 * if the store does not remember all of them. */
static void choose_runs(struct pair *pair)
{
    const struct lock_view *after = pair->after;
    int64_t ended = after->memory.ended, before = pair->before->memory.ended;
    int64_t more = ended - before;
    bool forgotten = more < 0; /* a store that has lost its data counts from 0 again */

    if (forgotten)
        more = ended;
    pair->run_count = more < (int64_t)after->run_count ? (size_t)more : after->run_count;
    pair->runs = after->runs + (after->run_count - pair->run_count); /* the latest come last */
    if (!forgotten && more <= (int64_t)pair->run_count)
        return;
    if (pair->run_count > 0)
        pair->gone_ms = pair->runs[0].by.since_ms;
    add_transition(pair, TRANSITION_MISSED, pair->gone_ms, NULL)->count =
        forgotten ? 0 : more - (int64_t)pair->run_count;
}

/* Returns what the store's clock said when it showed the lock (ms since 1970): any record of it has
 * a time and an age. otherwise: the time if it has none. */
static int64_t time_of(const struct lock_view *lock, int64_t otherwise)
{
    if (lock->run_count > 0)
        return lock->runs[0].ended_ms + lock->runs[0].ended_ago_ms;
    if (lock->holder_count > 0)
        return lock->holders[0].since_ms + lock->holders[0].age_ms;
    if (lock->waiter_count > 0)
        return lock->waiters[0].since_ms + lock->waiters[0].age_ms;
    return otherwise;
}

/* The lock of that key among views that are sorted; NULL: it is not among them. */
static struct lock_view *find_view(const struct lock_views *views, const char *key)
{
    const struct lock_view wanted = {.key = key};

    return views->count == 0
               ? NULL
               : bsearch(&wanted, views->views, views->count, sizeof *views->views, by_key);
}

/* Whether a waiter has left the queue without a trace: its connection may be slow, and it may be
 * back in the next survey. */
static bool is_missing(const struct lock_view *before, const struct lock_view *after,
                       const struct lock_party *waiter)
{
    const struct pair pair = {
        .before = before, .after = after, .runs = after->runs, .run_count = after->run_count};
    bool refused = after->memory.refused.count > before->memory.refused.count;

    return !refused && !waiter->take && !has_acquired(&pair, waiter->owner) &&
           !is_superseded(&pair, waiter) && !lock_waiter_of(after, waiter->owner);
}

bool transitions_miss_waiters(const struct lock_views *before, struct lock_views *after, bool keep)
{
    const struct lock_view none = {.key = NULL}; /* of a KEY that is not a lock any more */
    bool missing = false;

    for (size_t i = 0; i < before->count; i++) {
        const struct lock_view *then = &before->views[i];
        for (size_t w = 0; w < then->waiter_count; w++) {
            const struct lock_view *now = find_view(after, then->key);
            if (!is_missing(then, now ? now : &none, &then->waiters[w]))
                continue;
            missing = true;
            if (keep) {
                const struct lock_view free_lock = {.key = then->key};
                const struct lock_view one = {.waiters = &then->waiters[w], .waiter_count = 1};
                if (!find_view(after, then->key)) {
                    lock_views_add(after, &free_lock);
                    lock_views_sort(after);
                }
                lock_views_add_waiters(&(struct lock_views){find_view(after, then->key), 1}, &one);
            }
        }
    }
    return missing;
}

/* Returns the fencing token, by which transitions within one ms are ordered: a release hands the
 * lock over in the same ms, and a run may be as short. A waiter has none yet, and comes first. */
static uint64_t fence_of(const struct transition *one)
{
    bool waits = one->kind < TRANSITION_ACQUIRED || !one->by;
    return waits ? 0 : one->by->fence;
}

/* For qsort(): transitions by time; at one time those of one lock by fence, whatever clocks did,
 * and then in the order of their kinds. */
static int by_time(const void *a, const void *b)
{
    const struct transition *left = a, *right = b;
    uint64_t one = fence_of(left), other = fence_of(right);

    if (left->at_ms != right->at_ms)
        return left->at_ms < right->at_ms ? -1 : 1;
    if (one != other && left->key && right->key && strcmp(left->key, right->key) == 0)
        return one < other ? -1 : 1;
    return (int)left->kind - (int)right->kind;
}

/* Compares two views of one lock. Either may be NULL: there is no such lock. */
static void compare_views(struct transitions *transitions, const struct lock_view *before,
                          const struct lock_view *after, int64_t now_ms, int64_t gap_ms)
{
    const struct lock_view none = {.key = before ? before->key : NULL};
    struct pair pair = {.found = transitions,
                        .before = before ? before : &none,
                        .after = after ? after : &none,
                        .gap_ms = gap_ms};

    pair.now_ms = pair.gone_ms = time_of(pair.after, now_ms);
    choose_runs(&pair);
    for (size_t i = 0; i < pair.run_count; i++)
        add_run(&pair, &pair.runs[i]);
    compare_holders(&pair);
    compare_waiters(&pair);
    compare_pauses(&pair);
}

void transitions_find(struct transitions *transitions, const struct lock_views *before,
                      const struct lock_views *after, int64_t now_ms, int64_t gap_ms)
{
    size_t first = transitions->count, a = 0, b = 0;

    while (a < after->count || b < before->count) {
        int order = a == after->count    ? 1
                    : b == before->count ? -1
                                         : strcmp(after->views[a].key, before->views[b].key);
        const struct lock_view *now = order <= 0 ? &after->views[a++] : NULL;
        const struct lock_view *then = order >= 0 ? &before->views[b++] : NULL;
        /* A lock that was free and is forgotten now has had no transition. */
        if (now || (then && (then->holder_count > 0 || then->waiter_count > 0 || is_paused(then))))
            compare_views(transitions, then, now, now_ms, gap_ms);
    }
    if (transitions->count > first)
        qsort(transitions->all + first, transitions->count - first, sizeof *transitions->all,
              by_time);
}

void transitions_free(struct transitions *transitions)
{
    free(transitions->all);
    *transitions = (struct transitions){0};
}
