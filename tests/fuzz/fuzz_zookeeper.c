/* Any reply of a ZooKeeper server, read as each kind of reply: nothing is read that is not there,
 * and what names children is judged. The first byte: which kind. */
#include "fuzz.h"
#include "store/zookeeper/message.h"
#include "store/zookeeper/queue.h"

static void read_queue(const struct zk_reply *reply)
{
    struct zk_queue queue;

    if (zk_queue_read(reply, ZK_PLAIN, &queue) == ZK_OK) {
        MUST(zk_queue_holders(&queue) <= queue.count);
        MUST(queue.count == 0 || zk_queue_oldest(&queue));
        for (size_t i = 0; i < queue.count; i++) {
            const struct zk_contender *one = &queue.all[i],
                                      *other = zk_queue_in_the_way(&queue, one);
            MUST(!other || other->order < one->order);
            MUST(!one->first_of_party || one->holds == !other);
        }
    }
    zk_queue_free(&queue);
}

static void read_data(const struct zk_reply *reply)
{
    struct zk_contender one = {.uuid = ""};
    struct lock_party party;
    struct zk_node_data data;
    struct jute_text text;
    struct zk_stat stat;

    if (zk_read_data(reply, &text, &stat) != ZK_OK)
        return;
    zk_read_party(&one, text, &stat, 0, &party);
    if (zk_node_data_parse(text, &data)) {
        char *again = zk_node_data_print(&data);
        MUST(zk_node_data_parse((struct jute_text){again, strlen(again)}, &data));
        free(again);
    }
}

static void read_name(const struct zk_reply *reply)
{
    struct jute_text name = {reply->body.at, (size_t)(reply->body.end - reply->body.at)};
    char *key = zk_path_to_key(name);

    if (key) {
        char *path = zk_path_of_key("", key);
        MUST(strlen(path) == name.size + 1 && memcmp(path + 1, name.bytes, name.size) == 0);
        free(path);
    }
    free(key);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0)
        return 0;
    const char *bytes = (const char *)data + 1;
    struct zk_reply reply = {.body = {bytes, bytes + size - 1, false}};
    struct jute_in in = reply.body;
    struct zk_identity session = {0};
    int32_t timeout;
    size_t index;

    switch (data[0] % 6) {
    case 0: read_queue(&reply); break;
    case 1:
    case 4: read_data(&reply); break;
    case 2: zk_multi_error(&reply, &index); break;
    case 3: MUST(!zk_read_connected(&in, &session, &timeout) || !session.id || timeout > 0); break;
    case 5: read_name(&reply); break;
    }
    return 0;
}
