/* Keepers over quorums of simulated nodes, who may hold one lock, and what none of them may ever
 * do. */
#ifndef QUORUM_SIMULATION_H
#define QUORUM_SIMULATION_H

#include "lock/keeper.h"

#include "sim_nodes.h"

#define CLIENTS 4

struct simulation;

/* One who wants the lock, and a store between its keeper and its quorum that sees that the contract
 * is kept. */
struct client {
    struct store audit;
    struct simulation *sim;
    struct store *quorum, *links[SIM_NODES];
    struct keeper *keeper; /* NULL: not there */
    char owner[SIM_OWNER];
    bool held, lost, leaving, over;
    bool forced;                /* the lock was taken away from it while it held it */
    bool passing;               /* or perhaps while its grant was on the way: it finds out later */
    bool troubled;              /* and told so */
    struct moment deadline;     /* while held */
    struct moment asked, ended; /* when it began to try; when it was over */
    int64_t waited;             /* for a lock that was free */
    enum cause cause;           /* over: as in the keeper_end */
    enum keeper_ending ending;
    bool automatic; /* takes turns */
    unsigned turns;
    struct loop_timer next;
    /* The operation that its store is at. */
    store_done *done;
    void *done_arg;
    struct moment until;
    bool calling;
};

struct simulation {
    struct loop *loop;
    struct sim_node nodes[SIM_NODES];
    size_t node_count;
    struct client clients[CLIENTS];
    unsigned client_count;
    int64_t lease;
    bool calm;           /* nothing fails, so that who waits gets it soon */
    bool killing;        /* of clients that take turns */
    struct moment freed; /* when it was last released */
    uint64_t fence;      /* the last one */
    unsigned grants;
    const char *fault;
};

/* The first fault is kept. */
void simulation_accuse(struct simulation *sim, const char *fault);

void simulation_open(struct simulation *sim, unsigned seed, size_t nodes, unsigned clients,
                     int64_t lease);
void simulation_close(struct simulation *sim);
/* Lets time pass. */
void simulation_turn(struct simulation *sim, int64_t ns);

bool simulation_is_busy(const struct simulation *sim);
/* The lock is taken away from whoever holds it, on all nodes. */
void simulation_force(struct simulation *sim);
/* On how many nodes the client has a live entry; NULL: anybody. */
size_t simulation_entries(const struct simulation *sim, const struct client *client);

/* Starts to acquire. */
void client_open(struct client *client, bool wait);
/* The process ends; or is killed, so that it says nothing any more. */
void client_close(struct client *client, bool killed);
/* Releases it. */
void client_release(struct client *client);
/* So many times, from "first" ns on: acquires, waiting or not, holds it for up to 6 s, gives it
 * back. */
void client_take_turns(struct client *client, unsigned turns, int64_t first);

#endif
