/* Several URLs. */
#include "store/quorum/store_record.h"

#include "store/quorum/checkup.h"
#include "store/quorum/store.h"
#include "store/store.h"

static struct store *open_nodes(struct loop *loop, const struct store_address *address, char *fault,
                                size_t size)
{
    struct store_node nodes[QUORUM_NODES_MAX];
    struct store_address one = *address;
    size_t count = 0;

    one.url_count = 1;
    for (; count < address->url_count; count++) {
        one.urls = &address->urls[count];
        url_print(one.urls, nodes[count].name, sizeof nodes[count].name);
        if (!one.urls->record->open_member(loop, &one, &nodes[count].member, fault, size))
            break;
    }
    if (count == address->url_count)
        return store_quorum_open(loop, nodes, count);
    while (count > 0)
        store_close(nodes[--count].member.store);
    return NULL;
}

const struct store_record quorum_record = {.name = "a quorum",
                                           .abilities = STORE_SEVERAL_KEYS | STORE_AT_LEAST |
                                                        STORE_FORCE | STORE_ASK | STORE_DETACHED |
                                                        STORE_MIRROR,
                                           .is_voted = true,
                                           .open = open_nodes,
                                           .check = quorum_check};
