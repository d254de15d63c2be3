/* Words for what others measured: it reads its arguments and the clock of this host, and changes
 * nothing but "out". To add a hint, edit enum hint (store/store.h) and the table here. */
#include "cli/describe.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/duration.h"
#include "base/text.h"
#include "lock/owner.h"

char *describe_utc(int64_t ms, char out[DESCRIBE_TIME_SIZE])
{
    time_t seconds = (time_t)(ms / 1000);
    struct tm tm;
    char day[24];

    if (!gmtime_r(&seconds, &tm) || !strftime(day, sizeof day, "%FT%T", &tm))
        strcpy(day, "?");
    snprintf(out, DESCRIBE_TIME_SIZE, "%s.%03dZ", day, (int)(ms % 1000));
    return out;
}

#define DATE_LENGTH (sizeof "2026-11-20 " - 1)

char *describe_local(int64_t ms, char out[DESCRIBE_TIME_SIZE])
{
    time_t seconds = (time_t)(ms / 1000);
    struct tm tm;

    if (!localtime_r(&seconds, &tm) || !strftime(out, DESCRIBE_TIME_SIZE, "%F %T", &tm))
        strcpy(out, "?");
    return out;
}

char *describe_local_time(int64_t ms, char out[DESCRIBE_TIME_SIZE])
{
    char whole[DESCRIBE_TIME_SIZE];
    const char *space = strchr(describe_local(ms, whole), ' ');

    return strcpy(out, space ? space + 1 : whole);
}

char *describe_daytime(int64_t now_ms, int64_t at_ms, enum describe_precision precision,
                       char out[DESCRIBE_TIME_SIZE])
{
    char now[DESCRIBE_TIME_SIZE], at[DESCRIBE_TIME_SIZE];
    bool known = strlen(describe_local(now_ms, now)) > DATE_LENGTH;

    /* Half a minute later, the minute that is nearest has begun. */
    describe_local(at_ms + (precision == DESCRIBE_SECOND ? 0 : 30 * 1000), at);
    if (!known || strlen(at) < DATE_LENGTH)
        return strcpy(out, "?");
    if (precision == DESCRIBE_MINUTE)
        *strrchr(at, ':') = '\0';
    return strcpy(out, at + (strncmp(now, at, DATE_LENGTH) == 0 ? DATE_LENGTH : 0));
}

char *describe_lease_end(const struct lock_party *holder, enum describe_precision precision,
                         char out[DESCRIBE_TIME_SIZE])
{
    int64_t now, at;

    if (__builtin_add_overflow(holder->since_ms, holder->age_ms, &now) ||
        __builtin_add_overflow(now, holder->left_ms, &at))
        return strcpy(out, "?");
    return describe_daytime(now, at, precision, out);
}

char *describe_signal(int signo, char out[16])
{
    const char *name = signo > 0 && signo < SIGRTMIN ? sigabbrev_np(signo) : NULL;

    if (name)
        snprintf(out, 16, "%s", name);
    else
        snprintf(out, 16, "%d", signo);
    return out;
}

char *describe_party(const struct identity *who, char *out, size_t size)
{
    char pid[32] = "";

    if (who->pid)
        snprintf(pid, sizeof pid, " pid %ld", who->pid);
    snprintf(out, size, "%s%s%s%s%s%s%s", who->user[0] || who->host[0] ? who->user : "someone",
             who->host[0] ? "@" : "", who->host, pid, who->command[0] ? " (" : "", who->command,
             who->command[0] ? ")" : "");
    return out;
}

/* The party of that owner; NULL: it is none of them. */
static const struct lock_party *party_with_owner(const struct lock_party *parties, size_t count,
                                                 const char *owner)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp(parties[i].owner, owner) == 0)
            return &parties[i];
    return NULL;
}

const struct lock_party *lock_holder_of(const struct lock_view *lock, const char *owner)
{
    return party_with_owner(lock->holders, lock->holder_count, owner);
}

const struct lock_party *lock_waiter_of(const struct lock_view *lock, const char *owner)
{
    return party_with_owner(lock->waiters, lock->waiter_count, owner);
}

bool holder_is_nested(const struct lock_view *lock, const struct lock_party *holder)
{
    for (size_t i = 0; strchr(holder->owner, '.') && i < lock->holder_count; i++)
        if (owner_nests_in(holder->owner, lock->holders[i].owner))
            return true;
    return false;
}

size_t holders_count(const struct lock_view *lock, const struct lock_party **last)
{
    size_t count = 0;

    *last = NULL;
    for (size_t i = 0; i < lock->holder_count; i++) {
        if (holder_is_nested(lock, &lock->holders[i]))
            continue;
        *last = &lock->holders[i];
        count++;
    }
    return count;
}

/* The party that has been there for longest, of those that are known and still run; NULL: there is
 * none. */
static const struct lock_party *oldest_party(const struct lock_party *parties, size_t count)
{
    const struct lock_party *found = NULL;

    for (size_t i = 0; i < count; i++)
        if (!parties[i].kept && !parties[i].unread && (!found || parties[i].age_ms > found->age_ms))
            found = &parties[i];
    return found;
}

const struct lock_party *holders_oldest(const struct lock_view *lock)
{
    return oldest_party(lock->holders, lock->holder_count);
}

const struct lock_party *holders_reserved(const struct lock_view *lock)
{
    for (size_t i = 0; i < lock->holder_count; i++)
        if (lock->holders[i].reserved)
            return &lock->holders[i];
    return NULL;
}

const struct lock_party *waiters_oldest(const struct lock_view *lock)
{
    return oldest_party(lock->waiters, lock->waiter_count);
}

bool lock_has_own_pause(const struct lock_view *lock)
{
    /* The view of a GLOB has the GLOB as its key. */
    bool of_glob = lock->pause_glob[0] && strcmp(lock->pause_glob, lock->key) != 0;

    return lock->pause.owner[0] && !of_glob;
}

char *describe_outcome(const struct lock_end *end, char out[DESCRIBE_OUTCOME_SIZE])
{
    static const char *const names[] = {[LOCK_TIMED_OUT] = "timed out",
                                        [LOCK_LOST] = "lost",
                                        [LOCK_EXPIRED] = "expired",
                                        [LOCK_REVOKED] = "revoked",
                                        [LOCK_KILLED] = "rlock was killed"};

    if (end->how != LOCK_USED) /* a lock that was not used is not remembered */
        snprintf(out, DESCRIBE_OUTCOME_SIZE, "%s", names[end->how]);
    else if (!end->known)
        *out = '\0';
    else if (end->signal)
        snprintf(out, DESCRIBE_OUTCOME_SIZE, "signal %s", SIGNAL_TEXT(end->signal));
    else
        snprintf(out, DESCRIBE_OUTCOME_SIZE, "exit %d", end->status);
    return out;
}

const char *run_result(const struct lock_end *end)
{
    switch (end->how) {
    case LOCK_TIMED_OUT: return "timed_out";
    case LOCK_LOST: return "lost";
    case LOCK_EXPIRED: return "expired";
    case LOCK_REVOKED: return "revoked";
    default: break;
    }
    if (run_has_failed(end))
        return "failure";
    return end->known ? "success" : NULL;
}

bool run_has_failed(const struct lock_end *end)
{
    return end->how != LOCK_USED || (end->known && (end->signal || end->status));
}

char *describe_revocation(const struct revocation *revoked, char out[DESCRIBE_REVOCATION_SIZE])
{
    snprintf(out, DESCRIBE_REVOCATION_SIZE, "%s%s%s%s", revoked->by[0] ? " by " : "", revoked->by,
             revoked->why[0] ? ": " : "", revoked->why);
    return out;
}

char *describe_past_revocation(const struct revocation *revoked, char out[DESCRIBE_REVOCATION_SIZE])
{
    snprintf(out, DESCRIBE_REVOCATION_SIZE, "taken away %s ago%s", MS_TEXT(revoked->ago_ms),
             REVOCATION_TEXT(revoked));
    return out;
}

char *describe_kept(const struct lock_party *holder, char *out, size_t size)
{
    const struct lock_end *end = &holder->end;

    snprintf(out, size, "kept until %s; the command ", LEASE_END_TEXT(holder, DESCRIBE_MINUTE));
    if (!end->known)
        text_append(out, size, "has ended");
    else if (end->signal)
        text_append(out, size, "died of signal %s after %s", SIGNAL_TEXT(end->signal),
                    MS_TEXT(end->ran_ms));
    else
        text_append(out, size, "ended with %d after %s", end->status, MS_TEXT(end->ran_ms));
    return out;
}

char *describe_decision(const struct lock_party *by, const char *verb, int64_t later, char *out,
                        size_t size)
{
    const struct identity *who = &by->who;

    snprintf(out, size, "%s by ", verb);
    if (who->user[0])
        text_append(out, size, "%s@%s", BRIEF_TEXT(who->user, 60), BRIEF_TEXT(who->host, 80));
    else
        text_append(out, size, "%s", who->host[0] ? BRIEF_TEXT(who->host, 80) : "someone");
    text_append(out, size, " until %s (%s left)", LEASE_END_TEXT(by, DESCRIBE_MINUTE),
                DURATION_TEXT(by->left_ms * NS_PER_MS - later));
    if (who->label[0])
        text_append(out, size, ": %s", who->label);
    return out;
}

char *describe_pause(const struct lock_view *lock, char out[DESCRIBE_DECISION_SIZE])
{
    char verb[IDENTITY_WORD_MAX + sizeof "paused, as all of ,"] = "paused";

    if (!lock_has_own_pause(lock))
        snprintf(verb, sizeof verb, "paused, as all of %s,", lock->pause_glob);
    return describe_decision(&lock->pause, verb, 0, out, DESCRIBE_DECISION_SIZE);
}

/* Prints "build@ci-3 pid 4121 (make)", as much of it as is known; "" if nothing is. Returns out. */
static char *print_who(const struct identity *who, enum describe_detail detail, char *out,
                       size_t size)
{
    *out = '\0';
    if (!who->host[0] && !who->user[0])
        return out;
    if (who->user[0])
        text_append(out, size, "%s@%s", BRIEF_TEXT(who->user, 60), BRIEF_TEXT(who->host, 80));
    else
        text_append(out, size, "someone on %s", BRIEF_TEXT(who->host, 80));
    if (who->pid && detail == DESCRIBE_FULL)
        text_append(out, size, " pid %ld", who->pid);
    if (who->command[0] && detail != DESCRIBE_WITHOUT_COMMAND)
        text_append(out, size, " (%s)", BRIEF_TEXT(who->command, 40));
    return out;
}

#define LABEL "[, label {label}]"

/* Returns the form of a refusal (base/text.h), whose fields describe_obstacle() fills in. who: ""
 * if it is not known. */
static const char *form_of(const struct answer *refusal, const char *who)
{
    const struct lock_party *holder = refusal->refused.holder;
    bool several = refusal->refused.holders > 1;

    if (refusal->cause == CAUSE_DONE)
        return "a run [by {who} ]that began {ago} ago has succeeded" LABEL;
    if (refusal->cause == CAUSE_SUPERSEDED)
        return *who ? "superseded by {who}" LABEL : "superseded by someone who came later" LABEL;
    if (refusal->refused.foreign) /* the lock of another program does not say who holds it */
        return refusal->refused.left_ms == 0 ? "held by a foreign lock {text}, which has no end"
                                             : "held by a foreign lock {text}[ for at most {left}]";
    if (refusal->cause == CAUSE_CLOSED)
        return refusal->refused.first ? "{decision}" : "its limit is 0";
    if (refusal->cause == CAUSE_GRACE && !several)
        return "{grace}";
    if (holder && holder->kept)
        return "{several}{kept}[; it was run by {who}]" LABEL;
    if (holder && holder->reserved && !several)
        return "{decision}";
    if (holder && holder->unread)
        return "{several}{verb} [by {who} ]by an owner whose node may not be read" LABEL;
    if (holder)
        return "{several}{verb} [by {who} ]for {age}" LABEL;
    if (several)
        return "{several}";
    if (!refusal->refused.first)
        return "";
    return *who ? "{who} comes first, waiting for {age}" LABEL
                : "someone else comes first, waiting for {age}" LABEL;
}

/* Prints how many hold the lock, to be followed by the one that has had it for longest. */
static void print_several(const struct answer *refusal, unsigned limit, char *out, size_t size)
{
    const struct lock_party *oldest = refusal->refused.holder;

    if (limit && refusal->refused.holders > (int64_t)limit)
        snprintf(out, size, "its limit is %u, %" PRId64 " still hold it", limit,
                 refusal->refused.holders);
    else if (limit && refusal->refused.holders == (int64_t)limit)
        snprintf(out, size, "all %u slots are taken", limit);
    else
        snprintf(out, size, "held by %" PRId64 " %s", refusal->refused.holders,
                 oldest && oldest->mode == LOCK_SHARED ? "readers" : "others");
    if (oldest) /* form_of() has "the oldest" or "longest" for one that is not kept */
        text_append(out, size, ", %s", oldest->kept ? "the oldest " : "");
}

/* Returns the party that the refusal is about; all zero: there is none. It is the holder, if one is
 * in the way. Otherwise refused.first is the owner that did the work before (DONE), waits instead
 * (SUPERSEDED), has paused the lock (CLOSED), or is first in the queue. */
static const struct lock_party *party_of(const struct answer *refusal)
{
    static const struct lock_party none;
    bool is_first = refusal->cause == CAUSE_DONE || refusal->cause == CAUSE_SUPERSEDED ||
                    refusal->cause == CAUSE_CLOSED || !refusal->refused.holder;
    const struct lock_party *party = is_first ? refusal->refused.first : refusal->refused.holder;

    return party ? party : &none;
}

char *describe_obstacle(const struct answer *refusal, unsigned limit, int64_t later,
                        enum describe_detail detail, char *out, size_t size)
{
    const struct lock_party *party = party_of(refusal);
    /* The process of such a party has ended, so its pid says nothing. */
    bool ended = refusal->cause == CAUSE_DONE || (party == refusal->refused.holder && party->kept);
    enum describe_detail shown = ended && detail == DESCRIBE_FULL ? DESCRIBE_WITHOUT_PID : detail;
    bool decided = party->reserved || refusal->cause == CAUSE_CLOSED;
    unsigned slots = refusal->refused.limited ? refusal->refused.limit : limit;
    int64_t left = refusal->refused.foreign ? refusal->refused.left_ms * NS_PER_MS - later : 0;
    int64_t age = party->age_ms * NS_PER_MS;
    char who[DESCRIBE_PARTY_SIZE], several[80] = "", decision[DESCRIBE_DECISION_SIZE] = "";
    char grace[DESCRIBE_OBSTACLE_SIZE] = "", text[204];
    const struct text_field fields[] = {
        {"who", print_who(&party->who, shown, who, sizeof who)},
        {"label", party->who.label},
        {"age", DURATION_TEXT(age + later)},
        {"ago", DURATION_TEXT(age)},
        {"several", several},
        {"verb", refusal->refused.holders <= 1                         ? "held"
                 : slots && refusal->refused.holders >= (int64_t)slots ? "the oldest"
                                                                       : "longest"},
        {"kept", party->kept ? KEPT_TEXT(party) : ""},
        {"decision", decision},
        {"left", left > 0 ? DURATION_TEXT(left) : ""},
        {"text", text},
        {"grace", grace},
    };

    text_copy(text, sizeof text, refusal->text);
    if (refusal->refused.holders > 1)
        print_several(refusal, slots, several, sizeof several);
    if (decided)
        describe_decision(party, refusal->cause == CAUSE_CLOSED ? "paused" : "reserved", later,
                          decision, sizeof decision);
    if (refusal->cause == CAUSE_GRACE)
        store_print_grace(refusal->grace_ms - later / NS_PER_MS, grace, sizeof grace);
    *out = '\0';
    text_fill(out, size, form_of(refusal, who), fields);
    return out;
}

char *describe_party_briefly(const struct identity *who, char *out, size_t size)
{
    print_who(who, DESCRIBE_FULL, out, size);
    if (who->label[0])
        text_append(out, size, ", label %s", who->label);
    return out;
}

static const char *const hints[HINTS] = {
    [HINT_NAME] = "getent hosts NAME asks the same name service",
    [HINT_AWAY] = "--server-wait DUR waits longer for it; rlock doctor looks at it closely",
    [HINT_LOCAL] = "--url or RLOCK_URL says where the lock store is; --local has one for this host",
    [HINT_CLUSTER] = "cluster://HOST is for a Redis Cluster, redis://HOST for a single server",
    [HINT_PASSWORD] = "--password-file or RLOCK_PASSWORD",
    [HINT_PASSWORD_OR_RIGHTS] =
        "--password-file or RLOCK_PASSWORD; docs/data.md has the rights it needs",
    [HINT_PASSWORD_OR_USER] = "--password-file or RLOCK_PASSWORD, and the user in the URL",
    [HINT_SENTINEL_PASSWORD] =
        "--sentinel-password-file, or --password-file if the servers have the same",
    [HINT_KEPT_PASSWORD] =
        ("an outer rlock takes passwords out of its command's environment: give it "
         "--keep-credentials, or use --password-file or a configuration file"),
    [HINT_RIGHTS] = "rlock doctor names the missing rights; docs/data.md has all of them",
    [HINT_TLS] = "with TLS the URL begins with rediss://, clusters:// or sentinels://",
    [HINT_NO_TLS] = "without TLS the URL begins with redis://, cluster:// or sentinel://",
    [HINT_LONGER_LEASE] = "a longer --lease, or a server that is nearer",
    [HINT_WAIT_OR_MARK] = "wait, or rlock init --force if nothing is held",
    [HINT_REPLICAS] = "--replicas, if one of them may be promoted",

    [HINT_TABLES] = "rlock init makes them; rlock init --print shows the SQL",
    [HINT_SHEDLOCK] =
        "the table is ShedLock's, and rlock does not make it: rlock-stores(7) has its CREATE TABLE",
    [HINT_DRIVER] =
        "install the package of that name, or build rlock as docs/install.md says for it",
    [HINT_LIBRARY] =
        "install the package with that library: libpq5, libmariadb3 or libcurl4 on Debian",
    [HINT_DATABASE] = "CREATE DATABASE makes one; the URL ends in its name",
    [HINT_GRANT] = "ask an administrator to run rlock init --grant USER (--print shows the SQL)",
    [HINT_ROLE] = ("etcdctl role grant-permission ROLE readwrite --prefix=true rlock: gives it, or "
                   "with PREFIX/ of the URL in front"),
    [HINT_QUOTA] = "rlock doctor tells how much there is; docs/etcd.md, how to get rid of it",
    [HINT_LOGIN] = "pg_hba.conf, or the host of 'USER'@'HOST' in MySQL, says who may",
    [HINT_NO_USERS] = "leave the user out of the URL, or enable it: etcdctl auth enable",
    [HINT_MAX_CONNECTIONS] =
        "max_connections says how many it takes; a user or database may have fewer",
    [HINT_MAX_CLIENT_CNXNS] =
        "maxClientCnxns, in its configuration, says how many it takes from one address",

    [HINT_SCRIPT_KILL] =
        "SCRIPT KILL, in redis-cli, ends a script that has not written anything yet",
    [HINT_DISK] = "its log tells why it cannot save; often the disk is full",
    [HINT_FEW_REPLICAS] = "min-replicas-to-write, in its configuration, says how many it needs",
    [HINT_MAXCLIENTS] = "maxclients, in its configuration, says how many it takes",
    [HINT_MAXMEMORY] = "raise maxmemory, or free some of it; rlock doctor looks at the server",
    [HINT_REQUIREPASS] = "set requirepass, or a user's password, in its configuration",
    [HINT_NO_PASSWORD] = "name a user in the URL, or leave the password out",
    [HINT_SOCKET] =
        "unixsocketperm 770, in its configuration, lets the socket's group in; so must directories",
    [HINT_NO_SOCKET] = "unixsocket, in its configuration, names the file that the URL must name",
};

const char *hint_words(enum cause cause, enum hint hint)
{
    if (hint == HINT_NONE && cause == CAUSE_UNREACHABLE)
        hint = HINT_AWAY;
    else if (hint == HINT_NONE && cause == CAUSE_CLUSTER)
        hint = HINT_CLUSTER;
    else if (hint == HINT_NONE && cause == CAUSE_DENIED)
        hint = HINT_PASSWORD_OR_RIGHTS;
    return hints[hint];
}

static const struct {
    enum store_ability ability;
    const char *words;
} abilities[] = {
    {STORE_READERS, "--read"},
    {STORE_SEMAPHORES, "--limit"},
    {STORE_SEVERAL_KEYS, "locks of several KEYs"},
    {STORE_QUEUE, "queue"},
    {STORE_AT_LEAST, "--at-least"},
    {STORE_REPLICAS, "--replicas"},
    {STORE_GRACE, "--grace"},
    {STORE_MARK, "init"},
    {STORE_FORCE, "force-release"},
    {STORE_LATCHES, "latches"},
    {STORE_GROUPS, "--latest"},
    {STORE_LIMITS, "stored limits"},
    {STORE_PRIORITIES, "--priority"},
    {STORE_PAUSES, "pause"},
    {STORE_GLOB_PAUSES, "pause of a GLOB"},
    {STORE_MINIMUM, "init --minimum-version"},
    {STORE_REPLACE, "--replace"},
    {STORE_ASK, "force-release without --now"},
    {STORE_DETACHED, "lock that outlives its client (acquire needs --keep)"},
    {STORE_MIRROR, "--mirror"},
    {STORE_MEMORY, "memory of former runs"},
    {STORE_TOGETHER, "--unless-done of several KEYs"},
    {STORE_ANY, "--any"},
};

char *ability_print_lack(const struct store_address *address, enum store_ability ability,
                         char out[ABILITY_LACK_SIZE])
{
    const char *words = "";

    for (size_t i = 0; i < sizeof abilities / sizeof *abilities; i++)
        if (abilities[i].ability == ability)
            words = abilities[i].words;
    snprintf(out, ABILITY_LACK_SIZE, "%s has no %s", store_kind_of(address)->name, words);
    return out;
}

const char *ability_instead(const struct store_address *address, enum store_ability ability)
{
    return ability == STORE_ANY && store_can(address, STORE_SEMAPHORES)
               ? "rlock run --limit N KEY takes one of N slots; RLOCK_SLOT is its number"
               : NULL;
}
