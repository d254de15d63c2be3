/* Finds out where a server is: at a path, at a numeric address, under a host name, or where the
 * Sentinels say; a server of this host that is not running is started (by "start_server" of its
 * record). The locator remembers its findings; a search asks anew. */
#ifndef RLOCK_STORE_REDIS_LOCATE_H
#define RLOCK_STORE_REDIS_LOCATE_H

#include "net/resolve.h"
#include "store/store.h"

struct locator;
struct tls;

/* The URL and "tls" (NULL: plain), over which Sentinels are asked, are borrowed until
 * locator_free(). Returns NULL with a message in "fault" if the URL can lead nowhere. */
struct locator *locator_new(struct loop *loop, const struct url *url, struct tls *tls, char *fault,
                            size_t size);
void locator_free(struct locator *locator);

/* Finds the addresses that are known, in the order in which to try them; *endpoints is valid until
 * the next search. Returns how many; 0: search first. */
int locator_known(const struct locator *locator, const struct endpoint **endpoints);
/* Whether a search may find others than those known. */
bool locator_can_search(const struct locator *locator);
/* Whether another host may take the server's place during a search. */
bool locator_fails_over(const struct locator *locator);
/* Returns the name or address of the server as the user or the Sentinels gave it, for TLS; NULL:
 * none. */
const char *locator_host(const struct locator *locator);
/* Returns the finding of a search, for messages: "the master 10.0.0.1:6379"; "" if the URL says it
 * all. */
const char *locator_found(const struct locator *locator);

/* Starts a search. Sentinels get half of the time until "until" to answer, since the server must be
 * reached as well; a name or the start of a server may take longer than "until". "done" comes
 * once, later: with NULL when addresses are known, or with an UNKNOWN answer that says why the
 * search failed. password: for Sentinels; NULL: none. */
void locator_search(struct locator *locator, const char *password, struct moment until,
                    void (*done)(void *arg, const struct answer *failure), void *arg);
/* Returns the message about a search that took too long. */
const char *locator_overdue(const struct locator *locator);

/* A lease of "lease" ns depends on the server: a watch looks at least three times in it. */
void locator_set_lease(struct locator *locator, int64_t lease);
/* Watches the server until locator_stop(): asks the Sentinels now and then whether it is still the
 * master. "moved" comes once, when it is not. */
void locator_watch(struct locator *locator, const char *password, void (*moved)(void *arg),
                   void *arg);
/* Ends a search and a watch, without their callbacks; to be called when the connection has ended.
 * If the server may have moved, the next connection needs a search. */
void locator_stop(struct locator *locator);

#endif
