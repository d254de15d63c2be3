/* Words for hints and abilities. */
#include "cli/hints.h"

#include <stdio.h>

static const char *const hints[HINTS] = {
    [HINT_NAME] = "getent hosts NAME asks the same name service",
    [HINT_AWAY] = "--server-wait DUR waits longer for it; rlock doctor looks at it closely",
    [HINT_LOCAL] = "--url or RLOCK_URL says where the lock store is; --local has one for this host",
    [HINT_CLUSTER] = "cluster://HOST is for a Redis Cluster, redis://HOST for a single server",
    [HINT_PASSWORD] = "--password-file or RLOCK_PASSWORD",
    [HINT_PASSWORD_OR_RIGHTS] =
        "--password-file or RLOCK_PASSWORD; docs/data.md has the rights it needs",
    [HINT_PASSWORD_OR_USER] = "--password-file or RLOCK_PASSWORD, and the user in the URL",
    [HINT_KEPT_PASSWORD] =
        ("an outer rlock takes passwords out of its command's environment: give it "
         "--keep-credentials, or use --password-file or a configuration file"),
    [HINT_RIGHTS] = "rlock doctor names the missing rights; docs/data.md has all of them",
    [HINT_LONGER_LEASE] = "a longer --lease, or a server that is nearer",
    [HINT_WAIT_OR_MARK] = "wait, or rlock init --force if nothing is held",
    [HINT_REPLICAS] = "--replicas, if one of them may be promoted",

    [HINT_TABLES] = "rlock init makes them; rlock init --print shows the SQL",
    [HINT_SHEDLOCK] =
        "the table is ShedLock's, and rlock does not make it: rlock-stores(7) has its CREATE TABLE",
    [HINT_DRIVER] = "it is in a package of its own, of the same name",
    [HINT_LIBRARY] = "install the package with that library: libpq5 or libmariadb3 on Debian",
    [HINT_DATABASE] = "CREATE DATABASE makes one; the URL ends in its name",
    [HINT_GRANT] = "an administrator's rlock init --grant USER gives it; --print shows how",
    [HINT_LOGIN] = "pg_hba.conf, or the host of 'USER'@'HOST' in MySQL, says who may",
    [HINT_MAX_CONNECTIONS] =
        "max_connections says how many it takes; a user or database may have fewer",

    [HINT_SCRIPT_KILL] =
        "SCRIPT KILL, in redis-cli, ends a script that has not written anything yet",
    [HINT_DISK] = "its log tells why it cannot save; often the disk is full",
    [HINT_FEW_REPLICAS] = "min-replicas-to-write, in its configuration, says how many it needs",
    [HINT_MAXCLIENTS] = "maxclients, in its configuration, says how many it takes",
    [HINT_MAXMEMORY] = "raise maxmemory, or free some of it; rlock doctor looks at the server",
    [HINT_REQUIREPASS] = "set requirepass, or a user's password, in its configuration",
    [HINT_NO_PASSWORD] = "name a user in the URL, or leave the password out",
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
    {STORE_DETACHED, "acquire without --keep"},
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
    snprintf(out, ABILITY_LACK_SIZE, "%s has no %s", store_record_of(address)->name, words);
    return out;
}

const char *ability_instead(const struct store_address *address, enum store_ability ability)
{
    return ability == STORE_ANY && store_can(address, STORE_SEMAPHORES)
               ? "rlock run --limit N KEY takes one of N slots; RLOCK_SLOT is its number"
               : NULL;
}
