/* Whether a process that others know by host and number is an ancestor of this one. */
#ifndef RLOCK_RUN_ANCESTOR_H
#define RLOCK_RUN_ANCESTOR_H

#include <stdbool.h>
#include <stdint.h>

#include "lock/identity.h"

/* Whether "who" is on this host an ancestor process of this one that has lived for "age" ns at
 * least: what is younger has the number of another one that has ended. False where /proc does not
 * tell. */
bool ancestor_is(const struct identity *who, int64_t age);

#endif
