/* What a lock looks like from outside: its holders and its queue, as any store reports them. Plain
 * data; whoever was handed a pointer to it borrows it for the call. */
#ifndef RLOCK_LOCK_LOCK_H
#define RLOCK_LOCK_LOCK_H

#include "base/clock.h"
#include "lock/identity.h"
#include "lock/latch.h"
#include <stdbool.h>
#include <stdint.h>

/* An owner token is the path of its ancestors' tokens and its own, outermost first, as "UUID.UUID":
 * who nests in whom is told by prefix, in the store as well. */
#define OWNER_DEPTH 16
#define OWNER_SIZE  (OWNER_DEPTH * 37)

/* Notes that the store has behind who holds a lock (identity.h): how long it waited before, in ms.
 * Where --at-least keeps it after its command: 1, the time from the acquisition to the end of the
 * command in ms, and its exit status or the signal that it died of; no time where that is not
 * known. The same of how a run ended that the store remembers, and of how it ended otherwise.
 * Of a waiter, the group that it is the latest of; its priority; how
 * long others may go before those that wait, in ms; when its turn is (lua/inspect.lua); and how
 * many of its keys it wants. */
#define LOCK_NOTE_WAITED   "waited"
#define LOCK_NOTE_PRIORITY "priority"
#define LOCK_NOTE_TURN     "turn"
#define LOCK_NOTE_BOUND    "bound"
#define LOCK_NOTE_KEPT     "kept"
#define LOCK_NOTE_GROUP    "latest" /* of which only the last to come waits */
#define LOCK_NOTE_TAKE     "take"   /* N/M: it wants N of the M keys that it has asked for */
/* 1: it asks those that hold it to give it back. */
#define LOCK_NOTE_REPLACE "replace"
/* 1: whoever holds it hears of it when it is asked to give it back. */
#define LOCK_NOTE_HEARS "hears"
/* When it was asked to, by the store's wall clock in ms; by whom, and why, as in the record of a
 * run that was revoked. */
#define LOCK_NOTE_ASKED "asked"
#define LOCK_NOTE_BY    "by"
#define LOCK_NOTE_WHY   "why"
/* 1: it was taken for a person, not for a process. */
#define LOCK_NOTE_RESERVED "reserved"
/* Of a pause: which GLOB it is of. */
#define LOCK_NOTE_GLOB     "glob"
#define LOCK_NOTE_RAN      "ran"
#define LOCK_NOTE_EXIT     "exit"
#define LOCK_NOTE_SIGNAL   "signal"

#define LOCK_PRIORITY_MAX 9  /* and the least is -9 */
#define LOCK_TURN_PLAIN   12 /* of a waiter that says nothing else */
#define LOCK_TURN_LAST    (LOCK_TURN_PLAIN + LOCK_PRIORITY_MAX)
/* After that long in the queue nobody goes before a waiter that has come later. */
#define LOCK_PRIORITY_BOUND_NS (15 * 60 * NS_PER_SEC)

#define LOCK_NOTE_UNUSED    "unused"
#define LOCK_NOTE_REFUSED   "refused"
#define LOCK_NOTE_TIMED_OUT "timed"
#define LOCK_NOTE_LOST      "lost"
#define LOCK_NOTE_EXPIRED   "expired"
#define LOCK_NOTE_REVOKED   "revoked"
#define LOCK_NOTE_KILLED    "killed"

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

/* What a holder got, for each key. */
struct lock_grant {
    uint64_t fence;
    unsigned slot; /* 1 to the limit; 0 without one */
    unsigned
        limit;   /* that the store keeps, whichever was asked for; 0: it keeps none, or not told */
    bool nested; /* of a quorum's member: it has an ancestor there, whose fence this is */
    bool absent; /* fewer keys were asked for than there are, and this one is not held */
};

/* How the use of a lock ended. */
enum lock_ending {
    LOCK_USED,      /* by itself, as far as is known */
    LOCK_UNUSED,    /* nothing was done under it */
    LOCK_REFUSED,   /* nothing was granted: it waited in vain */
    LOCK_TIMED_OUT, /* the command was stopped when its time was up */
    LOCK_LOST,      /* the command ran when the lock was lost */
    LOCK_EXPIRED,   /* the lease ended, and the holder never said anything */
    LOCK_REVOKED,   /* somebody took the lock away */
    LOCK_KILLED,    /* rlock was killed; its agent ended the command and released the lock */
};

/* The same, and how the command ended that ran under it. */
struct lock_end {
    enum lock_ending how;
    bool known; /* signal, status, ran_ms */
    int signal; /* that it died of, 0: none */
    int status; /* its exit status, otherwise */
    int64_t ran_ms;
};

/* That somebody takes a lock away from its holder. */
struct revocation {
    bool known;
    int64_t asked_ms; /* the holder was asked then: the store's wall clock, ms since 1970; 0: not */
    int64_t ago_ms;   /* of a run: it ended so long ago */
    char by[IDENTITY_WORD_MAX + 1];  /* "build@ci-3 pid 4121"; "": not told */
    char why[IDENTITY_WORD_MAX + 1]; /* "": not told */
};

/* One who holds the lock, or waits for it. */
struct lock_party {
    char owner[OWNER_SIZE];
    enum lock_mode mode;
    unsigned slot;    /* holder of a semaphore, otherwise 0 */
    unsigned count;   /* holder: it and those nested in it */
    int64_t since_ms; /* the store's wall clock, ms since 1970: for display alone */
    int64_t age_ms;   /* the same as an age, by the store's own clock */
    int64_t left_ms;  /* holder: what is left of the lease */
    int64_t
        waited_ms; /* holder: how long it waited before it was granted; 0 where that is not known */
    int priority;      /* waiter */
    unsigned turn;     /* waiter, while a store sorts them: the lower ones come first */
    int64_t heard_ms;  /* holder: how long ago it acquired, or last renewed its lease */
    uint64_t fence;    /* holder */
    struct identity who;
    bool unread;   /* its entry may not be read: only owner, mode and count are known */
    bool in_group; /* of which only the last to come waits */
    char group[IDENTITY_WORD_MAX + 1]; /* "": that of the key's name */
    unsigned take, of; /* waiter: how many it wants of how many keys; 0: not told, of one or all */
    bool reserved;     /* holder: by a person, and no process has it */
    bool kept; /* holder: its command has ended, --at-least keeps the lock as long as the lease */
    struct lock_end end; /* kept: how */
    /* Holder: it was asked to give the lock back. Of a run: it was taken from it. */
    struct revocation revoked;
};

/* One who held the lock before. */
struct lock_run {
    struct lock_party by; /* owner, mode, slot, since, waited, fence, who, end, revoked alone */
    int64_t ended_ms;     /* the store's wall clock, ms since 1970 */
    int64_t ended_ago_ms; /* by the store's own clock */
    int64_t held_ms;
};

/* How often something happened to a lock, and when it did last: by the store's wall clock, ms since
 * 1970; 0: never. */
struct lock_tally {
    int64_t count, last_ms;
};

/* What happened to a lock since the store remembers it. Versions of rlock that do not count leave
 * nothing here; no number ever goes down while the store remembers the lock. */
struct lock_memory {
    int64_t acquired;
    int64_t ended;     /* runs */
    int64_t waited_ms; /* by those, in all */
    /* Of the runs that ended with 0: when the latest began, and when one ended last. By the store's
     * wall clock; 0: there was none. */
    int64_t success_began_ms, success_ended_ms;
    int64_t success_ago_ms;    /* since that one ended, by the store's own clock */
    struct lock_tally refused; /* who wanted it and went away */
    struct lock_tally failed, timed_out, lost, expired, revoked; /* runs */
};

/* What a survey (store/store.h) tells of one key: of a lock; or of a latch, where it was asked for
 * latches. */
struct lock_view {
    const char *key;
    enum lock_mode mode; /* while held */
    unsigned limit;      /* of the semaphore, otherwise 0 */
    bool limited;        /* the store keeps a limit */
    unsigned stored_limit;
    struct lock_party
        pause;      /* whoever has paused it, until left_ms from now; owner "": it is not */
    /* The pause is that of a GLOB, cut to so much of it; "": of this key alone. */
    char pause_glob[IDENTITY_WORD_MAX + 1];
    uint64_t fence; /* last one issued, 0 if none */
    const struct lock_party *holders;
    size_t holder_count;
    const struct lock_party *waiters; /* in the queue's order */
    size_t waiter_count;
    struct lock_memory memory;
    const struct lock_run *runs; /* the last ones that have ended, the oldest first */
    size_t run_count;
    struct latch_state latch; /* of a latch; its number is 0 where this is a lock */
    const char *misfit;       /* why what was asked for by its name is none; NULL if it is one */
};

#endif
