/* Chance. */
#include "dice.h"

#include <sys/random.h>

uint32_t dice(void)
{
    uint32_t number = 0;

    if (getrandom(&number, sizeof number, GRND_NONBLOCK) < 0)
        return UINT32_MAX / 2;
    return number;
}

int64_t dice_spread(int64_t middle, int64_t spread)
{
    return middle - spread + 2 * spread * (dice() >> 16) / 65536;
}

int64_t dice_between(int64_t least, int64_t most)
{
    return least + (most - least) * (dice() >> 16) / 65536;
}
