/* Questions to a store by a command that has nothing else to do: every call waits for the
 * answer. */
#pragma once

#include "lock/outage.h"
#include "store/store.h"
#include "store/views.h"

struct query {
    struct loop *loop;
    struct store *store;
    int64_t time_limit;  /* ns, for one question */
    int64_t attempt;     /* ns, for one of several attempts at it */
    const char *who;     /* asks; NULL: neither waits for a store that is away nor says anything */
    int64_t server_wait; /* ns for further attempts, as of outage_begin() */
    struct outage outage;
    bool has_outage;
    bool answered;            /* the latest attempt */
    struct kept_answer *kept; /* the latest answer */
};

struct lock_list {
    struct lock_views locks;
    struct lock_views misfits; /* named KEYs that are something else, and locks of a later rlock */
    struct lock_views pauses;  /* of GLOBs, which are their keys */
    char minimum[24];          /* the version of rlock that the store asks for; "": any */
};

/* A callback of signals or timers may end a call by loop_stop(): the answer is then UNKNOWN without
 * a cause, and the store is closed. Only query_close() may follow. */

/* Prepares questions; nothing is connected yet. A store that is away at the first question is tried
 * again, as the address says, with a message in the name of "who"; not if that is NULL. Returns
 * false with a message in "fault" on failure. query_close() must follow in either case. */
bool query_open(struct query *query, const struct store_address *address, const char *who,
                char *fault, size_t size);
/* Closes the store, and frees what the questions have needed. */
void query_close(struct query *query);

/* The lock that a doctor tries: one for all doctors, because it stays, free, as long as others do.
 * No list has it that does not name it. */
#define QUERY_TRIAL_KEY "rlock-doctor"

/* Reads the locks or latches of the request, which has no callbacks, into *list, in place of those
 * of an earlier survey, sorted by the bytes of their keys. A KEY that is something else is REFUSED
 * for MISFIT; a lock of a later rlock that a GLOB fits is not. If the answer is UNKNOWN, there are
 * no misfits, and a part of the locks at most. The caller frees the list by lock_list_free(), also
 * if the answer is not GRANTED. */
void query_survey(struct query *query, const struct survey_request *request, struct lock_list *list,
                  struct answer *answer);
#define QUERY_RUNS_ALL 1000 /* of one lock; a store remembers fewer */
/* query_survey() for one lock. Returns its view, which is in *list; NULL if the list has none. */
const struct lock_view *query_read_lock(struct query *query, const char *key,
                                        struct lock_list *list, struct answer *answer);
/* query_survey() in a query of its own, with one attempt and without a message. */
void query_look(const struct store_address *address, const struct survey_request *request,
                struct lock_list *list, struct answer *answer);

/* Refuses by the first misfit, if there is one. */
void lock_list_refuse(const struct lock_list *list, struct answer *answer);

/* Asks any other question whose answer ends it. Sets "until", "done" and "arg" of the operation.
 * The memory that an answer points to is valid until the next question. */
void query_ask(struct query *query, struct operation operation, struct answer *answer);

/* Renews or releases for a holder, or changes what is decided about a lock. A lost answer is asked
 * for again until the time is up; if nothing is left to release, to resume or to forget after a
 * request without an answer, that request has worked. */
void query_renew(struct query *query, const struct renew_request *request, struct answer *answer);
void query_release(struct query *query, const struct release_request *request,
                   struct answer *answer);
void query_adjust(struct query *query, const struct adjust_request *request, struct answer *answer);
/* Asks about a latch, which is harmless to repeat: until the store has answered, or has been away
 * for too long, or the moment "end" has come. If there is nothing to delete after a deletion
 * without an answer, that deletion has worked. */
void query_latch(struct query *query, const struct latch_request *request, struct moment end,
                 struct answer *answer);

/* Frees what a survey has listed; harmless if the list is empty. */
void lock_list_free(struct lock_list *list);
