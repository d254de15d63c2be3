/* Leaving: what is held is given back, or the place in the queue, by an agent that may not answer. It is not
 * waited for longer than it is worth. */
#ifndef RLOCK_DEPARTURE_H
#define RLOCK_DEPARTURE_H

#include "ward.h"

struct departure {
    const char *title; /* the lock, in messages */
    const struct deputy *agent;
    const struct ward *ward;
    enum { STAYING, RELEASING, CANCELLING } state;
    struct moment by; /* when to go without an answer */
};

/* Nothing of the command is left: has the lock given back. False if nobody is to be waited for, which has
 * been said then. */
bool departure_release(struct departure *departure);
/* No command was started. False if nobody is to be waited for. */
bool departure_cancel(struct departure *departure);
/* The user does not want to wait. */
void departure_hurry(struct departure *departure);
/* It did not work: warns if something may still be held. */
void departure_fail(const struct departure *departure, const char *why);

#endif
