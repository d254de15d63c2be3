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

bool endpoint_is_same(const struct endpoint *one, const struct endpoint *other);

/* A name by RFC 1123, with '_' as a letter; a '.' may end it. Numbers with dots between them are a
 * name, too. */
bool host_is_name(const char *text);
/* An IPv4 or IPv6 address, without brackets and zone. */
bool host_is_address(const char *text);

/* A numeric address, at once. False if "host" is a name. */
bool resolve_numeric(const char *host, int port, struct endpoint *found);
/* A Unix socket's path. False if it is too long for one. */
bool resolve_path(const char *path, struct endpoint *found);

/* count: of the addresses; 0 with the resolver's message in "fault" where it did not succeed, -1
 * where there is no such name. */
typedef void resolver_done(void *arg, int count, const char *fault);

/* The addresses of a host. All zero: it knows none, and looks nothing up. */
struct resolver {
    struct endpoint found[RESOLVE_MAX]; /* kept where a look-up does not succeed */
    int count;
    struct helper_process *process;
    resolver_done *done;
    void *arg;
};

/* Looks "host" up. "done" comes once: for a name later, for a numeric address before this returned.
 * False with errno if no process could be started. */
bool resolver_start(struct resolver *resolver, struct loop *loop, const char *host, int port,
                    resolver_done *done, void *arg);
/* Ends the look-up, if there is one; "done" comes no more. */
void resolver_stop(struct resolver *resolver);
