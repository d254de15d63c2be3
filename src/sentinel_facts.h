/* What each of the Sentinels of a URL says. */
#ifndef RLOCK_SENTINEL_FACTS_H
#define RLOCK_SENTINEL_FACTS_H

#include "facts.h"
#include "store.h"

/* Asks those of address->urls[0], for less than connect_timeout. False with a message in "fault" if the question
 * could not even be asked here. */
bool sentinel_facts_ask(const struct store_address *address, struct sentinel_facts *facts,
                        char *fault, size_t size);

#endif
