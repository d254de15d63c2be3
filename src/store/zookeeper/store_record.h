/* zookeeper:// and zookeepers://: a ZooKeeper ensemble as a store (store/store.h). */
#pragma once

#include "store/store_record.h"

extern const struct store_record zookeeper_record;

/* Members of the record (store.c, checkup.c). */
struct store *zookeeper_open(struct loop *loop, const struct store_address *address, char *fault,
                             size_t size);
bool zookeeper_check(const struct checkup_plan *plan, struct checkup *checkup, char *fault,
                     size_t size);
