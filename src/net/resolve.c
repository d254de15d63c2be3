/* Looks up a name by a helper process, which is given a question and returns a finding: both are
 * plain bytes between the two processes. */
#include "net/resolve.h"
#include "os/helper_process.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/un.h>

#define LETTERS          "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-"
#define LABEL_LENGTH_MAX 63
#define NAME_LENGTH_MAX  253 /* without the last '.' */

struct question {
    const char *host;
    int port;
};

struct finding {
    int count; /* as of resolver_done */
    char fault[128];
    struct endpoint found[RESOLVE_MAX];
};

bool endpoint_is_same(const struct endpoint *one, const struct endpoint *other)
{
    return one->length == other->length && memcmp(&one->address, &other->address, one->length) == 0;
}

bool host_is_name(const char *text)
{
    const char *label = text;

    do {
        size_t length = strspn(label, LETTERS);
        bool is_last = label[length] == '\0';
        if (length == 0 || length > LABEL_LENGTH_MAX || label[0] == '-' ||
            label[length - 1] == '-' || (!is_last && label[length] != '.'))
            return false;
        label += length + !is_last; /* and past the '.' */
    } while (*label);
    size_t length = (size_t)(label - text);
    bool has_last_dot = label[-1] == '.';
    return length - has_last_dot <= NAME_LENGTH_MAX;
}

bool host_is_address(const char *text)
{
    struct endpoint ignored;
    return resolve_numeric(text, 0, &ignored);
}

bool resolve_numeric(const char *host, int port, struct endpoint *found)
{
    struct sockaddr_in v4 = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    struct sockaddr_in6 v6 = {.sin6_family = AF_INET6, .sin6_port = htons((uint16_t)port)};
    bool is_v4 = inet_pton(AF_INET, host, &v4.sin_addr) == 1;
    bool is_v6 = !is_v4 && inet_pton(AF_INET6, host, &v6.sin6_addr) == 1;

    memset(found, 0, sizeof *found);
    found->length = is_v4 ? sizeof v4 : is_v6 ? sizeof v6 : 0;
    memcpy(&found->address, is_v4 ? (void *)&v4 : (void *)&v6, found->length);
    return is_v4 || is_v6;
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

/* Looks up the name of a question, in the helper process, as that may block. Fills the finding,
 * which is all zero. */
static void look_up(const void *asked, void *answer)
{
    const struct question *question = asked;
    struct finding *finding = answer;
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICSERV};
    struct addrinfo *list = NULL;
    char service[16];

    snprintf(service, sizeof service, "%d", question->port);
    int fault = getaddrinfo(question->host, service, &hints, &list);
    if (fault != 0) {
        snprintf(finding->fault, sizeof finding->fault, "%s",
                 fault == EAI_SYSTEM ? strerror(errno) : gai_strerror(fault));
        finding->count = fault == EAI_NONAME || fault == EAI_NODATA ? -1 : 0;
        return;
    }
    for (struct addrinfo *a = list; a && finding->count < RESOLVE_MAX; a = a->ai_next) {
        struct endpoint *found = &finding->found[finding->count++];
        memcpy(&found->address, a->ai_addr, a->ai_addrlen);
        found->length = a->ai_addrlen;
    }
    freeaddrinfo(list);
}

/* For the helper process: takes the finding of a look-up, and tells the owner. answer: NULL: the
 * process ended without one. The addresses that were found before stay where there are no new
 * ones. */
static void take_finding(void *owner, const void *answer)
{
    struct finding nothing = {0};
    const struct finding *finding = answer ? answer : &nothing;
    struct resolver *resolver = owner;

    if (!answer)
        snprintf(nothing.fault, sizeof nothing.fault, "looking it up: " HELPER_PROCESS_SILENT);
    resolver_stop(resolver);
    if (finding->count > 0) {
        memcpy(resolver->found, finding->found, sizeof resolver->found);
        resolver->count = finding->count;
    }
    resolver->done(resolver->arg, finding->count, finding->fault);
}

bool resolver_start(struct resolver *resolver, struct loop *loop, const char *host, int port,
                    resolver_done *done, void *arg)
{
    struct question question = {host, port};
    struct finding numeric = {.count = 1};

    resolver->done = done;
    resolver->arg = arg;
    if (resolve_numeric(host, port, &numeric.found[0])) {
        take_finding(resolver, &numeric);
        return true;
    }
    resolver->process = helper_process_start(loop, look_up, &question, sizeof(struct finding),
                                             take_finding, resolver);
    return resolver->process;
}

void resolver_stop(struct resolver *resolver)
{
    if (resolver->process)
        helper_process_stop(resolver->process);
    resolver->process = NULL;
}
