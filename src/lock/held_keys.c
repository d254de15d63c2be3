/* Which keys a grant is of. */
#include "lock/held_keys.h"

void held_keys_choose(struct held_keys *held, const char *const *keys, size_t count,
                      const struct lock_grant *grants)
{
    *held = (struct held_keys){.count = 0};
    for (size_t i = 0; i < count; i++) {
        if (grants && grants[i].absent)
            continue;
        held->keys[held->count] = keys[i];
        held->asked[held->count] = i;
        if (grants)
            held->grants[held->count] = grants[i];
        held->count++;
    }
}
