/* The doctor's findings about a lock store, each with advice. The kind of store has the function
 * that examines it (store_kind.h). */
#pragma once

#include "base/clock.h"
#include "store/store.h"

enum level {
    LEVEL_FINE,
    LEVEL_NOTE,    /* good to know; nothing has to be done */
    LEVEL_WARNING, /* locks work, but may be lost, or not all of rlock works */
    LEVEL_UNFIT,
};

struct finding {
    const char *check; /* a word that stays: "eviction" */
    enum level level;
    char text[FAULT_SIZE];
    char advice[760]; /* "": there is none, or the hint says it */
    enum hint hint;
};

#define DIAGNOSIS_MAX 48

struct diagnosis {
    struct finding findings[DIAGNOSIS_MAX];
    size_t count;
    enum level worst;
};

/* Measurements of a server. A negative number or an empty text: not known. */
#define UNTOLD (-1)

struct server_figures {
    char software[24], version[24]; /* "redis" or "valkey", "7.0.15" */
    int64_t ping_median_ns, ping_max_ns;
    int64_t uptime_s;
    int64_t ahead_ms; /* of its clock, ahead of this host's; INT64_MIN: not known */
    int64_t replicas;
    int64_t memory, maxmemory; /* bytes; the first is what counts against the second */
};

extern const struct server_figures untold_figures;

/* One server that was looked at. */
struct checked_server {
    char name[URL_TEXT_SIZE]; /* its URL, without password */
    bool reached;
    enum cause cause;     /* why not */
    char said[SAID_SIZE]; /* the same in its own words; "": none */
    struct server_figures figures;
    struct diagnosis diagnosis;
};

/* The subject of an examination. */
struct checkup_plan {
    const struct store_address *address;
    int64_t lease; /* ns: that must be possible */
};

struct checkup {
    struct checked_server *servers;
    size_t count;
    struct diagnosis whole; /* of several: about all of them together */
};

/* Adds a finding; advice: "": there is none. */
void diagnosis_add(struct diagnosis *diagnosis, const char *check, enum level level,
                   const char *advice, const char *fmt, ...) __attribute__((format(printf, 5, 6)));
/* Gives the finding that was added last a hint. */
void diagnosis_hint(struct diagnosis *diagnosis, enum hint hint);

/* Adds how long an answer takes, which the figures tell, and to connect (ns, or UNTOLD), with a
 * warning if that is much for the lease (ns). */
void diagnosis_add_latency(struct diagnosis *diagnosis, const struct server_figures *figures,
                           int64_t connected_ns, int64_t lease);
/* Adds whether others can read what passes on the way to a server, or even a password. */
void diagnosis_add_encryption(struct diagnosis *diagnosis, const struct url *url, bool secret);

/* Adds when the first of the certificates ends that the connection relies on, if it is over TLS;
 * with a warning if that is soon. where: words in front of what is said, "" or "a Sentinel: ". */
void diagnosis_add_expiry(struct diagnosis *diagnosis, const char *where,
                          const struct tls_expiry *expiry);

/* Prints a short duration as "0.12 ms". Returns out. */
const char *diagnosis_print_ms(int64_t ns, char out[32]);
#define LATENCY_TEXT(ns) diagnosis_print_ms(ns, (char[32]){""})

/* Sorts the durations of "count" pings, ns, of which there is at least one; sets *median and
 * *longest. */
void diagnosis_sort_pings(int64_t *pings, size_t count, int64_t *median, int64_t *longest);

/* "fine", "note", "warning", "unfit" */
const char *level_name(enum level level);

/* Adds a server; nothing is known of it yet. Valid until the next one is added. */
struct checked_server *checkup_add(struct checkup *checkup, const struct url *url);
void checkup_free(struct checkup *checkup);
