/* shim_dns: LD_PRELOADed, it makes the look-up of a host name hang for ever while the file
 * $SHIM_DNS_FILE exists, as a resolver behind a black hole does. With $SHIM_DNS_AWAY set, a name
 * that ends in ".invalid" fails at once: while that file exists because no name server answers, and
 * otherwise because there is no such name. With $SHIM_DNS_BARE set, "localhost" is not known, as
 * where there is no /etc/hosts; with $SHIM_DNS_ADDRESSES it has these, in that order. With
 * $SHIM_DNS_STORE, the name of a file, "store.test" has the addresses that are in the file now: if
 * there are none, there is no such name, and without a file no name server answers. For the
 * tests. */
#include <arpa/inet.h>
#include <dlfcn.h>
#include <netdb.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef int lookup(const char *, const char *, const struct addrinfo *, struct addrinfo **);

static bool is_numeric(const char *node)
{
    struct in6_addr address;
    return inet_pton(AF_INET, node, &address) == 1 || inet_pton(AF_INET6, node, &address) == 1;
}

static bool is_invalid(const char *node)
{
    size_t length = node ? strlen(node) : 0, suffix = strlen(".invalid");
    return length > suffix && strcmp(node + length - suffix, ".invalid") == 0;
}

/* Looks each of the addresses up, and links what it finds; glibc frees a list one by one. */
static int list_addresses(lookup *real, const char *addresses, const char *service,
                          const struct addrinfo *hints, struct addrinfo **result)
{
    char *copy = strdup(addresses), *rest = copy, *word;
    int error = EAI_NONAME;

    while (copy && (word = strsep(&rest, " ")) && (error = real(word, service, hints, result)) == 0)
        while (*result)
            result = &(*result)->ai_next;
    free(copy);
    return error;
}

static int list_of_file(lookup *real, const char *path, const char *service,
                        const struct addrinfo *hints, struct addrinfo **result)
{
    FILE *file = fopen(path, "re");
    char line[256] = "";

    if (!file)
        return EAI_AGAIN;
    bool any = fgets(line, sizeof line, file);
    fclose(file);
    line[strcspn(line, "\n")] = '\0';
    return any ? list_addresses(real, line, service, hints, result) : EAI_NONAME;
}

int getaddrinfo(const char *restrict node, const char *restrict service,
                const struct addrinfo *restrict hints, struct addrinfo **restrict result)
{
    const char *path = getenv("SHIM_DNS_FILE"), *away = getenv("SHIM_DNS_AWAY");
    const char *addresses = getenv("SHIM_DNS_ADDRESSES"), *store = getenv("SHIM_DNS_STORE");
    lookup *real;
    void *symbol = dlsym(RTLD_NEXT, "getaddrinfo");
    memcpy(&real, &symbol, sizeof real); /* ISO C has no cast from object to function pointer */
    if (away && is_invalid(node))
        return access(away, F_OK) == 0 ? EAI_AGAIN : EAI_NONAME;
    if (getenv("SHIM_DNS_BARE") && node && strstr(node, "localhost"))
        return EAI_NONAME;
    if (addresses && node && strcmp(node, "localhost") == 0)
        return list_addresses(real, addresses, service, hints, result);
    if (store && node && strcmp(node, "store.test") == 0)
        return list_of_file(real, store, service, hints, result);
    while (node && !is_numeric(node) && path && access(path, F_OK) == 0)
        usleep(20000);
    return real(node, service, hints, result);
}
