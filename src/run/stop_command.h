/* --stop: a command of the user's own, for work that is not a descendant of the command under the
 * lock (ssh, docker). It is run when that command is being stopped, before TERM, and is killed with
 * it, never later: by then another holder's work may go by the same name. */
#pragma once

#include <sys/types.h>

#include "os/child.h"
#include "run/plan.h"

struct stop_command {
    const struct job_plan *plan; /* NULL: there is no command */
    pid_t pid;                   /* of its session and process group; 0: it does not run */
    atomic_int *shown;           /* the pid for the other guard, which kills it, too; or NULL */
    struct child_note *note;     /* through which the other guard may bar it; or NULL */
    bool begun;                  /* it was started, or there was no time */
    struct moment term_at;       /* TERM does not wait for it any longer */
    struct moment kill_at;       /* it is killed then */
};

/* Starts the command of --stop, which has until kill_at, and delays TERM by half of that at most.
 * True if it runs; false if there is none, or no time for it, or it could not be started: the user
 * is told of the last two. inherited: NULL in a process that does not know how rlock was started.
 * cgroup: that of the command under the lock, which the agent kills if this process is stopped;
 * NULL in an agent, as its command of --stop has its time also when the command of a dead
 * supervisor is killed. */
bool stop_command_start(struct stop_command *stop, const struct inherited *inherited,
                        const struct cgroup *cgroup, struct moment kill_at);
/* Whether TERM must wait for it. */
bool stop_command_delays_term(const struct stop_command *stop, struct moment now);
/* Takes the end of a child of this process that was reaped. status: as of waitpid(). True if the
 * child was the command of --stop; the user is told if that has failed. */
bool stop_command_note_end(struct stop_command *stop, pid_t pid, int status);
/* Kills it, with its process group. */
void stop_command_kill(const struct stop_command *stop);
/* In a process that reaps no other children: reaps it if it has ended, and kills it when its time
 * is over. Returns whether it still runs. */
bool stop_command_check(struct stop_command *stop, struct moment now);
