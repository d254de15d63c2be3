#include "chance.h"

#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/types.h>

static unsigned *of_system;
ssize_t __wrap_getrandom(void *bytes, size_t size, unsigned flags);

unsigned chance(unsigned *seed, unsigned limit)
{
    *seed = *seed * 1103515245 + 12345;
    return (*seed >> 16) % limit;
}

void chance_for_system(unsigned *seed)
{
    of_system = seed;
}

ssize_t __wrap_getrandom(void *bytes, size_t size, unsigned flags)
{
    (void)flags;
    for (size_t i = 0; i < size; i++)
        ((uint8_t *)bytes)[i] = (uint8_t)(of_system ? chance(of_system, 256) : 0x55);
    return (ssize_t)size;
}
