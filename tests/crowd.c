/* crowd NUMBER FILE: so many processes that do nothing, and end with this one; FILE exists when all
 * are there. For the tests. */
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    if (argc != 3)
        return 64;
    for (int i = atoi(argv[1]); i > 0; i--) {
        pid_t pid = fork();
        if (pid < 0)
            return 71;
        if (pid == 0) {
            prctl(PR_SET_PDEATHSIG, SIGKILL);
            for (;;)
                pause();
        }
    }
    close(open(argv[2], O_CREAT | O_WRONLY, 0666));
    for (;;)
        pause();
}
