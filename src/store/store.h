/* A lock store, whatever is behind it: one server, a Cluster, a quorum of servers.
 *
 * Every operation completes by exactly one call of its "done", never before the operation returned
 * and never after store_close(). There is one operation at a time. A lease is the caller's to watch (lock/lease.h): the store says
 * of each grant and renewal from when the lease counts and how long it is. No renewal, answered or
 * not, ends sooner what was granted before.
 *
 * Three verdicts: GRANTED and REFUSED are the store's own word. UNKNOWN is everything else: not
 * sent, not answered in time, an error. An UNKNOWN acquire may be held (answer.maybe_done): release
 * it. An UNKNOWN renewal is no renewal, and no loss either. */
#ifndef RLOCK_STORE_STORE_H
#define RLOCK_STORE_STORE_H

#include "base/clock.h"
#include "lock/latch.h"
#include "lock/lock.h"
#include "net/tls_options.h"
#include "store/hint.h"
#include "store/store_record.h"
#include "store/url.h"

struct loop;
struct member_terms;
struct store;

/* How many replicas have to have what was granted before it counts. */
enum replicas { REPLICAS_NONE, REPLICAS_COUNT, REPLICAS_MAJORITY, REPLICAS_ALL };

#define QUORUM_NODES_MAX  16 /* servers that are a quorum */
#define STORE_CLIENT_SIZE 96

/* How to reach a store. Borrowed for as long as the store lives. */
struct store_address {
    /* Several: a quorum, of which each is a single server (redis or unix); no more than
     * QUORUM_NODES_MAX, without replicas and grace. */
    const struct url *urls;
    size_t url_count;
    const char
        *prefix; /* NULL, for surveys without patterns: any; keys are then named with theirs */
    const char *password; /* where a URL has none; NULL: none */
    /* Where that came from, to be read again when it is refused on a later connection; NULL. */
    const char *password_file;
    int64_t connect_timeout; /* ns: name look-up, connect, TLS and greeting of one server */
    int64_t server_wait;     /* ns: a store that is away at the start is tried again for so long */
    struct tls_options tls;  /* for those URLs that say TLS */
    enum replicas replicas;
    unsigned replica_count; /* with REPLICAS_COUNT */
    bool grace;             /* grant nothing new for a while where locks may be forgotten */
    /* What a server is told to call the connections, for who looks at them there; "": nothing. */
    char client[STORE_CLIENT_SIZE];
    bool assumed; /* nobody has said where the store is */
    bool nested;  /* an rlock runs the one that asks, which may have taken its password out */
};

/* The password for the first of the URLs; NULL: none. */
const char *store_address_password(const struct store_address *address);

/* Whether there is none, perhaps because the rlock around this one has taken it out of the
 * environment. Of a URL with a user, an empty one is left. */
bool store_lost_password(const struct store_address *address);

struct acquire_request {
    const char *const *keys; /* all or none; each once, at most LOCK_KEYS_MAX */
    size_t key_count;
    /* The token (lock/owner.h) of this acquisition only: a store takes a second request of the same
     * owner for a repetition of the first. */
    const char *owner;
    /* So many of the keys, fewer than there are, or none; the first ones that are free. The owner
     * does not wait for another one when it has them. The same request again is granted the same
     * keys. Of a store with STORE_ANY. 0: all of them. */
    size_t take;
    bool inherited; /* the store may know the owner from another process, which has died */
    /* Locks that the owner's ancestors hold do not keep it out, unless "no_nesting" asks for the
     * refusal MISFIT. */
    bool no_nesting;
    enum lock_mode mode;
    unsigned limit;  /* LOCK_LIMIT: how many holders; 0: as many as the store keeps for the key */
    const char *who; /* identity_print()ed, or "" */
    /* Of one key, exclusive: "KIND:NAME", another program's lock that is held as long as this one
     * (cli/request.h). NULL: none. */
    const char *mirror;
    int64_t lease; /* ns */

    /* The owner takes a place in the queue when it is refused, and keeps it by asking again.
     * "stand": it takes the place and is never granted the lock. It could be granted when it is
     * told position 1 and no holders. */
    bool queue, stand;
    /* With "queue", NULL otherwise: those that wait in the same group already, and said so as well,
     * are sent away (CAUSE_SUPERSEDED). "": of each key, the group of its name. */
    const char *group;
    bool replace; /* the holders that keep it out are asked to release, as far as they hear of it */
    /* Refused (CAUSE_DONE) if for each key a run that began less than so many ns ago has succeeded.
     * 0: no matter. Of a store with memory; of several keys, of one that decides about them
     * together. */
    int64_t unless_done;
    /* With "queue": at most LOCK_PRIORITY_MAX above or below 0, the higher the sooner; and
     * after how many ns in the queue a waiter is not passed any more: of several that wait the
     * smallest counts. 0: LOCK_PRIORITY_BOUND_NS. */
    int priority;
    int64_t priority_bound;
    bool listen; /* the store calls "poked" when the lock may be granted */
    bool offer;  /* with "listen", of one key: or it calls "handed", if it can */
};

struct renew_request {
    const char *const *keys;
    size_t key_count;
    const char *owner;
    /* As in the acquisition: the store may have forgotten the lock. */
    enum lock_mode mode;
    unsigned limit;
    const char *who;
    int64_t lease; /* ns; 0: as in the acquisition */
    /* What was granted for each key. A store with grace that has forgotten the lock takes the
     * caller's word for it. NULL: a lock that the store has forgotten is lost. */
    const struct lock_grant *grants;
    bool handed; /* the first renewal of a lock that was handed over */
    bool strict; /* a lock whose lease has ended is lost, even if no other owner has taken it */
    bool listen; /* the store calls "poked" when another owner asks for the lock */
};

/* Releases what the owner holds and its place in the queue. REFUSED with NOT_HOLDER if there was
 * nothing. */
struct release_request {
    const char *const *keys;
    size_t key_count;
    const char *owner;
    int64_t lease; /* ns: as in the acquisition */
    bool strict;   /* as in a renewal */
    /* An acquisition of this owner may still be under way and must not succeed later. */
    bool uncertain;
    /* The lock stays until so many ns after its acquisition, with a note of how the command ended.
     * 0: it is free at once. A store with memory remembers how it ended. */
    int64_t at_least;
    struct lock_end end;
    /* Of an owner that acquires again: the release has no effect after its time. "returns": the
     * owner gets its former place in the queue again, if the store can. */
    bool in_time, returns;
};

enum verdict { VERDICT_GRANTED, VERDICT_REFUSED, VERDICT_UNKNOWN };

/* Why not granted. What each means for the exit status is in cli/command.h. */
enum cause {
    CAUSE_NONE,
    CAUSE_HELD,       /* refused: others hold it or come first */
    CAUSE_SUPERSEDED, /* refused: "first" of the same group came later, and waits instead */
    CAUSE_DONE,       /* refused: a run that began first.age_ms ago has succeeded (unless_done) */
    CAUSE_NOT_HOLDER, /* refused: the caller holds nothing there */
    CAUSE_CHANGED,    /* refused: not the holders it was told */
    CAUSE_REVOKED,    /* refused: the holder is asked to give it back, and has it until then */
    CAUSE_ABSENT,     /* refused: there is no latch of that name, or nothing to forget */
    CAUSE_EXISTS,     /* refused: there is one */
    CAUSE_MISFIT,     /* refused: the key is something else (type, kind, damaged) */
    CAUSE_CLOSED,     /* refused: nobody is let in, whether others hold it or not */
    CAUSE_GRACE,      /* refused: the store may have forgotten who holds it */
    CAUSE_DENIED,     /* unknown: authentication or permission */
    CAUSE_UNFIT,      /* unknown: read-only, out of memory, not a Redis: no use to retry */
    CAUSE_CLUSTER,    /* unknown: a Redis Cluster where the URL names none, or the reverse */
    CAUSE_NOT_READY,  /* unknown: it answers, but cannot serve now (loading, busy, …): may pass */
    CAUSE_UNREACHABLE, /* unknown: no connection, or no answer: may pass */
};

struct answer {
    enum verdict verdict;
    enum cause cause;
    bool maybe_done; /* UNKNOWN, but the store may have done it or may do it yet; REFUSED: a part */
    bool any_time;   /* maybe_done, and "until" is no limit: it may be done at any time */
    bool nowhere;    /* UNREACHABLE: there is no host of that name */
    bool full;       /* NOT_READY: it takes no more clients */
    char text[256];  /* why, for the user; "" when granted or held, but with "foreign" */
    char said[192];  /* the server's own words for it; "": it did not say */
    enum hint hint;

    /* Granted or renewed: from when the lease counts, which is before the request reached the
     * store, and may be earlier, as with a heartbeat of the session that the lock belongs to. Zero:
     * from the call of the operation. */
    struct moment from;
    int64_t lease; /* granted or renewed: ns, no more than was asked for; 0: as many */
    struct lock_grant grants[LOCK_KEYS_MAX]; /* granted or renewed: for each key of the request */
    bool forgotten;                          /* renewed though the store had forgotten it */
    /* Granted or renewed: the store does not call "poked" yet when somebody asks for the lock. It
     * does after the next renewal that listens. */
    bool deaf;
    struct latch_state latch; /* granted by VERB_LATCH */

    size_t key;      /* refused: the index of the key that is refused */
    int64_t holders; /* refused: how many hold it */
    int64_t left_ms; /* refused: no holder's lease ends sooner; 0: nobody holds it */
    /* Refused for GRACE: nothing is granted sooner. NOT_READY: it is served then; 0: not known. */
    int64_t grace_ms;
    int64_t opens_ms; /* refused for CLOSED: the same; 0: not known */
    /* Refused: the limit that the store keeps of that key, if "limited". */
    bool limited;
    unsigned limit;
    /* Refused, in the queue: the place, 1 is next; 0: there is no queue. Not in it: how many
     * wait. */
    int64_t position;
    /* Refused: what keeps the caller out is another program's lock, or the lack of it, of the name
     * that "text" says: the mirror of what it asks for or has held. left_ms 0: it has no end. */
    bool foreign;
    bool requeued; /* the owner had been dropped from the queue, and is in it again */
    /* Refused: who has held it for longest; if nobody holds it, who is first in the queue, or if it
     * is CLOSED, who has paused it. Owner "": nobody, or not known. */
    struct lock_party holder, first;

    /* Refused, for REVOKED or because it is held no more: who takes it away, if that is known. */
    struct revocation revoked;

    /* A release that is UNKNOWN, of several keys: the number, from 1, of a key that was not held
     * any more; 0: none is known. */
    size_t lost;
};

typedef void store_done(void *arg, const struct answer *answer);

/* The record of the store that is there: of several URLs, the quorum's. */
const struct store_record *store_record_of(const struct store_address *address);
bool store_can(const struct store_address *address, enum store_ability ability);

/* Opens nothing yet: the first operation connects. NULL with a message in "fault". */
struct store *store_open(struct loop *loop, const struct store_address *address, char *fault,
                         size_t size);
/* Ends connections; whatever is under way completes no more. */
void store_close(struct store *store);

/* What a store says without being asked, perhaps never, and not before the operation that is being
 * called has returned. Each may be NULL. */
struct store_events {
    /* Something is worth asking: an acquisition with "listen" may be granted, what is held may be
     * gone, or the connection broke. Perhaps nothing has changed. */
    void (*poked)(void *arg);
    /* What the latest acquisition asked for with "offer", and was refused, is granted now, as
     * *grant says, which is borrowed for the call. The lease counts from before that acquisition
     * and is over soon: it is to be renewed at once. Not while an operation is under way: that one
     * finds the grant. NULL: "poked" is called instead. */
    void (*handed)(void *arg, const struct answer *grant);
    /* What was granted before is gone, and any place in a queue, as with a session that has
     * expired. An operation that is under way is answered as of after that. why: borrowed for the
     * call. */
    void (*lost)(void *arg, const char *why);
};
/* Of one listener; NULL: none. "events" is borrowed. */
void store_on_event(struct store *store, const struct store_events *events, void *arg);

/* Takes the lock from exactly these owners; purge: empties the queue too. ASK, of a store that can:
 * those that hear of it are asked to give it back, the others lose it. REFUSED for REVOKED as long
 * as some have it yet, with how many as "holders", when the last lease of them ends as "left_ms",
 * and one of them. ASK_AGAIN: the same once more, where some may have given it back. ASKED_OVER:
 * then those that were asked lose it, and one that has acquired it anew meanwhile is asked. */
enum forcing { FORCE_NOW, FORCE_ASK, FORCE_ASK_AGAIN, FORCE_ASKED_OVER };
struct force_request {
    const char *key;
    enum forcing how;
    const char *by, *why; /* for who loses it; "" or NULL: it is not told */
    const char *const *owners;
    size_t owner_count;
    bool purge;
    /* "KIND:NAME": not the lock is meant but another program's, its mirror (acquire_request). It is
     * taken from that program if the only owner is the token that was told of it; REFUSED with HELD
     * and the token, as the holder's, if that is another one or none is given; with NOT_HOLDER or
     * CHANGED if no other program has it, or GRANTED where no owner is given. The other program is
     * not told. Of a store with STORE_MIRROR. NULL: the lock. */
    const char *mirror;
};

/* Reports locks one by one to "each", then completes: GRANTED when all were read. patterns: keys
 * and globs, none for every lock that is held or waited for; a backslash takes the character after
 * it literally. A key without wildcards is always reported, also when it is free, and refused
 * (MISFIT) when it is something else. latches: reports latches in place of locks, those alone that
 * are there; MISFIT where the store has none. Each key is reported once, in no particular order;
 * what is no lock of rlock's is left out. A store with much to read goes on beyond "until": it
 * tells "heard" (NULL: nobody) of each part that has come, and has as long again for the next.
 * runs: tells the last ones that have ended of each lock, no more than so many. idle: reports free
 * locks as well, as long as the store knows them. Both of a store with memory. */
struct survey_request {
    const char *const *patterns;
    size_t pattern_count;
    bool latches;
    void (*each)(void *arg, const struct lock_view *view);
    void *each_arg;
    void (*heard)(void *arg);
    void *heard_arg;
    unsigned runs;
    bool idle;
    /* Of one node of a Cluster: told the keys that were found there, and are at another node by
     * now. NULL: they end the survey. */
    void (*elsewhere)(void *arg, const char *key);
    void *elsewhere_arg;
    /* NULL, or told of each pause of a GLOB that may hold for what a GLOB among the patterns fits,
     * as of a lock that has the GLOB for its key. Of a store with STORE_GLOB_PAUSES. */
    void (*paused)(void *arg, const struct lock_view *view);
};

/* What is decided about a lock without holding it: for LIMIT and NO_LIMIT, how many may hold it;
 * for PAUSE and RESUME, whether anybody but those who nest in a holder is let in. GRANTED; REFUSED
 * for ABSENT where there is nothing to forget, or for MISFIT. Asking the same again is harmless. */
enum adjustment { ADJUST_LIMIT, ADJUST_NO_LIMIT, ADJUST_PAUSE, ADJUST_RESUME };
struct adjust_request {
    const char *key;
    /* PAUSE and RESUME: "key" is a GLOB, and all locks that it fits are meant, also those that are
     * yet to come. What counts for a lock is whichever pause ends last, its own or one of a GLOB.
     * Of a store with STORE_GLOB_PAUSES. */
    bool glob;
    enum adjustment what;
    unsigned limit;   /* LIMIT: 0 lets nobody in */
    int64_t duration; /* PAUSE: ns */
    const char *who;  /* PAUSE: identity_print()ed, its label says why */
};

/* Tells a server that is new that it has forgotten nothing, so that it grants at once, also with
 * grace; a database gets its tables. REFUSED with GRACE if it is not new, unless "force". Of one
 * server alone. */
struct mark_request {
    bool force;
    const char *user; /* who gets the rights that rlock needs; NULL: nobody. Of a store whose
                         record says "grants" */
};

/* What a store can be asked to do. LATCH: GRANTED with what the latch is like now (deleted: was
 * like), whether it is open or not; REFUSED with cause ABSENT, EXISTS, CHANGED (COUNT: not that
 * latch any more) or MISFIT. Asking the same again is harmless but for DELETE. */
enum store_verb {
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

void store_start(struct store *store, const struct operation *operation);
/* Sends a release, an uncertain one, over a connection that is up and waits for no answer, for a
 * caller that has to go now: ends whatever is under way, without its "done". False where it could
 * not be sent: there was no connection. The request is borrowed for the call. */
bool store_release_nowait(struct store *store, const struct release_request *request);

/* The acquisition, or the one that a renewal or a release is about, as far as that says so; without
 * keys if the operation is about something else. */
struct acquire_request operation_lock(const struct operation *operation);

/* Makes *answer UNKNOWN for that cause, with its text as of printf(), and nothing else. */
void answer_fail(struct answer *answer, enum cause cause, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Why something was refused for GRACE: "the server may have lost locks; …". Returns out. */
char *store_print_grace(int64_t grace_ms, char *out, size_t size);

/* Of attempts at the same thing, all UNKNOWN: which answer to tell. The latest; but where that was
 * mere silence, the one before in which the store said why. *told is the one to tell so far, of
 * cause NONE at first. */
void store_note_failure(struct answer *told, const struct answer *latest);

/* What a store is made of: one const table each. A store embeds struct store first. */
struct store_ops {
    void (*close)(struct store *);
    /* The operation is store->operation. No store is asked what its record says it cannot do. */
    void (*start)(struct store *, const struct operation *);
    bool (*release_nowait)(struct store *, const struct release_request *);
};

/* For a store: tells whoever listens to it. */
void store_poke(struct store *store);
void store_hand(struct store *store, const struct answer *grant);
void store_lose(struct store *store, const char *why);

struct store {
    const struct store_ops *ops;
    const struct store_events *events; /* NULL: nobody listens */
    void *events_arg;
    struct operation operation; /* the latest; its request only as long as it is under way */
};

#endif
