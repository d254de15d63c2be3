/* What the scripts are told about a server that may have forgotten locks. */
#include "redis_grace.h"
#include "mem.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define MARKER ":!epoch"

char *redis_grace_marker(const char *prefix)
{
    char *marker = mem_zeroed(strlen(prefix) + sizeof MARKER);

    sprintf(marker, "%s" MARKER, prefix);
    return marker;
}

const char *redis_grace_mode(enum lock_mode mode)
{
    static const char *const modes[] = {
        [LOCK_EXCLUSIVE] = "x", [LOCK_SHARED] = "s", [LOCK_LIMIT] = "l"};
    return modes[mode];
}

static void add_number(uint64_t number, void (*add)(void *arg, const char *text), void *arg)
{
    char text[24];

    snprintf(text, sizeof text, "%" PRIu64, number);
    add(arg, text);
}

void redis_grace_claim(const struct lock_request *request, void (*add)(void *arg, const char *text),
                       void *arg)
{
    if (!request->grants)
        return;
    add(arg, "0");
    add(arg, redis_grace_mode(request->mode));
    add_number(request->mode == LOCK_LIMIT ? request->limit : 0, add, arg);
    add(arg, request->who);
    for (size_t i = 0; i < request->key_count; i++) {
        add_number(request->grants[i].fence, add, arg);
        add_number(request->grants[i].slot, add, arg);
    }
}
