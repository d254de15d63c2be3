/* The C library's getaddrinfo(), as all of a program that is linked with rlock's code calls it
 * (-Wl,--wrap): rlock, its companions and, where they are static, the libraries in them. */
#include <netdb.h>
#include <nss.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>
#include <strings.h>

/* The linker's own names. NOLINTBEGIN(bugprone-reserved-identifier,cert-dcl37-c,cert-dcl51-cpp) */
int __real_getaddrinfo(const char *name, const char *service, const struct addrinfo *wanted,
                       struct addrinfo **found);
int __wrap_getaddrinfo(const char *name, const char *service, const struct addrinfo *wanted,
                       struct addrinfo **found);
/* NOLINTEND(bugprone-reserved-identifier,cert-dcl37-c,cert-dcl51-cpp) */

#ifdef STATIC_BINARY
/* Has the C library look users up in files only. Other sources are libraries, and made for another
 * C library than the one that is in a static binary. */
__attribute__((constructor)) static void limit_users(void)
{
    __nss_configure_lookup("passwd", "files");
}

/* Has the C library look hosts up in files, and, if it is not a name of this host, by DNS. */
static void limit_hosts(bool is_of_this_host)
{
    __nss_configure_lookup("hosts", is_of_this_host ? "files" : "files dns");
}
#else
static void limit_hosts(bool is_of_this_host)
{
    (void)is_of_this_host;
}
#endif

int __wrap_getaddrinfo(const char *name, const char *service, const struct addrinfo *wanted,
                       struct addrinfo **found)
{
    static const char localhost[] = "localhost", below[] = ".localhost";
    size_t length = name ? strlen(name) : 0;
    const char *end = length >= sizeof below ? name + length + 1 - sizeof below : "";
    /* "localhost" and what ends with ".localhost" are names of this host, whatever a name server
     * says (RFC 6761). */
    bool is_of_this_host =
        name && (strcasecmp(name, localhost) == 0 || strcasecmp(end, below) == 0);

    limit_hosts(is_of_this_host);
    int fault = __real_getaddrinfo(name, service, wanted, found);
    if (fault == 0 || !is_of_this_host)
        return fault;
    /* A container or a chroot may lack /etc/hosts: it is the loopback address, without a
     * look-up. */
    struct addrinfo loopback = wanted ? *wanted : (struct addrinfo){0};
    loopback.ai_flags &= ~(AI_PASSIVE | AI_CANONNAME);
    return __real_getaddrinfo(NULL, service ? service : "0", &loopback, found);
}
