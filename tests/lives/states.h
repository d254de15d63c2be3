/* The states that the parts of a run are in together, and what they tell of a life: those that no
 * life before has reached make its plan worth another try. */
#pragma once

#include "lives/kernel.h"

struct keeper;

/* The guards of a run, as they are now:
 * supervisor: none, or job_state and whether it leaves; agent: none, or its state, its watchdog's
 * phase and its keeper's state; each of them: does it run, or is it stopped? */
#define STATES_SUPERVISOR (1 + 7 * 3)
#define STATES_AGENT      (1 + 6 * 5 * 8)
#define STATES            (STATES_SUPERVISOR * STATES_AGENT * 4)
#define STATES_ELSE       (1 << 17) /* changes from one to another, and faults in one */

/* The facts of a run: each state of a part, each flag, each moment that is over. Two that few lives
 * have brought together are a place where few have looked. */
#define FACTS 64

/* In memory that batches share. */
struct states {
    unsigned long reached; /* how many of these two */
    unsigned long pairs;   /* of the first */
    unsigned seen[STATES]; /* in how many steps */
    bool others[STATES_ELSE];
    unsigned lives[FACTS][FACTS]; /* in how many two facts were true together */
    uint64_t together[FACTS];     /* in the life under way: a set of facts for each */
};
extern struct states *states; /* NULL: nothing is noted */

/* Before a life. */
void states_begin(void);
/* A process of a run has acted. */
void states_note(const struct proc *process);
/* Calls it for each two facts that were true together in this life. */
void states_end(void (*note)(void *arg, unsigned one, unsigned other), void *arg);
/* A fault of that kind strikes a run. */
void states_note_fault(const struct run *run, unsigned kind);
/* Prints those of two parts that were reached, and those that were not. */
void states_print(const struct states *states);

/* -- of the program's own structs -------------------------------------------------------------- */

/* 0 to STATES_SUPERVISOR or STATES_AGENT, less 1, of a process that runs there; 0: of none. */
unsigned state_of_supervisor(const struct proc *process);
unsigned state_of_agent(const struct proc *process);
/* When the supervisor must end its command by TERM (0) or KILL (1), or its lease ends (2) or the
 * time of --at-most (3), as far as it knows; when that command ends by itself (4), or has had its
 * time since it was TERMed (5). NEVER: it has none. */
#define MOMENTS          6
#define MOMENT_OF_LEASE  2
#define MOMENT_AT_MOST   3
#define MOMENT_OF_ITSELF 4
#define MOMENT_OF_KILL   5
int64_t state_moment(const struct proc *process, unsigned which);
/* When KILL is due, as far as an agent knows, or a supervisor that has begun to end its command;
 * NEVER: it has not. */
int64_t state_kills_at(const struct proc *guard);
int64_t state_kills_at_of_agent(const struct proc *agent);
/* Whether an agent was told that the terminal stops the command, and its supervisor with it. */
bool state_knows_pause(const struct proc *agent);
/* The flags that their guards ask for besides: a set of bits, below 1 << 13 of a supervisor, and
 * below 1 << 14 of an agent. */
unsigned state_detail_of_supervisor(const struct proc *process);
unsigned state_detail_of_agent(const struct proc *process);
unsigned state_of_keeper(const struct keeper *keeper);
unsigned state_detail_of_keeper(const struct keeper *keeper); /* below 32 */
