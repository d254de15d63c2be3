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
    struct process_list asked;   /* the processes that have got TERM */
    struct child child;
    struct kill_tree stop;
    struct stop_command stop_command;
    bool termed;             /* TERM was sent */
    bool ends_command;       /* this process has claimed the end, and not the agent */
    struct moment term_at;   /* TERM is not sent earlier, whatever the command of --stop does */
    struct moment look_at;   /* LINGERING: when to look again */
    struct moment next_look; /* LINGERING: no look before that */

    struct moment acquired;
    struct lease lease; /* of the lock, as it is known; MOMENT_NEVER: it has none */
    struct awake stopping_since;
    struct moment verify_by; /* VERIFYING: when an answer must have come */
    char *trouble;           /* why the last renewal has failed; NULL: it has not */
    sigset_t handed_on;      /* the signals that the command got through this process */
    bool no_cgroup;          /* the one that is required could not be made */
    bool told_to_stop;       /* SIGTSTP was one of them, since it was continued last */
    bool had_terminal;       /* before it was paused */

    /* How it went. */
    enum fate fate;
    enum run_cause loss; /* LOST: why */
    int fault;           /* NOT_EXECUTED: errno; 0: it was executed */
    int status;          /* of the command, as of waitpid() */
    bool cleared; /* the agent has seen that it had ended under its lock, and releases that */
    bool stuck;   /* not all of it could be killed */
    int typed;    /* the signal typed at its terminal that it died of; 0: none */
    /* The news of a stop or a loss, to be told again when it has ended. */
    struct run_news *verdict;
};

/* To be called before this process forks anything. The caller has zeroed the job but for
 * "inherited", which is its to set. plan, agent: borrowed. note: zeroed, in memory that is shared
 * with what is forked. 0; -1 with errno. */
int job_init(struct job *job, const struct job_plan *plan, const struct agent_process *agent,
             struct child_note *note);
/* Gets what else the system may refuse (/proc, the terminal, a cgroup), while the agent connects to
 * its store. 0; -1 with errno. */
int job_prepare(struct job *job);
/* Frees what job_init() and job_prepare() have taken. */
void job_free(struct job *job);
/* The moment to TERM for the present lease. */
struct moment job_term_at(const struct job *job);
/* Starts the command, and tells the agent. It is never executed after job_term_at(). 0; -1 with
 * errno: it was not started. */
int job_start(struct job *job);

/* Tells the agent which process the command is, and whether that is being ended: for an agent that
 * has taken the place of one that died. */
void job_introduce(const struct job *job);

/* The lease was renewed: it ends later. In VERIFYING, that is the answer: the command continues. */
void job_extend(struct job *job, struct lease lease);
/* The lock is lost: tells the user, and ends the command, unless the plan has it continue. Does
 * nothing where no command was started, or that is known. */
void job_lose(struct job *job, const struct run_reason *why);
/* Notes why the lease could not be renewed. */
void job_note_trouble(struct job *job, const char *text);
/* Hands a signal that this process got on to the command; SIGTSTP stops this process with it. */
void job_signal(struct job *job, int signo);
/* Takes a change of the command's state. status: as of waitpid(). */
void job_changed(struct job *job, enum child_change change, int status);
/* Once the command has ended, and all that the agent had to say was heard: decides whether the lock
 * counts as lost. It does where the end is seen too late, as it may have come after the lease, or
 * be the agent's work; but not where the agent has seen it in time, and has released the lock. */
void job_judge_end(struct job *job);
/* Once the command has ended: tells the user again that it was stopped or lost the lock, if so. */
void job_remind(const struct job *job);
/* The agent has died: what it was ending is this process's to end. */
void job_agent_died(struct job *job);
/* Whether it is the agent that ends the command, and perhaps still runs the command of --stop. */
bool job_is_ended_elsewhere(const struct job *job);
/* Children of this process have ended and were reaped, perhaps the last of the command's tree. */
void job_reaped(struct job *job);
/* When PAUSED, and all that the agent had to say has been heard: has the agent verify that the lock
 * is still held, before the command continues. */
void job_verify(struct job *job);

/* For a job that has ended, stuck, with a lease that is not renewed any more: continues killing the
 * processes that still fork, until none is left or the lease has ended. */
void job_kill_on(struct job *job);

/* Whether the command was executed, as far as is known. */
bool job_was_executed(const struct job *job);
/* Describes how the command has ended; end->known: false if it was not executed. */
void job_command_end(const struct job *job, struct lock_end *end);

/* Returns when to call job_tick() next. */
struct moment job_due(const struct job *job);
/* Does what is due by the clock; harmless when nothing is. */
void job_tick(struct job *job);
/* Kills the command at once, for a supervisor that cannot continue. Returns when it is dead, or
 * cannot be killed. */
void job_abandon(struct job *job);
