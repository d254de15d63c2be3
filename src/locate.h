/* Where a server is: at a path, at a numeric address, under a name that is to be looked up, where the Sentinels
 * say; or the local one, which a search starts if it is not there. What was found is remembered; a search asks
 * anew. */
#ifndef RLOCK_LOCATE_H
#define RLOCK_LOCATE_H

#include "resolve.h"
#include "store.h"

struct locator;

/* The URL is borrowed for as long as the locator lives, and so is "tls" (NULL: plain), which is for who has to
 * be asked. NULL with a message in "fault" where the URL can lead nowhere. */
struct locator *locator_new(struct loop *loop, const struct url *url, struct tls *tls, char *fault,
                            size_t size);
void locator_free(struct locator *locator);

/* The addresses as far as they are known, to be tried in this order; *endpoints is valid until the next
 * search. Returns how many, 0: search first. */
int locator_known(const struct locator *locator, const struct endpoint **endpoints);
/* Whether a search may find others than those known. */
bool locator_can_search(const struct locator *locator);
/* Whether the server may move to another host while we are looking. */
bool locator_roams(const struct locator *locator);
/* The name or address of the server as it is asked for, for TLS; NULL where it has none. */
const char *locator_host(const struct locator *locator);
/* What a search has found, "the master 10.0.0.1:6379", for messages; "" where the URL says it all. */
const char *locator_found(const struct locator *locator);

/* Starts a search, which takes up to half of the time until "until", and for a name perhaps longer: what it
 * finds has to be reached as well. "done" comes once, later: with an UNKNOWN answer that says why it
 * failed, or NULL when addresses are known. password: for who has to be asked; NULL: none. */
void locator_search(struct locator *locator, const char *password, struct moment until,
                    void (*done)(void *arg, const struct answer *failure), void *arg);
/* What to say of a search that took too long. */
const char *locator_overdue(const struct locator *locator);
/* What depends on the server: a lease of "lease" ns. Who watches it looks at least three times in it. */
void locator_mind(struct locator *locator, int64_t lease);
/* From now until locator_stop(), looks now and then whether the server that is known is still the one;
 * "moved" comes once, if it is not. */
void locator_watch(struct locator *locator, const char *password, void (*moved)(void *arg),
                   void *arg);
/* There is no connection any more: ends search and watch; their callbacks come no more. Where the server may
 * have moved, a search is due. */
void locator_stop(struct locator *locator);

#endif
