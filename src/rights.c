/* The rights that rlock needs at a Redis server. */
#include "rights.h"

#include <string.h>

const struct right rights[RIGHTS_MAX] = {
    {"select", {"SELECT", "0"}, RIGHT_DB},
    {"role", {"ROLE"}, RIGHT_CHECK},
    {"time", {"TIME"}, RIGHT_LOCK},
    {"eval", {"EVAL", "return 1", "1", "%k"}, RIGHT_LOCK},
    {"evalsha", {"EVALSHA", "e0e1f9fabfc9d4800c877a703b823ac0578ff8db", "1", "%k"}, RIGHT_LOCK},
    {"scan", {"SCAN", "0"}, RIGHT_SURVEY},
    {"multi", {"MULTI"}, RIGHT_QUEUE},
    {"exec", {"EXEC"}, RIGHT_QUEUE},
    {"subscribe", {"SUBSCRIBE", "%c"}, RIGHT_WAIT},
    {"unsubscribe", {"UNSUBSCRIBE"}, RIGHT_WAIT},
    {"exists", {"EXISTS", "%k"}, RIGHT_LOCK},
    {"hget", {"HGET", "%k", "f"}, RIGHT_LOCK},
    {"hmget", {"HMGET", "%k", "f"}, RIGHT_LOCK},
    {"hset", {"HSET", "%k", "f", "v"}, RIGHT_LOCK},
    {"hdel", {"HDEL", "%k", "f"}, RIGHT_LOCK},
    {"hexists", {"HEXISTS", "%k", "f"}, RIGHT_LOCK},
    {"hgetall", {"HGETALL", "%k"}, RIGHT_LOCK},
    {"pexpire", {"PEXPIRE", "%k", "1"}, RIGHT_LOCK},
    {"publish", {"PUBLISH", "%c", "m"}, RIGHT_WAIT},
    {"cluster|slots", {"CLUSTER", "SLOTS"}, RIGHT_CLUSTER},
    {"wait", {"WAIT", "0", "1"}, RIGHT_REPLICAS},
    {"info", {"INFO", "server"}, RIGHT_MEMORY},
};

/* Up to 6.2: "NOPERM this user has no permissions to run the 'hget' command or its subcommand", "… to access one
 * of the keys used as arguments"; from 7.0: "… to run the 'hget' command", "… to access a key"; EXEC's is wrapped in an EXECABORT. A command
 * that was renamed away is unknown. */
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
