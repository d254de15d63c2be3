/* Starting processes and their signals: fork, exec, process groups, what they ended with. The only file
 * that forks a command or the agent. */
#ifndef RLOCK_CHILD_H
#define RLOCK_CHILD_H

#include <signal.h>

#include "clock.h"
#include "terminal.h"

/* The signal state this process was started with, to be given back to the command. */
struct inherited {
    sigset_t mask;
    bool ignores_chld;
};

/* Blocks all signals, before anything is forked, and keeps children to be waited for. */
void child_block_signals(struct inherited *inherited);
/* Unblocks those that are ignored: they stay so in all processes to come. "caught" becomes those to be
 * read: SIGCHLD, SIGTSTP, and all that is handed on to a command. SIGPIPE, SIGTTIN and SIGTTOU are only
 * blocked. */
void child_choose_signals(sigset_t *caught);
/* True if "signo" would by default end a process that does nothing about it. */
bool child_signal_is_fatal(int signo);

/* Opens what of descriptors 0 to 2 is closed on /dev/null, so that no other one gets their numbers; the
 * command will find them closed. */
void child_fill_standard_descriptors(void);
/* From now on, orphans among this process's descendants become its children. */
void child_adopt_orphans(void);

/* Forks a process in a process group of its own that runs "work" and exits with its result. It keeps
 * standard error and the descriptor "keep"; 0 and 1 are /dev/null. -1 with errno. */
pid_t child_fork_helper(const char *name, int keep, int (*work)(int keep, const void *arg),
                        const void *arg);
/* Forks a process that outlives this one and is in nobody's way: in a session of its own, with standard
 * streams that are /dev/null. All signals are blocked, and stay so. Its pid, and 0 in it; -1 with errno. */
pid_t child_fork_survivor(const char *name);
/* Closes all descriptors but the standard streams. */
void child_close_inherited(void);
/* Waits until the child "pid" has ended and reaps it; kills it after "patience" ns. */
void child_await(pid_t pid, int64_t patience);

struct child_plan {
    char *const *argv; /* looked for in PATH */
    char *const *environment;
    struct moment start_before; /* it is not executed at or after this moment */
    const struct inherited *inherited;
};

struct child {
    pid_t pid; /* leader of its process group; 0 when it has been reaped */
    bool stopped;
    int *fault; /* shared with it until it executes: why it did not */
};

/* -1 with errno. */
int child_init(struct child *child);
/* Starts it in its own process group, in the terminal's foreground if terminal_offer() says so; it
 * is killed when this process dies. -1 with errno if it could not be forked. */
int child_start(struct child *child, const struct child_plan *plan, struct terminal *terminal);
/* To its whole process group; nothing if it was reaped. */
void child_signal(const struct child *child, int signo);
/* After its end: why it was never executed, an errno; 0 if it was. ETIME: it was too late. */
int child_fault(const struct child *child);

enum child_change { CHILD_OTHER, CHILD_STOPPED, CHILD_CONTINUED, CHILD_ENDED };

/* The next thing that happened to a child, which is reaped if it has ended; 0 if there is none now.
 * *change is CHILD_OTHER for the end of any other child. status: as waitpid() sets it. */
pid_t child_next_change(struct child *child, enum child_change *change, int *status);

/* Dies of "signo" without a core dump; returns where that is impossible. */
void child_die_of(int signo);

#endif
