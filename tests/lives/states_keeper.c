/* The keeper, and a look into it. */
#include "lock/keeper.c"

#include "lives/states.h"

unsigned state_of_keeper(const struct keeper *keeper)
{
    return keeper->state;
}

unsigned state_detail_of_keeper(const struct keeper *keeper)
{
    return (unsigned)keeper->doubt.state | keeper->busy << 2 | keeper->handed << 3 |
           keeper->release_unanswered << 4;
}
