/* Nodes of a quorum, each with a clock, a memory and one lock, and the way to them, with all that
 * can go wrong: answers that are slow, lost or late, nodes that stand still, are gone, or come back
 * with nothing. In the time of fake_loop.h's loop. */
#pragma once

#include "keepers.h"
#include "store/member.h"

#define SIM_NODES 5
#define SIM_BARS  64
#define SIM_OWNER 32

struct sim_link;
struct sim_message;

struct sim_node {
    struct loop *loop;
    struct trial *trial; /* of a store that asks what none may ask */
    char id[MEMBER_SERVER_SIZE];
    bool down;             /* refuses connections */
    struct moment still;   /* stands still until then */
    int64_t skew;          /* ns: its clock is ahead, or behind; fences are made of it */
    int64_t fastest;       /* ns each way, at least */
    int64_t slowest;       /* the same, at most, besides */
    unsigned loss;         /* of 1000 messages, so many are lost */
    bool mute;             /* it does what it is asked for, and its answers are lost */
    char owner[SIM_OWNER]; /* of the entry, "": none */
    char taken[SIM_OWNER]; /* the one whose entry was taken away last */
    struct moment deadline;
    uint64_t fence, entry_fence;
    struct moment
        since; /* it has forgotten nothing: its present life began, the first one long ago */
    struct moment first; /* it was asked, as far as it remembers; 0: not yet */
    char bars[SIM_BARS][SIM_OWNER];
    unsigned bar_count, lives;
    struct sim_link *links;
    struct sim_message *messages;
};

void sim_node_init(struct sim_node *node, struct loop *loop, struct trial *trial, const char *id);
void sim_node_free(struct sim_node *node);
/* Breaks the node's connections: what is on the way to it arrives all the same. */
void sim_node_cut(struct sim_node *node);
/* The node goes down, and its connections break. */
void sim_node_kill(struct sim_node *node);
/* The node is up again; forgetful: without its data. */
void sim_node_start(struct sim_node *node, bool forgetful);
/* The entry is taken away; the node knows of it. */
void sim_node_evict(struct sim_node *node);
/* The owner of the entry that is there and alive; NULL: none. */
const char *sim_node_holder(const struct sim_node *node);

/* A store with only that node. */
struct member sim_link(struct sim_node *node);
/* As by a process that is killed: nothing is said any more. */
void sim_silence(bool silence);

/* Numbers that are the same for each seed; also what the stores take for chance. */
void sim_seed(unsigned seed);
unsigned sim_below(unsigned limit);
