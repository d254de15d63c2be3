/* The state of a lock, its holders and its queue, or of a count-down latch, as any store reports
 * it; and requests about a latch. Plain data; a pointer to it is borrowed for the call. */
#pragma once

#include "base/clock.h"
#include "lock/identity.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* An owner token is the path of the ancestors' UUIDs and its own, outermost first, as "UUID.UUID":
 * an owner nests in the owners that are prefixes of it. */
#define OWNER_DEPTH 16
#define OWNER_SIZE  (OWNER_DEPTH * 37)

/* Notes that the store has behind an identity (identity.h). */
#define LOCK_NOTE_WAITED   "waited"   /* ms before it was granted */
#define LOCK_NOTE_PRIORITY "priority" /* of a waiter */
#define LOCK_NOTE_TURN     "turn"     /* of a waiter (lua/inspect.lua) */
#define LOCK_NOTE_BOUND    "bound"    /* ms in the queue after which no waiter is passed */
#define LOCK_NOTE_KEPT     "kept"     /* 1: --at-least keeps the lock after its command */
#define LOCK_NOTE_GROUP    "latest"   /* the group, of whose waiters only the latest remains */
#define LOCK_NOTE_TAKE     "take"     /* N/M: it wants N of the M keys of its request */
#define LOCK_NOTE_REPLACE  "replace"  /* 1: it asks the holders to release */
#define LOCK_NOTE_HEARS    "hears"    /* 1: the holder hears when it is asked to release */
#define LOCK_NOTE_ASKED    "asked"    /* when it was asked, by the store's wall clock in ms */
#define LOCK_NOTE_BY       "by"       /* by whom it was asked, or by whom a run was revoked */
#define LOCK_NOTE_WHY      "why"      /* the same: why */
#define LOCK_NOTE_RESERVED "reserved" /* 1: taken for a person, not for a process */
#define LOCK_NOTE_GLOB     "glob"     /* of a pause: its GLOB */
/* How the command ended: ms since the acquisition, absent if not known; exit status; signal. */
#define LOCK_NOTE_RAN    "ran"
#define LOCK_NOTE_EXIT   "exit"
#define LOCK_NOTE_SIGNAL "signal"

#define LOCK_PRIORITY_MAX 9  /* and the least is -9 */
#define LOCK_TURN_PLAIN   12 /* of a waiter without a note */
#define LOCK_TURN_LAST    (LOCK_TURN_PLAIN + LOCK_PRIORITY_MAX)
/* After this time in the queue a waiter is not passed by later ones. */
#define LOCK_PRIORITY_BOUND_NS (15 * 60 * NS_PER_SEC)

/* Keys of one acquisition. */
#define LOCK_KEYS_MAX 32

#define LOCK_LIMIT_MAX 100000 /* holders of a semaphore */

enum lock_mode { LOCK_EXCLUSIVE, LOCK_SHARED, LOCK_LIMIT };

/* "exclusive", "shared" or "limit". */
static inline const char *lock_mode_name(enum lock_mode mode)
{
    static const char *const names[] = {"exclusive", "shared", "limit"};
    return names[mode];
}

/* A grant of one key. */
struct lock_grant {
    uint64_t fence;
    unsigned slot;  /* 1 to the limit; 0 without one */
    unsigned limit; /* that the store keeps, whichever was asked for; 0: none, or not told */
    bool nested;    /* from a quorum's member: this is the fence of an ancestor there */
    bool absent;    /* fewer keys were asked for than there are, and this one is not held */
};

/* The keys that are held of those that were asked for: all, or as many as were wanted. */
struct held_keys {
    const char *keys[LOCK_KEYS_MAX]; /* in the order given; borrowed */
    struct lock_grant grants[LOCK_KEYS_MAX];
    size_t asked[LOCK_KEYS_MAX]; /* which one each is of those that were asked for, from 0 */
    size_t count;
};

/* Chooses those of "count" keys that are held. grants: one for each key; NULL: nothing is known of
 * the grant yet, and so all keys are chosen, with empty grants. */
static inline void held_keys_choose(struct held_keys *held, const char *const *keys, size_t count,
                                    const struct lock_grant *grants)
{
    *held = (struct held_keys){.count = 0};
    for (size_t i = 0; i < count; i++) {
        if (grants && grants[i].absent)
            continue;
        held->keys[held->count] = keys[i];
        held->asked[held->count] = i;
        if (grants)
            held->grants[held->count] = grants[i];
        held->count++;
    }
}

/* How the use of a lock ended. */
enum lock_ending {
    LOCK_USED,      /* by itself, as far as is known */
    LOCK_UNUSED,    /* nothing was done under it */
    LOCK_REFUSED,   /* it was never granted */
    LOCK_TIMED_OUT, /* the command was stopped when its time was up */
    LOCK_LOST,      /* the command ran when the lock was lost */
    LOCK_EXPIRED,   /* the lease ended without a word from the holder */
    LOCK_REVOKED,   /* the lock was taken away */
    LOCK_KILLED,    /* rlock was killed; its agent ended the command and released the lock */
};

/* How a lock ended, and how the command did that ran under it. */
struct lock_end {
    enum lock_ending how;
    bool known; /* signal, status, ran_ms */
    int signal; /* that it died of, 0: none */
    int status; /* its exit status, otherwise */
    int64_t ran_ms;
};

/* A lock is taken away from its holder. */
struct revocation {
    bool known;
    int64_t asked_ms; /* when the holder was asked: the store's wall clock, ms since 1970; 0: not */
    int64_t ago_ms;   /* of a run: since its end */
    char by[IDENTITY_WORD_MAX + 1];  /* "build@ci-3 pid 4121"; "": not told */
    char why[IDENTITY_WORD_MAX + 1]; /* "": not told */
};

/* A holder or a waiter. */
struct lock_party {
    char owner[OWNER_SIZE];
    enum lock_mode mode;
    unsigned slot;     /* holder of a semaphore, otherwise 0 */
    unsigned count;    /* holder: it and those nested in it */
    int64_t since_ms;  /* the store's wall clock, ms since 1970: only for display */
    int64_t age_ms;    /* the same as an age, by the store's own clock */
    int64_t left_ms;   /* holder: what is left of the lease */
    int64_t waited_ms; /* holder: before it was granted; 0: not known */
    int priority;      /* waiter */
    unsigned turn;     /* waiter, while a store sorts them: the lower ones come first */
    int64_t heard_ms;  /* holder: how long ago it acquired, or last renewed its lease */
    uint64_t fence;    /* holder */
    struct identity who;
    bool unread;   /* its entry may not be read: only owner, mode and count are known */
    bool in_group; /* LOCK_NOTE_GROUP */
    char group[IDENTITY_WORD_MAX + 1]; /* "": that of the key's name */
    unsigned take, of; /* waiter: how many it wants of how many keys; 0: not told, of one or all */
    bool reserved;     /* holder, run: by a person, and no process has it */
    bool kept; /* holder: its command has ended, --at-least keeps the lock as long as the lease */
    struct lock_end end; /* kept: how */
    /* Holder: it was asked to release. Run: the lock was taken from it. */
    struct revocation revoked;
};

/* A holder of the past. */
struct lock_run {
    struct lock_party by; /* only owner, mode, slot, since, waited, fence, who, reserved, end,
                           * revoked */
    int64_t ended_ms;     /* the store's wall clock, ms since 1970 */
    int64_t ended_ago_ms; /* by the store's own clock */
    int64_t held_ms;
};

/* How often something happened to a lock, and when it did last: by the store's wall clock, ms since
 * 1970; 0: never. */
struct lock_tally {
    int64_t count, last_ms;
};

/* The counters of a lock since the store remembers it. No number decreases while the store
 * remembers the lock. */
struct lock_memory {
    int64_t acquired;
    int64_t ended;     /* runs */
    int64_t waited_ms; /* by those, in all */
    /* When the latest of the runs that ended with 0 began, and when one ended last. By the store's
     * wall clock; 0: there was none. */
    int64_t success_began_ms, success_ended_ms;
    int64_t success_ago_ms;    /* since that one ended, by the store's own clock */
    struct lock_tally refused; /* requests that were not granted */
    struct lock_tally failed, timed_out, lost, expired, revoked; /* runs */
};

/* -- count-down latches ------------------------------------------------------------------------ */

#define LATCH_NUMBER_MAX 1000000000
#define LATCH_WORD_SIZE  40

enum latch_verb {
    LATCH_LOOK,
    LATCH_LIST, /* looks, and tells the ids */
    LATCH_SET,  /* this one and those behind it change the latch */
    LATCH_COUNT,
    LATCH_DELETE,
};

struct latch_request {
    const char *key;
    enum latch_verb verb;
    const char *id; /* COUNT: what was counted under it once is not counted again */
    bool unnamed;   /* COUNT: the id was made for this call, not given by the user */
    /* SET: fresh for each call: tells the latch from others that had, or will have, the same name.
     * COUNT: counts only on that latch; NULL: on any that has the name. */
    const char *word;
    int64_t number; /* SET: how many there are to count; COUNT: how many at once */
    int64_t ttl;    /* SET: ns */
    bool listen;    /* LOOK: have the store call "poked" when it is worth looking again */
    void (*each)(void *arg, const char *id); /* LIST: called for each id, sorted */
    void *each_arg;
};

struct latch_state {
    char word[LATCH_WORD_SIZE];
    int64_t number, left; /* how many in all; how many are left, 0: open */
    int64_t since_ms;     /* the store's wall clock, ms since 1970: only for display */
    int64_t age_ms;       /* the same as an age, by the store's own clock */
    int64_t ttl_ms;       /* until it expires, open or not */
    int64_t unnamed;      /* LIST: calls that counted without an id */
    bool counted; /* COUNT: by this call; false: that id was counted before, or it was open */
};

/* -- reports ----------------------------------------------------------------------------------- */

/* The report of a survey (store/store.h) about one lock or latch. */
struct lock_view {
    const char *key;
    enum lock_mode mode; /* while held */
    unsigned limit;      /* of the semaphore, otherwise 0 */
    bool limited;        /* the store keeps a limit */
    unsigned stored_limit;
    struct lock_party pause; /* by whom it is paused, until left_ms from now; owner "": it is not */
    /* The GLOB of the pause, cut to this size; "": the pause is of this key. */
    char pause_glob[IDENTITY_WORD_MAX + 1];
    int64_t paused_ms; /* since the first of the pauses that hold for the key began; 0: not told */
    int64_t grace_ms;  /* free: for so long nothing is granted to those who ask for grace; or 0 */
    uint64_t fence;    /* last one issued, 0 if none */
    const struct lock_party *holders;
    size_t holder_count;
    const struct lock_party *waiters; /* in the queue's order */
    size_t waiter_count;
    struct lock_memory memory;
    const struct lock_run *runs; /* the last ones that have ended, the oldest first */
    size_t run_count;
    struct latch_state latch; /* of a latch; its number is 0 where this is a lock */
    const char *misfit;       /* why the key is not a lock or latch; NULL if it is one */
};
