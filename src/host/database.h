/* The part that all databases have in common: records in tables, over the one connection that a
 * process serves. A unit is one transaction of two requests, each of several statements: the first
 * locks its keys and reads, the second writes, tells the messages and commits.
 *
 * A file for each kind of database says how its SQL differs, connects and asks. A program has one
 * of these files. */
#pragma once

#include "host/store.h"
#include "store/hosted/dialect.h"

/* Takes the rows that come back, as texts with a NUL behind them. A NULL is an empty text. */
struct database_taker {
    void (*take)(void *arg, const struct slice *values, size_t count);
    void *arg;
};

/* No more columns of a row are taken. */
#define DATABASE_COLUMNS 8

/* -- for each kind of database ----------------------------------------------------------------- */

extern const struct database {
    const struct sql_dialect *dialect;
    uint64_t gates; /* keys are locked by numbers below that, rows of a table; 0: by any number */
    /* Statements that begin a transaction, ended by NULL. They name its isolation: one that keeps
     * its first snapshot would read what was there before it had its locks. */
    const char *const *begin;
    const char *unlimit; /* one that ends the limits of these; NULL: the transaction does */
    /* A statement that locks a key to read it, and one to write it, which tell so by a row 'g': in
     * front of the key's number and behind it. */
    const char *lock[2][2];
    bool listens_always; /* also where there is no transaction */
    /* A statement in front of those that listen: it ends what the session has listened to, which
     * behind a pooler are the channels of other clients. NULL: nothing is left there. */
    const char *unlisten;
    int purge_every; /* one commit of so many clears rows away that have expired */
    /* The server's words beside the success of the latest request, in one line: a commit may be
     * lost then. "": none. NULL: it never has any. */
    const char *warning;
} database;

/* Adds a query, in front of what is read, that makes the settings of the transaction what a unit
 * needs, and tells by a row 'o' of several columns whether an administrator wants nothing to be
 * written: "on" or "1". */
void database_add_settings(struct sql_text *request);
/* Adds a literal. */
void database_add_text(struct sql_text *request, const char *text);
/* Adds a statement that listens to a channel. */
void database_add_listening(struct sql_text *request, struct slice channel);
/* Adds statements that tell the messages of a unit and commit it. */
void database_add_commit(struct sql_text *request, const struct unit *unit);
/* Sends what was put together, waits for the answer, and frees the request. taker: takes the rows;
 * may be NULL. HOST_AGAIN: it was not done, as another unit was quicker. HOST_FAILED: why is in the
 * fault. */
enum host_outcome database_ask(struct sql_text *request, const struct database_taker *taker,
                               struct host_fault *fault);
/* See struct host_store. */
int database_poll_fd(enum host_ears ears, int *ms);
bool database_read_messages(void);

/* -- for all of them --------------------------------------------------------------------------- */

/* The number of a key or a channel. Two with the same number are in each other's way, and no
 * worse. */
uint64_t database_number(struct slice name);

/* Begins a request. */
struct sql_text database_request(void);
/* Adds a whole statement. */
void database_say(struct sql_text *request, const char *statement);
/* Adds a literal of bytes, in MySQL. */
void database_add_bytes(struct sql_text *request, struct slice bytes);
