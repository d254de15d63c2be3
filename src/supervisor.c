/* The agent's messages, the user's signals, the outcome. */
#include "supervisor.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

#include "child.h"
#include "departure.h"
#include "deputy.h"
#include "loop.h"
#include "say.h"
#include "status.h"
#include "ward.h"

struct supervisor {
    const struct supervisor_plan *plan;
    struct supervisor_outcome *outcome;
    struct loop *loop;
    struct loop_io channel;
    struct loop_timer clock; /* urgent: what is next due */
    struct deputy agent;
    struct ward ward;
    struct departure departure;
    struct lock_grant grants[LOCK_KEYS_MAX];

    bool held;     /* the agent says so; the command has not been started */
    bool extended; /* an extension is to be acknowledged */
    bool decided;  /* the outcome is known, as no command was run */
    bool done;
    struct moment began;
};

static const char *title_of(const struct supervisor *s)
{
    return s->plan->agent.title;
}

static void acknowledge(struct supervisor *s)
{
    struct message message = {.kind = MESSAGE_ACK, .deadline = s->ward.deadline};
    deputy_tell(&s->agent, &message);
}

static bool stays(const struct supervisor *s)
{
    return s->departure.state == STAYING;
}

/* -- leaving --------------------------------------------------------------------------------- */

static void finish(struct supervisor *s)
{
    s->done = true;
    loop_stop(s->loop);
}

static void decide(struct supervisor *s, enum outcome outcome, int status)
{
    s->decided = true;
    s->outcome->outcome = outcome;
    s->outcome->status = status;
}

static void leave_in_vain(struct supervisor *s, const char *why)
{
    departure_fail(&s->departure, why);
    finish(s);
}

static void release(struct supervisor *s)
{
    s->outcome->held = moment_until(s->ward.acquired, moment_now());
    if (!departure_release(&s->departure))
        finish(s);
}

/* -- messages -------------------------------------------------------------------------------- */

/* A grant that has aged away, while this process was stopped, is left unanswered: the agent takes it
 * back. The command itself looks at the clock once more before it is executed. */
static void start_command(struct supervisor *s)
{
    s->held = false;
    s->ward.acquired = moment_now();
    if (moment_reached(ward_term_at(&s->ward), s->ward.acquired))
        return;
    acknowledge(s);
    s->outcome->waited = moment_until(s->began, s->ward.acquired);
    s->outcome->granted = true;
    memcpy(s->outcome->grants, s->grants, sizeof s->grants);
    environment_grant(s->plan->environment, s->grants);
    if (ward_start(&s->ward) == 0)
        return;
    say_error("cannot start %s: %s", s->plan->command[0], strerror(errno));
    decide(s, OUTCOME_FAILED, STATUS_SYSTEM);
    release(s);
}

static void take_held(struct supervisor *s, const struct message *message)
{
    if (!stays(s) || s->ward.state != WARD_IDLE)
        return;
    s->held = true;
    s->ward.deadline = message->deadline;
    memcpy(s->grants, message->grants, sizeof s->grants);
}

/* The agent's last word where no command was run: a line, perhaps with a hint in a second one. */
static void take_refusal(struct supervisor *s, const struct message *message)
{
    bool refused = message->refused;
    const char *hint = strstr(message->text, "\nhint: ");
    int length = (int)(hint ? hint - message->text : (ptrdiff_t)strlen(message->text));

    decide(s, refused ? OUTCOME_NOT_ACQUIRED : OUTCOME_FAILED, message->status);
    if (length > 0 && refused)
        say_warning("%.*s", length, message->text);
    else if (length > 0)
        say_error("%.*s", length, message->text);
    if (hint)
        say_hint("%s", hint + strlen("\nhint: "));
}

static void take_over(struct supervisor *s, const struct message *message)
{
    if (s->departure.state == RELEASING && message->text[0])
        departure_fail(&s->departure, message->text);
    else if (!s->decided && s->ward.state == WARD_IDLE)
        take_refusal(s, message);
    else if (stays(s))
        return; /* before its time; that it ends will be noticed */
    finish(s);
}

static void take(struct supervisor *s, const struct message *message)
{
    switch (message->kind) {
    case MESSAGE_HELD: take_held(s, message); break;
    case MESSAGE_WITHDRAWN:
        s->held = false;
        ward_lose(&s->ward, "it was taken back before it was known that the command runs");
        break;
    case MESSAGE_EXTENDED:
        s->extended = true;
        ward_extend(&s->ward, message->deadline);
        break;
    case MESSAGE_TROUBLE: say_warning("%s: %s", title_of(s), message->text); break;
    case MESSAGE_LOST:
        s->held = false;
        ward_lose(&s->ward, message->text);
        break;
    case MESSAGE_OVER: take_over(s, message); break;
    case MESSAGE_ACK:
    case MESSAGE_STARTED:
    case MESSAGE_PAUSED:
    case MESSAGE_VERIFY:
    case MESSAGE_RELEASE:
    case MESSAGE_CANCEL: break; /* to the agent, not from it */
    }
}

/* The agent is no more. A command that runs has the rest of its lease. */
static void part(struct supervisor *s)
{
    loop_remove(s->loop, &s->channel);
    if (!stays(s)) {
        leave_in_vain(s, "its agent died");
    } else if (s->ward.state == WARD_IDLE) {
        say_error("%s: the agent died while it waited", title_of(s));
        decide(s, OUTCOME_FAILED, STATUS_SYSTEM);
        finish(s);
    } else if (s->ward.state == WARD_PAUSED || s->ward.state == WARD_VERIFYING) {
        ward_lose(&s->ward, "its agent died");
    } else if (!s->ward.lost) {
        say_error("%s: the agent died; the lock is not renewed any more", title_of(s));
    }
}

/* All that is there is heard before anything is done about it: what comes last is what holds. */
static void listen_to_agent(struct supervisor *s)
{
    struct message message;
    bool was_gone = s->agent.gone;

    while (!s->done && deputy_hear(&s->agent, &message))
        take(s, &message);
    if (s->agent.gone && !was_gone && !s->done)
        part(s);
    if (s->held && !s->done)
        start_command(s);
    if (s->extended)
        acknowledge(s);
    s->extended = false;
}

/* -- events ---------------------------------------------------------------------------------- */

/* Draws the conclusions, after whatever happened. */
static void settle(struct supervisor *s)
{
    struct moment due;

    if (s->ward.state == WARD_PAUSED)
        listen_to_agent(s); /* it may have said much while this process was stopped */
    if (s->ward.state == WARD_PAUSED)
        ward_verify(&s->ward);
    if (s->ward.state == WARD_ENDED && stays(s))
        release(s);
    due = stays(s) ? ward_due(&s->ward) : s->departure.by;
    if (!s->clock.added || due.ns != s->clock.due.ns)
        loop_arm(s->loop, &s->clock, due);
}

static void on_message(struct loop_io *io, int events)
{
    (void)events;
    listen_to_agent(io->owner);
    settle(io->owner);
}

/* The agent may have got an extension that was not heard of, if this process was stopped. */
static void on_time(struct loop_timer *timer)
{
    struct supervisor *s = timer->owner;

    listen_to_agent(s);
    if (stays(s))
        ward_tick(&s->ward);
    else if (!s->done && moment_reached(s->departure.by, moment_now()))
        leave_in_vain(s, "no answer");
    settle(s);
}

static void reap(struct supervisor *s)
{
    enum child_change change;
    int status;
    pid_t pid;

    if (moment_reached(ward_due(&s->ward), moment_now()))
        listen_to_agent(
            s); /* the end is not late if the lease was extended while we were stopped */
    while ((pid = child_next_change(&s->ward.child, &change, &status)) > 0) {
        if (change != CHILD_OTHER)
            ward_changed(&s->ward, change, status);
        else if (pid == s->agent.pid)
            s->agent.pid = 0;
    }
    if (s->agent.pid == 0)
        listen_to_agent(s);
    ward_reaped(&s->ward);
}

/* No command runs yet. */
static void interrupt(struct supervisor *s, int signo)
{
    if (signo == SIGTSTP) {
        terminal_stop(SIGTSTP, false);
    } else if (child_signal_is_fatal(signo)) {
        decide(s, OUTCOME_INTERRUPTED, 0);
        s->outcome->signal = signo;
        if (!departure_cancel(&s->departure))
            finish(s);
    }
}

static void on_signal(void *owner, int signo)
{
    struct supervisor *s = owner;

    if (signo == SIGCHLD)
        reap(s);
    else if (stays(s) && s->ward.state == WARD_IDLE)
        interrupt(s, signo);
    else if (stays(s))
        ward_signal(&s->ward, signo);
    else if (child_signal_is_fatal(signo))
        departure_hurry(&s->departure);
    if (!s->done)
        settle(s);
}

/* -- the run --------------------------------------------------------------------------------- */

/* The agent first: while it connects, the rest is made ready, so that nothing that may be refused is
 * left to be asked for when the lock is held. */
static int prepare(struct supervisor *s)
{
    sigset_t caught;

    child_block_signals(&s->ward.inherited);
    s->began = moment_now();
    if (ward_init(&s->ward, s->plan, &s->agent) < 0)
        return -1;
    say_set_job(s->ward.terminal.job);
    if (deputy_start(&s->agent, &s->plan->agent) < 0)
        return -1;
    s->channel.fd = s->agent.channel;
    child_choose_signals(&caught);
    child_adopt_orphans();
    s->loop = loop_new();
    if (!s->loop || loop_signals(s->loop, &caught, on_signal, s) < 0)
        return -1;
    loop_add(s->loop, &s->channel);
    loop_arm(s->loop, &s->clock, MOMENT_NEVER);
    return 0;
}

static void conclude(struct supervisor *s)
{
    struct supervisor_outcome *outcome = s->outcome;
    const struct ward *ward = &s->ward;
    bool ran = ward->state != WARD_IDLE && !ward->fault;

    outcome->command_status = ran && WIFEXITED(ward->status) ? WEXITSTATUS(ward->status) : -1;
    outcome->command_signal = ran && WIFSIGNALED(ward->status) ? WTERMSIG(ward->status) : 0;
    if (!outcome->granted)
        outcome->waited = moment_until(s->began, moment_now());
    if (s->decided)
        return;
    if (ward->lost) {
        decide(s, OUTCOME_LOST, STATUS_LOST);
    } else if (ward->fault) {
        decide(s, OUTCOME_NOT_EXECUTED,
               ward->fault == ENOENT ? STATUS_NOT_FOUND : STATUS_NOT_EXECUTABLE);
    } else if (ward->timed_out) {
        decide(s, OUTCOME_TIMED_OUT, STATUS_TIMED_OUT);
    } else {
        decide(s, OUTCOME_COMPLETED, outcome->command_status);
        outcome->signal = outcome->command_signal;
    }
}

void supervisor_run(const struct supervisor_plan *plan, struct supervisor_outcome *outcome)
{
    struct supervisor s = {.plan = plan, .outcome = outcome};

    s.channel = (struct loop_io){.ready = on_message, .events = LOOP_READ, .owner = &s};
    s.departure =
        (struct departure){.title = plan->agent.title, .agent = &s.agent, .ward = &s.ward};
    s.clock = (struct loop_timer){.fire = on_time, .urgent = true, .owner = &s};
    if (prepare(&s) < 0 || loop_run(s.loop) < 0) {
        say_error("the system refuses: %s", strerror(errno));
        ward_abandon(&s.ward);
        decide(&s, OUTCOME_FAILED, STATUS_SYSTEM);
    }
    deputy_end(&s.agent);
    conclude(&s);
    if (s.ward.typed && outcome->signal)
        kill(0, s.ward.typed);
    loop_free(s.loop);
}

int supervisor_die_of(int signo)
{
    child_die_of(signo);
    return 128 + signo;
}
