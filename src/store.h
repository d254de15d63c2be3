/* A lock store, whatever is behind it: one Redis, later Sentinel, Cluster, a quorum of stores.
 *
 * Every operation completes by exactly one call of its "done", never before the operation returned
 * and never after store_close(). One operation at a time. Stores keep no leases: the caller notes
 * the time before it calls and counts from there (lease.h). What an operation is given, it copies.
 *
 * Three verdicts: GRANTED and REFUSED are the store's own word. UNKNOWN is everything else: not
 * sent, not answered in time, an error. An UNKNOWN acquire may be held (answer.maybe_done): release
 * it. An UNKNOWN renewal is no renewal, and no loss either. */
#ifndef RLOCK_STORE_H
#define RLOCK_STORE_H

#include "clock.h"
#include "latch.h"
#include "lock.h"
#include "tls.h"
#include "url.h"

struct loop;
struct store;

/* How many replicas have to have what was granted before it counts. */
enum replicas { REPLICAS_NONE, REPLICAS_COUNT, REPLICAS_MAJORITY, REPLICAS_ALL };

/* How to reach a store. Borrowed for as long as the store lives. */
struct store_address {
    /* Several: a quorum, of which each is a single server (redis or unix); no more than QUORUM_NODES_MAX, without
     * replicas and grace. */
    const struct url *urls;
    size_t url_count;
    bool member; /* it is one of a quorum: it tells what a quorum wants to know */
    const char
        *prefix; /* NULL, for surveys without patterns: any; keys are then named with theirs */
    const char *password; /* where a URL has none; NULL: none */
    /* Where that came from, to be read again when it is refused on a later connection; NULL. */
    const char *password_file;
    int64_t connect_timeout; /* ns: name look-up, connect, TLS and greeting of one server */
    struct tls_options tls;  /* for those URLs that say TLS */
    enum replicas replicas;
    unsigned replica_count; /* with REPLICAS_COUNT */
    bool grace;             /* grant nothing new for a while where locks may be forgotten */
};

struct lock_request {
    const char *const *keys; /* all or none; each once, at most LOCK_KEYS_MAX */
    size_t key_count;
    /* A fresh one for each acquisition: the same owner again is the same request. What its ancestors hold
     * does not stand in its way. */
    const char *owner;
    enum lock_mode mode;
    unsigned limit;   /* LOCK_LIMIT: how many holders */
    bool no_nesting;  /* refuse (MISFIT) where an ancestor holds a key, instead of joining it */
    int64_t lease;    /* ns; 0 in a renewal: as it was asked for at acquisition */
    int64_t at_least; /* ns from acquisition: a release before lets it run out then */
    const char *who;  /* identity_print()ed, or "" */
    bool queue;       /* wait in line when it cannot be granted, and stay there (a heartbeat) */
    bool stand;       /* only that, not to be granted: at position 1 and without holders it could be */
    bool listen;      /* have the store call "poked" when it is worth trying again */
    bool in_time;     /* a release: is to have no effect after "until", as this owner acquires anew */
    /* In a renewal with grace, what was granted: a store that has forgotten it has it again. NULL: it is lost. */
    const struct lock_grant *grants;
    /* Of a quorum's member: the fence to note for each key instead of the one it has, which is lower; and one
     * acquires there what is held elsewhere already. NULL: none. */
    const uint64_t *fences;
    uint64_t
        proposal; /* the same, acquiring: a fence that fits, if it is higher than others; 0: none */
};

enum verdict { VERDICT_GRANTED, VERDICT_REFUSED, VERDICT_UNKNOWN };

/* Why not granted. What each means for the exit status is in command.h. */
enum cause {
    CAUSE_NONE,
    CAUSE_HELD,       /* refused: others hold it or come first */
    CAUSE_NOT_HOLDER, /* refused: the caller holds nothing there */
    CAUSE_CHANGED,    /* refused: not the holders it was told */
    CAUSE_ABSENT,     /* refused: there is no latch of that name */
    CAUSE_EXISTS,     /* refused: there is one */
    CAUSE_MISFIT,     /* refused: the key is something else (type, kind, damaged) */
    CAUSE_GRACE,      /* refused: the store may have forgotten who holds it */
    CAUSE_DENIED,     /* unknown: authentication or permission */
    CAUSE_UNFIT,      /* unknown: read-only, out of memory, not a Redis: no use to retry */
    CAUSE_CLUSTER,    /* unknown: a Redis Cluster where the URL names none, or the reverse */
    CAUSE_NOT_READY,  /* unknown: it answers, but cannot serve now (loading, busy, …): may pass */
    CAUSE_UNREACHABLE, /* unknown: no connection, or no answer: may pass */
};

/* What a quorum's member tells of itself, 1 at least; 0: it does not. */
struct seniority {
    int64_t memory_ms;  /* for how long it has forgotten nothing */
    int64_t service_ms; /* for how long it has been one, as far as it remembers */
};

struct answer {
    enum verdict verdict;
    enum cause cause;
    bool maybe_done; /* UNKNOWN, but the store may have done it or may do it yet */
    char text[256];  /* why, for the user; "" when granted or held */
    struct lock_grant grants[LOCK_KEYS_MAX]; /* granted, and renewed: for each key of the request */
    bool late;      /* renewed after its lease had run out, before anyone else came */
    bool forgotten; /* renewed though the store had forgotten it */
    size_t key;     /* refused: which of the keys stands in the way */
    int64_t
        position; /* refused and queued: 1 is next, 0: there is no queue; not queued: how many wait ahead */
    bool requeued;            /* had been dropped from the queue, and is in it again */
    int64_t holders;          /* refused: how many hold it, as one or as many */
    int64_t left_ms;          /* refused: no holder's lease ends sooner; 0 if nobody holds it */
    int64_t grace_ms;         /* refused for GRACE: nothing is granted sooner */
    struct lock_party holder; /* refused: one who holds it; owner "" if nobody, or not known */
    struct latch_state latch; /* granted by store_latch() */
    char
        moved[300]; /* CAUSE_CLUSTER: to which node, in the server's words (cluster_map.h), or "" */
    struct seniority seniority;
};

typedef void store_done(void *arg, const struct answer *answer);

/* Opens nothing yet: the first operation connects. NULL with a message in "fault". */
struct store *store_open(struct loop *loop, const struct store_address *address, char *fault,
                         size_t size);
/* Ends connections; whatever is under way completes no more. */
void store_close(struct store *store);

/* "poked" is called when an acquisition with "listen" is worth trying again, or its connection
 * broke; perhaps for nothing, perhaps never. */
void store_on_poke(struct store *store, void (*poked)(void *arg), void *arg);

/* Each is UNKNOWN at "until" at the latest. */
void store_acquire(struct store *store, const struct lock_request *request, struct moment until,
                   store_done *done, void *arg);
void store_renew(struct store *store, const struct lock_request *request, struct moment until,
                 store_done *done, void *arg);
/* Gives back what owner holds and its place in the queue. REFUSED/NOT_HOLDER if there was nothing.
 * uncertain: an acquisition of this owner may still be under way and must not succeed later. */
void store_release(struct store *store, const struct lock_request *request, bool uncertain,
                   struct moment until, store_done *done, void *arg);
/* Sends an uncertain release over a connection that is up and waits for no answer, for a caller that has
 * to go now: ends whatever is under way, without its "done". */
void store_farewell(struct store *store, const struct lock_request *request);

/* Takes the lock from exactly these owners; purge: empties the queue too. */
struct force_request {
    const char *key;
    const char *const *owners;
    size_t owner_count;
    bool purge;
};
void store_force(struct store *store, const struct force_request *request, struct moment until,
                 store_done *done, void *arg);

/* Reports locks one by one to "each", then completes: GRANTED when all were read. patterns: keys and
 * globs, none for every lock that is held or waited for; a backslash takes the character after it
 * literally. A key without wildcards is always reported, also when it is free. Keys found by a glob
 * come sorted; what is no lock of rlock's is left out. */
struct survey_request {
    const char *const *patterns;
    size_t pattern_count;
    void (*each)(void *arg, const struct lock_view *view);
    void *each_arg;
};
void store_survey(struct store *store, const struct survey_request *request, struct moment until,
                  store_done *done, void *arg);

/* Does something with a latch: GRANTED with what it is like now (deleted: was like), whether it is open or
 * not; REFUSED with cause ABSENT, EXISTS, CHANGED (COUNT: not that latch any more) or MISFIT. Asking the
 * same again is harmless but for DELETE. */
void store_latch(struct store *store, const struct latch_request *request, struct moment until,
                 store_done *done, void *arg);

/* Tells a server that is new that it has forgotten nothing, so that it grants at once, also with grace. REFUSED with
 * GRACE if it is not new, unless "force". Of one server alone. */
void store_mark(struct store *store, bool force, struct moment until, store_done *done, void *arg);

/* Why something was refused for GRACE: "the server may have lost locks; …". Returns out. */
char *store_print_grace(int64_t grace_ms, char *out, size_t size);

/* What a store is made of: one const table a kind, found by the scheme of the URL. A store embeds
 * struct store first. */
struct store_ops {
    void (*close)(struct store *);
    void (*acquire)(struct store *, const struct lock_request *, struct moment, store_done *,
                    void *);
    void (*renew)(struct store *, const struct lock_request *, struct moment, store_done *, void *);
    void (*release)(struct store *, const struct lock_request *, bool, struct moment, store_done *,
                    void *);
    void (*farewell)(struct store *, const struct lock_request *);
    void (*force)(struct store *, const struct force_request *, struct moment, store_done *,
                  void *);
    void (*survey)(struct store *, const struct survey_request *, struct moment, store_done *,
                   void *);
    void (*latch)(struct store *, const struct latch_request *, struct moment, store_done *,
                  void *);
    void (*mark)(struct store *, bool, struct moment, store_done *, void *); /* NULL: no grace */
};

#define STORE_NODE_SIZE 48

struct store {
    const struct store_ops *ops;
    void (*poked)(void *arg);
    void *poked_arg;
    /* A quorum's member tells: */
    char node
        [STORE_NODE_SIZE]; /* which process of which server it was connected to last; "": none yet */
    bool sent;             /* what is under way has gone out, and may be done */
};

#endif
