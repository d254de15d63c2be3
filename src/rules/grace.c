/* What the scripts are told about a server that may have forgotten locks. */
#include "rules/grace.h"
#include "base/mem.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

char *redis_grace_marker(const char *prefix, const char *what)
{
    char *marker = mem_zeroed(strlen(prefix) + strlen(what) + 3);

    sprintf(marker, "%s:!%s", prefix, what);
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

void redis_grace_renewal(const char *marker, const struct renew_request *request,
                         void (*add)(void *arg, const char *text), void *arg)
{
    add(arg, "grace");
    add(arg, marker);
    if (!request->grants)
        return;
    add(arg, redis_grace_mode(request->mode));
    add_number(request->mode == LOCK_LIMIT ? request->limit : 0, add, arg);
    add(arg, request->who);
    for (size_t i = 0; i < request->key_count; i++) {
        add_number(request->grants[i].fence, add, arg);
        add_number(request->grants[i].slot, add, arg);
    }
}
