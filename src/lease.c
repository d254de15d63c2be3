/* Lease arithmetic. */
#include "lease.h"

/* How far two clocks may drift apart within a lease. The 2 ms are for the store's whole milliseconds
 * and for very short leases. */
static int64_t drift(int64_t lease)
{
    return lease / 100 + 2 * NS_PER_MS;
}

/* What a KILL takes to be sent, and the tree to be gone, on a busy machine. */
static int64_t kill_margin(int64_t lease)
{
    int64_t share = lease / 50;
    return share > 200 * NS_PER_MS ? share : 200 * NS_PER_MS;
}

struct moment lease_end(struct moment sent, int64_t lease)
{
    return moment_plus(sent, lease - drift(lease));
}

struct moment lease_renew_at(struct moment sent, int64_t lease)
{
    return moment_plus(sent, lease / 3);
}

struct moment lease_kill_at(struct moment end, int64_t lease)
{
    return moment_plus(end, -kill_margin(lease));
}

struct moment lease_term_at(struct moment end, int64_t lease, int64_t kill_after)
{
    int64_t most = lease / 4;
    return moment_plus(lease_kill_at(end, lease), kill_after < most ? -kill_after : -most);
}

int64_t lease_patience(int64_t lease)
{
    int64_t share = lease / 6;
    return share < 5 * NS_PER_SEC ? share : 5 * NS_PER_SEC;
}

int64_t lease_backoff(unsigned attempt, uint32_t dice)
{
    int64_t pause = attempt < 5 ? (50 * NS_PER_MS) << attempt : NS_PER_SEC;
    int64_t half = pause / 2;
    return half + half * dice / UINT32_MAX;
}
