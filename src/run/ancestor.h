/* Whether a process of which a lock's record tells the number, and the host and pid namespace in
 * which it has that, is an ancestor of this one. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "lock/identity.h"

/* Whether "who" is an ancestor of this process on this host, and has lived for at least "age" ns: a
 * younger process has the number of one that has ended. False where /proc cannot be read. */
bool ancestor_is(const struct identity *who, int64_t age);
