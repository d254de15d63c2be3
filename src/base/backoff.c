#include "base/backoff.h"

#include "base/jitter.h"

int64_t backoff_pause(unsigned failures, uint32_t chance)
{
    int64_t pause = failures < 5 ? (50 * NS_PER_MS) << failures : NS_PER_SEC;
    int64_t half = pause / 2;
    return half + half * chance / UINT32_MAX;
}

struct moment backoff_next(unsigned *failures, struct moment now)
{
    return moment_plus(now, backoff_pause((*failures)++, jitter()));
}
