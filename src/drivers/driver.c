#include "drivers/driver.h"

#include <errno.h>
#include <netdb.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>

void driver_await(int fd, bool to_write)
{
    struct pollfd ready = {.fd = fd, .events = to_write ? POLLOUT : POLLIN};

    while (poll(&ready, 1, -1) < 0 && errno == EINTR)
        ;
}

bool driver_fail(struct host_error *fault, enum wire_error error, const char *said)
{
    fault->error = error;
    snprintf(fault->said, sizeof fault->said, "%.*s", (int)strcspn(said, "\n"), said);
    return false;
}

bool driver_blames_name(const struct driver_target *target, struct host_error *fault)
{
    static const struct addrinfo hints = {.ai_socktype = SOCK_STREAM};
    struct addrinfo *list = NULL;
    int wrong = *target->host == '/' ? 0 : getaddrinfo(target->host, NULL, &hints, &list);
    bool nowhere = wrong == EAI_NONAME || wrong == EAI_NODATA;

    if (wrong)
        driver_fail(fault, nowhere ? WIRE_NOWHERE : WIRE_UNREACHABLE,
                    wrong == EAI_SYSTEM ? strerror(errno) : gai_strerror(wrong));
    else if (list)
        freeaddrinfo(list);
    return wrong;
}
