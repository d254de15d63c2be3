/* The record of this host's own server: local: */
#ifndef RLOCK_STORE_LOCAL_STORE_RECORD_H
#define RLOCK_STORE_LOCAL_STORE_RECORD_H

#include "store/store_record.h"
#include "store/url.h"

struct local_place;

extern const struct store_record local_record;

/* The address of a server that runs there, which is not started by whoever connects to it.
 * Borrows from *place. */
struct url local_url(const struct local_place *place);

#endif
