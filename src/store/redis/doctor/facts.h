/* The facts that a Redis server tells about itself, and Sentinels about their master, for the
 * doctor. */
#ifndef RLOCK_STORE_REDIS_FACTS_H
#define RLOCK_STORE_REDIS_FACTS_H

#include "base/clock.h"
#include "store/diagnosis.h"
#include "store/hint.h"
#include "store/redis/doctor/rights.h"
#include "store/redis/find/sentinel_vote.h"

struct answer;
struct redisReply;
struct store_address;

/* In all of these, a negative number or an empty text means that it could not be told. */

/* The marker of --grace in the store, and whether this is the server that wrote it
 * (lua/epoch.lua). */
struct grace_facts {
    bool told; /* whether there is a marker */
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
    bool reached;    /* all below is untold if not */
    bool denied;     /* it wants another password, or user */
    char said[192];  /* why it was not reached, in its own words; "": it did not say */
    char fault[256]; /* why it was not reached */
    enum hint hint;
    int64_t connected_ns;

    struct server_figures figures; /* maxmemory 0: no limit */
    char mode[24];                 /* "standalone" */
    char run_id[48];
    int64_t clock_ns, here_ns; /* by how much its clock and ours advanced meanwhile */

    /* Memory and disk. */
    char policy[24];
    char appendonly[8], appendfsync[16];
    char save[128]; /* "none" if it is empty */
    bool aof_failed, snapshot_failed;

    int64_t script_ns;      /* the shortest script takes, with the round trip */
    char script_fault[128]; /* why it does not run */

    struct grace_facts grace;
    /* As a member of a quorum: for how long it has forgotten nothing, and has been one
     * (lua/member.lua), ms; and when that was told, by the clock here. */
    int64_t remembers_ms, serves_ms;
    struct moment told;

    int64_t min_replicas;
    int64_t timeout_s, clients, clients_max;

    bool rights_known;      /* only if the user may use MULTI */
    bool lacks[RIGHTS_MAX]; /* as in rights[] */
    bool lacks_keys, lacks_channels;
};

/* The words of each of the Sentinels of a URL. */
struct sentinel_facts {
    size_t count;
    struct {
        char name[256];
        int port;
    } hosts[SENTINELS_MAX];
    struct sentinel_word words[SENTINELS_MAX]; /* none is ASKED */
};

/* Asks the server of address->urls[0], for less than connect_timeout and a few seconds; changes
 * nothing there. False with a message in "fault" if the question could not even be asked here. */
bool redis_facts_ask(const struct store_address *address, struct server_facts *facts, char *fault,
                     size_t size);
/* Fills in the facts of a server that could not be reached, for that reason. */
void redis_facts_none(struct server_facts *facts, const struct answer *failure);

/* Asks the Sentinels of address->urls[0], for less than connect_timeout. False with a message in
 * "fault" if the question could not even be asked here. */
bool sentinel_facts_ask(const struct store_address *address, struct sentinel_facts *facts,
                        char *fault, size_t size);

/* Each reads one reply; a reply that is an error tells nothing. Pure. */
void redis_facts_hello(struct server_facts *facts, const struct redisReply *reply);
void redis_facts_info(struct server_facts *facts, const struct redisReply *reply);
/* The settings to CONFIG GET one by one, NULL-terminated; reads one of them. */
extern const char *const redis_facts_settings[];
void redis_facts_setting(struct server_facts *facts, const char *name,
                         const struct redisReply *reply);

#endif
