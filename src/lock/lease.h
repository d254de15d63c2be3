/* When a lease ends, when to renew it, when its command must stop: only arithmetic.
 *
 * A lease of L that counts from t is trusted until t + L - drift, never longer: the server counts
 * from a later moment, and its clock may run up to 1 % fast. Within that time the command must be
 * dead, so KILL comes earlier by the time that a kill takes, and TERM earlier still. */
#pragma once

#include "base/clock.h"

#include <stdbool.h>

#define LEASE_MIN_NS (1 * NS_PER_SEC)

/* A lease that is held: no other owner is granted the lock before "end". */
struct lease {
    struct moment end;
    int64_t length; /* ns: as granted by the store */
};

/* Returns until when a lease of "length" ns that counts from "from" is trusted. */
struct moment lease_end(struct moment from, int64_t length);

/* Returns the length (ns) of a lease that begins "now" and is trusted until "end", at most; 0 if
 * that is past. */
int64_t lease_rest(struct moment now, struct moment end);

/* Returns when to send the next renewal: a third of the lease after "from". */
struct moment lease_renew_at(struct moment from, int64_t length);

/* Returns the last moment to KILL. */
struct moment lease_kill_at(struct lease lease);

/* Returns the moment to TERM: "kill_after" ns before the KILL, but never more than a quarter of the
 * lease before it, nor sooner than 0.7 of the lease after its beginning: a long clean-up must not
 * eat the time in which a renewal may still succeed. */
struct moment lease_term_at(struct lease lease, int64_t kill_after);

/* Returns the longest round trip (ns) at which a lease can be kept, a third of it: a renewal that
 * is sent then, or as soon as the one before is answered, is answered before the TERM. For a lease
 * that is not renewed, half of it: the other half is for the command. */
int64_t lease_round_trip_most(int64_t lease, bool renewed);

/* Returns a lease (ns, of whole seconds) that can be kept at such a round trip. */
int64_t lease_for_round_trip(int64_t round_trip, bool renewed);

/* Returns the time limit (ns) of one renewal, after which its connection is dropped: a sixth of the
 * lease, at most 5 s; but at least four times the round trip that was measured last, 0 if none
 * was. */
int64_t lease_request_timeout(int64_t lease, int64_t round_trip);

/* By how much one request may exceed the time that its user wants to wait. */
#define LEASE_LAST_CALL_NS (1 * NS_PER_SEC)

/* Returns when a request that is sent "now" times out, for a user who waits until "until": not long
 * after that. */
struct moment lease_last_call(struct moment now, struct moment until);
