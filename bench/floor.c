/* floor PORT KEY COMMAND...: the least that a command under a lock in Redis can cost. The lock is
 * the one element of a list: BLPOP takes it, first come, first served, and RPUSH puts it back. No
 * lease: a holder that dies keeps it for ever. */
#include <hiredis.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    if (argc < 4)
        return 64;
    redisContext *redis = redisConnect("127.0.0.1", atoi(argv[1]));
    if (!redis || redis->err || !redisCommand(redis, "BLPOP %s 0", argv[2]))
        return 69;
    int status = 0;
    pid_t command = vfork();
    if (command == 0) {
        execvp(argv[3], argv + 3);
        _exit(127);
    }
    waitpid(command, &status, 0);
    if (!redisCommand(redis, "RPUSH %s free", argv[2]))
        return 69;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 70;
}
