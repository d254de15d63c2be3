/* Starting processes and their signals: fork, exec, process groups, what they ended with. The only
 * file that forks a command or the agent. */
#pragma once

#include <errno.h>
#include <signal.h>
#include <stdatomic.h>

#include "base/clock.h"
#include "os/cgroup.h"
#include "os/terminal.h"

/* The signal state that this process was started with, for what it starts. */
struct inherited {
    sigset_t mask;
    bool ignores_chld;
};

/* Blocks all signals, before anything is forked, and keeps children to be waited for. */
void child_block_signals(struct inherited *inherited);
/* "caught" becomes the signals to read by a loop: SIGCHLD, SIGTSTP, and all that are forwarded to a
 * command. SIGPIPE, SIGTTIN and SIGTTOU are only blocked. */
void child_choose_signals(sigset_t *caught);
/* "ends" becomes the signals that ask a process to end: HUP, INT, QUIT and TERM. */
void child_choose_end_signals(sigset_t *ends);
/* Lets the signals that ask for the end end this process again, when it has nothing to undo any
 * more. */
void child_let_end(void);
/* True if "signo" would by default end a process that does nothing about it. */
bool child_signal_is_fatal(int signo);

/* Opens /dev/null on those of descriptors 0 to 2 that are closed, so that no other file gets their
 * numbers. The command finds them closed. */
void child_fill_standard_descriptors(void);
/* From now on, orphans among this process's descendants become its children. -1 with errno. */
int child_adopt_orphans(void);

/* Forks a process in a process group of its own that runs "work" and exits with its result. It
 * keeps standard error and the descriptor "keep"; 0 and 1 are /dev/null. name: as ps shows it.
 * Returns its pid; -1 with errno. */
pid_t child_fork_helper(const char *name, int keep, int (*work)(int keep, const void *arg),
                        const void *arg);
/* Forks a process that runs "work" on this terminal, in this job, with the signals that this
 * process was started with, except that Ctrl-Z does not stop it; waits until it has ended. It gets
 * TERM if this process dies. Returns its status as waitpid() sets it; -1 with errno. */
int child_run(const struct inherited *inherited, int (*work)(void *arg), void *arg);
/* Forks a process that may outlive this one, keeps all descriptors, runs "work" and exits with its
 * result; its standard input and output are /dev/null. All signals are blocked, and stay so.
 * Returns its pid; -1 with errno. */
pid_t child_fork_survivor(const char *name, int (*work)(const void *arg), const void *arg);
/* In that process, before this one ends: gives it a session of its own, without the terminal, and
 * takes /dev/null for its standard error, too. */
void child_detach(void);
/* Signals all of a process group; 0: that of this process. */
void child_signal_group(pid_t group, int signo);
/* Continues the child "pid", and its process group if it leads one. */
void child_continue(pid_t pid);
/* Reaps the child "pid", -1: any, if it has ended. Returns its pid; 0 if none has ended, -1 if
 * there is none. status: as waitpid() sets it. */
pid_t child_reap(pid_t pid, int *status);
/* Closes all descriptors but the standard streams. */
void child_close_inherited(void);
/* Waits until the child "pid" has ended and reaps it; kills it after "time_limit" ns, and gives up
 * a second later. */
void child_await(pid_t pid, int64_t time_limit);
/* Whether this process has a child at all. */
bool child_exists(void);
/* Whether a child has ended that was not reaped yet: then SIGCHLD is pending, or has been. */
bool child_waits_to_be_reaped(void);
/* Memory shared with all processes forked from now on, zeroed. NULL with errno. */
void *child_share_memory(size_t size);

#define CHILD_NUMBERS 2

struct child_note;

struct child_plan {
    char *const *argv; /* looked for in PATH */
    char *const *environment;
    char *numbers[CHILD_NUMBERS]; /* places in it, where the process writes its own pid; or NULL */
    struct moment start_before;   /* it is not executed at or after this moment */
    const struct inherited *inherited;
    const struct cgroup *cgroup; /* that it is started in; NULL: that of this process */
    /* Only child_start_apart() reads these, or NULL: where the process writes its own pid, and the
     * note by which another process may bar it. */
    atomic_int *number;
    struct child_note *note;
};

/* Starts sh -c "command" in a session of its own, with nothing to read, and with standard error as
 * its standard output, too. It is killed when this process dies, and if it would be executed at or
 * after "start_before". If it was barred by its note, it ends with 0. Of the plan, argv and numbers
 * are not used, and "inherited" may be NULL for no blocked signals. Returns its pid; -1 with errno
 * if it could not be forked. */
pid_t child_start_apart(const char *command, const struct child_plan *plan);

/* A note of the process of a command, in memory that is shared with whoever must end the command
 * when its parent is dead: the process writes there before it executes the command. */
struct child_note {
    /* The command's process group; 0: none yet, and its process dies with its parent; -1: it
     * must not be executed any more. */
    atomic_int group;
    int fault; /* why it was not executed, an errno; ETIME: it was too late */
};

/* Bars the process from executing the command. False if it has written its group before, and so may
 * have executed it. */
static inline bool child_note_bar(struct child_note *note)
{
    int group = 0;
    return atomic_compare_exchange_strong(&note->group, &group, -1) || group < 0;
}

/* Returns why the process of a note, which has ended, has not executed the command: an errno; 0: it
 * may have. A process that was barred may have been killed before it could write that. */
static inline int child_note_fault(struct child_note *note)
{
    return !note->fault && atomic_load(&note->group) < 0 ? ETIME : note->fault;
}

struct child {
    pid_t pid;   /* leader of its process group; 0 when it has been reaped */
    pid_t group; /* the same number, for as long as a process may be left in it */
    int handle;  /* a pidfd of it; -1 before it is started, or where there are none */
    bool stopped;
    struct child_note *note;
    struct start *start; /* for its process, before that executes it */
};

/* Starts the command of the plan in its own process group, in the terminal's foreground if
 * terminal_offer() says so; it is killed when this process dies. 0; -1 with errno if it could not
 * be forked. The file system may take its time before it is executed; all that the plan refers to
 * must stay until child_free(). */
int child_start(struct child *child, const struct child_plan *plan, struct terminal *terminal);
/* Frees what child_start() has made, unless its process may still use it. */
void child_free(struct child *child);
/* Signals the child's whole process group, or the child itself if it has left that empty; does
 * nothing if it was reaped. */
void child_signal(const struct child *child, int signo);
/* Whether the child is stopped, as far as this process has been told or could be told now. */
bool child_may_be_stopped(const struct child *child);
/* Whether the child has ended and was not reaped yet. */
bool child_has_ended(const struct child *child);

enum child_change { CHILD_OTHER, CHILD_STOPPED, CHILD_CONTINUED, CHILD_ENDED };

/* Takes the next thing that has happened to a child of this process, which is reaped if it has
 * ended. Returns its pid; 0: nothing has happened. *change: what has happened to "child";
 * CHILD_OTHER: another child has ended. status: as waitpid() sets it. */
pid_t child_next_change(struct child *child, enum child_change *change, int *status);

/* Dies of "signo" without a core dump; returns 128 + signo where that is impossible (process 1 of a
 * container). */
int child_die_of(int signo);
