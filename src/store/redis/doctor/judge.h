/* Is this server fit to hold locks? Turns what is known about it into findings. Pure. */
#pragma once

#include "base/clock.h"
#include "store/redis/checkup.h"
#include "store/redis/find/sentinel_vote.h"
#include "store/store_kind.h"

/* -- the rights that rlock needs, which docs/data.md repeats ------------------------------ */

/* Why the right is needed; rights.c has the effect of its lack. */
enum right_use {
    RIGHT_ALL,
    RIGHT_SEND,
    RIGHT_LOCK,
    RIGHT_NEW,
    RIGHT_RIVAL,
    RIGHT_LEAVE,
    RIGHT_HAND_OVER,
    RIGHT_SHOW,
    RIGHT_QUEUE,
    RIGHT_WAKE,
    RIGHT_SURVEY,
    RIGHT_CHECK,
    RIGHT_DB,
    RIGHT_NAME,
    RIGHT_REPLICAS,
    RIGHT_MEMORY,
    RIGHT_CLUSTER
};

#define RIGHT_WORDS   5
#define RIGHT_KEY     "%k"
#define RIGHT_CHANNEL "%c"
/* A server that was set up as docs/redis.md says has no user who may do the former. */
#define ACL_KEEPS                                                                                  \
    "ACL SAVE, or CONFIG REWRITE without an aclfile, keeps it over a restart; where no user may "  \
    "do that: the same rights in the user's line of redis.conf, or of the aclfile, and a restart"

struct right {
    char name[16]; /* as in ACL SETUSER */
    char call[64]; /* a harmless call of it, words with one space between, RIGHT_WORDS at most */
    enum right_use use;
    bool looks; /* needed even to look at locks and latches only */
};

#define RIGHTS_MAX 32
/* In the order of the manual; the first one without a name ends the list. */
extern const struct right rights[RIGHTS_MAX];

/* The missing right, by an error reply to such a call. */
enum rights_lack {
    RIGHTS_FINE, /* another error, or none: the right is there */
    RIGHTS_LACK_COMMAND,
    RIGHTS_NO_COMMAND, /* the server has none of that name */
    RIGHTS_LACK_KEYS,
    RIGHTS_LACK_CHANNELS,
};
enum rights_lack rights_judge(const char *error);

/* -- the facts ------------------------------------------------------------ */

/* In all of these, a negative number or an empty text means that it could not be told. */

/* The marker of --grace in the store, and whether this is the server that wrote it
 * (lua/epoch.lua). */
struct grace_facts {
    bool has_marker;
    bool marked;
    char run_id[48], replication[48];
    int64_t longest_ms; /* the longest lease */
    int64_t until_ms;   /* nothing new is granted until then, by the server's clock */
    /* The server itself. */
    char own_replication[48];
    bool promoted;  /* it was a replica before */
    int64_t now_ms; /* its clock; UNTOLD */
};

struct server_facts {
    bool reached;          /* all below the failure is untold if not */
    struct answer failure; /* why it was not reached; DENIED: it wants another password, or user */
    int64_t connected_ns;
    struct tls_expiry expiry;

    struct server_figures figures; /* maxmemory 0: no limit */
    char mode[24];                 /* "standalone" */
    int64_t clock_ns, here_ns;     /* by how much its clock and ours advanced meanwhile */

    /* Memory and disk. */
    char policy[24];
    char appendonly[8], appendfsync[16];
    char no_fsync[8]; /* while the append-only file is rewritten: "yes" or "no" */
    char save[128];   /* "none" if it is empty */
    bool aof_failed, snapshot_failed;
    /* A restart replays what scripts wrote with the rights of the server's user "default"
     * (redis/redis#14541). */
    enum { REPLAY_UNTOLD, REPLAY_ALLOWED, REPLAY_DENIED } replay;

    int64_t script_ns;             /* the shortest script takes, with the round trip */
    char script_fault[FAULT_SIZE]; /* why it does not run */

    struct grace_facts grace;
    struct redis_memory memory;

    int64_t min_replicas;
    char read_only[8]; /* whether it refuses writes as a replica: "yes" or "no" */
    int64_t timeout_s, clients, clients_max;

    bool rights_known;        /* only if the user may use MULTI */
    bool lacks[RIGHTS_MAX];   /* as in rights[] */
    bool unknown[RIGHTS_MAX]; /* lacks it, and no right would help */
    bool lacks_keys, lacks_channels;
};

/* -- the judgement ---------------------------------------------------------------------------- */

/* The requirements of the user. */
struct requirements {
    const struct url *url;
    const char *prefix;
    int64_t lease;     /* ns */
    unsigned replicas; /* that must have a lock before it counts */
    bool grace;
    bool quorum; /* it is a member of a quorum */
    bool secret; /* a password is sent to it */
};

/* Judges all that was found out about a server. Adds a finding for each check that applies. */
void judge_server(const struct server_facts *facts, const struct requirements *requirements,
                  struct diagnosis *diagnosis);

/* Judges the rights that the user lacks, as a part of judge_server(). */
void judge_rights(const struct server_facts *facts, const struct requirements *requirements,
                  struct diagnosis *diagnosis);
/* Prints the command for an administrator that gives the user all that it lacks. */
void judge_rights_cure(const struct server_facts *facts, const struct requirements *requirements,
                       char *out, size_t size);

/* Are these Sentinels enough to rely on? */
void judge_sentinels(const struct sentinel_facts *facts, struct diagnosis *diagnosis);
