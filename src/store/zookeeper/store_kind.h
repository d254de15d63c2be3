/* zookeeper:// and zookeepers://: a ZooKeeper ensemble as a store (store/store.h). */
#pragma once

#include "store/store_kind.h"

extern const struct store_kind zookeeper_kind;

/* Looks at each server of the ensemble, and at what they are together: "check" of a store_kind. A
 * server that does not answer is a finding. False with a message in "fault": the address cannot be
 * used. */
bool zookeeper_check(const struct checkup_plan *plan, struct checkup *checkup, char *fault,
                     size_t size);
