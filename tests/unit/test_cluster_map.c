/* Slots of keys, what nodes of a Cluster refer to, and what is made of their map: never a node that
 * could not be asked. */
#include "store/cluster/map.h"

#include "replies.h"
#include "tap.h"

/* From the specification of Redis Cluster, and from a server. */
static const struct {
    unsigned slot;
    const char *const *names;
} keys[] = {
    {12739, INPUTS("123456789")},
    {12182, INPUTS("foo", "rlock:{foo}")},
    {0, INPUTS("")},
    {3443, INPUTS("{user1000}.following", "{user1000}.followers", "user1000")},
    {8363, INPUTS("foo{}{bar}")},
    {4015, INPUTS("foo{{bar}}zap", "{bar")},
    {5061, INPUTS("foo{bar}{zap}", "bar")},
    {6884, INPUTS("rl{ock:{foo}")},
};

static const struct {
    const char *text, *wanted;
} redirections[] = {
    {"MOVED 3999 127.0.0.1:6381", "moved 3999 127.0.0.1 6381"},
    {"ASK 3999 127.0.0.1:6381", "ask 3999 127.0.0.1 6381"},
    {"MOVED 0 node-1.example.com:1", "moved 0 node-1.example.com 1"},
    {"MOVED 16383 ::1:65535", "moved 16383 ::1 65535"},
    {"MOVED 1 :6379", "moved 1  6379"},
};

static const char *const *const no_redirections =
    INPUTS("", "MOVED", "MOVED 1", "MOVED 1 h", "MOVED 1 h:", "MOVED 1 h:0", "MOVED 1 h:65536",
           "MOVED 1 h:-1", "MOVED 1 h:6379 ", "MOVED 1 h:6379x", "MOVED 1 ?:6379",
           "MOVED 1 a/b:6379", "MOVED 16384 h:6379", "MOVED -1 h:6379",
           "MOVED 99999999999999999999 h:6379", "MOVED x h:6379", "MOVED  1 h:6379", "ASK  h:6379",
           "MOVEDX 1 h:6379", "CROSSSLOT Keys in request don't hash to the same slot");

/* A reply as words (replies.h). Which nodes there are afterwards, and which has which slots. The
 * map had a node "old" with all slots. */
static const struct {
    const char *wanted;
    const char *const *replies;
} maps[] = {
    {"old:6379 a:1=0-16383", INPUTS("*1 *3 0 16383 *2 a 1")},
    {"old:6379 a:1=0-9 b:2=10-16383", INPUTS("*2 *3 0 9 *2 a 1 *3 10 16383 *2 b 2")},
    {"old:6379 a:1=0-9,20-20", INPUTS("*2 *3 0 9 *2 a 1 *3 20 20 *2 a 1")},
    {"old:6379 a:1=0-9 b:2 c:3", INPUTS("*1 *5 0 9 *2 a 1 *2 b 2 *2 c 3")},
    {"old:6379 a:1=0-9", INPUTS("*1 *4 0 9 *4 a 1 id *2 hostname h *2 old 6379")},
    {"old:6379=0-9", INPUTS("*1 *3 0 9 *2 old 6379")},
    {"old:6379 me:7=0-9", INPUTS("*1 *3 0 9 *2 ~ 7", "*1 *3 0 9 *2 - 7")},
    /* A master that could not be asked: its slots are nowhere. */
    {"old:6379 a:1=10-11", INPUTS("*2 *3 0 9 *2 ? 7 *3 10 11 *2 a 1")},
    {"old:6379 x.1:7=0-9",
     INPUTS("*1 *3 0 9 *4 ? 7 id *2 ip x.1", "*1 *3 0 9 *4 ? 7 id *4 hostname y ip x.1")},
    {"old:6379 b:2", INPUTS("*1 *4 0 9 a *2 b 2")},
    /* The last one: H130 */
    {"old:6379",
     INPUTS("*1 *3 0 9 *4 ? 7 id *2 ip ?", "*1 *3 0 9 *4 ? 7 id *2 ip 1",
            "*1 *3 0 9 *4 ? 7 id *1 ip", "*1 *3 0 9 *4 ? 7 id ip",
            "*2 *3 0 9 *2 a 0 *3 10 11 *2 a 65536", "*1 *4 0 9 *1 a *2 7 2", "*1 *3 0 9 *2 a b",
            "*1 *3 0 9 *2 x/y 1", "*1 *4 0 9 *2 a 65536 *2 b 9223372036854775807")},
};

/* Replies that change nothing. */
static const char *const *const no_maps = INPUTS(
    "*0", "~", "7", "a", "*1 *2 0 9", "*1 7", "*2 *3 0 9 *2 a 1 7", "*1 *3 0 16384 *2 a 1",
    "*1 *3 9 8 *2 a 1", "*1 *3 a 8 *2 a 1", "*1 *3 0 9223372036854775807 *2 a 1",
    "*1 *3 9223372036854775807 9223372036854775807 *2 a 1", "*2 *3 0 9 *2 a 1 *3 0 16383 *2 b 1");

/* "=0-9,20-20": the slots of a node. */
static size_t print_slots(const struct cluster_map *map, size_t node, char *out, size_t size)
{
    size_t used = 0;

    for (unsigned slot = 0, first = 0; slot < CLUSTER_SLOTS; slot++) {
        bool here = cluster_map_find(map, slot) == node;
        if (here && (slot == 0 || cluster_map_find(map, slot - 1) != node))
            first = slot;
        if (here && (slot == CLUSTER_SLOTS - 1 || cluster_map_find(map, slot + 1) != node))
            used +=
                (size_t)snprintf(out + used, size - used, "%c%u-%u", used ? ',' : '=', first, slot);
    }
    return used;
}

static void print(const struct cluster_map *map, bool read, char *out, size_t size)
{
    size_t used = (size_t)snprintf(out, size, "%s", read ? "" : "no: ");

    for (size_t i = 0; i < map->node_count; i++) {
        used += (size_t)snprintf(out + used, size - used, "%s%s:%d", i ? " " : "",
                                 map->nodes[i].host, map->nodes[i].port);
        used += print_slots(map, i, out + used, size - used);
    }
}

/* A node's list of slots replaces a map in which one node, "old", has all of them. */
static void test_map(const char *words, const char *wanted)
{
    struct cluster_map *map = &(struct cluster_map){0};
    redisReply *reply = reply_of_words(words);
    char got[400];

    cluster_map_node(map, "old", 6379);
    for (unsigned slot = 0; slot < CLUSTER_SLOTS; slot++)
        cluster_map_move(map, slot, 0);
    if (reply) {
        bool read = cluster_map_read(map, reply, "me");
        print(map, read, got, sizeof got);
        tap_is(got, wanted, "cluster_map_read", words);
        freeReplyObject(reply);
    } else {
        tap_is("no reply", wanted, "parse", words);
    }
    cluster_map_free(map);
}

/* An error of a node is a redirection, or "none". */
static void test_redirection(const char *text, const char *wanted)
{
    struct cluster_redirection redirection;
    char got[400] = "none";

    if (cluster_redirection_read(text, &redirection))
        snprintf(got, sizeof got, "%s %u %s %d", redirection.ask ? "ask" : "moved",
                 redirection.slot, redirection.to.host, redirection.to.port);
    tap_is(got, wanted, "cluster_redirection_read", text);
}

/* Each host with its port has one number; names that are too long and more than the most nodes
 * get none. */
static void test_numbers(void)
{
    struct cluster_map *map = &(struct cluster_map){0};
    char host[CLUSTER_HOST_SIZE + 1];

    memset(host, 'h', CLUSTER_HOST_SIZE);
    host[CLUSTER_HOST_SIZE] = '\0';
    tap_ok(cluster_map_node(map, host, 1) == CLUSTER_NOWHERE,
           "a name that is too long is not a node");
    tap_ok(cluster_map_node(map, host + 1, 1) == 0, "the longest name is");
    tap_ok(cluster_map_node(map, host + 1, 2) == 1, "another port is another node");
    tap_ok(cluster_map_node(map, host + 1, 1) == 0, "the same one is not");
    for (int port = 3; port <= CLUSTER_NODES_MAX; port++)
        cluster_map_node(map, "n", port);
    tap_ok(cluster_map_node(map, "n", 1) == CLUSTER_NOWHERE, "there are not too many nodes");
    cluster_map_free(map);
}

/* -- whom to ask ------------------------------------------------------------------------------- */

/* Nodes in the order in which they became known, each with when it answered and failed, s: one of
 * the URL's, c: other nodes speak of it. Then whom to ask, in order. */
static const struct {
    const char *name;
    struct {
        int answered, failed;
        const char *flags;
    } nodes[5];
    const char *order;
} standings[] = {
    {"a new one, in the order of the URL", {{0, 0, "s"}, {0, 0, "s"}, {0, 0, "s"}}, "012"},
    {"what has answered is first, the latest before others",
     {{0, 0, "s"}, {5, 0, "s"}, {7, 0, "c"}, {0, 0, "c"}},
     "2130"},
    {"what failed is last, the latest behind others",
     {{0, 9, "s"}, {0, 3, "s"}, {0, 0, "s"}, {5, 0, "c"}},
     "3210"},
    {"what failed after an answer has failed", {{5, 9, "s"}, {5, 4, "s"}, {9, 9, "s"}}, "102"},
    {"one that others speak of before a seed that they do not",
     {{0, 1, "s"}, {0, 9, "c"}, {0, 9, "sc"}, {0, 2, "s"}},
     "1203"},
    {"a node that no other mentions is not asked", {{0, 0, "s"}, {9, 0, ""}, {0, 0, "c"}}, "20"},
};

/* Whom to ask next, of nodes that have answered or failed at these times, or are in the URL
 * only. */
static void test_candidates(void)
{
    for (size_t i = 0; i < COUNT(standings); i++) {
        struct cluster_map *map = &(struct cluster_map){0};
        size_t order[5];
        char got[6] = "";

        for (size_t n = 0; n < 5 && standings[i].nodes[n].flags; n++) {
            cluster_map_node(map, "n", (int)n + 1);
            struct cluster_node *node = &map->nodes[n];
            node->answered.ns = standings[i].nodes[n].answered;
            node->failed.ns = standings[i].nodes[n].failed;
            node->seed = strchr(standings[i].nodes[n].flags, 's') != NULL;
            node->current = strchr(standings[i].nodes[n].flags, 'c') != NULL;
        }
        size_t count = cluster_map_candidates(map, order);
        for (size_t n = 0; n < count; n++)
            got[n] = (char)('0' + order[n]);
        tap_is(got, standings[i].order, "candidates:", standings[i].name);
        cluster_map_free(map);
    }
}

static void read_map(struct cluster_map *map, const char *words)
{
    redisReply *reply = reply_of_words(words);

    cluster_map_read(map, reply, "me");
    freeReplyObject(reply);
}

/* A node that no map has any more is stale, forgotten, and its number given to another; 20,000
 * nodes that come and go are never more than four at a time. */
static void test_forgetting(void)
{
    struct cluster_map *map = &(struct cluster_map){0};
    size_t order[5], seed = cluster_map_node(map, "seed", 1);

    map->nodes[seed].seed = true;
    read_map(map, "*1 *4 0 16383 *2 a 1 *2 b 1");
    tap_ok(map->node_count == 3 && cluster_map_candidates(map, order) == 3, "three are known");
    read_map(map, "*1 *3 0 16383 *2 a 1");
    tap_ok(cluster_map_is_stale(map, 2) && !cluster_map_is_stale(map, 1) &&
               !cluster_map_is_stale(map, seed) && cluster_map_candidates(map, order) == 2,
           "one is in no map any more, and the URL's stays");
    cluster_map_move(map, 5, 2);
    tap_ok(!cluster_map_is_stale(map, 2),
           "one that answers for a slot is not stale, whatever the map says");
    read_map(map, "*1 *3 0 16383 *2 a 1");
    tap_ok(cluster_map_is_stale(map, 2), "until the next map");
    cluster_map_forget(map, 2);
    tap_ok(cluster_map_node(map, "c", 1) == 2 && map->node_count == 3 &&
               !cluster_map_is_stale(map, 2),
           "its number is another one's");
    cluster_map_forget(map, 2);
    tap_ok(cluster_map_node(map, "", 1) == CLUSTER_NOWHERE, "an empty host is not a node");
    for (int i = 0; i < 20000; i++) {
        char words[80];
        snprintf(words, sizeof words, "*1 *4 0 16383 *2 a 1 *2 pod%d 1", i);
        read_map(map, words);
        for (size_t node = 0; node < map->node_count; node++) {
            if (cluster_map_is_stale(map, node))
                cluster_map_forget(map, node);
        }
    }
    tap_ok(map->node_count <= 4, "nodes that come and go, %zu at a time", map->node_count);
    cluster_map_free(map);
}

/* H130: a reply that names the same replica again and again. */
static void test_many(void)
{
    struct cluster_map *map = &(struct cluster_map){0};
    size_t times = 8 * CLUSTER_SLOTS;
    char *text = malloc(30 * times + 100), *at = text;
    redisReply *reply;

    at += sprintf(at, "*1\r\n*%zu\r\n:0\r\n:9\r\n", times + 3);
    for (size_t i = 0; i <= times; i++)
        at += sprintf(at, "*2\r\n$1\r\na\r\n:1\r\n");
    reply = reply_of(text, (size_t)(at - text));
    tap_ok(reply && !cluster_map_read(map, reply, "me") && map->node_count == 0,
           "more nodes than a Cluster can have");
    freeReplyObject(reply);
    free(text);
    cluster_map_free(map);
}

int main(void)
{
    for (size_t i = 0; i < COUNT(keys); i++)
        EACH(name, keys[i].names)
            if (!tap_ok(cluster_slot(*name) == keys[i].slot, "cluster_slot %s", tap_show(*name)))
                tap_note("got %u, wanted %u", cluster_slot(*name), keys[i].slot);
    for (size_t i = 0; i < COUNT(redirections); i++)
        test_redirection(redirections[i].text, redirections[i].wanted);
    EACH(text, no_redirections)
        test_redirection(*text, "none");
    for (size_t i = 0; i < COUNT(maps); i++)
        EACH(reply, maps[i].replies)
            test_map(*reply, maps[i].wanted);
    EACH(text, no_maps)
        test_map(*text, "no: old:6379=0-16383");
    test_numbers();
    test_candidates();
    test_forgetting();
    test_many();
    return tap_done();
}
