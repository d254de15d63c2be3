/* cluster:// */
#include "store/cluster/store_record.h"

#include "lock/key.h"
#include "store/cluster/checkup.h"
#include "store/cluster/map.h"
#include "store/cluster/store.h"
#include "store/redis/store_record.h"
#include "store/url_parts.h"

#include <stdlib.h>

static const char *parse(struct url *url, char *rest)
{
    char *path;
    const char *fault = url_take_authority(url, &rest, &path);

    if (fault || (fault = url_take_hosts(url, rest, REDIS_PORT)))
        return fault;
    return path && *path ? "has a path (a cluster has one database only)" : NULL;
}

/* As a key of the same slot. */
static bool beside(const char *prefix, const char *key, const char *name)
{
    char *lock = key_in_store(prefix, key);
    bool same = cluster_slot(lock) == cluster_slot(name);

    free(lock);
    return same;
}

/* It has no grace: which of the nodes have lost writes cannot be known. */
const struct store_record cluster_record = {
    .scheme = "cluster",
    .secure = "clusters",
    .name = "cluster://",
    .abilities = REDIS_ABILITIES & ~(unsigned)(STORE_GRACE | STORE_MARK | STORE_TOGETHER |
                                               STORE_ANY | STORE_GLOB_PAUSES),
    .mirrors = redis_mirrors,
    .is_sharded = true,
    .fails_over = true,
    .tls_by_settings = true,
    .beside = beside,
    .parse = parse,
    .print = url_append_hosts,
    .schema = redis_schema,
    .open = store_cluster_open,
    .check = cluster_check};
