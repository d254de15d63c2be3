/* How the programs that talk to databases (src/host) tell what went wrong, and what it means.
 * Pure. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/text.h"

/* How rlock begins with a host: OPEN, this, how long it may take in ms, host, port, user, password,
 * database, what the names of its tables begin with, 1 for TLS, file of CA certificates, of a
 * certificate, of its key, what the connection is called; from 1.1.0 on also the address that the
 * host had before, or nothing. The reply is OK, from 1.1.0 on with that address behind it. Both
 * sides have to be of the same protocol. To the host of a driver, "host" is the driver's name, and
 * "database" its argument; behind OK stands how often a waiter may ask, in ms, if the driver has
 * told it. Of several hosts, "host" is HOST:PORT,HOST:PORT and so on. */
#define HOST_PROTOCOL "1"

/* The kinds of failure that matter. */
enum wire_error {
    WIRE_UNREACHABLE = 'u', /* no connection, or it broke: the statement may be done */
    WIRE_ENDED = 'e',       /* the same, because the server has ended it */
    WIRE_NOWHERE = 'h',     /* not done: there is no host of that name */

    /* Not done; may pass. */
    WIRE_CONFLICT = 'c',  /* another client was quicker */
    WIRE_QUOTA = 'q',     /* it has as much data as it may have */
    WIRE_NOT_READY = 'n', /* it starts up or shuts down, or is not a member of its cluster */
    WIRE_BUSY = 'b',      /* it took longer than the server allows */
    WIRE_FULL = 'm',      /* the server takes no more clients, or no more of this user */
    WIRE_NO_SPACE = 's',  /* its disk is full */
    WIRE_NO_MEMORY = 'y',
    WIRE_TROUBLE = 'z',     /* whatever else keeps the server from letting clients in */
    WIRE_READ_ONLY = 'r',   /* a standby, a replica, or an administrator has said so */
    WIRE_NO_WRITER = 'W',   /* of several hosts none takes writes; why, in words */
    WIRE_SOME_REFUSE = 'R', /* the same, and one of them has refused user or password */
    WIRE_FAILED = 'g',      /* the program that moves the store's records says so */

    /* Not done, and no use to repeat. */
    WIRE_PASSWORD = 'a',        /* user or password */
    WIRE_NO_PASSWORD = 'j',     /* it asks for one, and none was given */
    WIRE_NO_USER = 'U',         /* it asks for a user, and none was given */
    WIRE_NO_USERS = 'V',        /* one was given, and it has none */
    WIRE_KEPT_OUT = 'k',        /* this user may not log in from here */
    WIRE_DENIED = 'd',          /* a right is missing */
    WIRE_NO_TABLES = 't',       /* rlock's tables are not there */
    WIRE_NOT_KEPT = 'N',        /* they do not keep what is written */
    WIRE_NO_SHEDLOCK = 'w',     /* nor is ShedLock's, which was asked for */
    WIRE_SHEDLOCK_DENIED = 'v', /* a right to that one is missing */
    WIRE_KEYS_DENIED = 'K',     /* a right to the keys is missing */
    WIRE_NO_DATABASE = 'o',     /* there is no database of that name */
    WIRE_NO_TRANSACTIONS = 'p', /* a pooler gives each statement another session */
    WIRE_STRANGER = 'x',        /* no database server of that kind answers there */
    WIRE_DRIVER = 'i',          /* there is no such program, or it makes no sense */
    WIRE_NO_TLS = 'l',          /* the server cannot be trusted, or takes no TLS */

    /* Anything else: the statement may be done, and repeating it is useless. */
    WIRE_UNFIT = 'f',
};

/* Whether the connection is gone, and with it the word on what was under way. */
bool wire_error_breaks(enum wire_error error);
/* Whether a server that says so cannot serve: its client leaves it, as another one may be behind
 * the same name or proxy by now. */
bool wire_error_leaves(enum wire_error error);
/* Whether user or password is refused, by the server or by one of several hosts. */
bool wire_error_refuses_login(enum wire_error error);

/* An error as a host's reply, "RLOCKSTORE …". maybe_done: the request may be done all the same.
 * user: the account that has logged in, or tried to; said: the server's words. */
struct host_error {
    enum wire_error error;
    bool maybe_done;
    char user[64];
    char said[SAID_SIZE];
};
/* Fills it, with the first line of what was said; the request is not done. Returns false. */
bool host_error_set(struct host_error *error, enum wire_error kind, const char *said);
/* Writes it as the text of an error reply. */
void host_error_print(const struct host_error *error, char *out, size_t size);
/* Reads it from an error reply. False: the text is something else. */
bool host_error_read(const char *text, struct host_error *error);
