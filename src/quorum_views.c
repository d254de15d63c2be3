/* Merging what nodes report. */
#include "quorum_views.h"
#include "key.h"
#include "mem.h"
#include "quorum.h"

struct quorum_view {
    size_t node;
    char *key;
    uint64_t fence;
    struct lock_party *holders;
    size_t holder_count;
};

void quorum_views_begin(struct quorum_views *views, size_t nodes)
{
    quorum_views_free(views);
    views->nodes = nodes;
}

void quorum_views_free(struct quorum_views *views)
{
    for (size_t i = 0; i < views->count; i++) {
        free(views->views[i].key);
        free(views->views[i].holders);
    }
    free(views->views);
    *views = (struct quorum_views){0};
}

void quorum_views_add(struct quorum_views *views, size_t node, const struct lock_view *view)
{
    size_t size = view->holder_count * sizeof *view->holders;
    struct quorum_view *copy;

    views->views = mem_checked(realloc(views->views, (views->count + 1) * sizeof *views->views));
    copy = &views->views[views->count++];
    *copy = (struct quorum_view){.node = node,
                                 .key = mem_strdup(view->key),
                                 .fence = view->fence,
                                 .holder_count = view->holder_count};
    copy->holders = mem_zeroed(size + 1);
    if (size > 0)
        memcpy(copy->holders, view->holders, size);
}

static int compare(const void *a, const void *b)
{
    const struct quorum_view *left = a, *right = b;
    int order = strcmp(left->key, right->key);

    return order ? order : (left->node > right->node) - (left->node < right->node);
}

static void sort(struct quorum_views *views)
{
    if (views->count > 0)
        qsort(views->views, views->count, sizeof *views->views, compare);
}

/* How many views from "from" on are of the same key. */
static size_t run_of(const struct quorum_views *views, size_t from)
{
    size_t end = from + 1;

    while (end < views->count && strcmp(views->views[end].key, views->views[from].key) == 0)
        end++;
    return end - from;
}

static const struct lock_party *holder_in(const struct quorum_view *view, const char *owner)
{
    for (size_t i = 0; i < view->holder_count; i++) {
        if (strcmp(view->holders[i].owner, owner) == 0)
            return &view->holders[i];
    }
    return NULL;
}

/* One holder as the nodes of a run have it. */
struct holding {
    const struct lock_party *parties[QUORUM_NODES_MAX];
    size_t count;
};

static void collect(const struct quorum_view *run, size_t length, const char *owner,
                    struct holding *holding)
{
    holding->count = 0;
    for (size_t i = 0; i < length && holding->count < QUORUM_NODES_MAX; i++) {
        const struct lock_party *party = holder_in(&run[i], owner);
        if (party)
            holding->parties[holding->count++] = party;
    }
}

/* The fence that most nodes have, the higher one of equals: a node may not have heard yet which one counts. */
static uint64_t common_fence(const struct holding *holding)
{
    uint64_t best = 0;
    size_t most = 0;

    for (size_t i = 0; i < holding->count; i++) {
        uint64_t fence = holding->parties[i]->fence;
        size_t count = 0;
        for (size_t other = 0; other < holding->count; other++)
            count += holding->parties[other]->fence == fence;
        if (count > most || (count == most && fence > best)) {
            best = fence;
            most = count;
        }
    }
    return best;
}

/* A majority has it until so many have lost it that the rest is none: the lease that is the majority's longest
 * but for majority - 1 others. */
static int64_t common_lease(const struct holding *holding, size_t majority)
{
    int64_t left = 0;

    for (size_t i = 0; i < holding->count; i++) {
        int64_t mine = holding->parties[i]->left_ms;
        size_t longer = 0;
        for (size_t other = 0; other < holding->count; other++)
            longer += holding->parties[other]->left_ms >= mine;
        if (longer >= majority && mine > left)
            left = mine;
    }
    return left > 0 ? left : holding->parties[0]->left_ms;
}

static struct lock_party merge(const struct holding *holding, size_t majority)
{
    /* NOLINTNEXTLINE(clang-analyzer-core.NullDereference): at least one of them has it */
    struct lock_party party = *holding->parties[0];

    party.fence = common_fence(holding);
    party.left_ms = common_lease(holding, majority);
    for (size_t i = 1; i < holding->count; i++) {
        const struct lock_party *other = holding->parties[i];
        if (other->count > party.count)
            party.count = other->count;
        if (other->age_ms > party.age_ms) { /* a node that was filled later has it from then */
            party.age_ms = other->age_ms;
            party.since_ms = other->since_ms;
        }
    }
    return party;
}

/* The holders of a run that have a majority, each once. The caller frees. */
static struct lock_party *merge_holders(const struct quorum_views *views,
                                        const struct quorum_view *run, size_t length,
                                        size_t missing, size_t *count)
{
    size_t majority = quorum_majority(views->nodes), room = 0;

    for (size_t i = 0; i < length; i++)
        room += run[i].holder_count;
    struct lock_party *holders = mem_zeroed((room + 1) * sizeof *holders);
    *count = 0;
    for (size_t i = 0; i < length; i++) {
        for (size_t h = 0; h < run[i].holder_count; h++) {
            const char *owner = run[i].holders[h].owner;
            struct holding holding;
            bool known = false;
            for (size_t before = 0; before < i; before++)
                known |= holder_in(&run[before], owner) != NULL;
            collect(run, length, owner, &holding);
            if (!known && holding.count + missing >= majority)
                holders[(*count)++] = merge(&holding, majority);
        }
    }
    return holders;
}

/* A key that is written as such among the patterns. */
static bool is_named(const struct survey_request *request, const char *key)
{
    for (size_t i = 0; i < request->pattern_count; i++) {
        const char *pattern = request->patterns[i], *at = key;
        if (key_is_glob(pattern))
            continue;
        for (; *pattern && *at; pattern++, at++) {
            if (*pattern == '\\' && pattern[1])
                pattern++;
            if (*pattern != *at)
                break;
        }
        if (!*pattern && !*at)
            return true;
    }
    return false;
}

bool quorum_views_are_clear(struct quorum_views *views, size_t missing)
{
    size_t majority = quorum_majority(views->nodes);
    struct holding holding;

    if (missing == 0)
        return true;
    sort(views);
    for (size_t from = 0; from < views->count;) {
        const struct quorum_view *run = &views->views[from];
        size_t length = run_of(views, from);
        for (size_t i = 0; i < length; i++) {
            for (size_t h = 0; h < run[i].holder_count; h++) {
                collect(run, length, run[i].holders[h].owner, &holding);
                if (holding.count < majority && holding.count + missing >= majority)
                    return false;
            }
        }
        from += length;
    }
    return true;
}

static void report_run(const struct quorum_views *views, size_t from, size_t length, size_t missing,
                       const struct survey_request *request)
{
    const struct quorum_view *run = &views->views[from];
    struct lock_view view = {.key = run->key};
    struct lock_party *holders = merge_holders(views, run, length, missing, &view.holder_count);

    view.holders = holders;
    for (size_t i = 0; i < length; i++) {
        if (run[i].fence > view.fence)
            view.fence = run[i].fence;
    }
    /* Tries that failed have raised it on some nodes: nobody was told of those. */
    for (size_t i = 0; i < view.holder_count; i++) {
        if (i == 0 || holders[i].fence > view.fence)
            view.fence = holders[i].fence;
        view.mode = holders[i].mode != LOCK_SHARED || i == 0 ? holders[i].mode : view.mode;
    }
    if (view.holder_count > 0 || is_named(request, run->key))
        request->each(request->each_arg, &view);
    free(holders);
}

void quorum_views_report(struct quorum_views *views, size_t missing,
                         const struct survey_request *request)
{
    sort(views);
    for (size_t from = 0; from < views->count;) {
        size_t length = run_of(views, from);
        report_run(views, from, length, missing, request);
        from += length;
    }
}
