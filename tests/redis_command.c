/* redis_command SOCKET WORD...: sends one command to the server at that Unix socket, and prints the
 * reply as "redis-cli -e" does in a pipe: a line for each value, an empty one for nil. For the
 * tests: redis-cli takes six times the processor time, as it loads OpenSSL and libsystemd.
 *
 * Environment: REDISCLI_AUTH, the password of the user "default".
 * Ends with 0, or with 1 and a message on standard error: the server's error, or that it cannot be
 * reached, or that no reply has come within two minutes. */
#include <hiredis.h>

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/time.h>

static const struct timeval LIMIT = {.tv_sec = 120};

static void print_value(const redisReply *value)
{
    switch (value->type) {
    case REDIS_REPLY_ARRAY:
        for (size_t i = 0; i < value->elements; i++)
            print_value(value->element[i]);
        return;
    case REDIS_REPLY_INTEGER: printf("%lld", value->integer); break;
    case REDIS_REPLY_NIL: break;
    default: fwrite(value->str, 1, value->len, stdout);
    }
    putchar('\n');
}

static int fail(const char *why)
{
    fprintf(stderr, "%s\n", why);
    return EXIT_FAILURE;
}

/* Returns the exit status. printed: the reply is wanted. */
static int run_command(redisContext *server, int count, const char **words, bool printed)
{
    redisReply *reply = redisCommandArgv(server, count, words, NULL);
    int status = EXIT_SUCCESS;

    if (!reply)
        return fail(server->errstr);
    if (printed && reply->type == REDIS_REPLY_ERROR)
        status = fail(reply->str);
    else if (printed)
        print_value(reply);
    freeReplyObject(reply);
    return status;
}

int main(int argc, char **argv)
{
    const char *auth[] = {"AUTH", getenv("REDISCLI_AUTH")};

    if (argc < 3)
        return fail("usage: redis_command SOCKET WORD...");
    redisContext *server = redisConnectUnixWithTimeout(argv[1], LIMIT);
    if (!server)
        return fail("out of memory");
    int status = server->err || redisSetTimeout(server, LIMIT) != REDIS_OK ? fail(server->errstr)
                                                                           : EXIT_SUCCESS;
    /* A wrong password shows in the reply to the command. */
    if (status == EXIT_SUCCESS && auth[1] && *auth[1])
        status = run_command(server, 2, auth, false);
    if (status == EXIT_SUCCESS)
        status = run_command(server, argc - 2, (const char **)(uintptr_t)(argv + 2), true);
    redisFree(server);
    return fflush(stdout) == 0 ? status : EXIT_FAILURE;
}
