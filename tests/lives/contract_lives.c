/* contract_lives [-t] [CASE [SEED]]: runs the cases of the contract on the simulated kernel, each
 * with many seeds, and prints a line of each; one more for each seed with which it finds other
 * facts. -t: traces the first seed. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "lives/contract.h"
#include "lives/disk.h"
#include "lives/life.h"
#include "lives/names.h"
#include "lives/plan.h"
#include "lives/server.h"
#include "lives/states.h"
#include "lives/tty.h"

#define SEEDS 200

static struct proc *top; /* of the case */

/* -- what the kernel asks and tells ------------------------------------------------------------ */

struct program life_program(const struct proc *process, char *const *argv)
{
    (void)process;
    return (struct program){.runs = atol(argv[1]) * MS, .status = atoi(argv[2])};
}

bool life_begin_within(struct proc *process, char *const *argv)
{
    (void)process, (void)argv;
    return false;
}

const void *life_copy_work(const void *work)
{
    return work;
}

const void *life_copy_task(const void *task)
{
    return task;
}

const void *life_copy_guarded(const void *guarded)
{
    return guarded;
}

const void *life_copy_renewer(const void *renewer)
{
    return renewer;
}

int run_number(const struct run *run)
{
    (void)run;
    return 0;
}

/* No oracle judges what happens. */
void life_on_call(struct proc *process)
{
    (void)process;
}

int life_on_want(struct proc *process, enum want want)
{
    (void)process, (void)want;
    return 0;
}

void life_on_deed(const struct proc *process, enum deed deed)
{
    (void)process, (void)deed;
}

void life_on_execute(struct proc *process, char *const *argv, char *const *environment)
{
    (void)process, (void)argv, (void)environment;
}

void life_on_signal(const struct proc *process, int signo)
{
    (void)process, (void)signo;
}

void life_on_end(const struct proc *process)
{
    (void)process;
}

void life_on_unlocked(const struct inode *inode)
{
    (void)inode;
}

void states_note(const struct proc *process)
{
    (void)process;
}

/* There is no network. */
#define ABSENT(type, name, ...)                                                                    \
    type name(__VA_ARGS__)                                                                         \
    {                                                                                              \
        abort();                                                                                   \
    }
#pragma GCC diagnostic ignored "-Wunused-parameter"
ABSENT(struct connection *, network_connect, const struct sockaddr *to)
ABSENT(ssize_t, network_send, struct connection *connection, const void *bytes, size_t size)
ABSENT(ssize_t, network_receive, struct connection *connection, void *bytes, size_t size)
ABSENT(int, network_events, const struct connection *connection)
ABSENT(void, network_close, struct connection *connection)
ABSENT(struct connection *, network_find, int number)
ABSENT(void, network_answer, struct connection *connection, const void *bytes, size_t size)
ABSENT(ssize_t, network_take, struct connection *connection, void *bytes, size_t size)
ABSENT(int, names_look_up, const char *host, const char *service, struct addrinfo **found,
       int64_t *until)
ABSENT(int64_t, server_now, void)
ABSENT(void, server_close, struct connection *connection)

void life_check(void)
{
    world.over |= !process_exists(top);
}

const char *contract_file(void)
{
    return DISK_PATH;
}

/* -- the terminal ------------------------------------------------------------------------------ */

static struct tty *terminal;

void contract_terminal(void)
{
    terminal = top->output = tty_new(top);
}

void contract_press(int signo)
{
    tty_key(terminal, signo);
}

void contract_hang_up(void)
{
    tty_hang_up(terminal);
}

/* -- cases ------------------------------------------------------------------------------------- */

static void begin(const struct contract_case *contract_case, uint64_t seed, bool traced)
{
    const struct plan plan = {.seed = seed};

    world_begin(&plan);
    plan_end();
    world.trace = traced ? stdout : NULL;
    kernel_begin();
    kernel.load = (int)(seed % 4);
    kernel.kill_takes = seed % 3 ? 0 : 100 * MS;
    struct proc *outside = process_new(ADMIN, 1, NULL);
    outside->subreaper = true;
    top = process_new(SUPERVISOR, outside->pid, NULL);
    top->group = top->session = outside->pid;
    process_start(top, contract_run, contract_case);
    kernel_run(world.now + 600 * SEC);
    if (*world.verdict)
        snprintf(contract_facts, sizeof contract_facts, "%s", world.verdict);
    else if (!world.over)
        strcat(contract_facts, " ... takes too long");
}

static void try_case(const struct contract_case *contract_case, uint64_t first, bool traced)
{
    char facts[sizeof contract_facts];

    fflush(stdout);
    begin(contract_case, first, traced);
    strcpy(facts, contract_facts);
    printf("%s: %s\n", contract_case->name, facts);
    for (uint64_t seed = first + 1; seed < first + SEEDS && !traced; seed++) {
        begin(contract_case, seed, false);
        if (strcmp(facts, contract_facts) != 0)
            printf("%s: seed %lu: %s\n", contract_case->name, seed, contract_facts);
    }
}

int main(int argc, char **argv)
{
    bool traced = argc > 1 && strcmp(argv[1], "-t") == 0;

    argc -= traced;
    argv += traced;
    for (size_t i = 0; i < contract_count; i++)
        if (argc < 2 || strcmp(argv[1], contract_cases[i].name) == 0)
            try_case(&contract_cases[i], argc > 2 ? strtoull(argv[2], NULL, 10) : 1, traced);
    return 0;
}
