/* A store asked by a command that has nothing else to do: every call waits for the answer. */
#ifndef RLOCK_QUERY_H
#define RLOCK_QUERY_H

#include "store.h"

struct query {
    struct loop *loop;
    struct store *store;
    int64_t patience; /* ns: for one question */
    int64_t attempt;  /* ns: of that, for one connection, where it is asked several times */
};

/* Copies of lock views, which stay. */
struct lock_list {
    struct lock_view *locks;
    size_t count;
};

/* Opens nothing yet. False with a message in "fault". query_close() in either case. */
bool query_open(struct query *query, const struct store_address *address, char *fault, size_t size);
void query_close(struct query *query);

/* Reads the locks that match (store_survey()) into *list; give it back with lock_list_free(), also when
 * the answer is not GRANTED. */
void query_survey(struct query *query, const char *const *patterns, size_t count,
                  struct lock_list *list, struct answer *answer);
void query_force(struct query *query, const struct force_request *request, struct answer *answer);

/* One try, for a lock that is not worth waiting for. */
void query_acquire(struct query *query, const struct lock_request *request, struct answer *answer);

/* What a holder asks for itself. An answer that was lost is asked for again until the time is up; that
 * nothing is held after a release without an answer proves that it worked. */
void query_renew(struct query *query, const struct lock_request *request, struct answer *answer);
void query_release(struct query *query, const struct lock_request *request, struct answer *answer);

/* store_mark() */
void query_mark(struct query *query, bool force, struct answer *answer);

/* Lets time pass. */
void query_pause(struct query *query, int64_t ns);

void lock_list_free(struct lock_list *list);

#endif
