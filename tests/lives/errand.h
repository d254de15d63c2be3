/* One command of src/cmd, other than "rlock run", executed as by main.c; and the command that this
 * one runs itself (run/fenced.h). */
#pragma once

#include "lives/kernel.h"

struct command;

struct errand {
    /* Chosen. */
    int64_t starts, waits; /* -w; NEVER: for ever */
    int64_t dies_after;    /* its start, by KILL; 0: not */
    unsigned dies_at_call; /* its own; 0: not */
    int64_t stops_after, stops_for;
    int64_t asked_after;    /* to end, by TERM; 0: not */
    int64_t server_wait;    /* 0: 60 s */
    struct program program; /* of its command */

    /* Happened. */
    struct proc *process, *command; /* NULL: it was not started */
    unsigned calls;
    int status; /* as waitpid() sets it */
    int64_t ended;
    bool command_alive;
    int64_t command_ended;
    int command_status;

    /* The command is executed; rlock has ended; NULL: nothing is asked of that. */
    void (*on_execute)(struct errand *errand, char *const *environment);
    void (*on_end)(struct errand *errand);
};

/* The process does "work" with the errand. */
void errand_start(struct errand *errand, enum kind kind, int (*work)(const void *errand));
/* Executes a command line of src/cmd; returns its status, if no signal has ended its command. */
int errand_execute(const struct errand *errand, const struct command *command, char **words,
                   int count);
/* Whether rlock "ends as COMMAND did". */
bool errand_ends_as_command(const struct errand *errand);
bool errand_is_killed(const struct errand *errand);

/* News of the kernel, of a process of an errand. */
void errand_on_call(const struct proc *process);
void errand_on_execute(struct proc *process, char *const *environment);
void errand_on_end(const struct proc *process);
