/* Shared by the connections to databases. Each is made by the client library of one kind of
 * server, in a program of its own (src/host), which may block as long as it likes: a client that
 * waits for an answer has a time limit, and the program ends itself at that time. */
#pragma once

#include "rules/wire_error.h"

/* Where to connect to. A text that is not given is "". */
struct driver_target {
    const char *host, *port, *user, *password, *database; /* no user: that of the process */
    bool tls; /* the server's certificate and name are verified */
    const char *ca, *certificate, *key;
    const char *client; /* the connection's name, for the server */
    int seconds;        /* the time limit */
};

/* Until it can be read, or written; or until there is an error to be found out. */
void driver_await(int fd, bool to_write);

/* Looks the host up; where that fails, puts down why, and returns true. */
bool driver_blames_name(const struct driver_target *target, struct host_error *fault);

/* Puts down what the server said, in one line. Returns false. */
bool driver_fail(struct host_error *fault, enum wire_error error, const char *said);
