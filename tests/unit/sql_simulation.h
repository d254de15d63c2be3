/* A database server and the drivers that talk to it, behind a bad network, in the time of loops
 * without a clock: one loop for each process of rlock, and one for everything else. The stores'
 * own end (store/sql/driver.c) is the real one; what is below it, from the socket pair on, is
 * simulated. Statements and answers are lost, late, or cut off, so that one is executed after the
 * store has asked again over another connection; the server stands still, and is restarted; its
 * clock runs up to 1 % fast or slow, and is set back. Processes are stopped, also between two
 * statements. */
#ifndef SQL_SIMULATION_H
#define SQL_SIMULATION_H

#include "fake_loop.h"
#include "sim_database.h"

#define WORLD_PROCESSES 6

struct world_connection;
struct world_bell;
struct statement;

struct world {
    unsigned seed;
    unsigned failing;  /* of 16 statements, so many fare badly */
    unsigned stopping; /* of 1000 statements, before so many the process that sends it stops */
    struct moment now;

    struct loop *outside;
    struct loop *processes[WORLD_PROCESSES];
    struct moment stopped[WORLD_PROCESSES]; /* until then */
    size_t process_count;

    struct sim_database database;
    int64_t clock;       /* us, at the beginning; less each time that it is set back */
    int64_t rate;        /* of 10,000: so much faster than it should */
    struct moment still; /* the server executes nothing until then */
    struct moment down;  /* it is started again by then */
    unsigned lives;      /* of the server */
    struct world_connection **connections;
    size_t connection_count;
    struct world_connection *writing; /* whose statement is executed */
    size_t under_way;                 /* statements */
    struct statement *all;            /* those that wait, too */

    bool bells_refused; /* the server has no user-level locks */
    struct world_bell *bells;
    size_t bell_count;
    unsigned woken; /* so many that slept by one */

    unsigned statements, late; /* in all; executed when nobody waited for them any more */
    const char *fault;
    char log[6000]; /* what happened, and when */
};

/* To be zeroed before. One at a time: the seed is what the stores take for chance, too. */
void world_begin(struct world *world, unsigned seed, bool mysql);
void world_end(struct world *world);

unsigned world_chance(struct world *world, unsigned limit);
/* Of up to so many ms, mostly few. */
int64_t world_some_time(struct world *world, unsigned most_ms);
/* The first fault is kept. */
void world_accuse(struct world *world, const char *fault);
__attribute__((format(printf, 2, 3))) void world_log(struct world *world, const char *format, ...);

/* The loop of one more process. */
struct loop *world_process(struct world *world);
/* Which one; process_count: none. */
size_t world_process_of(const struct world *world, const struct loop *loop);
/* Nothing happens in it for so long; then all that was due happens at once. */
void world_stop_process(struct world *world, const struct loop *loop, int64_t ns);
/* The next thing that happens, no later than "until"; false if nothing does. */
bool world_turn(struct world *world, struct moment until);

/* By the server's clock, in us; and when that clock says so, if it is not set back. */
int64_t world_clock(const struct world *world);
struct moment world_moment(const struct world *world, int64_t us);
void world_set_back(struct world *world, int64_t us);
/* All connections end, and there is none for so long. */
void world_restart_server(struct world *world, int64_t ns);
/* Which process has sent the statement that is executed. */
const struct loop *world_writer(const struct world *world);

#endif
