/* A Redis Cluster as a store: each key at the node that has its slot. And its record,
 * cluster://. */
#include "store/cluster/store_record.h"

#include "base/mem.h"
#include "net/loop.h"
#include "store/cluster/cluster.h"
#include "store/cluster/several_keys.h"
#include "store/redis/store.h"
#include "store/url_parts.h"

struct cluster_store {
    struct store base;
    struct loop *loop;
    struct cluster *cluster;
    char *prefix;
    int64_t retry_time;            /* ns: for a node that is missing, where the caller has none */
    struct cluster_survey *survey; /* the latest; NULL */
};

static struct cluster_store *of(struct store *base)
{
    return MEM_CONTAINER(struct cluster_store, base, base);
}

static struct moment retry_until(const struct cluster_store *store, struct moment until)
{
    return moment_min(until, moment_plus(loop_now(store->loop), store->retry_time));
}

static void drop_survey(struct cluster_store *store)
{
    if (store->survey)
        cluster_survey_free(store->survey);
    store->survey = NULL;
}

/* Those who ask about a lock or a latch wait between their tries, and need no second one here. */
static void start(struct store *base, const struct operation *operation)
{
    struct cluster_store *store = of(base);
    struct moment retry = loop_now(store->loop);
    const char *key = NULL;

    switch (operation->verb) {
    case VERB_ACQUIRE:
    case VERB_RENEW:
    case VERB_RELEASE: key = operation_lock(operation)->keys[0]; break;
    case VERB_LATCH: key = operation->latch->key; break;
    case VERB_FORCE:
        key = operation->force->key;
        retry = retry_until(store, operation->until);
        break;
    case VERB_ADJUST:
        key = operation->adjust->key;
        retry = retry_until(store, operation->until);
        break;
    case VERB_SURVEY:
        drop_survey(store);
        store->survey = cluster_survey_start(store->loop, store->cluster, store->prefix, operation,
                                             retry_until(store, operation->until));
        return;
    case VERB_NONE:
    case VERB_MARK: return; /* no Cluster has STORE_MARK */
    }
    cluster_call(store->cluster, cluster_slot_of_key(store->prefix, key), operation, retry);
}

static bool release_nowait(struct store *base, const struct release_request *request)
{
    struct cluster_store *store = of(base);
    unsigned slot = cluster_slot_of_key(store->prefix, request->lock->keys[0]);
    struct store *node = cluster_open_node(store->cluster, slot);
    bool sent = node && store_release_nowait(node, request);

    cluster_abandon(store->cluster);
    drop_survey(store);
    return sent;
}

/* -- the whole --------------------------------------------------------------------------------- */

static void close_cluster(struct store *base)
{
    struct cluster_store *store = of(base);

    drop_survey(store);
    cluster_free(store->cluster);
    free(store->prefix);
    free(store);
}

static struct store *open_cluster(struct loop *loop, const struct store_address *address,
                                  char *fault, size_t size)
{
    static const struct store_ops ops = {close_cluster, start, release_nowait};
    struct cluster_store *store = mem_zeroed(sizeof *store);

    store->base.ops = &ops;
    store->loop = loop;
    store->retry_time = address->connect_timeout;
    store->cluster = cluster_new(loop, address, &store->base, fault, size);
    if (!store->cluster) {
        free(store);
        return NULL;
    }
    store->prefix = mem_strdup(address->prefix);
    return several_keys_open(loop, &store->base);
}

/* -- the record -------------------------------------------------------------------------------- */

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
    return cluster_slot_of_key(prefix, key) == cluster_slot(name);
}

/* It has no grace: which of the nodes have lost writes cannot be known. */
const struct store_record cluster_record = {
    .scheme = "cluster",
    .secure = "clusters",
    .name = "cluster://",
    .abilities = REDIS_ABILITIES & ~(unsigned)(STORE_GRACE | STORE_MARK | STORE_TOGETHER |
                                               STORE_ANY | STORE_GLOB_PAUSES | STORE_MINIMUM),
    .mirrors = redis_mirrors,
    .is_sharded = true,
    .fails_over = true,
    .tls_by_settings = true,
    .beside = beside,
    .parse = parse,
    .print = url_append_hosts,
    .schema = redis_schema,
    .open = open_cluster,
    .check = cluster_check};
