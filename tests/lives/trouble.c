#include "lives/trouble.h"

#include <stddef.h>

static const struct {
    const char *name;
    const char *client;  /* refused with that */
    const char *command; /* any but those that it can do meanwhile */
    const char *queued;
    const char *write; /* of a script */
    const char *call;
    bool only_first; /* not of one that has written already */
} troubles[TROUBLES] = {
    [TROUBLE_REPLICA] = {.name = "a replica",
                         .write = "READONLY You can't write against a read only replica."},
    [TROUBLE_CUT_OFF] = {.name = "a replica without its master",
                         .command = "MASTERDOWN Link with MASTER is down and "
                                    "replica-serve-stale-data is set to 'no'."},
    [TROUBLE_DISK] = {.name = "unable to save its data",
                      .write = "MISCONF Errors writing to the AOF file: No space left on device",
                      .only_first = true},
    [TROUBLE_FEW_REPLICAS] = {.name = "without its replicas",
                              .write = "NOREPLICAS Not enough good replicas to write.",
                              .only_first = true},
    [TROUBLE_MEMORY] = {.name = "full",
                        .queued = "OOM command not allowed when used memory > 'maxmemory'.",
                        .write = "OOM command not allowed when used memory > 'maxmemory'.",
                        .only_first = true},
    [TROUBLE_CLIENTS] = {.name = "full of clients",
                         .client = "-ERR max number of clients reached\r\n"},
    [TROUBLE_LOADING] = {.name = "loading",
                         .command = "LOADING Redis is loading the dataset in memory"},
    [TROUBLE_BUSY] = {.name = "busy",
                      .command = "BUSY Redis is busy running a script. You can only call SCRIPT "
                                 "KILL or SHUTDOWN NOSAVE."},
    [TROUBLE_PROXY] = {.name = "behind a proxy that fails", .call = "ERR Connection timed out"},
};

const char *trouble_name(enum trouble trouble)
{
    return troubles[trouble].name;
}

bool trouble_is_replica(enum trouble trouble)
{
    return trouble == TROUBLE_REPLICA || trouble == TROUBLE_CUT_OFF;
}

bool trouble_passes(enum trouble trouble)
{
    return trouble != TROUBLE_MEMORY && trouble != TROUBLE_PROXY;
}

const char *trouble_with_call(enum trouble trouble)
{
    return troubles[trouble].call;
}

const char *trouble_with_client(enum trouble trouble)
{
    return troubles[trouble].client;
}

static bool is_among(struct slice name, const char *const *names)
{
    while (*names && !slice_is(name, *names))
        names++;
    return *names;
}

const char *trouble_with_command(enum trouble trouble, struct slice name, bool queues)
{
    static const char *const harmless[] = {"exec", "multi",     "client",      "role",
                                           "time", "subscribe", "unsubscribe", NULL};
    static const char *const while_busy[] = {"exec", "multi", NULL};

    if (queues && troubles[trouble].queued && !slice_is(name, "exec"))
        return troubles[trouble].queued;
    return is_among(name, trouble == TROUBLE_BUSY ? while_busy : harmless)
               ? NULL
               : troubles[trouble].command;
}

const char *trouble_with_write(enum trouble trouble, struct slice name, bool has_written)
{
    static const char *const grows[] = {"hset", "set", NULL};
    static const char *const writes[] = {"hset", "set", "hdel", "del", "pexpire", NULL};
    bool refused = is_among(name, trouble == TROUBLE_MEMORY ? grows : writes) &&
                   !(has_written && troubles[trouble].only_first);

    return refused ? troubles[trouble].write : NULL;
}
