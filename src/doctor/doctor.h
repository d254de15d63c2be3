/* What a checkup of a lock store comes to, and a lock that is taken there for trial. Pure. */
#ifndef RLOCK_DOCTOR_DOCTOR_H
#define RLOCK_DOCTOR_DOCTOR_H

#include "store/diagnosis.h"

/* What came of taking, renewing and releasing a lock. */
struct trial {
    bool granted, released;
    bool held_by_other; /* of two doctors, only one can have it */
    char fault[256];    /* why not */
    int64_t acquire_ns, renew_ns, release_ns;
};
void doctor_judge_trial(const struct trial *trial, struct diagnosis *diagnosis);

/* True if enough servers were reached to try a lock. */
bool doctor_may_try(const struct checkup *checkup);

/* How fit the store is: several servers are worth what they are together. */
enum level doctor_verdict(const struct checkup *checkup);

/* The first finding that makes the store unfit; NULL: none does. */
const struct finding *doctor_worst(const struct checkup *checkup);

#endif
