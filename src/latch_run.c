/* A command under no lock: its ward has a deadline that never comes, and no agent to tell. */
#include "latch_run.h"

#include <errno.h>
#include <string.h>
#include <sys/wait.h>

#include "say.h"
#include "status.h"
#include "ward.h"

struct runner {
    struct latch_session *session;
    struct supervisor_plan plan;
    struct deputy nobody;
    struct ward ward;
};

/* Draws the conclusions, after whatever happened: what was stopped together with this process goes on
 * with it. */
static void settle(struct runner *runner)
{
    if (runner->ward.state == WARD_PAUSED) {
        ward_verify(&runner->ward);
        ward_extend(&runner->ward, MOMENT_NEVER);
    }
    if (runner->ward.state == WARD_ENDED)
        loop_stop(runner->session->query.loop);
}

static void on_signal(void *arg, int signo)
{
    struct runner *runner = arg;
    enum child_change change;
    int status;

    if (signo != SIGCHLD)
        ward_signal(&runner->ward, signo);
    while (signo == SIGCHLD && child_next_change(&runner->ward.child, &change, &status) > 0)
        ward_changed(&runner->ward, change, status);
    settle(runner);
}

static void refuse(struct latch_run *run, const char *what)
{
    say_error("%s %s: %s", what, run->command[0], strerror(errno));
    run->status = STATUS_SYSTEM;
}

static void conclude(struct latch_run *run, const struct ward *ward)
{
    if (ward->fault) {
        run->status = ward->fault == ENOENT ? STATUS_NOT_FOUND : STATUS_NOT_EXECUTABLE;
    } else if (WIFSIGNALED(ward->status)) {
        run->signal = WTERMSIG(ward->status);
        run->typed = ward->typed;
    } else {
        run->status = WEXITSTATUS(ward->status);
    }
}

void latch_run(struct latch_run *run, struct latch_session *session)
{
    struct runner runner = {.session = session, .nobody = {.gone = true}};

    runner.plan.command = run->command;
    runner.plan.environment = run->environment;
    runner.plan.agent.title = session->key;
    runner.plan.on_lost = ON_LOST_CONTINUE;
    runner.plan.agent.keeper.request.keys = &session->key;
    runner.plan.agent.keeper.request.key_count = 1;
    runner.plan.agent.keeper.renew = true;
    runner.ward = (struct ward){.deadline = MOMENT_NEVER, .inherited = session->inherited};
    session->signalled = on_signal;
    session->arg = &runner; /* cppcheck-suppress autoVariables ; until we return */
    if (ward_init(&runner.ward, &runner.plan, &runner.nobody) < 0 || ward_start(&runner.ward) < 0) {
        refuse(run, "cannot start");
    } else if (loop_run(session->query.loop) < 0) {
        refuse(run, "cannot wait for");
        ward_abandon(&runner.ward);
    } else {
        conclude(run, &runner.ward);
    }
    session->signalled = NULL;
    session->arg = NULL;
}
