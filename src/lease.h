/* When a lease ends, when to renew it, when its command has to stop: arithmetic alone.
 *
 * A lease of L granted on a request sent at t is trusted until t + L - drift, never longer: the server
 * counted from a later moment, and its clock may run up to 1 % fast. Within that time the command
 * has to be dead, so KILL comes earlier by the time a kill takes, and TERM earlier still. */
#ifndef RLOCK_LEASE_H
#define RLOCK_LEASE_H

#include "clock.h"

#define LEASE_MIN_NS (1 * NS_PER_SEC)

/* The end of a lease of "lease" ns whose request was sent at "sent". */
struct moment lease_end(struct moment sent, int64_t lease);

/* The moment to send the next renewal: a third of the lease after "sent". */
struct moment lease_renew_at(struct moment sent, int64_t lease);

/* The last moment to KILL for a lease ending at "end". */
struct moment lease_kill_at(struct moment end, int64_t lease);

/* The moment to TERM: "kill_after" ns before the KILL, but never more than a quarter of the lease
 * before it, so that a long clean-up cannot eat the time in which a renewal may still succeed. */
struct moment lease_term_at(struct moment end, int64_t lease, int64_t kill_after);

/* How long one renewal may go unanswered before its connection is given up: a sixth of the lease,
 * at most 5 s. */
int64_t lease_patience(int64_t lease);

/* The pause before retry number "attempt" (from 0): doubles from 50 ms to 1 s; "dice" is any random
 * number and spreads it over half to all of that, so that many clients do not come back at once. */
int64_t lease_backoff(unsigned attempt, uint32_t dice);

#endif
