/* zookeeper:// and zookeepers://: a ZooKeeper ensemble as a store (store/store.h). */
#pragma once

#include "store/store_record.h"

extern const struct store_record zookeeper_record;

/* As the record's "check". */
bool zookeeper_check(const struct checkup_plan *plan, struct checkup *checkup, char *fault,
                     size_t size);
