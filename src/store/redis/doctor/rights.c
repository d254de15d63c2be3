/* The rights that rlock needs at a Redis server. */
#include "store/redis/doctor/rights.h"

#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "base/text.h"

#define NO_SCRIPT "e0e1f9fabfc9d4800c877a703b823ac0578ff8db"

const struct right rights[RIGHTS_MAX] = {
    {"select", "SELECT 0", RIGHT_DB, true},
    {"client|setname", "CLIENT SETNAME rlock", RIGHT_NAME, true},
    {"role", "ROLE", RIGHT_CHECK, true},
    {"time", "TIME", RIGHT_ALL, true},
    {"eval", "EVAL return 1 %k", RIGHT_SEND, true},
    {"evalsha", "EVALSHA " NO_SCRIPT " 1 %k", RIGHT_ALL, true},
    {"scan", "SCAN 0", RIGHT_SURVEY, true},
    {"multi", "MULTI", RIGHT_QUEUE, false},
    {"exec", "EXEC", RIGHT_QUEUE, false},
    {"subscribe", "SUBSCRIBE %c", RIGHT_WAKE, false},
    {"unsubscribe", "UNSUBSCRIBE", RIGHT_QUEUE, false},
    {"exists", "EXISTS %k", RIGHT_NEW, true},
    {"hget", "HGET %k f", RIGHT_RIVAL, false},
    {"hmget", "HMGET %k f", RIGHT_ALL, true},
    {"hset", "HSET %k f v", RIGHT_LOCK, false},
    {"hdel", "HDEL %k f", RIGHT_LEAVE, false},
    {"hexists", "HEXISTS %k f", RIGHT_HAND_OVER, false},
    {"hgetall", "HGETALL %k", RIGHT_SHOW, true},
    {"pexpire", "PEXPIRE %k 1", RIGHT_LOCK, false},
    {"publish", "PUBLISH %c m", RIGHT_WAKE, false},
    {"cluster|slots", "CLUSTER SLOTS", RIGHT_CLUSTER, true},
    {"asking", "ASKING", RIGHT_CLUSTER, true},
    {"wait", "WAIT 0 1", RIGHT_REPLICAS, false},
    {"info", "INFO server", RIGHT_MEMORY, false},
};

/* Up to Redis 6.2: "NOPERM this user has no permissions to run the 'hget' command or its
 * subcommand", "… to access one of the keys used as arguments"; from 7.0: "… to run the 'hget'
 * command", "… to access a key"; EXEC's is wrapped in an EXECABORT. A command that was renamed away
 * is unknown. */
enum rights_lack rights_judge(const char *error)
{
    if (strstr(error, "unknown command"))
        return RIGHTS_LACK_COMMAND;
    if (!strstr(error, "NOPERM"))
        return RIGHTS_FINE;
    if (strstr(error, "to access") && strstr(error, "channel"))
        return RIGHTS_LACK_CHANNELS;
    if (strstr(error, "to access") && strstr(error, "key"))
        return RIGHTS_LACK_KEYS;
    return RIGHTS_LACK_COMMAND;
}

char *rights_command(const char *user, const char *prefix, bool clustered)
{
    char words[RIGHTS_MAX * 24] = "", *command;

    for (size_t i = 0; *rights[i].name; i++)
        if (clustered || rights[i].use != RIGHT_CLUSTER)
            text_append(words, sizeof words, " +%s", rights[i].name);
    return asprintf(&command, "ACL SETUSER %s on resetkeys ~%s:* resetchannels &%s:* -@all%s", user,
                    prefix, prefix, words) < 0
               ? mem_checked(NULL)
               : command;
}
