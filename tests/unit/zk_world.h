/* A ZooKeeper ensemble behind a bad network, on simulated time: what the ZooKeeper store says goes
 * byte by byte to servers that decode and answer it, over connections that take the place of
 * net/stream.c and are late, cut, or silent, as chance has it.
 *
 * The servers among each other: a leader decides on all that is written, if a majority is in
 * contact with it, and counts when sessions end; a new leader counts all of them anew. A follower
 * answers reads by itself, from what it has heard of so far, and passes everything else on. One
 * that is cut off keeps answering reads until it notices; a leader that is cut off also opens
 * sessions again. Servers are stopped, and killed. */
#pragma once

#include "fake_loop.h"
#include "keepers.h"
#include "store/zookeeper/message.h"

#define ZK_SERVERS 3
#define ZK_PORT    1 /* of the first server; the others follow */

struct zk_world;

/* -- connections ------------------------------------------------------------------------------- */

enum zk_chunk_kind { CHUNK_OPEN, CHUNK_BYTES, CHUNK_END };

/* Chunks on their way in one direction, in order. */
struct zk_lane {
    struct zk_chunk *first;
    struct loop *loop;       /* of whom it goes to */
    struct loop_timer timer; /* for the first one */
    struct moment latest;    /* due of the last one */
    bool closed;             /* an END was put into it */
};

struct zk_watch {
    struct zk_watch *next;
    bool children;
    char path[];
};

struct zk_conn {
    struct zk_conn *next;
    struct zk_world *world;
    struct stream *stream; /* NULL: the client has left it */
    struct zk_lane up, down;
    bool silent; /* nothing gets through any more, and neither end is told */

    /* The server's side. */
    int server;
    bool open;
    struct zk_session_row *row; /* NULL: no session is opened on it yet */
    struct strbuf in;
    struct zk_watch *watches;

    /* Waits for the leader: a request as it came, or the first words. */
    enum { CONN_FREE, CONN_FORWARDED, CONN_DECIDED } pending;
    struct strbuf request;
    struct strbuf reply; /* when it is decided */
    int64_t decided;     /* its zxid: the server has to have that before it replies */
    struct zk_session_row *opens;
    bool closes;
    struct loop_timer timer;
};

/* -- the ensemble ------------------------------------------------------------------------------ */

struct zk_session_row {
    struct zk_session_row *next;
    struct zk_identity identity;
    int64_t timeout;        /* ns */
    struct moment expires;  /* by the leader's count */
    int64_t born, dead;     /* zxids; dead 0: it lives */
    struct zk_conn *conn;   /* the latest that it was opened on; NULL: that has gone */
    struct loop_timer hear; /* a follower has heard of it, and will tell the leader */
    int heard_by;
    struct zk_world *world;
};

struct zk_node {
    char *path, *data;
    size_t parent;               /* so much of the path is the parent's */
    int64_t czxid, mzxid, dzxid; /* dzxid 0: it is there */
    int64_t session;             /* 0: it is a container */
    int32_t creations;           /* of children */
};

struct zk_server {
    struct zk_world *world;
    int number;
    enum { SERVER_UP, SERVER_CUT, SERVER_AWAY } state;
    struct moment frozen_until;
    int64_t applied;        /* zxid */
    struct loop_timer next; /* of what has been done to it */
    struct loop_timer catch_up;
};

enum zk_end_of_node { NODE_GIVEN_BACK, NODE_EXPIRED, NODE_TAKEN_AWAY };

/* The judge hears of the nodes of sessions, when that is decided. */
struct zk_judge {
    void (*made)(void *arg, const char *path);
    void (*gone)(void *arg, const char *path, enum zk_end_of_node how);
};

struct zk_world {
    struct loop *loop; /* the servers' and the network's */
    unsigned seed;
    unsigned failing; /* of 100 chunks, so many fare badly */
    bool deadly;      /* processes die when they have said something, which is late */
    bool calm;        /* nothing fails any more */
    bool ended;       /* nothing arrives any more */
    const struct zk_judge *judge;
    void *judge_arg;

    struct zk_server servers[ZK_SERVERS];
    int server_count;
    int leader; /* -1: none */
    int old;    /* a leader that was cut off, and does not know; -1: none */
    int64_t zxid, epoch;
    int64_t tick;   /* ns */
    unsigned speed; /* the leaders' clocks run so many thousandths fast */
    struct loop_timer trouble, election, expiry, sweep;
    struct zk_session_row *rows;
    int64_t sessions;
    struct zk_node **nodes;
    size_t node_count, node_room;
    struct zk_conn *conns;

    /* Sessions that live, and that an old leader has taken for ended: they began after it was cut
     * off. A store that hears so leaves the session to its timeout. */
    unsigned denied;

    /* So that a world without faults is noticed. */
    unsigned elections, expired, reopened_at_old, stale_reads, moved;

    const struct loop *dying; /* the process that dies at once: nothing else of it arrives */

    struct trial trial;
};

/* Takes the place of the system's chance (ld --wrap=getrandom), so that a seed is a life. */
void zk_world_begin(struct zk_world *world, unsigned seed, const struct zk_judge *judge, void *arg);
/* Nothing fails from now on, and each fault recovers. */
void zk_world_calm(struct zk_world *world);
void zk_world_end(struct zk_world *world);

/* ns, mostly short; ns, as likely long as short. */
int64_t zk_some_time(struct zk_world *world, unsigned most_ms);
int64_t zk_any_time(struct zk_world *world, unsigned most_ms);
/* How many nodes sessions have, of those whose path has "part" in it. */
size_t zk_count_nodes(const struct zk_world *world, const char *part);

/* A process dies: its connections end, or seem to be there still. */
void zk_network_kill(struct zk_world *world, const struct loop *loop);
