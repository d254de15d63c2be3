/* shim_connect: LD_PRELOADed, it takes a TCP connection to a port of $SHIM_CONNECT, as in
 * "4001=5001 4002=5002", to the port behind the equals sign. So a program reaches another one by
 * way of a proxy without being told so. For the tests. */
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

static in_port_t redirected(in_port_t port)
{
    const char *pairs = getenv("SHIM_CONNECT");
    char *end;

    while (pairs && *pairs) {
        unsigned long from = strtoul(pairs, &end, 10);
        if (*end != '=')
            break;
        unsigned long to = strtoul(end + 1, &end, 10);
        if (from == ntohs(port))
            return htons((in_port_t)to);
        pairs = end;
    }
    return port;
}

int connect(int fd, const struct sockaddr *address, socklen_t length)
{
    struct sockaddr_storage copy;

    if (length > sizeof copy)
        return (int)syscall(SYS_connect, fd, address, length);
    memcpy(&copy, address, length);
    if (copy.ss_family == AF_INET && length >= sizeof(struct sockaddr_in)) {
        struct sockaddr_in *in = (struct sockaddr_in *)&copy;
        in->sin_port = redirected(in->sin_port);
    } else if (copy.ss_family == AF_INET6 && length >= sizeof(struct sockaddr_in6)) {
        struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)&copy;
        in6->sin6_port = redirected(in6->sin6_port);
    }
    return (int)syscall(SYS_connect, fd, &copy, length);
}
