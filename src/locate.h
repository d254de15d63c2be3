/* Where a server is: at a path, at a numeric address, under a name that is to be looked up; or the local one, which
 * a search starts if it is not there. What was found is remembered; a search asks anew. */
#ifndef RLOCK_LOCATE_H
#define RLOCK_LOCATE_H

#include "clock.h"
#include "resolve.h"
#include "url.h"

struct locator;

/* The URL is borrowed for as long as the locator lives. NULL with a message in "fault" where it can lead
 * nowhere. */
struct locator *locator_new(struct loop *loop, const struct url *url, char *fault, size_t size);
void locator_free(struct locator *locator);

/* The addresses as far as they are known, to be tried in this order; *endpoints is valid until the next
 * search. Returns how many, 0: search first. */
int locator_known(const struct locator *locator, const struct endpoint **endpoints);
/* Whether a search may find others than those known. */
bool locator_can_search(const struct locator *locator);
/* The name or address of the server as it is asked for, for TLS; NULL where it has none. */
const char *locator_host(const struct locator *locator);
/* Starts a search. "done" comes once, later: with why it failed, or NULL when addresses are known. */
void locator_search(struct locator *locator, void (*done)(void *arg, const char *fault), void *arg);
/* What to say of a search that took too long. */
const char *locator_overdue(const struct locator *locator);
/* Ends a search; "done" comes no more. Harmless if none is under way. */
void locator_stop(struct locator *locator);

#endif
