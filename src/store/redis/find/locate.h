/* Finds out where a server is: at a path, at a numeric address, under a host name, or where the
 * Sentinels say; a server of this host that is not running is started (by "start_server" of its
 * record). The locator remembers its findings; a search asks anew. */
#pragma once

#include "net/loop.h"
#include "net/resolve.h"
#include "store/redis/find/sentinels.h"

struct tls;

struct locator {
    struct loop *loop;
    const struct url *url;
    bool fixed;     /* a path or a number: a search would find nothing else */
    bool startable; /* a server to be started when it is not there */
    struct endpoint endpoints[RESOLVE_MAX];
    int count;
    struct resolver *resolver;
    struct helper_process *starter;
    struct loop_timer failure; /* reports a search that could not even start */
    int error;
    void (*done)(void *arg, const struct answer *failure);
    void *arg;

    struct sentinels *sentinels; /* which may name another host; NULL: there are none */
    bool doubtful;               /* the master was not confirmed since the last connection */
    char host[256];              /* the master they named, or "" */
    int port;
    char found[300]; /* for messages: "the master 10.0.0.1:6379"; "": the URL says it all */
    const char *password;
    struct loop_timer look;
    int64_t pace; /* of looks, ns */
    void (*moved)(void *arg);
    void *moved_arg;
};

/* The URL and "tls" (NULL: plain), over which Sentinels are asked, are borrowed until
 * locator_free(). Returns NULL with a message in "fault" if the URL can lead nowhere. */
struct locator *locator_new(struct loop *loop, const struct url *url, struct tls *tls, char *fault,
                            size_t size);
void locator_free(struct locator *locator);

/* Returns how many of the endpoints to try, in this order; 0: search first. */
int locator_known(const struct locator *locator);
/* Returns the name or address of the server as the user or the Sentinels gave it, for TLS; NULL:
 * none. */
const char *locator_host(const struct locator *locator);

/* Starts a search. Sentinels get half of the time until "until" to answer, since the server must be
 * reached as well; a name or the start of a server may take longer than "until". "done" comes
 * once, later: with NULL when addresses are known, or with an UNKNOWN answer that says why the
 * search failed. password: for Sentinels; NULL: none. */
void locator_search(struct locator *locator, const char *password, struct moment until,
                    void (*done)(void *arg, const struct answer *failure), void *arg);
/* A lease of "lease" ns depends on the server: a watch looks at least three times in it. */
void locator_set_lease(struct locator *locator, int64_t lease);
/* Watches the server until locator_stop(): asks the Sentinels now and then whether it is still the
 * master. "moved" comes once, when it is not. */
void locator_watch(struct locator *locator, const char *password, void (*moved)(void *arg),
                   void *arg);
/* Ends a search and a watch, without their callbacks; to be called when the connection has ended.
 * If the server may have moved, the next connection needs a search. */
void locator_stop(struct locator *locator);
