/* contract_linux [CASE]: runs the cases of the contract on the real kernel, and prints a line of
 * each. */
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

#include "lives/contract.h"
#include "os/kernel.h"
#include "os/procfs.h"

#define LONGEST_MS 60000

const char *contract_file(void)
{
    static char path[40];

    snprintf(path, sizeof path, "/tmp/contract.%d", (int)getpid());
    return path;
}

/* -- the terminal ------------------------------------------------------------------------------ */

static int window; /* the other end */

void contract_terminal(void)
{
    window = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
    if (window < 0 || grantpt(window) < 0 || unlockpt(window) < 0)
        return;
    int terminal = open(ptsname(window), O_RDWR); /* the first one is this session's */
    dup2(terminal, STDOUT_FILENO);
    close(terminal);
}

void contract_press(int signo)
{
    struct termios mode;

    tcgetattr(STDOUT_FILENO, &mode);
    char key = (char)mode.c_cc[signo == SIGINT ? VINTR : signo == SIGQUIT ? VQUIT : VSUSP];
    if (write(window, &key, 1) != 1)
        perror("a key");
}

void contract_hang_up(void)
{
    close(window);
}

/* -- cases ------------------------------------------------------------------------------------- */

static int act(char **argv)
{
    long ms = atol(argv[1]);
    struct timespec time = {ms / 1000, ms % 1000 * 1000000};

    while (nanosleep(&time, &time) < 0)
        ;
    return atoi(argv[2]);
}

/* Whatever a case has left becomes a child of this process. */
static void clean_up(void)
{
    struct process self = {.pid = getpid(), .threads = 1};
    struct process_list list = {0};
    struct procfs procfs = {0};

    procfs_open(&procfs);
    while (waitpid(-1, NULL, WNOHANG) >= 0) {
        list.count = 0;
        procfs_add_children(&procfs, &self, &list);
        for (size_t i = 0; i < list.count; i++)
            kill(list.all[i].pid, SIGKILL);
        usleep(1000);
    }
    procfs_close(&procfs);
    process_list_free(&list);
}

static void try_case(const struct contract_case *contract_case)
{
    fflush(stdout);
    pid_t pid = fork();
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        FILE *out = fdopen(dup(STDOUT_FILENO), "w");
        contract_run(contract_case);
        fprintf(out, "%s: %s\n", contract_case->name, contract_facts);
        fflush(out);
        _exit(0);
    }
    struct pollfd polled = {.fd = kernel_pidfd(pid), .events = POLLIN};
    if (poll(&polled, 1, LONGEST_MS) != 1)
        printf("%s: takes too long\n", contract_case->name);
    close(polled.fd);
    kill(pid, SIGKILL);
    clean_up();
}

int main(int argc, char **argv)
{
    if (strcmp(argv[0], CONTRACT_ACTOR) == 0)
        return act(argv);
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    for (size_t i = 0; i < contract_count; i++)
        if (argc < 2 || strcmp(argv[1], contract_cases[i].name) == 0)
            try_case(&contract_cases[i]);
    return 0;
}
