/* Is this server fit to hold locks? From what is known about it to findings. Pure. */
#ifndef RLOCK_JUDGE_H
#define RLOCK_JUDGE_H

#include "diagnosis.h"
#include "url.h"

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

void judge_server(const struct server_facts *facts, const struct wishes *wishes,
                  struct diagnosis *diagnosis);

#endif
