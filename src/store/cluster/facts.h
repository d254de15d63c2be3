/* The masters of a Redis Cluster, and the slots they have. */
#ifndef RLOCK_STORE_CLUSTER_FACTS_H
#define RLOCK_STORE_CLUSTER_FACTS_H

#include "store/cluster/map.h"
#include "store/store.h"

struct cluster_facts {
    struct cluster_node *masters;
    size_t count;   /* 0: none could be told of, for the reason that is in "failure" */
    unsigned slots; /* that any of them has */
    struct answer failure;
};

/* Asks the nodes of address->urls[0], for connect_timeout at most. False with a message in "fault"
 * if this process cannot even ask. */
bool cluster_facts_ask(const struct store_address *address, struct cluster_facts *facts,
                       char *fault, size_t size);
void cluster_facts_free(struct cluster_facts *facts);

#endif
