/* What a Redis server says of itself. */
#ifndef RLOCK_REDIS_FACTS_H
#define RLOCK_REDIS_FACTS_H

#include "facts.h"
#include "store.h"

/* Asks the server of address->urls[0], for less than connect_timeout and a few seconds; changes nothing there. False
 * with a message in "fault" if the question could not even be asked here. */
bool redis_facts_ask(const struct store_address *address, struct server_facts *facts, char *fault,
                     size_t size);
/* Those of a server that nobody has reached, for that reason. */
void redis_facts_none(struct server_facts *facts, const struct answer *failure);

#endif
