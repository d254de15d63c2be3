/* Makes a call of a script of lua/ from a request. The first comment of each script lists its keys
 * and its arguments, which have names. Pure: no connection, no clock. */
#pragma once

#include "rules/scripts.h"
#include "store/member.h"

/* How long what was handed over lasts from the acquisition on that offered to take it. That is
 * more than a place in the queue is kept: the next waiter calls within the difference and learns
 * until when to wait, so that a waiter that has died blocks the others no longer. */
#define HANDOVER_MS 9500

/* One call of a script. It owns its keys and arguments. */
struct redis_call {
    const struct script *script; /* NULL: none */
    bool whole;    /* send the script itself: the server does not know it by its digest */
    bool ahead;    /* it may come to a server that turns out to be the wrong one */
    bool numbered; /* each sending of it has a number, in the argument "attempt" */
    int db;        /* the script itself selects it, as it may be the first to; 0: it need not */
    char **keys;   /* the locks, as they are called in the store */
    size_t key_count;
    char **mirrors; /* other programs' keys that it touches besides; behind the locks among KEYS */
    size_t mirror_count;
    size_t take; /* so many of the keys; 0: all */
    char **argv; /* names, each followed by its value */
    size_t argc;
    bool names_server; /* a quorum's member is told its process, in the argument "server" */
};

/* Further requests to a server. The texts are borrowed. */
struct redis_terms {
    const char *marker; /* a key that tells for how long the server remembers; NULL */
    bool grace;         /* and the server must say whether it may have forgotten locks */
    bool member;        /* of a quorum: how long it has been one */
    bool has_host;      /* it is not a server, but a host before a database: each call takes long */
    const char *pauses; /* the key of the pauses of GLOBs (globs.lua); NULL: there are none */
};

/* Each of these fills in a call that is empty, as {.script = NULL} or redis_call_drop() leave it,
 * from a request whose texts it copies. prefix: the beginning of the keys in the store. They cannot
 * fail. Times in requests are in ns, in arguments in ms. */

/* settled: the fences for a quorum's member. offers: to take the lock from a message, which only a
 * server without grace and outside of a quorum is told. */
void redis_call_acquire(struct redis_call *call, const struct redis_terms *terms,
                        const char *prefix, const struct acquire_request *request,
                        const struct member_terms *settled, bool offers);
void redis_call_renew(struct redis_call *call, const struct redis_terms *terms, const char *prefix,
                      const struct renew_request *request, const struct member_terms *settled);
void redis_call_release(struct redis_call *call, const struct redis_terms *terms,
                        const char *prefix, const struct release_request *request);
/* Releases the locks and places of the acquisition, by the keys and the owner in its call. The
 * script itself is sent. */
void redis_call_give_back(struct redis_call *call, const struct redis_call *acquisition);
void redis_call_force(struct redis_call *call, const struct redis_terms *terms, const char *prefix,
                      const struct force_request *request);
/* Sets or ends the limit or the pause of a lock. Where request->glob is set, it is about all locks:
 * a pause of those whose KEY the GLOB in "key" matches, or the minimum version; then terms->pauses
 * is not NULL. */
void redis_call_adjust(struct redis_call *call, const struct redis_terms *terms, const char *prefix,
                       const struct adjust_request *request);
void redis_call_latch(struct redis_call *call, const char *prefix,
                      const struct latch_request *request);
/* terms->marker is not NULL. */
void redis_call_mark(struct redis_call *call, const struct redis_terms *terms,
                     const struct mark_request *request);

/* A GLOB over KEYs as one over the names of the locks in the store, the way SCAN takes it; prefix:
 * NULL: any. The caller frees. */
char *redis_glob_in_store(const char *prefix, const char *glob);

/* The value of an argument, borrowed; NULL if the call does not have it. */
const char *redis_call_get(const struct redis_call *call, const char *name);
/* Gives the argument a copy of the value; NULL: the call does not have it any more. Filled in when
 * the call is sent are: "not_after", the server clock in ms until which the script may do anything;
 * of acquire, renew and release "attempt", the number (attempts.lua); of acquire "places", and the
 * token of "accept_by_message". */
void redis_call_set(struct redis_call *call, const char *name, const char *value);

/* The key of a mirror, KIND:NAME, as scripts call it. The caller frees. */
char *redis_mirror_key(const char *mirror);
/* The channel on which programs tell each other that such a lock is free; NULL: there is none. The
 * caller frees. */
char *redis_mirror_channel(const char *mirror);
/* Has the call touch that key, too. False if it does so already, or touches too many. */
bool redis_call_add_mirror(struct redis_call *call, const char *key);

/* The notes by which a record tells how the use of a lock has ended; "": none. */
extern const char *const redis_endings[LOCK_KILLED + 1];

/* The key of something that a store keeps besides its locks: PREFIX:!WHAT. The caller frees. */
char *redis_marker(const char *prefix, const char *what);

/* Begins a call that has only its keys yet. prefix: NULL: they are called so in the store. */
void redis_call_begin(struct redis_call *call, const struct script *script, const char *prefix,
                      const char *const *keys, size_t count);
/* Frees what the call owns, and makes it empty. */
void redis_call_drop(struct redis_call *call);
