/* The error replies of a Redis server, by class and as answers of a store. Pure. */
#pragma once

#include "store/store.h"

enum redis_error {
    REDIS_ERROR_NOSCRIPT, /* send the script itself */
    REDIS_ERROR_PASSING,  /* BUSY, LOADING, …: try again */
    REDIS_ERROR_READONLY, /* a replica: this server will not do, its master will */
    REDIS_ERROR_UNFIT,    /* OOM: this server will not do */
    REDIS_ERROR_LOGIN,    /* NOAUTH, WRONGPASS: user or password */
    REDIS_ERROR_DENIED,   /* NOPERM, a forbidden channel, protected mode */
    REDIS_ERROR_MISFIT,   /* WRONGTYPE: the key is something else */
    REDIS_ERROR_CLUSTER,  /* MOVED, ASK, CROSSSLOT: a Cluster's node, or what should be one */
    REDIS_ERROR_OTHER,
};

/* The class of an error reply. Codes are looked for as whole words anywhere: up to 6.2, errors
 * within a script come wrapped. */
enum redis_error redis_error_class(const char *text);
/* Whether it is an error that is all that a server says on a connection, which it closes unread. */
bool redis_error_turns_away(const char *text);
/* Whether it refers to another node of a Cluster: MOVED or ASK. */
bool redis_error_is_redirection(const char *text);

/* Fills the answer with an error reply: UNKNOWN or MISFIT, in plain words and in the server's own.
 * A database's error says whether the request may be done; another one leaves that as it was. */
void redis_error_answer(const char *text, struct answer *answer);
/* Fills the answer with an error that is the reply to a script: UNKNOWN, and may be done unless
 * such an error comes before anything is done: a script has no rollback, and a proxy that has lost
 * its server answers with an error, too. */
void redis_error_of_script(const char *text, struct answer *answer);
/* Fills the answer with a reply that none of our scripts gives: UNKNOWN, and the request may have
 * been done all the same. */
void redis_error_senseless(struct answer *answer);
/* Whether redis_error_senseless() has filled the answer. */
bool redis_error_is_senseless(const struct answer *answer);

/* Words the kind that a key has instead of "known" ("lock/1") if it is a newer layout: "lock/2", or
 * with the version of rlock that it needs, "lock/2 1.4". Returns false if it is not one. */
bool redis_newer_layout(const char *kind, const char *known, char *text, size_t size);
