/* What a server is to be fit for. */
#ifndef RLOCK_STORE_REDIS_WISHES_H
#define RLOCK_STORE_REDIS_WISHES_H

#include <stdbool.h>
#include <stdint.h>

#include "store/store_record.h"
#include "store/url.h"

/* What the user wants of the server. */
struct wishes {
    const struct url *url;
    const char *prefix;
    int64_t lease;     /* ns */
    unsigned replicas; /* so many of them have to have a lock before it counts */
    bool grace;
    bool quorum; /* it is one of several, which are a quorum */
    bool secret; /* a password is sent to it */
};

#endif
