/* The command under its deadline: started, signalled, stopped and continued with its terminal, and
 * ended before the lease ends. It does what it is told and what its clock says; the supervisor
 * tells it what the agent and the user want, and looks at "state" after each call. */
#pragma once

#include "lock/lease.h"
#include "os/child.h"
#include "os/kill_tree.h"
#include "os/procfs.h"
#include "run/agent_process.h"
#include "run/deadline.h"
#include "run/fate.h"
#include "run/plan.h"
#include "run/stop_command.h"

enum job_state {
    JOB_IDLE,      /* not started */
    JOB_RUNNING,   /* perhaps stopped, but not together with this process */
    JOB_PAUSED,    /* stopped; this process was too, and has just been continued */
    JOB_VERIFYING, /* still stopped: is the lock still ours? */
    JOB_LINGERING, /* ended by itself; the processes that it left are waited for */
    JOB_STOPPING,  /* being ended */
    JOB_ENDED,
};

struct job {
    const struct job_plan *plan;
    enum job_state state;
    /* Receives orders; it must not be ended with the command. */
    const struct agent_process *agent;
    struct inherited inherited;
    struct terminal terminal;
    struct procfs procfs;
    struct process_list callers; /* the children of this process that its caller had started */
    struct process_list asked;   /* the processes that TERM has reached */
    struct child child;
    struct kill_tree stop;
    struct stop_command stop_command;
    bool termed;             /* TERM was sent */
    bool ends_command;       /* this process does, and not the agent */
    struct moment term_at;   /* not before, whatever the command of --stop does */
    struct moment look_at;   /* LINGERING: when to look again */
    struct moment next_look; /* and not before */

    struct moment acquired;
    struct lease lease; /* of the lock, as it is known; MOMENT_NEVER: it has none */
    struct awake stopping_since;
    struct moment verify_by; /* while it is stopped, an old lease does no harm */
    char *trouble; /* why the lease could not be renewed since; NULL: it was not tried, or could */
    sigset_t handed_on; /* the signals that it got through this process */
    bool no_cgroup;     /* the one that is required could not be made */
    bool told_to_stop;  /* SIGTSTP was one of them */
    bool had_terminal;  /* before it was paused */

    /* How it went. */
    enum fate fate;
    enum run_cause loss; /* LOST: why */
    int fault;           /* NOT_EXECUTED: errno; 0: it was executed */
    int status;          /* as of waitpid() */
    bool cleared; /* the agent has seen that it had ended under its lock, and releases that */
    bool stuck;   /* not all of it could be killed */
    int typed;    /* the signal typed at its terminal that it died of; 0 */
    /* That it was stopped or lost the lock, to be told again when it has ended. */
    struct run_news *verdict;
};

/* To be called before this process forks anything; "inherited" is for the caller to set. note:
 * zeroed, in memory that is shared with what is forked. -1 with errno. */
int job_init(struct job *job, const struct job_plan *plan, const struct agent_process *agent,
             struct child_note *note);
/* Asks for what else may be refused, while the agent is on its way already. -1 with errno. */
int job_prepare(struct job *job);
/* Frees what those two have taken. */
void job_free(struct job *job);
/* The moment to TERM for the present lease. */
struct moment job_term_at(const struct job *job);
/* Starts it: -1 with errno if that was not possible. It is never executed after job_term_at(). */
int job_start(struct job *job);

/* Tells the agent which command it is: job_start() does so, too. */
void job_introduce(const struct job *job);

/* The lease was renewed: it ends later. */
void job_extend(struct job *job, struct lease lease);
/* The lock is lost: tells the user, and ends the command, unless the plan has it continue. Does
 * nothing where no command was started, or that is known. */
void job_lose(struct job *job, const struct run_reason *why);
/* Notes why the lease could not be renewed. */
void job_note_trouble(struct job *job, const char *text);
/* Forwards a signal that this process got; SIGTSTP stops this process with it. */
void job_signal(struct job *job, int signo);
/* Takes a change of the command's state. status: as of waitpid(). */
void job_changed(struct job *job, enum child_change change, int status);
/* Once it has ended, and all that the agent had to say was heard: an end that is seen too late may
 * have come after the lease, or be the agent's work, unless the agent has released the lock. Then
 * the lock counts as lost. */
void job_judge_end(struct job *job);
/* Once it has ended: tells again that it was stopped or lost the lock. */
void job_remind(const struct job *job);
/* The agent has died: what it was ending is this process's to end. */
void job_agent_died(struct job *job);
/* Whether the agent has begun to end the command, and perhaps still runs the command of --stop. */
bool job_is_ended_elsewhere(const struct job *job);
/* Any process has ended. */
void job_reaped(struct job *job);
/* When PAUSED, and all that the agent had to say has been heard: asks for the present state. */
void job_verify(struct job *job);

/* For a job that has ended, stuck, with a lease that is not renewed any more: continues killing the
 * processes that still fork, until none is left or the lease has ended. */
void job_kill_on(struct job *job);

/* Whether its process has executed the command, as far as is known. */
bool job_was_executed(const struct job *job);
/* Describes how the command ended; not known if it was not executed. */
void job_command_end(const struct job *job, struct lock_end *end);

/* Returns when to call job_tick() next. */
struct moment job_due(const struct job *job);
void job_tick(struct job *job);
/* Kills the command at once, for a supervisor that cannot continue. Returns when it is dead, or
 * cannot be killed. */
void job_abandon(struct job *job);
