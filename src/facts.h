/* What could be found out about one Redis server, and about the Sentinels that watch it. A negative number or an empty text: it could not be told. */
#ifndef RLOCK_FACTS_H
#define RLOCK_FACTS_H

#include "rights.h"
#include "sentinel_vote.h"
#include "url.h"
#include <stdint.h>

#define UNTOLD (-1)

struct server_facts {
    /* Was it reached? All below is untold if not. */
    bool reached;
    bool denied;     /* it asked for another password, or user */
    char fault[256]; /* why not */
    int64_t connected_ns, ping_median_ns, ping_max_ns;

    /* What it is. */
    char software[24], version[24], mode[24]; /* "redis" or "valkey", "7.0.15", "standalone" */
    char run_id[48];
    int64_t uptime_s;

    /* Its clock: ms ahead of this host's; and by how much both went on while it was looked at. */
    int64_t ahead_ms; /* INT64_MIN: untold */
    int64_t clock_ns, here_ns;

    /* Memory and disk. */
    int64_t maxmemory;
    char policy[24];
    char appendonly[8], appendfsync[16];
    char save[128]; /* "none" if it is empty */
    bool aof_failed, snapshot_failed;

    int64_t script_ns;      /* the shortest script takes, with the way there and back */
    char script_fault[128]; /* why it does not run */

    int64_t replicas, min_replicas;
    int64_t timeout_s, clients, clients_max;

    /* What its user may not do; known only if MULTI is one of the things it may. */
    bool rights_known;
    bool lacks[RIGHTS_MAX]; /* as in rights[] */
    bool lacks_keys, lacks_channels;
};

struct sentinel_facts {
    size_t count;
    struct url_host hosts[URL_HOSTS_MAX];
    struct sentinel_word words[URL_HOSTS_MAX]; /* none is ASKED any more */
};

#endif
