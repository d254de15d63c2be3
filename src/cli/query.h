/* A store asked by a command that has nothing else to do: every call waits for the answer. */
#ifndef RLOCK_CLI_QUERY_H
#define RLOCK_CLI_QUERY_H

#include "lock/outage.h"
#include "store/store.h"
#include "store/views.h"

struct query {
    struct loop *loop;
    struct store *store;
    int64_t time_limit; /* ns: for one question */
    int64_t attempt;    /* ns: of that, for one connection, where it is asked several times */
    const char *who; /* asks; NULL: who does not wait for a store that is away, nor says anything */
    int64_t server_wait;
    struct outage outage;
    bool asked;
};

struct lock_list {
    struct lock_views locks;
    struct lock_views misfits; /* what was asked for by its name, and is something else */
    struct lock_views pauses;  /* of GLOBs, which are their keys */
};

/* A callback of signals or timers may end a call by loop_stop(): the answer is then UNKNOWN without
 * a cause, and the store is closed. Only query_close() may follow. */

/* Opens nothing yet. A store that is away at the first question is tried again, as the address
 * says, and the user is told so in the name of "who"; NULL: neither. False with a message in
 * "fault". query_close() in either case. */
bool query_open(struct query *query, const struct store_address *address, const char *who,
                char *fault, size_t size);
void query_close(struct query *query);

/* Reads the locks that match (struct survey_request) into *list, sorted by key, byte by byte; give it back
 * with lock_list_free(), also when the answer is not GRANTED. */
void query_survey(struct query *query, const char *const *patterns, size_t count,
                  struct lock_list *list, struct answer *answer);
#define QUERY_RUNS_ALL 1000 /* of one lock; a store remembers fewer */
/* The same with so many of the last runs of each lock; idle: free locks as well. */
void query_memory(struct query *query, const char *const *patterns, size_t count, unsigned runs,
                  bool idle, struct lock_list *list, struct answer *answer);
/* The same of one lock: a copy of its view, the list's only one, or none. */
void query_read_lock(struct query *query, const char *key, struct lock_list *list,
                     struct answer *answer);
/* The same for latches. */
void query_latches(struct query *query, const char *const *patterns, size_t count,
                   struct lock_list *list, struct answer *answer);

/* Asks any other question, one that does nothing by itself later; "until", "done" and "arg" of the
 * operation are filled in here. */
void query_ask(struct query *query, struct operation operation, struct answer *answer);

/* What a holder asks for itself. An answer that was lost is asked for again until the time is up;
 * that nothing is held after a release without an answer proves that it worked. */
void query_renew(struct query *query, const struct renew_request *request, struct answer *answer);
void query_release(struct query *query, const struct release_request *request,
                   struct answer *answer);

/* Lets time pass. */
void query_pause(struct query *query, int64_t ns);

void lock_list_free(struct lock_list *list);

#endif
