/* Name look-up in a process of its own. */
#include "resolve.h"
#include "loop.h"
#include "mem.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

/* What the helper process writes: one of these, whole. Smaller than PIPE_BUF, so the write is atomic. */
struct finding {
    int count;
    char fault[128];
    struct endpoint found[RESOLVE_MAX];
};

struct resolver {
    struct loop *loop;
    struct loop_io io;
    pid_t pid;
    void (*done)(void *, const struct endpoint *, int, const char *);
    void *arg;
};

bool resolve_numeric(const char *host, int port, struct endpoint *found)
{
    struct sockaddr_in v4 = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    struct sockaddr_in6 v6 = {.sin6_family = AF_INET6, .sin6_port = htons((uint16_t)port)};

    memset(found, 0, sizeof *found);
    if (inet_pton(AF_INET, host, &v4.sin_addr) == 1) {
        memcpy(&found->address, &v4, sizeof v4);
        found->length = sizeof v4;
        return true;
    }
    if (inet_pton(AF_INET6, host, &v6.sin6_addr) == 1) {
        memcpy(&found->address, &v6, sizeof v6);
        found->length = sizeof v6;
        return true;
    }
    return false;
}

bool resolve_path(const char *path, struct endpoint *found)
{
    struct sockaddr_un local = {.sun_family = AF_UNIX};

    if (strlen(path) >= sizeof local.sun_path)
        return false;
    strcpy(local.sun_path, path);
    memset(found, 0, sizeof *found);
    memcpy(&found->address, &local, sizeof local);
    found->length = sizeof local;
    return true;
}

static void look_up(const char *host, int port, struct finding *finding)
{
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICSERV};
    struct addrinfo *list = NULL;
    char service[16];

    snprintf(service, sizeof service, "%d", port);
    int fault = getaddrinfo(host, service, &hints, &list);
    if (fault != 0) {
        snprintf(finding->fault, sizeof finding->fault, "%s",
                 fault == EAI_SYSTEM ? strerror(errno) : gai_strerror(fault));
        return;
    }
    for (struct addrinfo *a = list; a && finding->count < RESOLVE_MAX; a = a->ai_next) {
        struct endpoint *found = &finding->found[finding->count++];
        memcpy(&found->address, a->ai_addr, a->ai_addrlen);
        found->length = a->ai_addrlen;
    }
}

static void helper(const char *host, int port, pid_t parent, int out)
{
    struct finding finding = {0};

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)
        _exit(1);
    look_up(host, port, &finding);
    _exit(write(out, &finding, sizeof finding) == sizeof finding ? 0 : 1);
}

static void found_out(struct loop_io *io, int events)
{
    struct resolver *resolver = io->owner;
    struct finding finding = {0};

    (void)events;
    if (read(io->fd, &finding, sizeof finding) != sizeof finding) {
        finding.count = 0;
        snprintf(finding.fault, sizeof finding.fault, "the look-up ended without an answer");
    }
    loop_remove(resolver->loop, io);
    resolver->done(resolver->arg, finding.found, finding.count, finding.fault);
}

struct resolver *resolver_start(struct loop *loop, const char *host, int port,
                                void (*done)(void *arg, const struct endpoint *found, int count,
                                             const char *fault),
                                void *arg)
{
    int ends[2];
    pid_t parent = getpid();

    if (pipe2(ends, O_CLOEXEC) != 0)
        return NULL;
    pid_t pid = fork();
    if (pid == 0)
        helper(host, port, parent, ends[1]);
    close(ends[1]);
    if (pid < 0) {
        close(ends[0]);
        return NULL;
    }

    struct resolver *resolver = mem_zeroed(sizeof *resolver);
    *resolver = (struct resolver){.loop = loop, .pid = pid, .done = done, .arg = arg};
    resolver->io =
        (struct loop_io){.fd = ends[0], .events = LOOP_READ, .ready = found_out, .owner = resolver};
    loop_add(loop, &resolver->io);
    return resolver;
}

void resolver_stop(struct resolver *resolver)
{
    loop_remove(resolver->loop, &resolver->io);
    close(resolver->io.fd);
    kill(resolver->pid, SIGKILL);
    waitpid(resolver->pid, NULL, 0);
    free(resolver);
}
