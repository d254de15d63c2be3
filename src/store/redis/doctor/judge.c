/* Start reading at judge_server(), which calls a function for each finding. To add one, add a call
 * there, and rows to tests/unit/test_judge.c. */
#include "store/redis/doctor/judge.h"

#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/decimal.h"
#include "base/duration.h"
#include "base/text.h"

#define AHEAD_MOST_MS    1000              /* of the server's clock, without a warning */
#define STEP_MOST_NS     (500 * NS_PER_MS) /* while it was looked at */
#define LOOKED_LEAST_NS  (50 * NS_PER_MS)  /* to see a clock advance */
#define MAJOR_LEAST      5                 /* the first number of the version */
#define MAJOR_WITH_ACL   6
#define SENTINELS_LEAST  3
#define CLIENTS_MOST     90    /* percent */
#define MEMORY_MOST      90    /* percent */
#define GRACE_DEFAULT_MS 30000 /* if no lease is known yet, as in lua/epoch.lua */
#define ASK_ADMIN        "ask with the URL of an administrator, or allow +info and +config|get"

/* -- what it is ------------------------------------------------------------------------------ */

/* Returns the first number of the version; 0: not known. */
static int64_t major_version(const struct server_facts *facts)
{
    const char *version = facts->figures.version;
    int64_t major = 0;

    decimal_take(&version, INT_MAX, &major);
    return major;
}

/* Tells whether the server is new enough, and no node of a Cluster where the URL means a server. */
static void judge_version(const struct server_facts *facts, const struct requirements *requirements,
                          struct diagnosis *diagnosis)
{
    const char *software = *facts->figures.software ? facts->figures.software : "redis";
    int64_t major = major_version(facts);

    if (!*facts->figures.version)
        diagnosis_add(diagnosis, "version", LEVEL_NOTE, "", "cannot tell");
    else
        diagnosis_add(diagnosis, "version", major < MAJOR_LEAST ? LEVEL_UNFIT : LEVEL_FINE,
                      major < MAJOR_LEAST ? "Redis 5.0 or later" : "", "%s %s", software,
                      facts->figures.version);
    if (strcmp(facts->mode, "cluster") == 0 && !requirements->url->kind->is_sharded)
        diagnosis_add(diagnosis, "mode", LEVEL_UNFIT, "cluster:// as its address",
                      "a node of a cluster, which has only some of the keys");
}

/* Returns the seconds in ns, or INT64_MAX for more than that. */
static int64_t ns_of(int64_t seconds)
{
    return seconds < INT64_MAX / NS_PER_SEC ? seconds * NS_PER_SEC : INT64_MAX;
}

/* Tells whether the server runs scripts, which all locks need. */
static void judge_scripts(const struct server_facts *facts, struct diagnosis *diagnosis)
{
    if (facts->script_ns < 0)
        diagnosis_add(diagnosis, "scripts", LEVEL_UNFIT,
                      "a server that runs Lua scripts, and a user who may (+eval +evalsha)",
                      "cannot be sent to it: %s", facts->script_fault);
    else
        diagnosis_add(diagnosis, "scripts", LEVEL_FINE, "", "run, the shortest in %s",
                      LATENCY_TEXT(facts->script_ns));
}

/* Tells of a restart less than a lease ago: locks from before may be forgotten while their holders
 * still work. */
static void judge_uptime(const struct server_facts *facts, const struct requirements *requirements,
                         struct diagnosis *diagnosis)
{
    const char *age = DURATION_TEXT(ns_of(facts->figures.uptime_s));
    bool young =
        facts->figures.uptime_s >= 0 && facts->figures.uptime_s < requirements->lease / NS_PER_SEC;
    bool kept = strcmp(facts->appendonly, "yes") == 0;

    if (facts->figures.uptime_s < 0) {
        diagnosis_add(diagnosis, "restart", LEVEL_NOTE, "", "cannot tell when");
        return;
    }
    if (young && !kept && !requirements->grace)
        diagnosis_add(
            diagnosis, "restart", LEVEL_WARNING, "wait for one lease before you take locks",
            "%s ago: locks from before may be forgotten while work under them continues", age);
    else
        diagnosis_add(diagnosis, "restart", LEVEL_FINE, "", "%s ago", age);
}

/* Tells of the server's clock, which leases go by: that it stands still, has jumped between two
 * looks (clock_ns passed there, here_ns here), or is not this host's, which only those who read
 * times notice. */
static void judge_clock(const struct server_facts *facts, struct diagnosis *diagnosis)
{
    int64_t ahead = facts->figures.ahead_ms;
    int64_t step = facts->clock_ns - facts->here_ns;

    if (ahead == INT64_MIN) {
        diagnosis_add(diagnosis, "clock", LEVEL_NOTE, "", "cannot tell");
        return;
    }
    if (facts->clock_ns == 0 && facts->here_ns > LOOKED_LEAST_NS)
        diagnosis_add(diagnosis, "clock", LEVEL_UNFIT, "mend the clock of the server",
                      "stands still: the lock of a holder that died would never be free");
    else if (llabs(step) > STEP_MOST_NS)
        diagnosis_add(diagnosis, "clock", LEVEL_WARNING,
                      "have the server's clock slewed, not stepped",
                      "jumped while it was looked at: leases end too early, or too late");
    else if (llabs(ahead) > AHEAD_MOST_MS)
        diagnosis_add(diagnosis, "clock", LEVEL_WARNING, "have both clocks set by NTP",
                      "%s %s this host's", MS_TEXT(llabs(ahead)),
                      ahead > 0 ? "ahead of" : "behind");
    else
        diagnosis_add(diagnosis, "clock", LEVEL_FINE, "", "%" PRId64 " ms %s this host's",
                      (int64_t)llabs(ahead), ahead >= 0 ? "ahead of" : "behind");
}

/* -- does it know what was locked before? ------------------------------------------------------ */

/* Returns for how many ms the server grants nothing new with --grace, as grace_left() of
 * lua/epoch.lua reckons it: from now on, or if *due, from the next such request on, which finds out
 * that the server may have forgotten locks. */
static int64_t grace_left(const struct server_facts *facts, const struct requirements *requirements,
                          bool *due)
{
    const struct grace_facts *grace = &facts->grace;
    int64_t lease = requirements->grace ? requirements->lease / NS_PER_MS : 0;
    int64_t longest = grace->longest_ms > lease ? grace->longest_ms : lease;
    bool same = grace->marked && strcmp(grace->run_id, facts->memory.run_id) == 0;
    bool other_copy = strcmp(grace->replication, grace->own_replication) != 0;

    *due = !same || (other_copy && grace->promoted);
    if (*due)
        return longest > 0 ? longest : GRACE_DEFAULT_MS;
    return grace->until_ms > grace->now_ms ? grace->until_ms - grace->now_ms : 0;
}

/* Tells for how long the server will refuse new locks with --grace, if that is used here. */
static void judge_grace(const struct server_facts *facts, const struct requirements *requirements,
                        struct diagnosis *diagnosis)
{
    const struct grace_facts *grace = &facts->grace;
    enum level level = requirements->grace ? LEVEL_WARNING : LEVEL_NOTE;
    bool due;

    if (!grace->marked && !requirements->grace)
        return;
    if (!grace->has_marker || !*facts->memory.run_id || grace->now_ms <= 0) {
        diagnosis_add(diagnosis, "grace", LEVEL_NOTE, ASK_ADMIN, "cannot tell");
        return;
    }
    int64_t left = grace_left(facts, requirements, &due);
    const char *time = DURATION_TEXT(ns_of((left + 999) / 1000)); /* whole seconds, rounded up */
    if (due && !grace->marked)
        diagnosis_add(diagnosis, "grace", level, "rlock init, if it has never held locks",
                      "may have lost locks: refuses new ones for %s after the first request with "
                      "grace on",
                      time);
    else if (due)
        diagnosis_add(diagnosis, "grace", level, "",
                      "restarted or promoted since the last request: refuses new locks for %s "
                      "after the next request with grace on",
                      time);
    else if (left > 0)
        diagnosis_add(diagnosis, "grace", level, "",
                      "may have lost locks: refuses new ones for another %s with grace on", time);
    else
        diagnosis_add(diagnosis, "grace", LEVEL_FINE, "", "over: it grants at once");
    if ((due && grace->marked) || (!due && left > 0))
        diagnosis_hint(diagnosis, HINT_WAIT_OR_MARK);
}

/* -- does it keep what it is told? ----------------------------------------------------------- */

struct advice {
    char text[200];
};

/* Prints twice the number, with its unit, as a setting to advise. Returns out. */
static const char *twice_as_much(int64_t number, const char *unit, char out[32])
{
    snprintf(out, 32, "%" PRId64 "%s", number < INT64_MAX / 2 ? 2 * number : number, unit);
    return out;
}

/* Returns the commands for an administrator, for now and for after the next restart. */
static struct advice set_to(const char *setting, const char *value)
{
    struct advice advice;

    snprintf(advice.text, sizeof advice.text,
             "CONFIG SET %s %s; CONFIG REWRITE, or the same in redis.conf, keeps it over a restart",
             setting, value);
    return advice;
}

/* Tells whether a server that is full throws locks away. */
static void judge_eviction(const struct server_facts *facts, struct diagnosis *diagnosis)
{
    bool evicts = *facts->policy && strcmp(facts->policy, "noeviction") != 0;

    if (facts->figures.maxmemory == 0)
        diagnosis_add(diagnosis, "eviction", LEVEL_FINE, "", "none: it has no limit of memory");
    else if (!*facts->policy)
        diagnosis_add(diagnosis, "eviction", LEVEL_WARNING, ASK_ADMIN,
                      "cannot tell whether it throws locks away when its memory is full");
    else if (evicts)
        diagnosis_add(diagnosis, "eviction", LEVEL_WARNING,
                      set_to("maxmemory-policy", "noeviction").text,
                      "%s may throw locks away when its memory is full", facts->policy);
    else
        diagnosis_add(diagnosis, "eviction", LEVEL_FINE, "", "noeviction");
}

/* Prints a size in MB of 2^20 bytes, which redis.conf calls mb, with one decimal. Returns out. */
static const char *print_bytes(int64_t bytes, char out[32])
{
    snprintf(out, 32, "%" PRId64 ".%" PRId64 " MB", bytes >> 20, (bytes & 0xfffff) * 10 >> 20);
    return out;
}

/* Tells how much memory the server has left. Redis refuses, or evicts, at the limit. */
static void judge_memory(const struct server_facts *facts, struct diagnosis *diagnosis)
{
    int64_t most = facts->figures.maxmemory, used = facts->figures.memory;

    if (most <= 0 || used < 0)
        return;
    /* Both in KB, so that nothing overflows. */
    int64_t percent = used / 1024 * 100 / (most / 1024 > 0 ? most / 1024 : 1);
    bool evicts = *facts->policy && strcmp(facts->policy, "noeviction") != 0;
    const char *now = print_bytes(used, (char[32]){""});
    const char *limit = print_bytes(most, (char[32]){""});
    if (percent >= MEMORY_MOST)
        diagnosis_add(diagnosis, "memory", LEVEL_WARNING,
                      set_to("maxmemory",
                             twice_as_much(most < 1 << 20 ? 1 : most >> 20, "mb", (char[32]){""}))
                          .text,
                      "%s of %s are used (%" PRId64 " %%): %s it %s", now, limit, percent,
                      percent < 100 ? "when it is full" : "it is full, and",
                      evicts ? "throws keys away" : "refuses new locks");
    else
        diagnosis_add(diagnosis, "memory", LEVEL_FINE, "", "%s of %s are used (%" PRId64 " %%)",
                      now, limit, percent);
}

/* Tells how much a server with an append-only file may lose. A local one ends with its host, and so
 * do those who hold its locks. */
static void judge_append_only(const struct server_facts *facts,
                              const struct requirements *requirements, struct diagnosis *diagnosis)
{
    const char *fsync = facts->appendfsync;

    if (facts->aof_failed)
        diagnosis_add(diagnosis, "persistence", LEVEL_UNFIT, "see its log: the disk may be full",
                      "it cannot write its append-only file");
    else if (requirements->url->kind->start_server)
        diagnosis_add(diagnosis, "persistence", LEVEL_FINE, "",
                      "appendonly, as far as this host lives");
    else if (strcmp(fsync, "no") == 0)
        diagnosis_add(diagnosis, "persistence", LEVEL_NOTE, set_to("appendfsync", "everysec").text,
                      "appendonly; a power failure may lose half a minute");
    else if (strcmp(facts->no_fsync, "yes") == 0)
        diagnosis_add(diagnosis, "persistence", LEVEL_NOTE,
                      set_to("no-appendfsync-on-rewrite", "no").text,
                      "appendonly; a power failure while its file is rewritten may lose half a "
                      "minute");
    else if (strcmp(fsync, "always") == 0)
        diagnosis_add(diagnosis, "persistence", LEVEL_FINE, "", "appendonly, appendfsync always");
    else
        diagnosis_add(diagnosis, "persistence", LEVEL_FINE, "",
                      "appendonly; a power failure may lose the last second");
}

/* Tells what a restart of the server forgets. With --grace it only costs time. */
static void judge_persistence(const struct server_facts *facts,
                              const struct requirements *requirements, struct diagnosis *diagnosis)
{
    enum level level = requirements->grace ? LEVEL_NOTE : LEVEL_WARNING;

    if (strcmp(facts->appendonly, "yes") == 0)
        judge_append_only(facts, requirements, diagnosis);
    else if (!*facts->appendonly)
        diagnosis_add(diagnosis, "persistence", level, ASK_ADMIN,
                      "cannot tell whether it keeps its data over a restart");
    else if (*facts->save && strcmp(facts->save, "none") != 0)
        diagnosis_add(diagnosis, "persistence", level, set_to("appendonly", "yes").text,
                      "a restart forgets what was locked since the last snapshot");
    else
        diagnosis_add(diagnosis, "persistence", level, set_to("appendonly", "yes").text, "%s",
                      *facts->save ? "none: a restart forgets all locks"
                                   : "no append-only file: a restart forgets locks");
    if (facts->snapshot_failed)
        diagnosis_add(diagnosis, "snapshot", LEVEL_WARNING, "see its log: the disk may be full",
                      "its last snapshot failed; it may refuse all writes");
}

/* Tells whether a restart could replay the scripts' writes. An append-only file that cannot be
 * replayed is a file that is not there. */
static void judge_replay(const struct server_facts *facts, const struct requirements *requirements,
                         struct diagnosis *diagnosis)
{
    if (strcmp(facts->appendonly, "yes") != 0 || major_version(facts) < MAJOR_WITH_ACL)
        return;
    if (facts->replay == REPLAY_DENIED)
        diagnosis_add(diagnosis, "replay", requirements->grace ? LEVEL_NOTE : LEVEL_WARNING,
                      "add +@all ~* &* to its line 'user default' in redis.conf or the aclfile "
                      "before the restart, and whoever may: ACL SETUSER default +@all ~* &*; if it "
                      "is off, it stays off",
                      "a restart forgets all locks: it replays its append-only file as the user "
                      "default, who lacks the rights");
    else if (facts->replay == REPLAY_ALLOWED)
        diagnosis_add(diagnosis, "replay", LEVEL_FINE, "",
                      "the user default may replay the append-only file");
    else
        diagnosis_add(diagnosis, "replay", LEVEL_NOTE,
                      "look at 'user default' in redis.conf or the aclfile: it needs +@all ~* &*; "
                      "the right +acl|dryrun (Redis 7.0) lets the doctor look",
                      "cannot tell whether the user default may replay the append-only file");
}

/* Judges the number of replicas: for writes that must reach some, for a failover, and for
 * --replicas. The first case that applies is reported. A negative number was not told. */
static void judge_replicas(const struct server_facts *facts,
                           const struct requirements *requirements, struct diagnosis *diagnosis)
{
    int64_t there = facts->figures.replicas, least = facts->min_replicas;

    if (least > 0 && there >= 0 && there < least) {
        diagnosis_add(
            diagnosis, "replicas", LEVEL_UNFIT, "more replicas, or a lower min-replicas-to-write",
            "%" PRId64 ", but min-replicas-to-write is %" PRId64 ": it refuses all writes", there,
            least);
    } else if (there < 0) {
        diagnosis_add(diagnosis, "replicas", requirements->replicas ? LEVEL_WARNING : LEVEL_NOTE,
                      requirements->replicas ? ASK_ADMIN : "", "cannot tell");
    } else if (there > 0 && requirements->quorum) {
        diagnosis_add(diagnosis, "replicas", LEVEL_WARNING,
                      "servers without replicas, or none that may be promoted",
                      "%" PRId64 ": one that was promoted would count for its master, but has "
                      "missed locks",
                      there);
    } else if (there == 0 && requirements->url->kind->fails_over) {
        diagnosis_add(diagnosis, "replicas", LEVEL_WARNING, "start a replica",
                      "none: no server can be promoted when the master fails");
    } else if (there < requirements->replicas) {
        diagnosis_add(diagnosis, "replicas", LEVEL_WARNING, "start more of them",
                      "%" PRId64 ", but a lock must wait for %u: none can be acquired", there,
                      requirements->replicas);
    } else if (there > 0 && requirements->replicas == 0) {
        diagnosis_add(diagnosis, "replicas", LEVEL_NOTE, "",
                      "%" PRId64 " connected; no lock waits for them", there);
        diagnosis_hint(diagnosis, HINT_REPLICAS);
    } else if (there > 0 && least == 0) {
        diagnosis_add(diagnosis, "replicas", LEVEL_NOTE, set_to("min-replicas-to-write", "1").text,
                      "%" PRId64 ", but min-replicas-to-write is 0: a master that is cut off from "
                      "them continues",
                      there);
    } else {
        diagnosis_add(diagnosis, "replicas", LEVEL_FINE, "", "%" PRId64, there);
    }
}

/* Tells that a replica takes writes. A holder that has a connection to a master leaves it when it
 * refuses to write as a replica: this one would not. */
static void judge_read_only(const struct server_facts *facts, struct diagnosis *diagnosis)
{
    if (strcmp(facts->read_only, "no") == 0)
        diagnosis_add(diagnosis, "replicas", LEVEL_WARNING, set_to("replica-read-only", "yes").text,
                      "demoted, it would still take writes: it renews a lock that the new master "
                      "grants to the next holder");
}

/* -- connections ----------------------------------------------------------------------------- */

/* Tells whether the server ends connections that are idle. A connection that waits for a message is
 * not idle to Redis; one of a holder is, between renewals. */
static void judge_timeout(const struct server_facts *facts, const struct requirements *requirements,
                          struct diagnosis *diagnosis)
{
    int64_t idle = requirements->lease / 3 / NS_PER_SEC;

    if (facts->timeout_s < 0) {
        diagnosis_add(diagnosis, "timeout", LEVEL_NOTE, "", "cannot tell");
    } else if (facts->timeout_s == 0) {
        diagnosis_add(diagnosis, "timeout", LEVEL_FINE, "", "idle connections stay");
    } else {
        bool short_one = facts->timeout_s <= idle;
        diagnosis_add(diagnosis, "timeout", short_one ? LEVEL_WARNING : LEVEL_FINE,
                      short_one ? set_to("timeout", "0").text : "",
                      "idle connections are closed after %s%s",
                      DURATION_TEXT(ns_of(facts->timeout_s)),
                      short_one ? ", so that each renewal needs a new one" : "");
    }
}

/* Tells whether the server has room for more clients. */
static void judge_clients(const struct server_facts *facts, struct diagnosis *diagnosis)
{
    int64_t most = facts->clients_max, now = facts->clients;

    if (most <= 0 || now < 0)
        diagnosis_add(diagnosis, "clients", LEVEL_NOTE, "", "cannot tell");
    else if (now * 100 / most >= CLIENTS_MOST)
        diagnosis_add(diagnosis, "clients", LEVEL_WARNING,
                      set_to("maxclients", twice_as_much(most, "", (char[32]){""})).text,
                      "%" PRId64 " of %" PRId64 "; each holder and each waiter needs one", now,
                      most);
    else
        diagnosis_add(diagnosis, "clients", LEVEL_FINE, "", "%" PRId64 " of %" PRId64, now, most);
}

/* -- all of it ------------------------------------------------------------------------------- */

/* Tells why the server could not be asked, and what helps: rights, a password, or the hint of the
 * failure. */
static void judge_reach(const struct server_facts *facts, const struct requirements *requirements,
                        struct diagnosis *diagnosis)
{
    const struct answer *failure = &facts->failure;
    bool denied = failure->cause == CAUSE_DENIED;
    bool lacks_rights = denied && rights_judge(failure->said) != RIGHTS_FINE;
    char cure[sizeof diagnosis->findings->advice];

    judge_rights_cure(facts, requirements, cure, sizeof cure);
    diagnosis_add(diagnosis, "reach", LEVEL_UNFIT, lacks_rights ? cure : "", "%s", failure->text);
    if (lacks_rights)
        return;
    if (failure->hint)
        diagnosis_hint(diagnosis, failure->hint);
    else if (denied)
        diagnosis_hint(diagnosis, HINT_PASSWORD_OR_USER);
}

void judge_server(const struct server_facts *facts, const struct requirements *requirements,
                  struct diagnosis *diagnosis)
{
    *diagnosis = (struct diagnosis){0};
    if (!facts->reached) {
        judge_reach(facts, requirements, diagnosis);
        return;
    }
    diagnosis_add_latency(diagnosis, &facts->figures, facts->connected_ns, requirements->lease);
    diagnosis_add_encryption(diagnosis, requirements->url, requirements->secret);
    diagnosis_add_expiry(diagnosis, "", &facts->expiry);
    judge_version(facts, requirements, diagnosis);
    judge_scripts(facts, diagnosis);
    judge_uptime(facts, requirements, diagnosis);
    judge_clock(facts, diagnosis);
    judge_grace(facts, requirements, diagnosis);
    judge_eviction(facts, diagnosis);
    judge_memory(facts, diagnosis);
    judge_persistence(facts, requirements, diagnosis);
    judge_replay(facts, requirements, diagnosis);
    judge_replicas(facts, requirements, diagnosis);
    judge_read_only(facts, diagnosis);
    judge_timeout(facts, requirements, diagnosis);
    judge_clients(facts, diagnosis);
    judge_rights(facts, requirements, diagnosis);
}

/* -- Sentinels -------------------------------------------------------------------------------- */

/* Words what the ith Sentinel has said. */
static void describe_sentinel(const struct sentinel_facts *facts, size_t i, char *out, size_t size)
{
    const struct sentinel_word *word = &facts->words[i];

    *out = '\0';
    text_append(out, size, "%s:%d ", facts->hosts[i].name, facts->hosts[i].port);
    if (word->said == SENTINEL_NAMES)
        text_append(out, size, "names %s:%d", word->host, word->port);
    else if (word->said == SENTINEL_UNKNOWN)
        text_append(out, size, "knows no such master");
    else
        text_append(out, size, "says nothing (%s)", word->why);
}

/* Judges how many Sentinels agree on the master. vote: the master that most of them name. One that
 * differs is described. */
static void judge_majority(const struct sentinel_facts *facts, const struct sentinel_vote *vote,
                           struct diagnosis *diagnosis)
{
    const struct sentinel_word *common = &facts->words[vote->speaker];
    size_t all = vote->all, i = 0;
    char odd[SAID_SIZE + 300];

    if (vote->votes < all) {
        /* The first one that does not agree with the majority. */
        while (i + 1 < facts->count &&
               (sentinel_names(&facts->words[i], common->host, common->port) ||
                !sentinel_counts(&facts->words[i])))
            i++;
        describe_sentinel(facts, i, odd, sizeof odd);
        diagnosis_add(diagnosis, "sentinels", LEVEL_WARNING,
                      "repair the others: a failover needs most of them",
                      "%zu of %zu name the master %s:%d; %s", vote->votes, all, common->host,
                      common->port, odd);
    } else {
        diagnosis_add(diagnosis, "sentinels", all < SENTINELS_LEAST ? LEVEL_NOTE : LEVEL_FINE,
                      all < SENTINELS_LEAST ? "at least 3 Sentinels, each on a host of its own"
                                            : "",
                      "%zu of %zu name%s the master %s:%d", all, all, all == 1 ? "s" : "",
                      common->host, common->port);
    }
}

void judge_sentinels(const struct sentinel_facts *facts, struct diagnosis *diagnosis)
{
    struct sentinel_vote vote = sentinel_vote(facts->words, facts->count);
    char one[160];

    if (vote.outcome == SENTINELS_NAME) {
        judge_majority(facts, &vote, diagnosis);
        return;
    }
    describe_sentinel(facts, vote.speaker, one, sizeof one);
    diagnosis_add(diagnosis, "sentinels", LEVEL_UNFIT,
                  "check the Sentinels, and the names that the URL has for them and the master",
                  "no majority of the %zu names a master; %s", vote.all, one);
}
