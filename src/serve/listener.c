#include "serve/listener.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/decimal.h"
#include "base/mem.h"

#define UNIX_PREFIX "unix:"
#define BACKLOG     128
#define PORT_MAX    65535
#define SOCKET_TYPE (SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK)

static enum listener_result fail_refused(char *fault, size_t size)
{
    snprintf(fault, size, "cannot listen: %s", strerror(errno));
    return LISTENER_REFUSED;
}

static enum listener_result fail_misused(char *fault, size_t size)
{
    snprintf(fault, size, "is neither ADDR:PORT nor unix:PATH");
    return LISTENER_MISUSED;
}

/* -- Unix sockets ------------------------------------------------------------------------------ */

/* Whether there is a socket at the address that refuses connections, as its owner is gone. */
static bool is_stale(const struct sockaddr_un *address)
{
    struct stat file;
    int fd = socket(AF_UNIX, SOCKET_TYPE, 0);

    if (fd < 0)
        return false;
    bool refused =
        connect(fd, (const struct sockaddr *)address, sizeof *address) < 0 && errno == ECONNREFUSED;
    close(fd);
    return refused && lstat(address->sun_path, &file) == 0 && S_ISSOCK(file.st_mode);
}

/* Binds the socket to its path, in place of a file that a dead server has left. False:
 * errno says why. */
static bool bind_path(int fd, const struct sockaddr_un *address)
{
    const struct sockaddr *plain = (const struct sockaddr *)address;

    if (bind(fd, plain, sizeof *address) == 0)
        return true;
    if (errno != EADDRINUSE)
        return false;
    if (!is_stale(address) || unlink(address->sun_path) < 0) {
        errno = EADDRINUSE;
        return false;
    }
    return bind(fd, plain, sizeof *address) == 0;
}

static void add_socket(struct listener *listener, int fd)
{
    *MEM_APPEND(listener->sockets, listener->count) = (struct loop_io){.fd = fd};
}

/* Listens at a Unix socket. The file is noted, so that the end removes this one only. */
static enum listener_result open_path(struct listener *listener, const char *path, char *fault,
                                      size_t size)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};

    if (!*path)
        return fail_misused(fault, size);
    if (strlen(path) >= sizeof address.sun_path) {
        snprintf(fault, size, "is too long for a Unix socket");
        return LISTENER_MISUSED;
    }
    strcpy(address.sun_path, path);
    int fd = socket(AF_UNIX, SOCKET_TYPE, 0);
    if (fd < 0)
        return fail_refused(fault, size);
    add_socket(listener, fd);
    if (!bind_path(fd, &address))
        return fail_refused(fault, size);
    if (lstat(path, &listener->file) == 0)
        listener->path = mem_strdup(path);
    return listen(fd, BACKLOG) == 0 ? LISTENER_OPEN : fail_refused(fault, size);
}

/* -- TCP --------------------------------------------------------------------------------------- */

/* Cuts "ADDR:PORT" or "[ADDR]:PORT" in two, in place. False: it has neither form. */
static bool split_host_port(char *address, char **host, char **port)
{
    char *colon = strrchr(address, ':');
    int64_t number;

    if (!colon || colon == address || !decimal_parse(colon + 1, 0, PORT_MAX, &number))
        return false;
    *colon = '\0';
    *port = colon + 1;
    *host = address;
    if (*address == '[' && colon[-1] == ']') {
        colon[-1] = '\0';
        *host = address + 1;
        return true;
    }
    return !strchr(address, ':');
}

/* Listens on that address. False, with errno: it cannot. */
static bool bind_port(struct listener *listener, const struct addrinfo *found)
{
    int yes = 1, fd = socket(found->ai_family, SOCKET_TYPE, 0);

    if (fd < 0)
        return false;
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    bool bound = bind(fd, found->ai_addr, found->ai_addrlen) == 0 && listen(fd, BACKLOG) == 0;
    int error = errno;
    if (bound)
        add_socket(listener, fd);
    else
        close(fd);
    errno = error;
    return bound;
}

/* Listens on each address of the host, of which some may be missing here. */
static enum listener_result open_port(struct listener *listener, const char *host, const char *port,
                                      char *fault, size_t size)
{
    struct addrinfo wanted = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE | AI_NUMERICSERV};
    struct addrinfo *found;
    int error = getaddrinfo(host, port, &wanted, &found), wrong = 0;
    bool failed = false;

    if (error) {
        snprintf(fault, size, "cannot listen: %s",
                 error == EAI_SYSTEM ? strerror(errno) : gai_strerror(error));
        return LISTENER_REFUSED;
    }
    for (const struct addrinfo *one = found; one && !failed; one = one->ai_next) {
        /* An address may be there twice, as that of "localhost" of several lines of /etc/hosts. */
        const struct addrinfo *same = found;
        while (same != one && (same->ai_addrlen != one->ai_addrlen ||
                               memcmp(same->ai_addr, one->ai_addr, one->ai_addrlen) != 0))
            same = same->ai_next;
        if (same != one || bind_port(listener, one))
            continue;
        wrong = errno; /* the host may lack an address of the name, such as ::1 without IPv6 */
        failed = wrong != EAFNOSUPPORT && wrong != EADDRNOTAVAIL;
    }
    errno = wrong;
    enum listener_result result =
        !failed && listener->count > 0 ? LISTENER_OPEN : fail_refused(fault, size);
    freeaddrinfo(found);
    return result;
}

enum listener_result listener_open(struct listener *listener, const char *address, char *fault,
                                   size_t size)
{
    char *copy, *host, *port;
    enum listener_result result;

    *listener = (struct listener){0};
    if (strncmp(address, UNIX_PREFIX, strlen(UNIX_PREFIX)) == 0)
        return open_path(listener, address + strlen(UNIX_PREFIX), fault, size);
    copy = mem_strdup(address);
    if (split_host_port(copy, &host, &port)) {
        listener->host = mem_strdup(host);
        result = open_port(listener, host, port, fault, size);
    } else {
        result = fail_misused(fault, size);
    }
    free(copy);
    return result;
}

char *listener_print(const struct listener *listener, size_t index, char *out, size_t size)
{
    struct sockaddr_storage address = {0};
    socklen_t length = sizeof address;
    char host[64], port[8];

    if (listener->path)
        snprintf(out, size, UNIX_PREFIX "%s", listener->path);
    else if (getsockname(listener->sockets[index].fd, (struct sockaddr *)&address, &length) == 0 &&
             getnameinfo((struct sockaddr *)&address, length, host, sizeof host, port, sizeof port,
                         NI_NUMERICHOST | NI_NUMERICSERV) == 0)
        snprintf(out, size, address.ss_family == AF_INET6 ? "http://[%s]:%s/" : "http://%s:%s/",
                 host, port);
    else
        snprintf(out, size, "?");
    return out;
}

/* Whether the socket is reached from this host only. */
static bool is_local(int fd)
{
    static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff}; /* IPv4 as IPv6 */
    struct sockaddr_storage address;
    socklen_t length = sizeof address;

    if (getsockname(fd, (struct sockaddr *)&address, &length) < 0)
        return false;
    const struct in6_addr *six = &((const struct sockaddr_in6 *)&address)->sin6_addr;
    switch (address.ss_family) {
    case AF_UNIX: return true;
    case AF_INET:
        return ntohl(((const struct sockaddr_in *)&address)->sin_addr.s_addr) >> 24 ==
               IN_LOOPBACKNET;
    case AF_INET6:
        return IN6_IS_ADDR_LOOPBACK(six) ||
               (memcmp(six, mapped, sizeof mapped) == 0 && six->s6_addr[12] == IN_LOOPBACKNET);
    default: return false;
    }
}

bool listener_is_local(const struct listener *listener)
{
    size_t i = 0;

    while (i < listener->count && is_local(listener->sockets[i].fd))
        i++;
    return i == listener->count;
}

void listener_close(struct listener *listener)
{
    struct stat file;

    for (size_t i = 0; i < listener->count; i++)
        close(listener->sockets[i].fd);
    if (listener->path && lstat(listener->path, &file) == 0 &&
        file.st_dev == listener->file.st_dev && file.st_ino == listener->file.st_ino)
        unlink(listener->path);
    free(listener->sockets);
    free(listener->path);
    free(listener->host);
    *listener = (struct listener){0};
}
