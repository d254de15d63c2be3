/* Chance, so that many who wait do not come back at once. */
#ifndef RLOCK_DICE_H
#define RLOCK_DICE_H

#include <stdint.h>
#include <sys/random.h>

/* Any number. Without entropy there is no spread; nothing else may depend on it. */
static inline uint32_t dice(void)
{
    uint32_t number = 0;

    if (getrandom(&number, sizeof number, GRND_NONBLOCK) < 0)
        return UINT32_MAX / 2;
    return number;
}

/* From "least" to "most". */
static inline int64_t dice_between(int64_t least, int64_t most)
{
    return least + (int64_t)((double)(most - least) * dice() / UINT32_MAX);
}

#endif
