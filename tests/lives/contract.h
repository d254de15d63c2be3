/* The contract between the program and a kernel: cases of plain system calls, which find the same
 * facts on Linux (contract_linux.c) and on the simulated kernel (contract_lives.c). */
#pragma once

#include <stddef.h>

struct contract_case {
    const char *name;
    void (*run)(void);
};

extern const struct contract_case contract_cases[];
extern const size_t contract_count;
/* The facts that the case under way has found so far. */
extern char contract_facts[2000];

/* Runs a case (arg) in this process, which then ends; all of its processes are children of it or of
 * each other, or of the process that has started it. */
int contract_run(const void *arg);

/* The path of a file that is not there yet. */
const char *contract_file(void);
/* Gives this process, the leader of its session, a terminal, which is its standard output as well.
 */
void contract_terminal(void);
/* Presses a key of it: Ctrl-C, Ctrl-\\ or Ctrl-Z. */
void contract_press(int signo);
/* Closes its window. */
void contract_hang_up(void);

/* The program of an actor: it does nothing for that time, and ends with that status. */
#define CONTRACT_ACTOR "actor"
