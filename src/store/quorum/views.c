#include "store/quorum/views.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "store/quorum/quorum.h"

/* -- holders ----------------------------------------------------------------------------------- */

/* One holder as nodes report it. */
struct holding {
    const struct lock_party *parties[QUORUM_NODES_MAX];
    size_t count;
};

/* Collects what each node reports of that owner as a holder. */
static void collect_holding(const struct lock_views *reports, const char *owner,
                            struct holding *holding)
{
    holding->count = 0;
    for (size_t i = 0; i < reports->count && holding->count < QUORUM_NODES_MAX; i++) {
        const struct lock_view *view = &reports->views[i];
        size_t h = 0;
        while (h < view->holder_count && strcmp(view->holders[h].owner, owner) != 0)
            h++;
        if (h < view->holder_count)
            holding->parties[holding->count++] = &view->holders[h];
    }
}

/* Returns the fence that most nodes have, the higher one of equals: a node may not have been told
 * yet which fence was settled on. */
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

/* Returns for how many ms a majority will have the lock: until the leases of so many nodes have
 * ended that the rest is too few. That is the longest lease but for majority - 1 others. Where
 * too few nodes have reported, it is what the first of them says. */
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

/* Returns one holder, made of what the nodes say of it; at least one of them has it. */
static struct lock_party merge_holding(const struct holding *holding, size_t majority)
{
    /* NOLINTNEXTLINE(clang-analyzer-core.NullDereference): at least one of them has it */
    struct lock_party party = *holding->parties[0];

    party.fence = common_fence(holding);
    party.left_ms = common_lease(holding, majority);
    for (size_t i = 1; i < holding->count; i++) {
        const struct lock_party *other = holding->parties[i];
        if (other->count > party.count)
            party.count = other->count;
        if (other->heard_ms < party.heard_ms)
            party.heard_ms = other->heard_ms;
        if (other->age_ms > party.age_ms) { /* a node that was filled later has it from then */
            party.age_ms = other->age_ms;
            party.since_ms = other->since_ms;
        }
        if (other->kept && !party.kept) { /* the release has not come to all of them yet */
            party.kept = true;
            party.end = other->end;
        }
    }
    return party;
}

/* Returns the holders that have a majority, or may with the missing nodes, each once; the caller
 * frees the list. *count: how many there are. */
static struct lock_party *merge_holders(const struct lock_views *reports, size_t majority,
                                        size_t missing, size_t *count)
{
    size_t room = 0;

    for (size_t i = 0; i < reports->count; i++)
        room += reports->views[i].holder_count;
    struct lock_party *holders = mem_zeroed((room + 1) * sizeof *holders);
    *count = 0;
    for (size_t i = 0; i < reports->count; i++) {
        for (size_t h = 0; h < reports->views[i].holder_count; h++) {
            const struct lock_party *holder = &reports->views[i].holders[h];
            struct holding holding;
            collect_holding(reports, holder->owner, &holding);
            bool is_first = holding.parties[0] == holder; /* else it was seen before */
            if (is_first && holding.count + missing >= majority)
                holders[(*count)++] = merge_holding(&holding, majority);
        }
    }
    return holders;
}

/* Whether the missing nodes change nothing: there is no holder that has a majority only with
 * them. */
static bool is_clear(const struct lock_views *reports, size_t majority, size_t missing)
{
    struct holding holding;

    for (size_t i = 0; i < reports->count; i++) {
        for (size_t h = 0; h < reports->views[i].holder_count; h++) {
            collect_holding(reports, reports->views[i].holders[h].owner, &holding);
            if (holding.count < majority && holding.count + missing >= majority)
                return false;
        }
    }
    return true;
}

bool quorum_views_are_clear(struct lock_views *views, size_t nodes, size_t missing)
{
    struct lock_views reports;
    bool clear = true;

    if (missing == 0)
        return true;
    lock_views_sort(views);
    for (size_t i = 0; clear && i < views->count; i += reports.count) {
        reports = lock_views_of_key(views, i);
        clear = is_clear(&reports, quorum_majority(nodes), missing);
    }
    return clear;
}

/* -- the list ---------------------------------------------------------------------------------- */

/* Returns why the key is not a lock, if that is so on so many nodes that no majority has a lock;
 * NULL otherwise. A node without a report has no other key there. */
static const char *common_misfit(const struct lock_views *reports, size_t nodes)
{
    const char *misfit = NULL;
    size_t unfit = 0;

    for (size_t i = 0; i < reports->count; i++) {
        const char *its = reports->views[i].misfit;
        unfit += its != NULL;
        misfit = its ? its : misfit;
    }
    return unfit + quorum_majority(nodes) > nodes ? misfit : NULL;
}

void quorum_views_report(struct lock_views *views, size_t nodes, size_t missing,
                         const struct survey_request *request)
{
    struct lock_views reports;

    lock_views_sort(views);
    for (size_t i = 0; i < views->count; i += reports.count) {
        reports = lock_views_of_key(views, i);
        struct lock_view view = {.key = reports.views->key,
                                 .misfit = common_misfit(&reports, nodes)};
        struct lock_party *holders =
            merge_holders(&reports, quorum_majority(nodes), missing, &view.holder_count);
        view.holders = holders;
        for (size_t r = 0; r < reports.count; r++) {
            if (reports.views[r].fence > view.fence)
                view.fence = reports.views[r].fence;
        }
        /* The fence of a held lock is that of its holders: failed tries may have raised it further
         * on some nodes, which was told to no owner. */
        for (size_t h = 0; h < view.holder_count; h++) {
            if (h == 0 || holders[h].fence > view.fence)
                view.fence = holders[h].fence;
            view.mode = holders[h].mode != LOCK_SHARED || h == 0 ? holders[h].mode : view.mode;
        }
        if (view.holder_count > 0 || view.misfit || survey_names(request, view.key))
            request->each(request->each_arg, &view);
        free(holders);
    }
}
