/* The loop of a host: a program that runs the scripts of rules/ over the records of a database, and
 * speaks RESP2 as a Redis server does. rlock starts one with a socket as its standard input. It may
 * block as long as it likes: the other side has a time limit, at which it kills the program. It
 * ends by itself when the socket is closed, and when the connection to the database is. */
#ifndef RLOCK_HOST_SERVE_H
#define RLOCK_HOST_SERVE_H

#include "host/commands.h"
#include "host/store.h"

struct host {
    const struct host_store *store;
    /* For tests, which need more of a Redis than scripts do; otherwise all are nothing. */
    int listener; /* on which clients come; 0: there is one, the standard input */
    const struct command_extra *extra;
    /* Replies to a command, or returns false. The words are valid during the call. */
    bool (*reply)(const struct piece *words, size_t count, struct strbuf *out);
};

/* Returns the exit status. */
int host_serve(const struct host *host);

#endif
