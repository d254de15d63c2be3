/* The leases of a semaphore. */
#include "store/zookeeper/leases.h"

#include <stdlib.h>

#include "base/mem.h"
#include "store/zookeeper/queue.h"

static int by_number(const void *a, const void *b)
{
    unsigned left = *(const unsigned *)a, right = *(const unsigned *)b;

    return (left > right) - (left < right);
}

struct zk_room zk_leases_room(const struct zk_reply *data, size_t count)
{
    struct zk_room room = {.slot = 1};
    unsigned *slots = mem_zeroed((count + 1) * sizeof *slots);
    size_t used = 0;

    for (size_t i = 0; i < count; i++) {
        struct jute_text text = {"", 0};
        struct zk_stat stat;
        struct zk_node_data one;
        if (data[i].error == ZK_NO_NODE)
            continue;
        bool ours = zk_read_data(&data[i], &text, &stat) == ZK_OK &&
                    zk_node_data_parse(text, &one) && one.slot > 0;
        if (ours)
            slots[used++] = one.slot;
        else
            room.taken++;
        if (ours && !room.limit)
            room.limit = one.limit;
    }
    qsort(slots, used, sizeof *slots, by_number);
    for (size_t i = 0; i < used; i++) {
        room.taken += i == 0 || slots[i] != slots[i - 1];
        room.slot += slots[i] == room.slot;
    }
    free(slots);
    return room;
}
