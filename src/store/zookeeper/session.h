/* A session with a ZooKeeper ensemble, and the connection that it is on.
 *
 * A session begins with the first batch, and lives at the servers apart from connections: it
 * ends when it is closed, or when the leader has not heard of it for its timeout. No pings are
 * sent: their answers prove nothing, since every server answers them by itself. A batch goes out
 * in one write; its replies come back together. One batch at a time. A batch that was not
 * answered in time costs the connection, not the session. */
#pragma once

#include "net/resolve.h"
#include "store/breaks.h"
#include "store/store.h"
#include "store/zookeeper/message.h"

enum zk_outcome {
    ZK_ANSWERED,
    ZK_EXPIRED, /* the session has ended, and nothing was sent; the next batch begins another one */
    ZK_FAILED,
};

struct zk_session_events {
    /* ZK_ANSWERED: the replies of the batch, borrowed. ZK_FAILED: why, in "failure", an UNKNOWN
     * answer. The next batch may be started from here. */
    void (*done)(void *arg, enum zk_outcome outcome, const struct zk_reply *replies,
                 const struct answer *failure);
    /* A watched node has changed, or the connection broke while nothing was under way;
     * where connections break as soon as they are there, after a pause. */
    void (*poked)(void *arg);
};

enum zk_phase {
    ZK_PHASE_DOWN,
    ZK_PHASE_NEXT,      /* about to look for the next server, or to try its next address */
    ZK_PHASE_SEARCHING, /* for its address */
    ZK_PHASE_CONNECTING,
    ZK_PHASE_LISTENING, /* saying nothing */
    ZK_PHASE_OPENING,   /* the session is begun, or opened again */
    ZK_PHASE_UP
};

/* Which connection a batch goes out on. */
enum zk_way {
    ZK_ANY_CONNECTION,   /* the one that is up, or a new one */
    ZK_NEW_CONNECTION,   /* to the next server, on which the session is opened again; where there is
                        * none to be had, the one before stays, and the batch fails */
    ZK_NEW_BY_ALL_MEANS, /* the same for what must not end with the session: where all servers are
                          * full, it takes the place of the one before */
};

/* A connection. */
struct zk_link {
    struct zk_session *session;
    struct stream *stream;
    struct strbuf in;     /* the beginning of a frame */
    struct moment opened; /* when the request went out that opens the session on it */
    unsigned generation;  /* how often it has ended: a frame that is being read may end it */
};

struct zk_session {
    struct loop *loop;
    const struct url *url;
    struct store_address address;
    char name[300]; /* the URL without its password */
    const char *password;
    const struct zk_session_events *events;
    void *arg;

    struct zk_identity identity; /* id 0: there is none */
    int64_t wish, timeout;       /* ns: asked for, granted */
    int64_t zxid;                /* the latest that was seen: no server may show an older state */

    /* The way to a server. */
    enum zk_phase phase;
    struct zk_link links[2];
    struct zk_link *link;   /* the connection, or the one that is being made */
    struct zk_link *former; /* the one before, which works, until the session is opened on the other
                             * one; NULL: none */
    size_t former_at;       /* its server */
    struct tls *tls;        /* NULL: plain */
    size_t at;              /* the server, of those in the URL */
    struct resolver *resolvers; /* one for each server: its addresses as they were known last */
    unsigned turn;              /* of the addresses that a name has, another one each time */
    unsigned endpoint;          /* of those, the one that is tried */
    bool listens;               /* it is tried once more, and listened to first */
    int untried;                /* addresses of this server's name, on this way */
    struct loop_timer timer;    /* armed on the way, and while a batch is under way */
    struct moment until;        /* to be there */
    struct moment leave;        /* for the next server */
    struct moment give_up;      /* this address */
    size_t ways;                /* servers that have not been tried yet */
    bool insists;               /* they are tried again where all are full */
    struct answer failure;      /* of the latest one */

    /* The connection. */
    /* When the session was begun or opened on it: before that was sent. The timeout counts from it,
     * once something that was written on this connection is answered. */
    struct moment opened;
    struct breaks breaks;

    /* The batch. */
    struct zk_batch batch;    /* that is being put together */
    bool busy, sent, noticed; /* noticed: a watch has told something meanwhile */
    bool writes;              /* the batch that was sent */
    int32_t first;            /* xid of what was sent */
    struct moment answer_by;
    struct zk_replies {
        struct zk_reply *all; /* each with its frame in a block of its own */
        size_t wanted, got;
    } replies;
};

/* NULL with a message in "fault" where the address cannot be one. */
struct zk_session *zk_session_new(struct loop *loop, const struct store_address *address,
                                  const struct zk_session_events *events, void *arg, char *fault,
                                  size_t size);
/* Leaves the session to its timeout. */
void zk_session_free(struct zk_session *session);

/* A waiter's session has to live from one of its heartbeats (lock/keeper.h) to the next, 2.75 s at
 * most. */
#define ZK_TIMEOUT_LEAST (4 * NS_PER_SEC)

/* The timeout to ask for when the session begins or is opened again, ns; no less than
 * ZK_TIMEOUT_LEAST is asked for. */
void zk_session_wish(struct zk_session *session, int64_t timeout);

/* Empties the batch that is being put together. */
void zk_session_drop_batch(struct zk_session *session);
/* Sends the batch, connecting first if need be. "done" comes once, at "until" at the latest, never
 * before this returned. */
void zk_session_send(struct zk_session *session, enum zk_way way, struct moment until);
/* Sends the batch if the connection is up, and waits for nothing; false: nothing was sent. Ends
 * the batch under way in any case; "done" is not called for it. */
bool zk_session_send_nowait(struct zk_session *session);

/* Continues with another session, or with none (id 0); ends the connection. */
void zk_session_take(struct zk_session *session, const struct zk_identity *identity);

/* Puts words in front of the text of an answer that tell whose it is: the URL, and the user if that
 * one lacks a right. */
void zk_session_sign(const struct zk_session *session, struct answer *answer);
