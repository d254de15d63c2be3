/* The keeper, and a look into it. */
#include "lock/keeper.c"

#include "lives/states.h"

unsigned state_of_keeper(const struct keeper *keeper)
{
    return keeper->state;
}
