/* Refusals: what the holder is that they name, how they are told again, and whether the owner keeps
 * its place. */
#pragma once

#include "store/zookeeper/operation.h"

/* Makes store->refusal one of that cause, with an empty party. Returns its answer, which the caller
 * completes. */
struct answer *zk_begin_refusal(struct zk_store *store, enum cause cause, size_t key);
/* Notes the node of the holder that the refusal names; NULL: none. When that has gone, there is
 * another holder. */
void zk_note_oldest(struct zk_store *store, size_t key, enum zk_branch branch,
                    const struct zk_contender *oldest);
/* Begins a refusal as zk_begin_refusal() does, for MISFIT: others hold the key as a semaphore of
 * that limit; 0: it is not known. */
struct answer *zk_begin_misfit(struct zk_store *store, size_t key, unsigned limit);
/* Ends the operation as store->refusal says, with the age that the holder has by now. A new waiter
 * asks the server for room first. */
void zk_refuse_again(struct zk_store *store);
/* Deletes the own nodes, closes the session, and then ends the operation as store->refusal says. */
void zk_refuse_and_leave(struct zk_store *store);
/* Does what ZK_LEAVE_FULL says. */
zk_step zk_leave_full;
