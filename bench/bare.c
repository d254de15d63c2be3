/* bare [-w] PORT KEY COMMAND...: a lock in Redis as it is written in ten minutes, to measure rlock
 * against. SET NX PX takes it, and a script that compares deletes it. Nothing renews the lease,
 * no process watches the command, and waiters are not in order.
 *
 *   without -w   ends with 75 if somebody else has it
 *   with -w      subscribes to the key's channel, and tries again whenever told there */
#include <hiredis.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

static const char drop[] = "if redis.call('get', KEYS[1]) == ARGV[1] then"
                           " redis.call('del', KEYS[1]) end";
static const char drop_and_tell[] = "if redis.call('get', KEYS[1]) == ARGV[1] then"
                                    " redis.call('del', KEYS[1])"
                                    " redis.call('publish', KEYS[1], '') end";

static redisContext *meet(int port)
{
    redisContext *redis = redisConnect("127.0.0.1", port);
    if (!redis || redis->err)
        exit(69);
    return redis;
}

/* Whether the answer says anything. */
static bool hear(redisReply *reply)
{
    if (!reply || reply->type == REDIS_REPLY_ERROR)
        exit(69);
    bool something = reply->type != REDIS_REPLY_NIL;
    freeReplyObject(reply);
    return something;
}

static bool take(redisContext *redis, const char *key, const char *token)
{
    return hear(redisCommand(redis, "SET %s %s NX PX 30000", key, token));
}

static void wait_and_take(redisContext *redis, int port, const char *key, const char *token)
{
    redisContext *ear = meet(port);
    hear(redisCommand(ear, "SUBSCRIBE %s", key));
    while (!take(redis, key, token)) {
        redisReply *message = NULL;
        redisGetReply(ear, (void **)&message);
        hear(message);
    }
    redisFree(ear);
}

static int run(char **command)
{
    pid_t child;
    int status;

    if (posix_spawnp(&child, command[0], NULL, NULL, command, environ) != 0)
        return 127;
    waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 70;
}

int main(int argc, char **argv)
{
    bool waits = argc > 1 && strcmp(argv[1], "-w") == 0;
    if (argc - waits < 4)
        return 64;
    int port = atoi(argv[1 + waits]);
    const char *key = argv[2 + waits];
    char token[32];
    snprintf(token, sizeof token, "%d", (int)getpid());

    redisContext *redis = meet(port);
    if (!take(redis, key, token)) {
        if (!waits)
            return 75;
        wait_and_take(redis, port, key, token);
    }
    int status = run(argv + 3 + waits);
    hear(redisCommand(redis, "EVAL %s 1 %s %s", waits ? drop_and_tell : drop, key, token));
    return status;
}
