/* zookeeper:// and zookeepers://: a ZooKeeper ensemble as a store (store/store.h). */
#pragma once

#include "store/store_kind.h"

extern const struct store_kind zookeeper_kind;

/* The "check" of its kind. */
bool zookeeper_check(const struct checkup_plan *plan, struct checkup *checkup, char *fault,
                     size_t size);
