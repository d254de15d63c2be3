/* What the scripts are told with grace: where the marker is, and what a renewal claims. */
#include "rules/grace.h"

#include "tap.h"

#include <stdlib.h>

static const struct lock_grant grants[] = {{.fence = 1781000000000000, .slot = 0},
                                           {.fence = 7, .slot = 3}};

static const struct {
    enum lock_mode mode;
    unsigned limit;
    size_t keys;
    const struct lock_grant *grants;
    const char *wanted;
} rows[] = {
    {LOCK_EXCLUSIVE, 0, 1, NULL, "grace|p:!epoch|"},
    {LOCK_EXCLUSIVE, 0, 1, grants, "grace|p:!epoch|x|0|who|1781000000000000|0|"},
    {LOCK_SHARED, 0, 2, grants, "grace|p:!epoch|s|0|who|1781000000000000|0|7|3|"},
    {LOCK_LIMIT, 5, 1, grants + 1, "grace|p:!epoch|l|5|who|7|3|"},
    /* A limit is one of semaphores alone. */
    {LOCK_SHARED, 5, 1, grants + 1, "grace|p:!epoch|s|0|who|7|3|"},
};

static void note(void *arg, const char *text)
{
    strcat(strcat(arg, text), "|");
}

int main(void)
{
    static const char *const keys[] = {"a", "b"};
    char *marker = redis_grace_marker("p", "epoch");

    for (size_t i = 0; i < COUNT(rows); i++) {
        struct renew_request request = {.keys = keys,
                                        .key_count = rows[i].keys,
                                        .owner = "us",
                                        .mode = rows[i].mode,
                                        .limit = rows[i].limit,
                                        .who = "who",
                                        .grants = rows[i].grants};
        char got[300] = "", input[40];

        snprintf(input, sizeof input, "mode %d, %zu keys", (int)rows[i].mode, rows[i].keys);
        redis_grace_renewal(marker, &request, note, got);
        tap_is(got, rows[i].wanted, "redis_grace_renewal", input);
    }
    free(marker);
    return tap_done();
}
