/* A program that moves the records of a store, a driver: docs/drivers.md has its protocol. It is
 * asked one thing at a time, and this process waits for the answer as long as that takes. */
#pragma once

#include "host/record.h"
#include "rules/wire_error.h"

/* A version, or the name of a driver, with its NUL. */
#define DRIVER_WORD_SIZE 201
/* The version of a key that is not there. */
#define DRIVER_NO_KEY "-"

enum driver_verdict {
    DRIVER_NONE,     /* get: there is no such key */
    DRIVER_VALUE,    /* get */
    DRIVER_DONE,     /* put */
    DRIVER_CONFLICT, /* put: not done, the key has another version */
    DRIVER_FAILED,   /* not done, and will not be done */
    DRIVER_UNKNOWN,  /* a put may be done, now or later; the driver may have ended */
};

struct driver_answer {
    enum driver_verdict verdict;
    char version[DRIVER_WORD_SIZE]; /* of DRIVER_VALUE and DRIVER_DONE; "-" with DRIVER_NONE */
    struct slice text;              /* of DRIVER_VALUE; the caller frees it by slice_free() */
    int64_t date_ms;                /* the store's time, since 1970; 0: it tells none */
    char said[SAID_SIZE];           /* why not, in its own words */
};

struct driver;

/* Starts the program rlock-store-NAME with its argument. NULL with *why if it cannot serve. */
struct driver *driver_start(const char *name, const char *rest, struct host_error *why);
/* Whether its answers tell the store's time. */
bool driver_has_dates(const struct driver *driver);
/* For how many ms a waiter need not ask again; 0: it does not say. */
int driver_poll_ms(const struct driver *driver);
/* Both free the driver. The first one ends its input, at which it ends by itself; the second one
 * kills it, whatever it does. */
void driver_end(struct driver *driver);
void driver_kill(struct driver *driver);

/* Asks, and does not wait. */
void driver_ask_get(struct driver *driver, struct slice key);
/* "version": the put is done if the key has that one. */
void driver_ask_put(struct driver *driver, struct slice key, const char *version, const char *text);
/* Asks for such a put, of which half of the text is missing; no other question can follow. */
void driver_break_off(struct driver *driver, struct slice key, const char *version,
                      const char *text);
/* Waits for the answer to the latest question. A driver that has ended, or answers something else,
 * has answered DRIVER_UNKNOWN. */
void driver_hear(struct driver *driver, struct driver_answer *answer);

/* Calls "each" for every key that begins so. False with the answer's verdict and words. */
bool driver_list(struct driver *driver, struct slice prefix,
                 void (*each)(void *arg, struct slice key), void *arg,
                 struct driver_answer *answer);
