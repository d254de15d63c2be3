/* The two tables of locks, and a server that understands the statements that store/sql makes, each
 * word of them, and no other: PostgreSQL's and MySQL's. Every statement is executed as a whole. */
#ifndef SIM_DATABASE_H
#define SIM_DATABASE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "store/sql/wire.h"

#define SIM_KEYS   8
#define SIM_PLACES 64
/* Of an owner token, as far as it names a channel. */
#define SIM_CHANNEL 37
#define SIM_BELL    128

/* Texts are hexadecimal digits, as they come. */
struct sim_lock {
    char *name, *state;
    int64_t version;
};

struct sim_place {
    char *name, *owner, *scope, *mode, *who; /* name NULL: no such row */
    int64_t since, deadline;
};

struct sim_database {
    bool mysql;
    int64_t now; /* us, when the statement came */
    struct sim_lock locks[SIM_KEYS];
    size_t lock_count;
    struct sim_place places[SIM_PLACES];

    /* What a lock's row becomes. */
    void (*written)(void *arg, const char *name, const char *before, const char *after);
    /* A channel is notified. */
    void (*notify)(void *arg, const char *channel);
    /* MySQL's user-level lock of that name is to be taken, if it is free, or given back. Whether
     * the session has it, or had it. */
    bool (*bell)(void *arg, const char *name, bool take);
    void *arg;
};

/* Executes it, and writes the answer as a frame. False if it is not understood. channel: what the
 * session listens to from now on; unchanged if it does not say so. */
bool sim_database_execute(struct sim_database *database, const char *sql, char *channel,
                          struct wire_out *answer);
/* Whether it sleeps until a user-level lock is free, and how long at most. */
bool sim_database_sleeps(const struct sim_database *database, const char *sql, char name[SIM_BELL],
                         int64_t *ns);
/* Forgets all. */
void sim_database_free(struct sim_database *database);

#endif
