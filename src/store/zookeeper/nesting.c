/* The order of those that nest in the same holder. */
#include "store/zookeeper/nesting.h"

#include <string.h>

#include "lock/owner.h"

static bool is_same_or_within(const char *owner, const char *ancestor)
{
    return strcmp(owner, ancestor) == 0 || owner_nests_in(owner, ancestor);
}

/* How much of both owners is the path of the innermost ancestor of both, with the dot behind it. */
static size_t shared_path(const char *a, const char *b)
{
    size_t shared = 0;

    for (size_t i = 0; a[i] && a[i] == b[i]; i++)
        if (a[i] == '.')
            shared = i + 1;
    return shared;
}

/* When the eldest came of "one" and its ancestors that are further in than that path. An ancestor
 * counts as it was when "one" came: whether it has gone meanwhile changes nothing, so that all see
 * the same order at all times. */
static int64_t eldest(const struct zk_nested *one, size_t path)
{
    int64_t since = one->since;
    size_t depth = 0;

    for (size_t i = 0; one->ancestors && one->owner[i]; i++) {
        if (one->owner[i] != '.' || depth == OWNER_DEPTH)
            continue;
        int64_t ancestor = one->ancestors[depth++];
        if (i > path && ancestor > 0 && ancestor < since)
            since = ancestor;
    }
    return since;
}

const struct zk_nested *zk_nested_in_the_way(const struct zk_nested *all, size_t count, size_t own)
{
    const struct zk_nested *self = &all[own], *last = NULL;

    for (size_t i = 0; i < count; i++) {
        const struct zk_nested *other = &all[i];
        if (is_same_or_within(self->owner, other->owner) ||
            owner_nests_in(other->owner, self->owner) || (self->reader && other->reader))
            continue;
        size_t path = shared_path(self->owner, other->owner);
        if (path == 0)
            continue; /* of another family */
        bool before = eldest(other, path) < eldest(self, path);
        if (before && (!last || other->since > last->since))
            last = other;
    }
    return last;
}
