#include "lock/lease.h"

/* Returns by how many ns two clocks may drift apart within a lease. The 2 ms are for the store's
 * whole milliseconds and for very short leases. */
static int64_t drift_margin(int64_t lease)
{
    return lease / 100 + 2 * NS_PER_MS;
}

/* Returns how many ns it may take to send a KILL and for the tree to be gone on a busy machine:
 * half a second, less for a short lease, more for one of more than 25 s. */
static int64_t kill_margin(int64_t lease)
{
    int64_t least = lease / 10, share = lease / 50;

    if (least < 200 * NS_PER_MS)
        least = 200 * NS_PER_MS;
    if (least > 500 * NS_PER_MS)
        least = 500 * NS_PER_MS;
    return share > least ? share : least;
}

struct moment lease_end(struct moment from, int64_t length)
{
    return moment_plus(from, length - drift_margin(length));
}

int64_t lease_rest(struct moment now, struct moment end)
{
    int64_t left = moment_until(now, end);

    /* The inverse of lease_end(), by drift_margin(); rounded down. */
    return left > 0 ? (left + 2 * NS_PER_MS) / 99 * 100 : 0;
}

struct moment lease_renew_at(struct moment from, int64_t length)
{
    return moment_plus(from, length / 3);
}

struct moment lease_kill_at(struct lease lease)
{
    return moment_plus(lease.end, -kill_margin(lease.length));
}

struct moment lease_term_at(struct lease lease, int64_t kill_after)
{
    /* renewing: two thirds, for a renewal that takes a third and the one before it, and some time
     * for the way to the command. */
    int64_t length = lease.length, renewing = length / 10 * 7, most = length / 4;
    int64_t until_kill = length - drift_margin(length) - kill_margin(length);

    if (most > until_kill - renewing)
        most = until_kill - renewing;
    return moment_plus(lease_kill_at(lease), kill_after < most ? -kill_after : -most);
}

/* Returns how many round trips must fit into a lease. */
static int64_t round_trips_needed(bool renewed)
{
    return renewed ? 3 : 2;
}

int64_t lease_round_trip_most(int64_t lease, bool renewed)
{
    return lease / round_trips_needed(renewed);
}

int64_t lease_for_round_trip(int64_t round_trip, bool renewed)
{
    return (round_trip * round_trips_needed(renewed) / NS_PER_SEC + 1) * NS_PER_SEC;
}

int64_t lease_request_timeout(int64_t lease, int64_t round_trip)
{
    int64_t share = lease / 6 < 5 * NS_PER_SEC ? lease / 6 : 5 * NS_PER_SEC;
    return share > 4 * round_trip ? share : 4 * round_trip;
}

struct moment lease_last_call(struct moment now, struct moment until)
{
    return moment_max(until, moment_plus(now, LEASE_LAST_CALL_NS));
}
