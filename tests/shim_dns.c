/* shim_dns: LD_PRELOADed, it makes the look-up of a host name hang for ever while the file
 * $SHIM_DNS_FILE exists, as a resolver behind a black hole does. For the tests. */
#include <arpa/inet.h>
#include <dlfcn.h>
#include <netdb.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef int lookup(const char *, const char *, const struct addrinfo *, struct addrinfo **);

static bool is_numeric(const char *node)
{
    struct in6_addr address;
    return inet_pton(AF_INET, node, &address) == 1 || inet_pton(AF_INET6, node, &address) == 1;
}

int getaddrinfo(const char *restrict node, const char *restrict service,
                const struct addrinfo *restrict hints, struct addrinfo **restrict result)
{
    const char *path = getenv("SHIM_DNS_FILE");
    lookup *real;
    void *symbol = dlsym(RTLD_NEXT, "getaddrinfo");
    memcpy(&real, &symbol, sizeof real); /* ISO C has no cast from object to function pointer */
    while (node && !is_numeric(node) && path && access(path, F_OK) == 0)
        usleep(20000);
    return real(node, service, hints, result);
}
