/* A look at each server of a ZooKeeper ensemble. */
#ifndef RLOCK_STORE_ZOOKEEPER_CHECKUP_H
#define RLOCK_STORE_ZOOKEEPER_CHECKUP_H

#include "store/diagnosis.h"

/* struct store_record's "check" (store/store_record.h). */
bool zookeeper_check(const struct checkup_plan *plan, struct checkup *checkup, char *fault,
                     size_t size);

#endif
