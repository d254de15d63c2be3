#include "host/recent.h"

#include "base/clock.h"
#include "base/mem.h"

/* Others write a record more and more likely with time, and then the attempt was for nothing. */
#define KNOWN_NS NS_PER_SEC

static struct {
    struct recent *at;
    size_t count;
    struct moment until;
} known;

void recent_note(struct piece name, struct piece text, int64_t version)
{
    *MEM_APPEND(known.at, known.count) =
        (struct recent){piece_duplicate(name), piece_duplicate(text), version};
    known.until = moment_plus(moment_now(), KNOWN_NS);
}

const struct recent *recent_find(struct piece name)
{
    for (size_t i = 0; i < known.count; i++)
        if (piece_equal(known.at[i].name, name))
            return &known.at[i];
    return NULL;
}

bool recent_has(const struct unit *unit)
{
    bool has = !unit->reads_only && !moment_reached(known.until, moment_now());

    for (size_t i = 0; has && i < unit->count; i++)
        has = recent_find(unit->keys[i].name);
    return has;
}

void recent_forget(void)
{
    while (known.count > 0) {
        struct recent *one = &known.at[--known.count];
        piece_drop(&one->name);
        piece_drop(&one->text);
    }
}
