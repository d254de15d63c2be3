/* The phases, and what leads out of each:
 *
 *   IDLE      watchdog_watch(): WATCHING.
 *   WATCHING  Until the moment to act, act_at(): when a supervisor that does not keep the deadline
 *             must be helped, or KILL is due in any case. The command has ended by itself: IDLE.
 *             KILL is due: ENDING. Else --stop: DELAYING; without it TERM: ENDING.
 *   DELAYING  The command of --stop has ended, or had half of the time: TERM, and ENDING. KILL is
 *             due: killed here as in ENDING.
 *   ENDING    KILL is due: killed again and again. Nothing is left, nor of --stop: IDLE.
 *   ORPHANED  Killed from the start, though --stop has its time. Otherwise as ENDING.
 *
 * IDLE is said once: by "cleared" or "failed" (also HOPELESS_NS after the lease); where the
 * supervisor keeps the deadline, and should tell of the end itself, by "ended" or not at all. From
 * any phase watchdog_dismiss() leads to IDLE, watchdog_supervisor_died() to ORPHANED, and another
 * lease to WATCHING, but for ORPHANED. "alarmed" is called when WATCHING is left for an end that
 * the supervisor has not begun. */
#include "run/watchdog.h"

#include <signal.h>

#include "os/kill_tree.h"

/* How often to look whether what is being ended is gone. */
#define LOOK_NS (20 * NS_PER_MS)
/* How long after the lease's end to continue killing what does not die. */
#define HOPELESS_NS (5 * NS_PER_SEC)

/* Returns until when the command may continue, by what this guard knows now. */
static struct deadline deadline_now(const struct watchdog *watchdog)
{
    struct supervised known = watchdog->known;

    known.suspended = known.stopping_since.ns ? clock_suspended() : 0;
    return deadline_of(watchdog->plan, &known);
}

/* Returns when KILL is due. */
static struct moment kill_at(const struct watchdog *watchdog)
{
    return deadline_now(watchdog).kill_at;
}

/* Whether this guard ends the command, and has to report and release in the supervisor's place. */
static bool acts_alone(const struct watchdog *watchdog)
{
    const struct deadline at = deadline_now(watchdog);

    /* A supervisor that was stopped while it ended the command still reports, if the lock is
     * held. */
    return at.by == GUARD_AGENT &&
           (!watchdog->stopping || moment_reached(at.lost_at, loop_now(watchdog->loop)));
}

bool watchdog_knows_command(const struct watchdog *watchdog)
{
    return watchdog->tree.group > 0;
}

/* Learns the command's process group from the shared memory: a supervisor that was stopped or
 * killed at once has not told it. */
static void learn_group(struct watchdog *watchdog)
{
    if (!watchdog_knows_command(watchdog) && watchdog->shared)
        watchdog->tree.group = atomic_load(&watchdog->shared->command.group);
}

/* Arms the timer for the next look, or for KILL if that is due before. */
static void look_again(struct watchdog *watchdog)
{
    struct moment now = loop_now(watchdog->loop), kill = kill_at(watchdog);
    struct moment look = moment_plus(now, LOOK_NS);

    loop_arm(watchdog->loop, &watchdog->timer,
             moment_reached(kill, now) ? look : moment_min(look, kill));
}

/* Bars the supervisor from starting a command: it may have claimed the grant and not have started
 * it yet. Called after a look that has found no command; false if one was started since, which is
 * noted then. True also where the command is known. */
static bool bar_command(struct watchdog *watchdog)
{
    if (watchdog_knows_command(watchdog) || !watchdog->shared ||
        child_note_bar(&watchdog->shared->command))
        return true;
    learn_group(watchdog);
    return false;
}

/* Looks for the command before the first signal, as one that KILL ends at once is not seen later;
 * and bars the supervisor from starting one if there is none. TREE_LIVE, too, if one was started
 * since the look. */
static enum tree_state look_for_command(struct watchdog *watchdog)
{
    enum tree_state state = tree_signal(&watchdog->tree, 0);
    return state == TREE_GONE && !bar_command(watchdog) ? TREE_LIVE : state;
}

/* Ends the watch, and says how by a callback: all is gone, or killing is hopeless ("state" is what
 * the last look has found). */
static void conclude_kill(struct watchdog *watchdog, enum tree_state state)
{
    bool alone = acts_alone(watchdog);
    /* Where only the command's process group can be seen, its end is not that of all. */
    bool gone = state == TREE_GONE && tree_is_visible(&watchdog->tree);

    if (!bar_command(watchdog)) { /* there is a command after all */
        look_again(watchdog);
        return;
    }
    watchdog_dismiss(watchdog);
    if (gone && alone)
        watchdog->cleared(watchdog->arg);
    else if (gone)
        watchdog->ended(watchdog->arg);
    else if (alone)
        watchdog->failed(watchdog->arg, state);
}

/* Leaves WATCHING for a phase in which the tree is being ended, and says so ("alarmed"): the
 * supervisor must hear of it before it finds its command ended. Does nothing in another phase, or
 * where nothing is left of the tree. The callback may dismiss the watchdog: then it is IDLE. */
static void raise_alarm(struct watchdog *watchdog, enum watchdog_phase phase, enum tree_state state)
{
    if (watchdog->phase != WATCHDOG_WATCHING || state == TREE_GONE)
        return;
    watchdog->phase = phase;
    if (watchdog->stopping && !acts_alone(watchdog))
        return; /* a supervisor that is ending its command knows why */
    /* Also for one that has acknowledged the deadline: a renewal may have been answered since. */
    watchdog->known.lost = watchdog->known.silent = true;
    watchdog->alarmed(watchdog->arg);
}

/* The process of the supervisor's command of --stop, which leads a group; 0 or less: none. */
static int stop_of_supervisor(const struct watchdog *watchdog)
{
    return watchdog->shared ? atomic_load(&watchdog->shared->stop_note.group) : 0;
}

/* Whether a command of --stop still runs, this process's (which is killed when KILL is due) or the
 * supervisor's: the tree counts as gone only when neither does. signo: SIGKILL, for the
 * supervisor's, which may be outside the cgroup of the command; 0 only looks. */
static bool check_stop_command(struct watchdog *watchdog, int signo)
{
    const struct tree *tree = &watchdog->tree;
    int of_other = stop_of_supervisor(watchdog);

    if (watchdog->known.stopping_since.ns)
        watchdog->stop_command.kill_at = kill_at(watchdog);
    bool runs = stop_command_check(&watchdog->stop_command, loop_now(watchdog->loop));
    /* One that cannot be looked at (TREE_UNSEEN) may run. */
    return (tree->root > 0 && of_other > 0 &&
            tree_signal_child(tree->procfs, tree->root, of_other, signo) != TREE_GONE) ||
           runs;
}

/* Sends KILL to what is left, and has the timer do so again until nothing is, or HOPELESS_NS after
 * the lease. */
static void kill_command(struct watchdog *watchdog)
{
    if (watchdog->phase == WATCHDOG_WATCHING) /* a killed tree may be gone at once */
        raise_alarm(watchdog, WATCHDOG_ENDING, look_for_command(watchdog));
    if (watchdog->phase == WATCHDOG_IDLE)
        return;
    const struct lease lease = watchdog->known.lease;
    struct moment now = loop_now(watchdog->loop);
    watchdog->tree.lenient =
        deadline_lets_off(lease, patience_look(&watchdog->killing_for, now), now);
    if (moment_reached(lease.end, now))
        patience_look(&watchdog->overtime, now);
    bool stop_runs = check_stop_command(watchdog, SIGKILL);
    enum tree_state state = tree_signal(&watchdog->tree, SIGKILL);
    /* A supervisor that is late may have started its command since that look. */
    raise_alarm(watchdog, WATCHDOG_ENDING, state);
    if (watchdog->phase == WATCHDOG_IDLE)
        return;
    if ((state == TREE_GONE && !stop_runs) || watchdog->overtime.ns >= HOPELESS_NS)
        conclude_kill(watchdog, state);
    else
        look_again(watchdog);
}

/* Ends the watch if nothing is left of the command ("state" of a look just now), nor of --stop;
 * otherwise has the timer look again. */
static void end_or_look_again(struct watchdog *watchdog, enum tree_state state)
{
    if (state == TREE_GONE && !check_stop_command(watchdog, 0))
        conclude_kill(watchdog, state);
    else
        look_again(watchdog);
}

bool watchdog_bar_stop_command(struct watchdog *watchdog)
{
    return !watchdog->shared || child_note_bar(&watchdog->shared->stop_note);
}

/* Sends TERM to all but a command of --stop that the supervisor has started, which ends by itself
 * or by KILL. Returns what was there, with that command. */
static enum tree_state terminate_command(struct watchdog *watchdog)
{
    int stop = stop_of_supervisor(watchdog);

    watchdog->tree.spared = stop > 0 ? stop : 0;
    enum tree_state state = kill_tree_terminate(&watchdog->tree);
    watchdog->tree.spared = 0;
    return stop > 0 && state == TREE_GONE ? tree_signal(&watchdog->tree, 0) : state;
}

/* Sends TERM and enters ENDING, unless a command of --stop of this process (DELAYING) still has
 * time: then has the timer try again. */
static void try_to_terminate(struct watchdog *watchdog)
{
    if (watchdog->phase == WATCHDOG_DELAYING && check_stop_command(watchdog, 0) &&
        stop_command_delays_term(&watchdog->stop_command, loop_now(watchdog->loop))) {
        look_again(watchdog);
        return;
    }
    watchdog->tree.kill_at = kill_at(watchdog);
    enum tree_state state = terminate_command(watchdog);
    raise_alarm(watchdog, WATCHDOG_ENDING, state);
    if (watchdog->phase == WATCHDOG_DELAYING) /* the alarm was raised before */
        watchdog->phase = WATCHDOG_ENDING;
    if (watchdog->phase != WATCHDOG_IDLE)
        end_or_look_again(watchdog, state);
}

/* The moment to act has come in WATCHING: begins to end the command, by --stop and TERM. late: KILL
 * is due, and is sent at once. */
static void leave_watching(struct watchdog *watchdog, bool late)
{
    /* The command ended by itself while its supervisor was stopped. The processes that it has left
     * continue, as always. */
    bool over = acts_alone(watchdog) && !watchdog->stopping && !watchdog->plan->wait_descendants &&
                tree_leader_ended(&watchdog->tree);
    bool lives = false, ends = false;

    if (!late && !over) {
        if (!watchdog->stopping)
            watchdog->known.stopping_since = awake_now();
        /* A supervisor that has not started any command may have other children. */
        lives = watchdog_knows_command(watchdog) && tree_signal(&watchdog->tree, 0) != TREE_GONE;
        /* Claimed before it is done: if this process dies in between, its follower does it. */
        ends = lives && run_claim_end(watchdog->shared, &watchdog->known.stopping_since);
    }
    /* From now on no --stop of the supervisor begins beside a look that finds nothing left. */
    bool barred = watchdog_bar_stop_command(watchdog);

    if (barred && over) {
        conclude_kill(watchdog, TREE_GONE);
    } else if (late) {
        kill_command(watchdog);
    } else {
        if (lives && (ends || (barred && !watchdog->stop_command.begun)) &&
            stop_command_start(&watchdog->stop_command, NULL, NULL, kill_at(watchdog)))
            raise_alarm(watchdog, WATCHDOG_DELAYING, TREE_LIVE);
        else
            raise_alarm(watchdog, WATCHDOG_ENDING, look_for_command(watchdog));
        if (watchdog->phase != WATCHDOG_IDLE)
            try_to_terminate(watchdog);
    }
}

/* Returns when this guard has to act: when TERM is due, if it ends the command; otherwise when KILL
 * is, by which the supervisor must have ended it. */
static struct moment act_at(const struct watchdog *watchdog)
{
    const struct deadline at = deadline_now(watchdog);

    return at.by == GUARD_AGENT ? moment_min(at.lost_at, at.kill_at) : at.kill_at;
}

/* The timer: does what the phase asks for now. */
static void on_timer(struct loop_timer *timer)
{
    struct watchdog *watchdog = timer->owner;

    watchdog->listen(watchdog->arg);
    learn_group(watchdog);
    if (timer->armed) /* a message that was sent in time has put the deadline off */
        return;
    struct moment now = loop_now(watchdog->loop);
    watchdog->tree.kill_at = kill_at(watchdog);
    /* This process's command of --stop is outside the cgroup of the command. */
    watchdog->tree.strays = watchdog->tree.root > 0 && watchdog->stop_command.begun;
    bool late = moment_reached(watchdog->tree.kill_at, now);
    if (late)
        watchdog->tree.kill_at = (struct moment){0}; /* no time limit for the look: see os/tree.h */
    switch (watchdog->phase) {
    case WATCHDOG_IDLE: break;
    case WATCHDOG_WATCHING:
        if (!moment_reached(act_at(watchdog), now))
            loop_arm(watchdog->loop, &watchdog->timer, act_at(watchdog));
        else
            leave_watching(watchdog, late);
        break;
    case WATCHDOG_DELAYING:
        if (late)
            kill_command(watchdog);
        else
            try_to_terminate(watchdog);
        break;
    case WATCHDOG_ENDING:
        if (late)
            kill_command(watchdog);
        else
            end_or_look_again(watchdog, tree_signal(&watchdog->tree, 0));
        break;
    case WATCHDOG_ORPHANED: kill_command(watchdog); break;
    }
}

void watchdog_init(struct watchdog *watchdog, struct loop *loop)
{
    watchdog->loop = loop;
    watchdog->timer = (struct loop_timer){.fire = on_timer, .owner = watchdog, .urgent = true};
}

/* Arms the timer for the deadline as it is known now. */
static void arm_timer(struct watchdog *watchdog)
{
    if (watchdog->phase == WATCHDOG_WATCHING && watchdog->plan) /* a printer has no command */
        loop_arm(watchdog->loop, &watchdog->timer, act_at(watchdog));
}

void watchdog_watch(struct watchdog *watchdog, struct lease lease)
{
    if (watchdog->phase != WATCHDOG_ORPHANED)
        watchdog->phase = WATCHDOG_WATCHING;
    watchdog->known = (struct supervised){
        .lease = lease,
        .silent = true,
        .paused = watchdog->known.paused,
        /* The supervisor's; when this process began to end what an earlier grant led to is over. */
        .stopping_since = watchdog->stopping ? watchdog->known.stopping_since : (struct awake){0},
        .dead = watchdog->known.dead};
    arm_timer(watchdog);
}

void watchdog_lose(struct watchdog *watchdog, enum watchdog_peer supervisor)
{
    watchdog->known.lost = true;
    watchdog->known.silent = supervisor == SUPERVISOR_ABSENT;
    arm_timer(watchdog);
}

void watchdog_signal_loss(struct watchdog *watchdog)
{
    const struct job_plan *plan = watchdog->plan;
    const struct tree *tree = &watchdog->tree;

    if (!deadline_is_waived(plan) || plan->on_lost != ON_LOST_SIGNAL)
        return;
    learn_group(watchdog);
    bool ended = tree_leader_ended(tree);
    /* To a command that is not known yet, the supervisor sends the signal. */
    if (!watchdog_knows_command(watchdog) || (ended && !plan->wait_descendants) ||
        !run_claim_signal(watchdog->shared))
        return;
    if (ended)
        tree_signal(tree, plan->lost_signal); /* all that the command has left */
    else if (tree_signal_group(tree, plan->lost_signal) == TREE_GONE) /* it has left its group */
        tree_signal_child(tree->procfs, tree->root, tree->group, plan->lost_signal);
    atomic_store(&watchdog->shared->signalled, RUN_SIGNAL_SENT);
}

void watchdog_acknowledge(struct watchdog *watchdog)
{
    watchdog->known.silent = false;
    arm_timer(watchdog);
}

void watchdog_note_stopping(struct watchdog *watchdog, struct awake since)
{
    watchdog->stopping = true;
    watchdog->known.stopping_since = since;
    arm_timer(watchdog);
}

void watchdog_dismiss(struct watchdog *watchdog)
{
    watchdog->phase = WATCHDOG_IDLE;
    loop_disarm(watchdog->loop, &watchdog->timer);
}

void watchdog_supervisor_died(struct watchdog *watchdog)
{
    watchdog->phase = WATCHDOG_ORPHANED;
    if (!watchdog->stopping)
        watchdog_note_stopping(watchdog, awake_now());
    watchdog->known.dead = true;
    watchdog->known.paused = false; /* no lease that is answered from now on is renewed */
    watchdog->tree.root = 0;
    learn_group(watchdog);
    if (watchdog_knows_command(watchdog) && !watchdog->stop_command.begun)
        stop_command_start(&watchdog->stop_command, NULL, NULL, kill_at(watchdog));
    kill_command(watchdog);
}

void watchdog_pause(struct watchdog *watchdog)
{
    watchdog->known.paused = true;
    arm_timer(watchdog);
}

void watchdog_continue(struct watchdog *watchdog)
{
    watchdog->known.paused = false;
    arm_timer(watchdog);
}
