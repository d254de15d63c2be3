/* The command under its deadline: started, signalled, stopped and continued with its terminal, and ended
 * before the lease ends. It does what it is told and what its clock says; the supervisor tells it
 * what the agent and the user want, and looks at "state" after each call. */
#ifndef RLOCK_WARD_H
#define RLOCK_WARD_H

#include "child.h"
#include "deputy.h"
#include "stop.h"
#include "supervisor.h"

enum ward_state {
    WARD_IDLE,      /* not started */
    WARD_RUNNING,   /* perhaps stopped, but not together with this process */
    WARD_PAUSED,    /* stopped; this process was too, and has just been continued */
    WARD_VERIFYING, /* still stopped: is the lock still ours? */
    WARD_LINGERING, /* ended by itself; what it left behind is waited for */
    WARD_STOPPING,  /* being ended */
    WARD_ENDED,
};

struct ward {
    const struct supervisor_plan *plan;
    enum ward_state state;
    const struct deputy *agent; /* to be told, and not to be ended with the command */
    struct inherited inherited;
    struct terminal terminal;
    struct child child;
    struct stop stop;

    struct moment acquired;
    struct moment deadline; /* the end of the lease */
    struct moment stopping_since;
    struct moment verify_by; /* while it is stopped, an old deadline does no harm */
    sigset_t handed_on;      /* the signals that it got through this process */
    bool told_to_stop;       /* SIGTSTP was one of them */
    bool had_terminal;       /* before it was paused */

    /* How it went. */
    int fault;      /* errno: it was not executed */
    int status;     /* as of waitpid() */
    bool lost;      /* the lock, while it ran */
    bool timed_out; /* --at-most, or the lease of --no-renew */
    bool stuck;     /* not all of it could be killed */
    int typed;      /* the signal typed at its terminal that it died of; 0 */
};

/* "inherited" is for the caller to set. -1 with errno. */
int ward_init(struct ward *ward, const struct supervisor_plan *plan, const struct deputy *agent);
/* The moment to TERM for the present deadline. */
struct moment ward_term_at(const struct ward *ward);
/* Starts it: -1 with errno if that was not possible. It is never executed after ward_term_at(). */
int ward_start(struct ward *ward);

void ward_extend(struct ward *ward, struct moment deadline);
void ward_lose(struct ward *ward, const char *why);
/* Hands on a signal that this process got; SIGTSTP stops this process with it. */
void ward_signal(struct ward *ward, int signo);
/* What waitpid() said of it. */
void ward_changed(struct ward *ward, enum child_change change, int status);
/* Any process has ended. */
void ward_reaped(struct ward *ward);
/* When PAUSED, and all that the agent had to say has been heard: asks for the present state. */
void ward_verify(struct ward *ward);

/* When ward_tick() is to be called next. */
struct moment ward_due(const struct ward *ward);
void ward_tick(struct ward *ward);
/* Kills it without further ado, for a supervisor that cannot go on; returns when it is dead, or does not
 * die. */
void ward_abandon(struct ward *ward);

#endif
