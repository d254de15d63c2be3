/* A command whose success is counted. */
#ifndef RLOCK_LATCH_RUN_H
#define RLOCK_LATCH_RUN_H

#include "latch_session.h"

struct latch_run {
    char *const *command;            /* argv, NULL-terminated */
    struct environment *environment; /* its own */

    /* How it went. */
    int status; /* to end with, where signal is 0 */
    int signal; /* it died of this */
    int typed;  /* which was typed at its terminal; 0 */
};

/* Runs it to its end, with the terminal and all signals, in a session that catches them. */
void latch_run(struct latch_run *run, struct latch_session *session);

#endif
