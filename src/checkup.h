/* The servers behind a store's address, each looked at, and judged alone and together. */
#ifndef RLOCK_CHECKUP_H
#define RLOCK_CHECKUP_H

#include "diagnosis.h"
#include "settings.h"

struct checkup {
    struct patient *patients;
    size_t count;
    struct diagnosis whole; /* of several: about all of them together */
};

/* Looks at those of settings->address: of several URLs at each, of a Cluster at each of its masters. Changes nothing
 * there. False with a message in "fault" if that is not possible here. */
bool checkup_run(const struct settings *settings, struct checkup *checkup, char *fault,
                 size_t size);
void checkup_free(struct checkup *checkup);

#endif
