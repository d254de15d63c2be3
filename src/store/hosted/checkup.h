/* The examination of a database server by the doctor. */
#ifndef RLOCK_STORE_HOSTED_CHECKUP_H
#define RLOCK_STORE_HOSTED_CHECKUP_H

#include "store/diagnosis.h"

/* As "check" of store/store_record.h. */
bool hosted_check_postgresql(const struct checkup_plan *plan, struct checkup *checkup, char *fault,
                             size_t size);
bool hosted_check_mysql(const struct checkup_plan *plan, struct checkup *checkup, char *fault,
                        size_t size);

#endif
