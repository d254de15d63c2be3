/* A process that does errands about one latch, one after the other, tells the user what keeps it waiting,
 * and can be told to end by signals. */
#ifndef RLOCK_LATCH_SESSION_H
#define RLOCK_LATCH_SESSION_H

#include <signal.h>

#include "child.h"
#include "errand.h"
#include "loop.h"
#include "notice.h"
#include "query.h"

struct latch_session {
    const char *key;
    struct query query;
    struct errand *errand;
    struct errand_end end; /* of the last errand */
    int signal;            /* it was told to end by it; 0 */
    /* Takes the signals while no errand is under way. */
    void (*signalled)(void *arg, int signo);
    void *arg;

    struct inherited inherited;
    struct notice notice; /* what it waits for */
};

/* Opens nothing yet; "key" is borrowed. False with a message in "fault"; latch_session_close() in either
 * case. */
bool latch_session_open(struct latch_session *session, const char *key,
                        const struct store_address *address, char *fault, size_t size);
void latch_session_close(struct latch_session *session);

/* From now on signals are read, so that what was drawn is wiped before this process dies of one. False
 * with errno. */
bool latch_session_catch(struct latch_session *session);

/* Does one errand; how it ended is in session->end. False if a signal came first: nothing more can be
 * done than latch_session_close(). */
bool latch_session_do(struct latch_session *session, const struct errand_plan *plan);

#endif
