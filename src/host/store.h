/* Where a host keeps its records: one database, over one connection; in tests, its own memory.
 *
 * A unit is loaded, changed and committed. load() locks its keys first: those that the unit writes
 * for itself, those that it only reads against whoever writes them; a key that is not there is
 * locked as well. The keys are locked in an order that is the same for all, and the clock is read
 * behind the locks. commit() writes all that has changed, or nothing, and then tells the messages
 * to those who listen. The next load(), commit() or abandon() ends the locks. */
#pragma once

#include "base/clock.h"
#include "host/commands.h"
#include "host/resp.h"
#include "rules/wire_error.h"

/* Where to connect to. A text that is not given is "". */
struct host_target {
    /* host: a path of a Unix socket, a name, an address; or HOST:PORT,HOST:PORT and so on. */
    const char *host, *port, *user, *password, *database; /* no user: that of the process */
    bool tls; /* the server's certificate and name are verified */
    const char *ca, *certificate, *key;
    const char *client;  /* the connection's name, for the server */
    int seconds;         /* the time limit */
    struct moment until; /* of several hosts, one must have been found by then */
    /* Which address the host had before, for a time when its name cannot be looked up; and where to
     * connect in place of what the name says. */
    const char *known, *address;
    const char *margin; /* by which a store's members may differ in their clocks, as in the URL */
};

struct host_fault {
    struct host_error why;
    bool broken; /* the connection is gone, and the program is of no more use */
};

enum host_outcome {
    HOST_DONE,
    HOST_AGAIN, /* not done: another unit was quicker; the same may be tried at once */
    HOST_FAILED /* why is in the fault */
};

/* A channel of one client. From the end of the next unit on, messages to it are heard. */
struct host_channel {
    struct client *client;
    struct slice name;
    bool is_new;    /* the server has not been asked for its messages, or has not committed that */
    uint64_t heard; /* the latest message that need not be told any more, where they have numbers */
};

/* The channels that clients listen to. A store changes the latter two members only. */
extern struct host_channels {
    struct host_channel *at;
    size_t count;
} host_channels;

/* Fills the fault with a failure, of a request that was not done, in the store's words. Returns
 * false. */
bool host_fail(struct host_fault *fault, enum wire_error error, const char *said);
/* Adds what the doctor takes for a finding: its level by name, the text, and what to do. */
void host_find(struct strbuf *out, const char *level, const char *text, const char *advice);
/* A message has come to all that listen to that channel. */
void host_tell(struct slice name, struct slice text);

/* How soon messages must be heard. */
enum host_ears {
    HOST_NO_LISTENER, /* no client listens */
    HOST_PATIENT,     /* a message may be some seconds late */
    HOST_ALERT        /* a client waits for it */
};

struct host_store {
    /* The texts stay for as long as the program runs. table: the beginning of its tables' names. */
    bool (*open)(const struct host_target *target, const char *table, struct host_fault *fault);
    enum host_outcome (*load)(struct unit *unit, struct host_fault *fault);
    enum host_outcome (*commit)(struct unit *unit, struct host_fault *fault);
    /* Ends the unit without writing anything. */
    void (*abandon)(void);
    /* Calls "each" for the name of every record that begins so and has not expired. */
    bool (*list)(struct slice prefix, void (*each)(void *arg, struct slice name), void *arg,
                 struct host_fault *fault);
    /* Called when there is nothing to ask for. Returns a descriptor that becomes readable when
     * read_messages() has something to do; -1: none does. *ms: read_messages() must be called by
     * then; -1: any time. */
    int (*poll_fd)(enum host_ears ears, int *ms);
    /* Calls host_tell() for each message that has come. False: the connection broke. */
    bool (*read_messages)(void);
    /* Replies with the first row that a query finds, all as text: an array, which is empty where
     * there is none. False: it replies nothing. */
    bool (*ask)(const char *sql, struct strbuf *out, struct host_fault *fault);
    /* Makes the tables, where they are not there yet, and gives "user", unless NULL, the rights
     * that rlock needs. */
    bool (*make)(const char *user, struct host_fault *fault);
    const int *poll_ms; /* how often a waiter may ask, for want of messages; 0: not known. NULL */
    bool takes_own;     /* user: that of the process, where none is given */
};

/* Records in the tables of a database (database.h). */
extern const struct host_store host_database;
/* Records in etcd (etcd.c). */
extern const struct host_store host_etcd;

/* -- the loop of a host (serve.c) -------------------------------------------------------------- */

/* A host runs the scripts of rules/ over the records of a database, and speaks RESP2 as a Redis
 * server does. rlock starts one with a socket as its standard input. It may block as long as it
 * likes: the other side has a time limit, at which it kills the program. It ends by itself when the
 * socket is closed, and when the connection to the database is. */
struct host {
    const struct host_store *store;
    /* For tests, which need more of a Redis than scripts do; otherwise all are nothing. */
    int listener; /* on which clients come; 0: there is one, the standard input */
    const struct command_extra *extra;
    /* Replies to a command, or returns false. The words are valid during the call. */
    bool (*reply)(const struct slice *words, size_t count, struct strbuf *out);
};

/* Returns the exit status. */
int host_serve(const struct host *host);
