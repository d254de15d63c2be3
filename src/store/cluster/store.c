/* A Redis Cluster as a store: each operation goes to the slot of its key, or to a survey of all
 * nodes. Above it, multi_lock makes locks of several keys. */
#include "store/cluster/store_kind.h"

#include "base/mem.h"
#include "net/loop.h"
#include "store/cluster/cluster.h"
#include "store/cluster/multi_lock.h"
#include "store/cluster/survey.h"
#include "store/redis/store.h"
#include "store/url_parts.h"

/* The store for operations about one key. */
struct single {
    struct store base;
    struct loop *loop;
    const char *prefix;
    int64_t retry_time; /* ns: for a node that is missing, where the caller has none */
    struct cluster *cluster;
    struct cluster_survey *survey; /* the latest; NULL */
};

static struct single *single_of(struct store *base)
{
    return MEM_CONTAINER(struct single, base, base);
}

/* Returns until when an operation that ends at "until" is tried again. */
static struct moment retry_until(const struct single *single, struct moment until)
{
    return moment_min(until, moment_plus(loop_now(single->loop), single->retry_time));
}

/* Starts an operation. Clients that ask about a lock or a latch wait between their tries: no second
 * one is made here. */
static void start_operation(struct store *base, const struct operation *operation)
{
    struct single *single = single_of(base);
    bool retries = operation->verb == VERB_FORCE || operation->verb == VERB_ADJUST;
    const char *key = NULL;

    switch (operation->verb) {
    case VERB_ACQUIRE:
    case VERB_RENEW:
    case VERB_RELEASE: key = operation_lock(operation)->keys[0]; break;
    case VERB_LATCH: key = operation->latch->key; break;
    case VERB_FORCE: key = operation->force->key; break;
    case VERB_ADJUST: key = operation->adjust->key; break;
    case VERB_SURVEY:
        cluster_survey_free(single->survey);
        single->survey = cluster_survey_start(single->loop, single->cluster, single->prefix,
                                              operation, retry_until(single, operation->until));
        return;
    case VERB_NONE:
    case VERB_MARK: return; /* no Cluster has STORE_MARK */
    }
    cluster_call(single->cluster, cluster_slot_of_key(single->prefix, key), operation,
                 retries ? retry_until(single, operation->until) : loop_now(single->loop));
}

static void end_survey(struct single *single)
{
    cluster_survey_free(single->survey);
    single->survey = NULL;
}

/* See store_release_nowait(); of one key, at the node that has its slot. */
static enum release_sent release_nowait(struct store *base, const struct release_request *request)
{
    struct single *single = single_of(base);
    unsigned slot = cluster_slot_of_key(single->prefix, request->lock->keys[0]);

    end_survey(single);
    return cluster_release_nowait(single->cluster, slot, request);
}

static void close_single(struct store *base)
{
    struct single *single = single_of(base);

    end_survey(single);
    cluster_free(single->cluster);
    free(single);
}

/* A node's store says that asking may be worthwhile: tells the listener. */
static void node_poked(void *arg)
{
    struct single *single = arg;

    store_changed(&single->base);
}

/* Takes a grant by message from a node's store. If a request is under way, that one finds out, and
 * asks where the key is now. */
static void node_handed(void *arg, const struct answer *grant)
{
    struct single *single = arg;

    if (!cluster_is_busy(single->cluster))
        store_granted(&single->base, grant);
}

/* Opens the store ("open" of a store_kind). NULL with a message in "fault". */
static struct store *open_cluster(struct loop *loop, const struct store_address *address,
                                  char *fault, size_t size)
{
    static const struct store_events events = {.poked = node_poked, .handed = node_handed};
    static const struct store_ops ops = {close_single, start_operation, release_nowait};
    struct single *single = mem_zeroed(sizeof *single);

    *single = (struct single){.base.ops = &ops,
                              .loop = loop,
                              .prefix = address->prefix,
                              .retry_time = address->connect_timeout};
    single->cluster = cluster_new(loop, address, &events, single, fault, size);
    if (!single->cluster) {
        free(single);
        return NULL;
    }
    return multi_lock_open(loop, &single->base);
}

/* -- its kind ---------------------------------------------------------------------------------- */

/* Parses HOSTS of a URL in place. Returns why it is wrong, or NULL. */
static const char *parse_url(struct url *url, char *rest)
{
    char *path;
    const char *fault = url_take_authority(url, &rest, &path);

    if (fault || (fault = url_take_hosts(url, rest, REDIS_PORT)))
        return fault;
    return path && *path ? "has a path (a cluster has one database only)" : NULL;
}

/* Whether the lock's key and "name" are in one slot ("beside" of a store_kind). */
static bool shares_slot(const char *prefix, const char *key, const char *name)
{
    return cluster_slot_of_key(prefix, key) == cluster_slot(name);
}

/* A Cluster has no grace: which of the nodes have lost writes cannot be known. */
const struct store_kind cluster_kind = {
    .scheme = "cluster",
    .secure = "clusters",
    .name = "cluster://",
    .abilities = REDIS_ABILITIES & ~(unsigned)(STORE_GRACE | STORE_MARK | STORE_TOGETHER |
                                               STORE_ANY | STORE_GLOB_PAUSES | STORE_MINIMUM),
    .mirrors = redis_mirrors,
    .is_sharded = true,
    .fails_over = true,
    .tls_by_settings = true,
    .beside = shares_slot,
    .parse = parse_url,
    .print = url_append_hosts,
    .schema = redis_schema,
    .open = open_cluster,
    .check = cluster_check};
