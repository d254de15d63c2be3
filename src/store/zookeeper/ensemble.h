/* The servers of an ensemble, one after the other: each can serve every session. */
#ifndef RLOCK_STORE_ZOOKEEPER_ENSEMBLE_H
#define RLOCK_STORE_ZOOKEEPER_ENSEMBLE_H

#include <stddef.h>

#include "net/resolve.h"
#include "store/url.h"

struct ensemble;
struct loop;

/* Borrows the URL. */
struct ensemble *ensemble_new(struct loop *loop, const struct url *url);
void ensemble_free(struct ensemble *ensemble);

/* Takes the next server, and finds its address: "found" comes once, perhaps before this
 * returned; NULL with a reason where there is none. */
void ensemble_next(struct ensemble *ensemble,
                   void (*found)(void *arg, const struct endpoint *endpoint, const char *fault),
                   void *arg);
/* Ends the look-up; "found" comes no more. */
void ensemble_stop(struct ensemble *ensemble);

/* The server that it has come to. */
const struct url_host *ensemble_host(const struct ensemble *ensemble);

#endif
