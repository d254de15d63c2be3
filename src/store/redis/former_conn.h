/* The connection that a session had when its server fell silent on it. It is kept beside the way to
 * another one, and given up once that works: a server that takes no more clients would give its
 * place to somebody else. Where the server was only slow, it is the one to continue with. */
#pragma once

#include "net/resolve.h"
#include "store/redis/greeting.h"

struct conn;
struct loop;

struct former_conn {
    struct conn *conn; /* closed, for the next time, unless it is kept; NULL: there was none yet */
    bool kept;
    bool answers; /* all that was said on it: it works */
    struct endpoint at;
    struct redis_greeting greeting; /* that was accepted on it */
    unsigned refusals;              /* of other connections, by the same server */
};

/* Keeps *conn, which is up, and puts another one in its place, which is closed. The kept one stops
 * listening, and answers to what was sent on it before are dropped. It leads to "at", and
 * "greeting" was accepted on it. Both are copied. */
void former_conn_keep(struct former_conn *former, struct loop *loop, struct conn **conn,
                      const struct endpoint *at, const struct redis_greeting *greeting);
/* The server at that endpoint has refused another connection. */
void former_conn_note_refusal(struct former_conn *former, const struct endpoint *at);
/* Returns whether to continue on it: it works, and its server has refused another connection.
 * Closes one that does not work either, after several refusals: then another one may take its
 * place at the server. */
bool former_conn_reconsider(struct former_conn *former);
/* Puts the kept connection in the place of *conn, which is closed; each gets the other's events. */
void former_conn_take(struct former_conn *former, struct conn **conn);
/* Closes the kept connection; harmless if there is none. */
void former_conn_leave(struct former_conn *former);
void former_conn_free(struct former_conn *former);
