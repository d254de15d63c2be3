/* Finds out where a server is: at a path, at a numeric address, under a host name, or where the
 * Sentinels say; a server of this host that is not running is started (by "start_server" of its
 * record). The locator remembers its findings; a search asks anew. */
#pragma once

#include "net/loop.h"
#include "net/resolve.h"
#include "store/redis/find/sentinels.h"

struct tls;

struct locator_events {
    /* A search is over: NULL when addresses are known, or an UNKNOWN answer that says why not. */
    void (*located)(void *arg, const struct answer *failure);
    /* The server that is watched is not the master any more. */
    void (*moved)(void *arg);
    /* The Sentinels refuse the login. Returns whether there is another one by now, put into
     * *login. */
    bool (*refused)(void *arg, struct sentinel_login *login);
};

struct locator {
    struct loop *loop;
    const struct url *url;
    const struct locator_events *events;
    void *arg;
    bool fixed;     /* a path or a number: a search would find nothing else */
    bool startable; /* a server to be started when it is not there */
    struct resolver addresses;
    struct helper_process *starter;

    bool doubtful;        /* the next connection needs a search: what is known may be old */
    struct endpoint left; /* the latest that could not serve; length 0: none */

    struct sentinels *sentinels; /* which may name another host; NULL: there are none */
    char host[256];              /* the master they named, or "" */
    int port;
    char found[300]; /* for messages: "the master 10.0.0.1:6379"; "": the URL says it all */
    struct sentinel_login login; /* as it was given last; borrowed */
    struct moment until;         /* of a search */
    struct loop_timer look;
    int64_t pace; /* of looks, ns */
};

/* The URL, "tls" (NULL: plain), over which Sentinels are asked, and the events are borrowed until
 * locator_free(). Returns NULL with a message in "fault" if the URL can lead nowhere. */
struct locator *locator_new(struct loop *loop, const struct url *url, struct tls *tls,
                            const struct locator_events *events, void *arg, char *fault,
                            size_t size);
void locator_free(struct locator *locator);

/* Returns how many of the endpoints to try, in this order; 0: search first. */
int locator_known(const struct locator *locator);
/* Returns which of those that are known, or were before a search, it is; -1: none. */
int locator_find(const struct locator *locator, const struct endpoint *at);
/* Returns the name or address of the server as the user or the Sentinels gave it, for TLS; NULL:
 * none. */
const char *locator_host(const struct locator *locator);

/* Starts a search. Sentinels get half of the time until "until" to answer, since the server must be
 * reached as well; a name or the start of a server may take longer than "until". "located" comes
 * once, later. login: for Sentinels, whose words are borrowed until the next one is given. Returns
 * false with errno if the search cannot start. */
bool locator_search(struct locator *locator, const struct sentinel_login *login,
                    struct moment until);
/* A lease of "lease" ns depends on the server: a watch looks at least three times in it. */
void locator_set_lease(struct locator *locator, int64_t lease);
/* The server at that endpoint, of those that are known, cannot serve: where it has a name, the next
 * connection needs a search, and takes that endpoint last. */
void locator_leave(struct locator *locator, int endpoint);
/* Whether what was known of a name will do where a search for it has no answer. */
bool locator_may_stay(const struct locator *locator);
/* Ends that search, and returns to what was known, in an order in which the endpoint that was left
 * comes last. */
void locator_stay(struct locator *locator);
/* Watches the server until locator_stop(): asks the Sentinels now and then whether it is still the
 * master. "moved" comes once, when it is not. login: as for a search. */
void locator_watch(struct locator *locator, const struct sentinel_login *login);
/* Ends a search and a watch, without their events; to be called when the connection has ended.
 * If the server may have moved, the next connection needs a search. */
void locator_stop(struct locator *locator);
