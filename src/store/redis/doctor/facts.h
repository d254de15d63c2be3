/* What a Redis server says of itself, and Sentinels of their master, for the doctor. */
#ifndef RLOCK_STORE_REDIS_FACTS_H
#define RLOCK_STORE_REDIS_FACTS_H

#include "base/clock.h"
#include "store/hint.h"
#include "store/redis/doctor/rights.h"
#include "store/redis/find/sentinel_vote.h"
#include "store/diagnosis.h"
#include <stdint.h>

struct answer;
struct redisReply;
struct store_address;

/* In what follows, a negative number or an empty text means that it could not be told. */

/* What --grace goes by: its marker in the store, and whether this is the server that wrote it
 * (lua/epoch.lua). */
struct grace_facts {
    bool told;   /* whether there is a marker */
    bool marked; /* there is one: */
    char run_id[48], replication[48];
    int64_t longest_ms,
        until_ms; /* the longest lease; until when nothing new is granted, by the server's clock */
    /* The server itself. */
    char own_replication[48];
    bool promoted;  /* it was a replica before */
    int64_t now_ms; /* its clock; UNTOLD */
};

struct server_facts {
    /* Was it reached? All below is untold if not. */
    bool reached;
    bool denied;     /* it asked for another password, or user */
    char said[192];  /* why not, in its own words; "": it did not say */
    char fault[256]; /* why not */
    enum hint hint;
    int64_t connected_ns, ping_median_ns, ping_max_ns;

    /* What it is. */
    char software[24], version[24], mode[24]; /* "redis" or "valkey", "7.0.15", "standalone" */
    char run_id[48];
    int64_t uptime_s;

    /* Its clock: ms ahead of this host's; and by how much both went on while it was looked at. */
    int64_t ahead_ms; /* INT64_MIN: untold */
    int64_t clock_ns, here_ns;

    /* Memory and disk. */
    int64_t maxmemory, memory; /* bytes; the second is what counts against the first */
    char policy[24];
    char appendonly[8], appendfsync[16];
    char save[128]; /* "none" if it is empty */
    bool aof_failed, snapshot_failed;

    int64_t script_ns;      /* the shortest script takes, with the way there and back */
    char script_fault[128]; /* why it does not run */

    struct grace_facts grace;
    /* As one of a quorum: for how long it has forgotten nothing, and has been one (lua/member.lua),
     * ms; and when that was told, by the clock here. */
    int64_t remembers_ms, serves_ms;
    struct moment told;

    int64_t replicas, min_replicas;
    int64_t timeout_s, clients, clients_max;

    /* What its user may not do; known only if MULTI is one of the things it may. */
    bool rights_known;
    bool lacks[RIGHTS_MAX]; /* as in rights[] */
    bool lacks_keys, lacks_channels;
};

/* What each of the Sentinels of a URL says. */
struct sentinel_facts {
    size_t count;
    struct {
        char name[256];
        int port;
    } hosts[SENTINELS_MAX];
    struct sentinel_word words[SENTINELS_MAX]; /* none is ASKED any more */
};

/* Asks the server of address->urls[0], for less than connect_timeout and a few seconds; changes
 * nothing there. False with a message in "fault" if the question could not even be asked here. */
bool redis_facts_ask(const struct store_address *address, struct server_facts *facts, char *fault,
                     size_t size);
/* The facts of a server that nobody has reached, for that reason. */
void redis_facts_none(struct server_facts *facts, const struct answer *failure);

/* Asks those of address->urls[0], for less than connect_timeout. False with a message in "fault" if
 * the question could not even be asked here. */
bool sentinel_facts_ask(const struct store_address *address, struct sentinel_facts *facts,
                        char *fault, size_t size);

/* Each reads one reply; a reply that is an error tells nothing. Pure. */
void redis_facts_hello(struct server_facts *facts, const struct redisReply *reply);
void redis_facts_info(struct server_facts *facts, const struct redisReply *reply);
/* What HMGET says of the marker of --grace: run_id, replication id, longest lease, until when; and
 * of that of a quorum's member: run_id, since when it remembers, when it was first asked. After
 * INFO and the clock, grace.now_ms. */
void redis_facts_grace(struct server_facts *facts, const struct redisReply *reply);
void redis_facts_member(struct server_facts *facts, const struct redisReply *reply);
/* The settings to CONFIG GET one by one, NULL-terminated, and one of them. */
extern const char *const redis_facts_settings[];
void redis_facts_setting(struct server_facts *facts, const char *name,
                         const struct redisReply *reply);

#endif
