/* The record of a Redis Cluster.
 *
 * cluster://[USER[:PASS]@]HOST[:PORT][,HOST[:PORT]...]   (PORT 6379; clusters is the same over
 * TLS) */
#ifndef RLOCK_STORE_CLUSTER_STORE_RECORD_H
#define RLOCK_STORE_CLUSTER_STORE_RECORD_H

#include "store/store_record.h"

extern const struct store_record cluster_record;

#endif
