/* A kind of lock store: how it is addressed, its abilities, how it is opened and examined. One
 * const struct beside each store; stores.c lists them. Everything outside asks the kind, and never
 * compares schemes. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct checkup;
struct checkup_plan;
struct loop;
struct member;
struct store;
struct store_address;
struct url;

/* Abilities that not all stores have. Commands ask before they connect. */
enum store_ability {
    STORE_READERS = 1 << 0,      /* locks of many readers or one writer */
    STORE_SEMAPHORES = 1 << 1,   /* locks of up to N holders */
    STORE_SEVERAL_KEYS = 1 << 2, /* one lock over several keys, all or none */
    STORE_QUEUE = 1 << 3,        /* waiters are served in the order of arrival */
    STORE_AT_LEAST = 1 << 4,     /* a released lock stays for the rest of its time */
    STORE_REPLICAS = 1 << 5,     /* a grant waits for replicas */
    STORE_GRACE = 1 << 6,        /* grants nothing new while it may have forgotten locks */
    STORE_MARK = 1 << 7,         /* a new server can be told that it has forgotten nothing */
    STORE_FORCE = 1 << 8,        /* a lock can be taken away from its holder */
    STORE_LATCHES = 1 << 9,      /* count-down latches */
    STORE_DETACHED = 1 << 10,    /* a lock outlives the session that acquired it */
    STORE_GROUPS = 1 << 11,      /* a waiter replaces those of its group */
    STORE_MIRROR = 1 << 12,      /* another program's lock is held together with ours */
    STORE_LIMITS = 1 << 13,      /* the limit of a semaphore is kept beside it */
    STORE_MEMORY = 1 << 14,      /* remembers former holders and counts events */
    STORE_TOGETHER = 1 << 15,    /* decides about several keys in one step */
    STORE_PRIORITIES = 1 << 16,  /* some waiters are served before others */
    STORE_PAUSES = 1 << 17,      /* no new owner is let in for a while */
    STORE_ANY = 1 << 18,         /* of several keys, grants as many as asked for that are free */
    STORE_ASK = 1 << 19,         /* a holder can be asked to release a lock */
    STORE_REPLACE = 1 << 20,     /* an acquisition can ask the holders to release */
    STORE_GLOB_PAUSES = 1 << 21, /* pauses for all keys that a GLOB matches, also new ones */
    STORE_MINIMUM = 1 << 22,     /* refuses acquisitions of an older rlock than it asks for */
};

struct store_kind {
    const char *scheme; /* of its URL; NULL: it has none of its own, several URLs make it */
    const char *secure; /* the same over TLS; NULL: it never is */
    /* Other words for both, which are never printed; NULL: none. */
    const char *alias, *secure_alias;
    const char *name;   /* in messages: "cluster://" */
    unsigned abilities; /* of enum store_ability */

    bool is_sharded;      /* each of its servers has some of the keys */
    bool fails_over;      /* another server takes the place of one that fails */
    bool tls_by_settings; /* settings about TLS turn it on; otherwise only the scheme does */
    bool no_password;     /* the user is not asked for one */
    /* The kinds of other programs' locks that it can hold besides, ended by NULL. NULL without
     * STORE_MIRROR, and where several URLs make the store: there each has them. */
    const char *const *mirrors;
    /* Whether a lock's key and the key of that name can be changed at once. NULL: any two can. */
    bool (*beside)(const char *prefix, const char *key, const char *name);

    /* Takes apart in place what follows "SCHEME://" (store/url_parts.h), or "SCHEME:", if
     * is_bare; sets the members of *url and returns NULL, or what is wrong with it, a constant.
     * NULL: the address is "SCHEME:", and nothing follows. */
    const char *(*parse)(struct url *url, char *rest);
    bool is_bare;
    /* Appends what follows that to "out", without user and password. NULL where "parse"
     * is. */
    void (*print)(const struct url *url, char *out, size_t size);

    /* For a server of this host that runs only when it is needed; NULL for all others. Each sets
     * "socket", the path of its Unix socket. */
    /* Where it is, running or not. False if there is no place for it yet, or it must not be
     * trusted. */
    bool (*find_server)(char *socket, size_t size);
    /* Makes sure that it runs. Blocks. False with a message in "fault". */
    bool (*start_server)(char *socket, size_t socket_size, char *fault, size_t size);

    /* The host (src/host) that is asked in place of a server, by the name of its program, which
     * rlock starts; NULL: there is none. */
    const char *program;
    /* The host starts a program of the user's, which has the environment of this process. No
     * messages come from there: who waits has to ask. */
    bool is_driven;
    /* The host refuses a write if another client's came before it, so each that is saved makes the
     * others more likely to succeed. */
    bool is_conditional;

    /* Command number i of those that an administrator prepares it with, which the caller frees;
     * NULL: there are no more. user: gets the rights that rlock needs; NULL: none. */
    char *(*schema)(const struct store_address *address, const char *user, size_t i);
    bool grants; /* VERB_MARK executes all of them */

    /* Opens the store; see store_open(). */
    struct store *(*open)(struct loop *loop, const struct store_address *address, char *fault,
                          size_t size);
    /* Opens the store as a member of a quorum (store/member.h). False, where "open" returns NULL,
     * with a message. NULL: it cannot be one. */
    bool (*open_member)(struct loop *loop, const struct store_address *address,
                        struct member *member, char *fault, size_t size);
    /* Looks at the servers behind plan->address, changes no lock there, and adds to *checkup,
     * which is zeroed, what it finds (diagnosis.h). False with a message in "fault" if the
     * servers could not even be asked from here. */
    bool (*check)(const struct checkup_plan *plan, struct checkup *checkup, char *fault,
                  size_t size);
};

/* All that have a scheme, ended by NULL; and the one that several URLs make. Both are in
 * stores.c, and a program that has a list of its own leaves that file out. */
extern const struct store_kind *const stores[];
extern const struct store_kind *const store_of_several;
