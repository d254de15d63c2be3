/* Is this server fit to hold locks? Turns what is known about it into findings. Pure. */
#ifndef RLOCK_STORE_REDIS_JUDGE_H
#define RLOCK_STORE_REDIS_JUDGE_H

#include "store/diagnosis.h"
#include "store/redis/doctor/facts.h"
#include "store/store_record.h"

/* The requirements of the user. */
struct wishes {
    const struct url *url;
    const char *prefix;
    int64_t lease;     /* ns */
    unsigned replicas; /* that must have a lock before it counts */
    bool grace;
    bool quorum; /* it is a member of a quorum */
    bool secret; /* a password is sent to it */
};

void judge_server(const struct server_facts *facts, const struct wishes *wishes,
                  struct diagnosis *diagnosis);

/* Judges the rights that the user lacks, as a part of judge_server(). */
void judge_rights(const struct server_facts *facts, const struct wishes *wishes,
                  struct diagnosis *diagnosis);
/* Prints the command for an administrator that gives the user all that it lacks. */
void judge_rights_cure(const struct server_facts *facts, const struct wishes *wishes, char *out,
                       size_t size);

/* Are these Sentinels enough to rely on? */
void judge_sentinels(const struct sentinel_facts *facts, struct diagnosis *diagnosis);

#endif
