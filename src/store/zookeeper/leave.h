/* The end of the own places: see leave.c for why no late request undoes it. */
#pragma once

#include "store/zookeeper/operation.h"

/* Deletes all own nodes, and then calls "left"; on an error the operation ends instead. Where a
 * node was not there any more, store->missing says so. */
void zk_leave(struct zk_store *store, zk_step *left);
/* Adds to the batch a transaction that deletes the own nodes. */
void zk_delete_own(struct zk_store *store);
/* Frees what was found of the own nodes. */
void zk_forget_found(struct zk_store *store);
/* Closes the session, which has no nodes, and waits for nothing. */
void zk_close_session(struct zk_store *store);
