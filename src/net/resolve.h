/* Host names to addresses without ever stopping the loop: a name is looked up by a short-lived
 * process of its own, because getaddrinfo() can hang for minutes and cannot be interrupted. */
#pragma once

#include <stdbool.h>
#include <sys/socket.h>

#define RESOLVE_MAX 8

struct helper_process;
struct loop;

struct endpoint {
    struct sockaddr_storage address;
    socklen_t length;
};

/* Whether both are the same address and port, or path. */
bool endpoint_is_same(const struct endpoint *one, const struct endpoint *other);

/* Whether the text can be a host's name by RFC 1123, with '_' as a letter; a '.' may end it.
 * Numbers with dots between them are a name, too. */
bool host_is_name(const char *text);
/* Whether the text is an IPv4 or IPv6 address, without brackets and zone. */
bool host_is_address(const char *text);

/* Makes an endpoint of a numeric address, at once. False if "host" is not one, as a name is. */
bool resolve_numeric(const char *host, int port, struct endpoint *found);
/* Makes an endpoint of a Unix socket's path. False if it is too long for one. */
bool resolve_path(const char *path, struct endpoint *found);

/* The end of a look-up. count: of the addresses that were found; 0: it did not succeed, and -1:
 * there is no such name, both with the C library's message in "fault". */
typedef void resolver_done(void *arg, int count, const char *fault);

/* Looks up the addresses of a host, and keeps them. All zero: it knows none, and is idle. */
struct resolver {
    struct endpoint found[RESOLVE_MAX]; /* kept where a look-up does not succeed */
    int count;
    struct helper_process *process; /* of the look-up; NULL: none is under way */
    resolver_done *done;
    void *arg;
};

/* Looks "host" up. "done" comes once: for a name later, for a numeric address before this returned.
 * False with errno if no process could be started. */
bool resolver_start(struct resolver *resolver, struct loop *loop, const char *host, int port,
                    resolver_done *done, void *arg);
/* Ends the look-up, if there is one; "done" comes no more. */
void resolver_stop(struct resolver *resolver);
