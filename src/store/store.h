/* A lock store: one server, a Cluster, a quorum of servers, a database.
 *
 * Every operation completes by exactly one call of its "done", never before store_start() returned
 * and never after store_close(). There is one operation at a time. The caller watches the lease
 * (lock/lease.h): the store says of each grant and renewal from when the lease counts and how long
 * it is. No renewal, answered or not, shortens an earlier grant.
 *
 * There are three verdicts. GRANTED and REFUSED are the store's own word. UNKNOWN is everything
 * else: not sent, not answered in time, an error. An UNKNOWN acquisition may be held
 * (answer.maybe_done): release it. An UNKNOWN renewal is neither a renewal nor a loss. */
#pragma once

#include "base/clock.h"
#include "base/text.h"
#include "lock/lock.h"
#include "net/tls.h"
#include "store/store_kind.h"
#include "store/url.h"

struct loop;
struct loop_timer;
struct member_terms;
struct store;

/* How many replicas must have a grant before it counts. */
enum replicas { REPLICAS_NONE, REPLICAS_COUNT, REPLICAS_MAJORITY, REPLICAS_ALL };

#define QUORUM_NODES_MAX  16 /* servers of a quorum */
#define STORE_CLIENT_SIZE 96

/* How to reach a store. Borrowed for as long as the store lives. */
struct store_address {
    /* Several: a quorum of single servers (redis or unix), at most QUORUM_NODES_MAX, without
     * replicas and grace. */
    const struct url *urls;
    size_t url_count;
    /* NULL, for surveys without patterns: any; keys are then reported with theirs. */
    const char *prefix;
    const char *password; /* where a URL has none; NULL: none */
    /* The password's source, read again when it is refused on a later connection; NULL. */
    const char *password_file;
    /* For Sentinels that have their own; NULL: the servers' serves for both. */
    const char *sentinel_user, *sentinel_password;
    const char *sentinel_password_file; /* as above */
    int64_t connect_timeout; /* ns: name look-up, connect, TLS and greeting of one server */
    int64_t server_wait;     /* ns: a store that is away at the start is tried again for so long */
    struct tls_options tls;  /* for URLs with TLS */
    enum replicas replicas;
    unsigned replica_count;         /* with REPLICAS_COUNT */
    bool grace;                     /* grant nothing new for a while where locks may be forgotten */
    char client[STORE_CLIENT_SIZE]; /* the name of the connections at the server; "": none */
    bool assumed;                   /* the user has not said where the store is */
    bool nested; /* this process runs under an rlock, which may have taken the password out */
};

/* Returns the password for the first of the URLs; NULL: none. */
const char *store_address_password(const struct store_address *address);

/* Whether the password is missing, perhaps because the rlock around this one has taken it out of
 * the environment. In a URL with a user, an empty one is left. */
bool store_lost_password(const struct store_address *address);

struct acquire_request {
    const char *const *keys; /* all or none; each once, at most LOCK_KEYS_MAX */
    size_t key_count;
    /* The token (lock/owner.h) of this acquisition only: a store takes a second request of the same
     * owner for a repetition of the first. */
    const char *owner;
    /* That number of the keys, fewer than key_count, or none: the first ones that are free. The
     * same request again is granted the same keys. Only with STORE_ANY. 0: all of them. */
    size_t take;
    bool from_dead_agent; /* the store may know the owner from another process, which has died */
    bool uncertain;       /* an earlier acquisition of this owner may still be under way */
    /* The owner may have the lock from before, and keeps that if this request is not answered. */
    bool had;
    /* All requests of this owner come from this host, each when the one before was answered or
     * given up: a store may number them, and leave undone one that arrives after a later one. */
    bool numbered;
    bool no_nesting; /* refuse (MISFIT) a lock that an ancestor of the owner holds */
    enum lock_mode mode;
    unsigned limit;  /* LOCK_LIMIT: how many holders; 0: as many as the store keeps for the key */
    const char *who; /* identity_print()ed, or "" */
    int64_t waited;  /* ns since the owner first asked for it */
    int64_t held;    /* ns since it was granted, to a renewal that may make it again; 0: just now */
    /* "KIND:NAME", another program's lock that is held as long as this one, of one key and
     * exclusive (cli/request.h). NULL: none. */
    const char *mirror;
    int64_t lease; /* ns */

    /* The owner takes a place in the queue when it is refused, and keeps it by asking again.
     * "queue_only": it takes the place and is never granted the lock. It could be granted when it
     * is told position 1 and no holders. */
    bool queue, queue_only;
    /* With "queue": earlier waiters of the same group are refused (CAUSE_SUPERSEDED). "": the group
     * of each key's name. NULL: none. */
    const char *group;
    bool replace; /* the holders are asked to release, as far as they hear of it */
    /* Refuse (CAUSE_DONE) if for each key a run that began less than this many ns ago has
     * succeeded. 0: never. Only with STORE_MEMORY, and for several keys with STORE_TOGETHER. */
    int64_t unless_done;
    /* Up to LOCK_PRIORITY_MAX above or below 0, the higher the sooner. With "queue": after how many
     * ns in the queue no waiter is passed any more: the smallest of the queue counts. 0:
     * LOCK_PRIORITY_BOUND_NS. */
    int priority;
    int64_t priority_bound;
    bool listen;            /* the store calls "poked" when the lock may be granted */
    bool accept_by_message; /* with "listen", of one key: or it calls "handed", if it can */
};

struct renew_request {
    /* As it was acquired, with the keys that were granted: a store that has forgotten it may make
     * it again. lease 0: as long as in the acquisition. */
    const struct acquire_request *lock;
    /* The grant for each key: a store with grace that has forgotten the lock restores it. NULL: a
     * forgotten lock is lost. */
    const struct lock_grant *grants;
    bool handed; /* the first renewal of a lock that was handed over */
    bool strict; /* a lock whose lease has ended is lost, even if no other owner has taken it */
    bool listen; /* the store calls "poked" when another owner asks for the lock */
};

/* Releases what the owner holds and its place in the queue. REFUSED with NOT_HOLDER if there was
 * nothing. */
struct release_request {
    const struct acquire_request *lock; /* its keys, owner and lease count */
    bool strict;                        /* as in a renewal */
    /* An acquisition of this owner may still be under way and must not succeed later. */
    bool uncertain;
    /* The lock stays until so many ns after its acquisition, with a note of how the command ended.
     * 0: it is free at once. A store with memory remembers how it ended. */
    int64_t at_least;
    struct lock_end end;
    /* For an owner that acquires again: the release has no effect after its time. "returns": the
     * owner gets its former place in the queue again, if the store can. */
    bool in_time, returns;
};

enum verdict { VERDICT_GRANTED, VERDICT_REFUSED, VERDICT_UNKNOWN };

/* Why an operation is not granted. run/exit_status.h has the exit status of each. */
enum cause {
    CAUSE_NONE,
    CAUSE_HELD,       /* refused: others hold it or come first */
    CAUSE_SUPERSEDED, /* refused: "first" of the same group came later and waits instead */
    CAUSE_DONE,       /* refused: a run that began first->age_ms ago has succeeded (unless_done) */
    CAUSE_NOT_HOLDER, /* refused: the owner holds nothing there */
    CAUSE_CHANGED,    /* refused: the holders are not those of the request */
    CAUSE_REVOKED,    /* refused: the holder is asked to release, and has it until then; an
                       * acquisition: or it has only some of the keys, others were taken away */
    CAUSE_ABSENT,     /* refused: there is no latch of that name, or nothing to forget */
    CAUSE_EXISTS,     /* refused: there is one */
    CAUSE_MISFIT,     /* refused: the key is something else (type, kind, damaged) */
    CAUSE_CLOSED,     /* refused: the lock is paused, whether others hold it or not */
    CAUSE_GRACE,      /* refused: the store may have forgotten who holds it */
    CAUSE_DENIED,     /* unknown: authentication or permission */
    CAUSE_UNFIT,      /* unknown: read-only, out of memory, not a Redis: no use to retry */
    CAUSE_CLUSTER,    /* unknown: a Redis Cluster where the URL names none, or the reverse */
    CAUSE_NOT_READY,  /* unknown: it answers, but cannot serve now (loading, busy, …): may pass */
    CAUSE_UNREACHABLE, /* unknown: no connection, or no answer: may pass */
    CAUSE_SYSTEM,      /* unknown: the operating system has no room for a connection: may pass */
};

/* Whether the store was not reached. */
static inline bool cause_lacks_contact(enum cause cause)
{
    return cause == CAUSE_UNREACHABLE || cause == CAUSE_SYSTEM;
}

static inline bool cause_may_pass(enum cause cause)
{
    return cause == CAUSE_NOT_READY || cause_lacks_contact(cause);
}

/* Returns why a connection could not be begun: UNREACHABLE or SYSTEM, for an errno. */
enum cause cause_of_errno(int error);

/* Hints for a user about a failure: a store names one, and cli/describe.c words it, as that needs
 * the names of options. */
enum hint {
    HINT_NONE, /* nothing in particular: the cause of the answer may tell more */

    /* How rlock was called. */
    HINT_NAME,     /* of a host: look it up */
    HINT_AWAY,     /* wait for it, or look at it */
    HINT_LOCAL,    /* say where the store is, as no one was named; there is one for this host */
    HINT_CLUSTER,  /* a Cluster and a single server have URLs of their own */
    HINT_PASSWORD, /* give one */
    HINT_PASSWORD_OR_RIGHTS,
    HINT_PASSWORD_OR_USER,
    HINT_SENTINEL_PASSWORD,
    HINT_KEPT_PASSWORD, /* an outer rlock has taken it out of the environment */
    HINT_RIGHTS,        /* of the user at the server */
    HINT_TLS,           /* the server seems to speak it, or the reverse: the URL says which */
    HINT_NO_TLS,
    HINT_LONGER_LEASE,
    HINT_WAIT_OR_MARK, /* until the store grants again, or say that nothing is held */
    HINT_REPLICAS,     /* wait for some, where one may be promoted */

    HINT_TABLES,   /* of a database: none are there yet */
    HINT_SHEDLOCK, /* the same for another program's table */
    HINT_DRIVER,   /* the program that talks to a database may be in a package of its own */
    HINT_LIBRARY,  /* the same needs a library */
    HINT_DATABASE, /* make one, or name another */
    HINT_GRANT,    /* give the user its rights */
    HINT_ROLE,     /* the same in etcd */
    HINT_QUOTA,    /* of space, of etcd */
    HINT_LOGIN,    /* let the user in */
    HINT_NO_USERS, /* of an etcd cluster */
    HINT_MAX_CONNECTIONS,
    HINT_MAX_CLIENT_CNXNS, /* of a ZooKeeper server */

    /* A Redis server. */
    HINT_SCRIPT_KILL,
    HINT_DISK,
    HINT_FEW_REPLICAS,
    HINT_MAXCLIENTS,
    HINT_MAXMEMORY,
    HINT_REQUIREPASS,
    HINT_NO_PASSWORD,
    HINT_SOCKET,    /* this user may not connect to its Unix socket */
    HINT_NO_SOCKET, /* the URL names another file */

    HINTS
};

/* A grant, or a renewal. */
struct answer_granted {
    /* From when the lease counts, which is before the request reached the store, or earlier, as
     * from a heartbeat of the lock's session. Zero: from store_start(). */
    struct moment from;
    int64_t lease;                   /* ns, at most as requested; 0: as requested */
    const struct lock_grant *grants; /* LOCK_KEYS_MAX, for the keys of the request in their order */
    bool forgotten;                  /* renewed though the store had forgotten it */
    /* The store does not call "poked" yet when another owner asks for the lock; it does after the
     * next renewal that listens. */
    bool not_listening;
    struct latch_state latch; /* of VERB_LATCH */
};

/* Why a lock is refused, or a renewal of one that is not held any more. */
struct answer_refused {
    size_t key;       /* the index of the key that is refused */
    int64_t holders;  /* how many there are */
    int64_t left_ms;  /* until the first holder's lease ends; 0: there is no holder */
    int64_t opens_ms; /* CLOSED: until the pause ends; 0: not known */
    bool limited;     /* the store keeps a limit of that key: */
    unsigned limit;
    /* In the queue: the place, 1 is next; 0: there is no queue. Not in it: how many wait. */
    int64_t position;
    /* By another program's lock, or the lack of it: the mirror with the name in "text". left_ms 0:
     * it has no end. */
    bool foreign;
    /* In the queue, far from its turn: how long it need not ask; 0: it must often. */
    int64_t next_call_ms;
    bool requeued; /* the owner had been dropped from the queue, and is in it again */
    /* The oldest holder; without one, "first" in the queue, or if it is CLOSED, who has paused it.
     * NULL: there is none, or it is not known. */
    const struct lock_party *holder, *first;
    const struct revocation *revoked; /* REVOKED, or not held any more; NULL: unknown */
};

/* The pointers are borrowed for the call of "done", as the answer is: answer_keep() copies them. */
struct answer {
    enum verdict verdict;
    enum cause cause;
    /* UNKNOWN: the store may have done it or may still do it; REFUSED: a part. Of an acquisition
     * that was sent more than once, whatever the answer: it may be done once more. */
    bool maybe_done;
    bool any_time;         /* maybe_done: it may be done at any time, even after "until" */
    bool nowhere;          /* UNREACHABLE: there is no host of that name */
    bool full;             /* NOT_READY: the server takes no more clients */
    bool login_refused;    /* DENIED: user or password; NOT_READY: by one of several hosts */
    char text[FAULT_SIZE]; /* why, for the user; "" when granted or held, except with "foreign" */
    char said[SAID_SIZE];  /* the server's own words; "": none */
    enum hint hint;
    /* Refused for GRACE: nothing is granted before. NOT_READY: the store serves then; 0: not
     * known. */
    int64_t grace_ms;
    size_t lost; /* UNKNOWN release of several keys: a key that was not held, from 1; 0: none */
    struct answer_granted granted;
    struct answer_refused refused;
};

/* An answer that is kept, with all that it points to; not to be copied by assignment. */
struct kept_answer {
    struct answer answer;
    struct lock_grant grants[LOCK_KEYS_MAX];
    struct lock_party party; /* the holder, or the first */
    struct revocation revoked;
};

/* Copies the answer, and what it points to, into *kept. */
void answer_keep(struct kept_answer *kept, const struct answer *answer);

typedef void store_done(void *arg, const struct answer *answer);

/* Returns the kind of the store; of several URLs, a quorum. */
const struct store_kind *store_kind_of(const struct store_address *address);
/* Whether that kind has the ability. */
bool store_can(const struct store_address *address, enum store_ability ability);

/* Returns a store for store_close(), which connects with its first operation. NULL with a message
 * in "fault". */
struct store *store_open(struct loop *loop, const struct store_address *address, char *fault,
                         size_t size);
/* Ends connections; an operation under way does not complete any more. */
void store_close(struct store *store);

/* Events of a store, perhaps none ever, and none within a call of the store. Each may be NULL. */
struct store_events {
    /* The store is worth asking: an acquisition with "listen" may be granted, a held lock may be
     * gone, as with a session that has expired, or the connection broke. Perhaps nothing has
     * changed. */
    void (*poked)(void *arg);
    /* The latest acquisition, with "accept_by_message" and refused, is granted now, as *grant says,
     * which is borrowed for the call. The lease counts from before that acquisition and ends soon:
     * renew it at once. Not called while an operation is under way: that one finds the grant. NULL:
     * "poked" is called instead. */
    void (*handed)(void *arg, const struct answer *grant);
};
/* Sets the one listener; NULL: none. "events" is borrowed. */
void store_on_event(struct store *store, const struct store_events *events, void *arg);

/* Takes the lock from exactly these owners; purge: empties the queue too. ASK, of a store that can:
 * holders that hear of it are asked to release, the others lose it. REFUSED for REVOKED as long as
 * some of them have it, with their number as "holders", the end of their last lease as "left_ms",
 * and one of them. ASK_AGAIN: the same once more, where some may have released. ASKED_OVER: then
 * those that were asked lose it, and one that has acquired it anew meanwhile is asked. */
enum forcing { FORCE_NOW, FORCE_ASK, FORCE_ASK_AGAIN, FORCE_ASKED_OVER };
struct force_request {
    const char *key;
    enum forcing how;
    const char *by, *why; /* for the holder that loses it; "" or NULL: not told */
    const char *const *owners;
    size_t owner_count;
    int64_t lease; /* ns: the longest of theirs that a process renews; 0: none does */
    bool purge;
    /* "KIND:NAME": takes not the lock but another program's, its mirror (acquire_request), from
     * that program, if the only owner is its token; REFUSED with HELD and the token, as the
     * holder's, if it is another one or none is given; with NOT_HOLDER or CHANGED if no other
     * program has it, or GRANTED if no owner is given. The other program is not told. Only with
     * STORE_MIRROR. NULL: the lock. */
    const char *mirror;
};

/* Reports locks one by one to "each", then completes: GRANTED when all were read. Each key is
 * reported once, in no particular order; keys that are not locks of rlock's are left out, and locks
 * of a later rlock are misfits. A survey may continue beyond "until": it calls "heard", which may
 * be NULL, after each part, and has the same time again for the next. */
struct survey_request {
    /* Keys and globs, none for every lock that is held or waited for; a backslash takes the
     * character after it literally. A key without wildcards is always reported, also when it is
     * free, and refused (MISFIT) when it is something else. */
    const char *const *patterns;
    size_t pattern_count;
    bool latches; /* report latches instead of locks, if they exist; MISFIT where there are none */
    void (*each)(void *arg, const struct lock_view *view);
    void *each_arg; /* of all but "heard" */
    void (*heard)(void *arg);
    void *heard_arg;
    /* With STORE_MEMORY: how many of the last runs of each lock to report; and whether to report
     * free locks, as long as the store remembers them. */
    unsigned runs;
    bool idle;
    /* At one node of a Cluster: told the keys that were found there and have moved to another node.
     * NULL: they end the survey. */
    void (*elsewhere)(void *arg, const char *key);
    /* Told of each pause of a GLOB that may match what a GLOB among the patterns matches, as of a
     * lock with the GLOB for its key. Only with STORE_GLOB_PAUSES. NULL: not told. */
    void (*paused)(void *arg, const struct lock_view *view);
    /* Told the minimum version, if the store has one. Not without "paused". NULL: not told. */
    void (*minimum)(void *arg, const char *version);
};

/* An administrator's decision about a lock, made without holding it: how many may hold it (LIMIT,
 * NO_LIMIT), or whether new owners are let in, except those that nest in a holder (PAUSE, RESUME);
 * or the version of rlock that all locks of the prefix ask for (MINIMUM).
 * GRANTED; REFUSED for ABSENT where there is nothing to forget, or for MISFIT. Asking the same
 * again is harmless. */
enum adjustment { ADJUST_LIMIT, ADJUST_NO_LIMIT, ADJUST_PAUSE, ADJUST_RESUME, ADJUST_MINIMUM };
struct adjust_request {
    const char *key;
    /* PAUSE and RESUME: "key" is a GLOB, for all locks that it matches, also future ones. The pause
     * of a lock that ends last counts, its own or a GLOB's. Only with STORE_GLOB_PAUSES. MINIMUM:
     * set, with the GLOB "*". Only with STORE_MINIMUM. */
    bool glob;
    enum adjustment what;
    unsigned limit;      /* LIMIT: 0 lets no owner in */
    int64_t duration;    /* PAUSE: ns */
    const char *who;     /* PAUSE: identity_print()ed, its label says why */
    const char *version; /* MINIMUM: X.Y.Z; 0.0.0: any */
    /* For a GLOB, as a survey's. NULL: none. */
    void (*heard)(void *arg);
    void *heard_arg;
};

/* Tells a new server that it has forgotten nothing, so that it grants at once, also with grace; a
 * database gets its tables. REFUSED with GRACE if it is not new, unless "force". Only of a single
 * server. */
struct mark_request {
    bool force;
    /* Gets the rights that rlock needs, if the store's kind has "grants"; NULL: none. */
    const char *user;
};

/* LATCH: GRANTED with the latch as it is now (deleted: was), whether it is open or not; REFUSED
 * with cause ABSENT, EXISTS, CHANGED (COUNT: not that latch any more) or MISFIT. Asking the same
 * again is harmless but for DELETE. */
enum store_verb {
    VERB_NONE,
    VERB_ACQUIRE,
    VERB_RENEW,
    VERB_RELEASE,
    VERB_FORCE,
    VERB_SURVEY,
    VERB_LATCH,
    VERB_ADJUST,
    VERB_MARK,
};

/* One operation. The request, with all that it points to, is borrowed until "done" is called, the
 * store is closed, or store_release_nowait() ends the operation; the operation itself for the call
 * of store_start(). */
struct operation {
    enum store_verb verb;
    union {
        const struct acquire_request *acquire;
        const struct renew_request *renew;
        const struct release_request *release;
        const struct force_request *force;
        const struct survey_request *survey;
        const struct latch_request *latch;
        const struct adjust_request *adjust;
        const struct mark_request *mark;
    };
    const struct member_terms *terms; /* for a quorum's member (store/member.h); NULL: none */
    struct moment until;              /* UNKNOWN then, at the latest */
    store_done *done;
    void *arg;
};

/* Starts an operation, which is copied; it completes later, by "done". */
void store_start(struct store *store, const struct operation *operation);

enum release_sent {
    RELEASE_UNSENT, /* no connection, so the operation under way was not sent either */
    RELEASE_SENT,
    RELEASE_BLOCKED, /* a connection that takes nothing more; that operation may be done */
};

/* Sends an uncertain release over a connection that is up, without waiting for the answer, for a
 * caller that must end now. An operation under way ends; its "done" is not called. The request is
 * borrowed for the call. */
enum release_sent store_release_nowait(struct store *store, const struct release_request *request);

/* Returns the lock that is acquired, renewed or released; one without keys for any other
 * operation. */
const struct acquire_request *operation_lock(const struct operation *operation);

/* Makes *answer UNKNOWN for that cause, with its text as of printf(), and nothing else. */
void answer_fail(struct answer *answer, enum cause cause, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* Puts words in front of its text: whose answer it is. */
void answer_prepend(struct answer *answer, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Runs the loop until it is stopped. False with *failure if the system refuses to. */
bool answer_await(struct loop *loop, struct answer *failure);

/* Prints why an operation was refused for GRACE: "the server may have lost locks; …". Returns
 * out. */
char *store_print_grace(int64_t grace_ms, char *out, size_t size);

/* Chooses which of several failures of the same operation, all UNKNOWN, to report: the latest; but
 * the one before if the latest is only silence. It is "nowhere" only if all of them were. *told is
 * the choice so far, of cause NONE at first. */
void store_note_failure(struct answer *told, const struct answer *latest);

/* The functions of a kind of store: one const table each. */
struct store_ops {
    void (*close)(struct store *);
    /* The operation is store->operation, and one that the store's kind allows. */
    void (*start)(struct store *, const struct operation *);
    enum release_sent (*release_nowait)(struct store *, const struct release_request *);
};

/* For a store: tells its listener, if there is one, that asking may be worthwhile ("poked"). Both
 * are callbacks as well, of which the store is the argument or the timer's owner. */
void store_changed(void *store);
void store_changed_due(struct loop_timer *timer);
/* For a store: tells its listener, if there is one, of a grant by message ("handed"). */
void store_granted(struct store *store, const struct answer *grant);

/* Each store embeds it first. */
struct store {
    const struct store_ops *ops;
    const struct store_events *events; /* NULL: there is no listener */
    void *events_arg;
    struct operation operation; /* the latest; its request only while it is under way */
    bool frugal; /* requests are in each other's way: those that can wait, or be saved, are */
};
