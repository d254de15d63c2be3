/* local: */
#include "store/local/store_record.h"

#include <stdio.h>

#include "store/local/local.h"
#include "store/redis/doctor/checkup.h"
#include "store/redis/store.h"

static bool find(char *socket, size_t size)
{
    struct local_place place;
    char fault[160];

    if (!local_find(&place, fault, sizeof fault))
        return false;
    snprintf(socket, size, "%s", place.socket);
    return true;
}

static bool start(char *socket, size_t socket_size, char *fault, size_t size)
{
    struct local_place place;

    if (!local_start(&place, fault, size))
        return false;
    snprintf(socket, socket_size, "%s", place.socket);
    return true;
}

struct url local_url(const struct local_place *place)
{
    return (struct url){.record = &unix_record, .path = place->socket};
}

const struct store_record local_record = {.scheme = "local",
                                          .name = "local:",
                                          .abilities = REDIS_ABILITIES,
                                          .mirrors = redis_mirrors,
                                          .no_password = true,
                                          .find_server = find,
                                          .start_server = start,
                                          .open = store_redis_open,
                                          .check = redis_check};
