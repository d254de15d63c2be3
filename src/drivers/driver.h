/* What the drivers share: programs of their own that talk to a database server for rlock, each
 * linked with the client library of one kind of server. rlock starts one with a socket as its
 * standard input and speaks frames (store/sql/wire.h) with it. A driver may block as long as it
 * likes: whoever waits for an answer has a time limit, and the driver ends itself at that time. It
 * ends as well when the other side does. It knows nothing of locks. */
#ifndef RLOCK_DRIVERS_DRIVER_H
#define RLOCK_DRIVERS_DRIVER_H

#include <stdbool.h>
#include <stddef.h>

#include "store/sql/wire.h"

/* Where to connect to. A text that is not given is "". */
struct driver_target {
    const char *host, *port, *user, *password, *database;
    bool tls; /* the server's certificate and name are verified */
    const char *ca, *certificate, *key;
    const char *client; /* what the server is told to call the connection */
    int seconds;        /* the time limit */
};

struct driver_fault {
    enum wire_error error;
    char text[512];
};

struct driver_ops {
    /* *version is valid until the next call. */
    bool (*connect)(const struct driver_target *target, const char **version,
                    struct driver_fault *fault);
    /* Executes a statement, and puts the number of columns and the values of its last result into
     * the frame that is being written; see WIRE_ROWS. */
    bool (*execute)(const char *sql, struct wire_out *rows, struct driver_fault *fault);
    /* The descriptor on which notifications come; NULL: there are none. */
    int (*descriptor)(void);
    /* Whether one has come; *broken: no more will. */
    bool (*is_called)(bool *broken);
};

/* Serves until the other side ends. Returns the exit status. */
int driver_serve(const struct driver_ops *ops);

/* Until it can be read, or written; or until there is an error to be found out. */
void driver_await(int fd, bool to_write);

/* Who logs in there: the libraries take the process's user where none is given. */
void driver_user(const struct driver_target *target, char *user, size_t size);

/* Looks the host up; where that fails, puts down why, and returns true. */
bool driver_blames_name(const struct driver_target *target, struct driver_fault *fault);

/* Puts down what the server said, in one line. Returns false. */
bool driver_fail(struct driver_fault *fault, enum wire_error error, const char *said);

#endif
