/* Hints for a user about a failure: a store names one, and cli/describe.c words it, as that needs
 * the names of options. */
#ifndef RLOCK_STORE_HINT_H
#define RLOCK_STORE_HINT_H

enum hint {
    HINT_NONE, /* nothing in particular: the cause of the answer may tell more */

    /* How rlock was called. */
    HINT_NAME,     /* of a host: look it up */
    HINT_AWAY,     /* wait for it, or look at it */
    HINT_LOCAL,    /* say where the store is, as no one was named; there is one for this host */
    HINT_CLUSTER,  /* a Cluster and a single server have URLs of their own */
    HINT_PASSWORD, /* give one */
    HINT_PASSWORD_OR_RIGHTS,
    HINT_PASSWORD_OR_USER,
    HINT_KEPT_PASSWORD, /* an outer rlock has taken it out of the environment */
    HINT_RIGHTS,        /* of the user at the server */
    HINT_LONGER_LEASE,
    HINT_WAIT_OR_MARK, /* until the store grants again, or say that nothing is held */
    HINT_REPLICAS,     /* wait for some, where one may be promoted */

    HINT_TABLES,   /* of a database: none are there yet */
    HINT_SHEDLOCK, /* the same of another program's table */
    HINT_DRIVER,   /* the program that talks to a database is in a package of its own */
    HINT_LIBRARY,  /* the same needs a library */
    HINT_DATABASE, /* make one, or name another */
    HINT_GRANT,    /* give the user its rights */
    HINT_LOGIN,    /* let the user in */
    HINT_MAX_CONNECTIONS,

    /* A Redis server. */
    HINT_SCRIPT_KILL,
    HINT_DISK,
    HINT_FEW_REPLICAS,
    HINT_MAXCLIENTS,
    HINT_MAXMEMORY,
    HINT_REQUIREPASS,
    HINT_NO_PASSWORD,

    HINTS
};

#endif
