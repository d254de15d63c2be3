#include "store/cluster/map.h"

#include <hiredis/hiredis.h>
#include <stdlib.h>
#include <string.h>

#include "base/decimal.h"
#include "base/mem.h"

#define PORT_MAX 65535
/* As many nodes as CLUSTER SLOTS may name, a master and its replicas for each range of slots. */
#define MENTIONS_MAX (8 * CLUSTER_SLOTS)

/* Returns the checksum that tells a key's slot: CRC-16 as of XMODEM: polynomial 1021, from 0. */
static unsigned crc16(const char *bytes, size_t size)
{
    unsigned crc = 0;

    for (size_t i = 0; i < size; i++) {
        crc ^= (unsigned)(unsigned char)bytes[i] << 8;
        for (int bit = 0; bit < 8; bit++)
            crc = (crc & 0x8000 ? crc << 1 ^ 0x1021 : crc << 1) & 0xffff;
    }
    return crc;
}

unsigned cluster_slot(const char *name)
{
    const char *open = strchr(name, '{');
    const char *close = open ? strchr(open, '}') : NULL;

    if (close && close > open + 1)
        return crc16(open + 1, (size_t)(close - open - 1)) % CLUSTER_SLOTS;
    return crc16(name, strlen(name)) % CLUSTER_SLOTS;
}

/* Whether the text can be a host to ask, or "". "?" is a node with a name that the answering node
 * has not heard yet. */
static bool is_host(const char *host, size_t length)
{
    return length < CLUSTER_HOST_SIZE && !(length == 1 && *host == '?') &&
           !memchr(host, '/', length);
}

bool cluster_redirection_read(const char *text, struct cluster_redirection *redirection)
{
    int64_t slot, port;

    *redirection = (struct cluster_redirection){.ask = strncmp(text, "ASK ", 4) == 0};
    if (!redirection->ask && strncmp(text, "MOVED ", 6) != 0)
        return false;
    text += redirection->ask ? 4 : 6;
    if (!decimal_take(&text, CLUSTER_SLOTS - 1, &slot) || *text++ != ' ')
        return false;
    /* An IPv6 address has colons of its own. */
    const char *colon = strrchr(text, ':');
    if (!colon || !is_host(text, (size_t)(colon - text)))
        return false;
    memcpy(redirection->to.host, text, (size_t)(colon - text));
    text = colon + 1;
    if (!decimal_read(text, strlen(text), PORT_MAX, &port) || port == 0)
        return false;
    redirection->slot = (unsigned)slot;
    redirection->to.port = (int)port;
    return true;
}

void cluster_map_free(struct cluster_map *map)
{
    free(map->nodes);
    *map = (struct cluster_map){0};
}

size_t cluster_map_node(struct cluster_map *map, const char *host, int port)
{
    size_t i = 0;

    while (i < map->node_count &&
           (map->nodes[i].port != port || strcmp(map->nodes[i].host, host) != 0))
        i++;
    if (i == map->node_count) {
        if (!*host || strlen(host) >= CLUSTER_HOST_SIZE)
            return CLUSTER_NOWHERE;
        i = 0; /* the number of a node that was forgotten, or a new one */
        while (i < map->node_count && map->nodes[i].host[0])
            i++;
        if (i == CLUSTER_NODES_MAX)
            return CLUSTER_NOWHERE;
        if (i == map->node_count)
            map->nodes = mem_checked(realloc(map->nodes, ++map->node_count * sizeof *map->nodes));
        map->nodes[i] = (struct cluster_node){.port = port};
        strcpy(map->nodes[i].host, host);
    }
    map->nodes[i].current = true;
    return i;
}

bool cluster_map_is_stale(const struct cluster_map *map, size_t node)
{
    return !map->nodes[node].seed && !map->nodes[node].current;
}

void cluster_map_forget(struct cluster_map *map, size_t node)
{
    map->nodes[node] = (struct cluster_node){.port = 0};
}

/* -- whom to ask ------------------------------------------------------------------------------- */

enum standing { STANDING_ANSWERED, STANDING_UNTRIED, STANDING_FAILED };

/* Returns whether the node answered last, or failed last, or was never tried. */
static enum standing standing_of(const struct cluster_node *node)
{
    if (node->answered.ns == 0 && node->failed.ns == 0)
        return STANDING_UNTRIED;
    return node->answered.ns > node->failed.ns ? STANDING_ANSWERED : STANDING_FAILED;
}

/* Whether "one" is asked for the map before "other": those that answered last are, the latest
 * first; then those not tried yet; then those that failed, longest ago first. */
static bool goes_before(const struct cluster_node *one, const struct cluster_node *other)
{
    enum standing standing = standing_of(one);

    if (standing != standing_of(other))
        return standing < standing_of(other);
    if (standing == STANDING_ANSWERED)
        return one->answered.ns > other->answered.ns;
    /* A seed that no node speaks of may be gone for good. */
    if (one->current != other->current)
        return one->current;
    return one->failed.ns < other->failed.ns;
}

size_t cluster_map_candidates(const struct cluster_map *map, size_t *nodes)
{
    size_t count = 0;

    for (size_t i = 0; i < map->node_count; i++) {
        size_t at = count;
        if (!map->nodes[i].host[0] || cluster_map_is_stale(map, i))
            continue;
        for (; at > 0 && goes_before(&map->nodes[i], &map->nodes[nodes[at - 1]]); at--)
            nodes[at] = nodes[at - 1];
        nodes[at] = i;
        count++;
    }
    return count;
}

/* -- slots ------------------------------------------------------------------------------------- */

size_t cluster_map_find(const struct cluster_map *map, unsigned slot)
{
    return map->slots[slot] ? map->slots[slot] - 1u : CLUSTER_NOWHERE;
}

void cluster_map_move(struct cluster_map *map, unsigned slot, size_t node)
{
    map->slots[slot] = node == CLUSTER_NOWHERE ? 0 : (uint16_t)(node + 1);
    if (node != CLUSTER_NOWHERE)
        map->nodes[node].current = true;
}

/* Whether the reply is a number within these bounds. */
static bool is_number(const redisReply *reply, long long least, long long most)
{
    return reply->type == REDIS_REPLY_INTEGER && reply->integer >= least && reply->integer <= most;
}

/* Whether the reply is the text of a host that could be asked. */
static bool names_host(const redisReply *reply)
{
    return reply->type == REDIS_REPLY_STRING && strlen(reply->str) == reply->len &&
           is_host(reply->str, reply->len);
}

/* Returns another name of a node [host, port, id, [name, value, …]]: the value of "ip", which the
 * reply owns; "": there is none. */
static const char *other_host(const redisReply *node)
{
    const redisReply *more = node->elements > 3 ? node->element[3] : NULL;

    for (size_t i = 0; more && more->type == REDIS_REPLY_ARRAY && i + 1 < more->elements; i += 2) {
        if (names_host(more->element[i]) && strcmp(more->element[i]->str, "ip") == 0 &&
            names_host(more->element[i + 1]))
            return more->element[i + 1]->str;
    }
    return "";
}

/* Reads [host, port, …] and returns the number of that node; NOWHERE if it has no host that could
 * be asked. asked: the host of the node that says so, which a null or empty host means. */
static size_t read_node(struct cluster_map *map, const redisReply *reply, const char *asked)
{
    if (reply->type != REDIS_REPLY_ARRAY || reply->elements < 2 ||
        !is_number(reply->element[1], 1, PORT_MAX))
        return CLUSTER_NOWHERE;
    const redisReply *host = reply->element[0];
    int port = (int)reply->element[1]->integer;
    if (host->type == REDIS_REPLY_NIL || (host->type == REDIS_REPLY_STRING && host->len == 0))
        return cluster_map_node(map, asked, port);
    const char *name = names_host(host) ? host->str : other_host(reply);
    return *name ? cluster_map_node(map, name, port) : CLUSTER_NOWHERE;
}

/* Whether the reply is a map: ranges of slots, none of them twice. */
static bool makes_sense(const redisReply *reply)
{
    long long slots = 0;
    size_t mentions = 0;

    if (reply->type != REDIS_REPLY_ARRAY || reply->elements == 0)
        return false;
    for (size_t i = 0; i < reply->elements; i++) {
        const redisReply *range = reply->element[i];
        if (range->type != REDIS_REPLY_ARRAY || range->elements < 3 ||
            !is_number(range->element[0], 0, CLUSTER_SLOTS - 1) ||
            !is_number(range->element[1], range->element[0]->integer, CLUSTER_SLOTS - 1))
            return false;
        slots += range->element[1]->integer - range->element[0]->integer + 1;
        mentions += range->elements - 2;
        if (slots > CLUSTER_SLOTS || mentions > MENTIONS_MAX)
            return false;
    }
    return true;
}

bool cluster_map_read(struct cluster_map *map, const redisReply *reply, const char *asked)
{
    if (!makes_sense(reply))
        return false;
    memset(map->slots, 0, sizeof map->slots);
    for (size_t i = 0; i < map->node_count; i++)
        map->nodes[i].current = false;
    for (size_t i = 0; i < reply->elements; i++) {
        /* [first, last, master, replica…]. A replica can be asked for the map when its master is
         * gone. */
        redisReply *const *range = reply->element[i]->element;
        size_t master = read_node(map, range[2], asked);
        for (long long slot = range[0]->integer; slot <= range[1]->integer; slot++)
            cluster_map_move(map, (unsigned)slot, master);
        for (size_t replica = 3; replica < reply->element[i]->elements; replica++)
            read_node(map, range[replica], asked);
    }
    return true;
}

size_t cluster_map_masters(const struct cluster_map *map, size_t *nodes)
{
    bool *seen = mem_zeroed(map->node_count + 1);
    size_t count = 0;

    for (unsigned slot = 0; slot < CLUSTER_SLOTS; slot++) {
        size_t node = cluster_map_find(map, slot);
        if (node != CLUSTER_NOWHERE && !seen[node]) {
            seen[node] = true;
            nodes[count++] = node;
        }
    }
    free(seen);
    return count;
}
