#include "base/jitter.h"

#include <sys/random.h>

uint32_t jitter(void)
{
    uint32_t number = 0;

    if (getrandom(&number, sizeof number, GRND_NONBLOCK) < 0)
        return UINT32_MAX / 2;
    return number;
}

int64_t jitter_between(int64_t least, int64_t most)
{
    return least + (most - least) * (jitter() >> 16) / 65536; /* 16 bits, not to overflow */
}

int64_t jitter_spread(int64_t middle, int64_t spread)
{
    return jitter_between(middle - spread, middle + spread);
}
