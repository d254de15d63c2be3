/* The records that were written just now. They are few, and soon forgotten, all at once. */
#include "host/recent.h"

#include "base/clock.h"
#include "base/mem.h"

/* Others write a record more and more likely with time, and then the attempt was for nothing. */
#define KNOWN_NS NS_PER_SEC

static struct {
    struct recent *at;
    size_t count;
    struct moment until; /* from then on they count as forgotten */
} known;

void recent_note(struct slice name, struct slice text, int64_t version)
{
    *MEM_APPEND(known.at, known.count) =
        (struct recent){slice_duplicate(name), slice_duplicate(text), version};
    known.until = moment_plus(moment_now(), KNOWN_NS);
}

const struct recent *recent_find(struct slice name)
{
    for (size_t i = 0; i < known.count; i++)
        if (slice_equal(known.at[i].name, name))
            return &known.at[i];
    return NULL;
}

bool recent_has(const struct unit *unit)
{
    bool has_all = !unit->reads_only && !moment_reached(known.until, moment_now());

    for (size_t i = 0; has_all && i < unit->count; i++)
        has_all = recent_find(unit->keys[i].name);
    return has_all;
}

void recent_forget(void)
{
    while (known.count > 0) {
        struct recent *one = &known.at[--known.count];
        slice_free(&one->name);
        slice_free(&one->text);
    }
}
