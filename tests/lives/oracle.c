/* How runs and scripts are judged by the sentences of the manual: at the start or the end of a
 * process, after each step, or at the end of a life. An exception names the sentence that admits
 * it. */
#include "lives/oracle.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "lives/cgroups.h"
#include "lives/database.h"
#include "lives/errand.h"
#include "lives/faults.h"
#include "lives/fence.h"
#include "lives/files.h"
#include "lives/latch.h"
#include "lives/life.h"
#include "lives/names.h"
#include "lives/network.h"
#include "lives/orders.h"
#include "lives/queue.h"
#include "lives/replication.h"
#include "lives/sentinels.h"
#include "lives/script.h"
#include "lives/sentences.h"
#include "lives/server.h"
#include "lives/states.h"
#include "run/exit_status.h"

static uint64_t last_fences[KEYS + 1]; /* of each KEY */

void oracle_begin(void)
{
    orders_begin();
    memset(last_fences, 0, sizeof last_fences);
}

/* -- exceptions -------------------------------------------------------------------------------- */

/* "Here nothing stops the script; it has to check the lock itself": rlock-acquire(1). With a
 * renewer that nothing disturbs it need not. */
bool life_counts_on(const struct run *run)
{
    bool renewed = !run->fixed && !run->faulted && !circumstances.network_bad && kernel.load < 3;

    return run->command_alive && !run->forced && !run->forgotten && !circumstances.clock_set &&
           (world.now < script.counts_until || renewed);
}

/* rlock(7), "Supervisor and agent stopped together", and for a moment after that; and
 * "--on-lost continue". */
static bool is_excused(const struct run *run)
{
    if (run->is_script)
        return !life_counts_on(run);
    return (run->goes_on && !run->fixed) ||
           (run->last_unguarded && run->last_unguarded > world.now - 300 * MS - kernel.kill_takes);
}

/* Whether that time is now. */
static bool is_within(struct span span)
{
    return span.from <= world.now && world.now < span.until;
}

/* rlock(7), "rlock force-release --now", "A store that forgets", "A clock of the server that is
 * stepped". */
static bool is_taken(const struct run *run)
{
    return is_within(run->taken);
}

/* By the user's Ctrl-Z, or as it needs the terminal. */
static bool is_at_rest(const struct proc *process)
{
    return process->stopped && process->stop_signal != SIGSTOP;
}

/* Stopped by the terminal, it does nothing. */
static bool is_at_work(const struct proc *process)
{
    return process_exists(process) && !is_at_rest(process);
}

/* -- at a start -------------------------------------------------------------------------------- */

static bool is_holder(const struct run *run)
{
    if (is_taken(run) || is_within(run->thinned))
        return true;
    for (size_t i = 0; i < run->held_count; i++)
        if (!server_has_holder(run->held[i], run->owner))
            return false;
    return true;
}

static bool share_a_key(const struct run *a, const struct run *b)
{
    for (size_t i = 0; i < a->held_count; i++)
        for (size_t j = 0; j < b->held_count; j++)
            if (strcmp(a->held[i], b->held[j]) == 0)
                return true;
    return false;
}

/* "A command and the commands nested in it count as one": rlock(7). */
static bool counts_as_outer(const struct run *run)
{
    return run->outer && run->outer->command_alive && share_a_key(run, run->outer);
}

/* rlock-stores(7) says when: of failovers in a table; "no server's clock jumps", of --grace. */
static bool may_be_split(void)
{
    return replication.split ||
           (replication.grace && circumstances.forgot && circumstances.clock_set);
}

static void check_others(const struct run *run)
{
    unsigned others = 0;

    for (int i = 0; i < run_count; i++) {
        const struct run *other = &runs[i];
        if (run_is_in(run, other) || !other->command_alive || !is_at_work(other->command) ||
            is_taken(other) || is_excused(other) || !share_a_key(run, other) ||
            counts_as_outer(other))
            continue;
        others++;
        if (other->outer && other->outer->is_script && !life_counts_on(other->outer) &&
            (run->mode == LOCK_EXCLUSIVE || other->mode == LOCK_EXCLUSIVE))
            BROKEN(NESTED_KEEPS, "run %d starts beside run %d", run->number, i);
        else if (run->mode == LOCK_EXCLUSIVE && replication.moved && replication.grace)
            BROKEN(NO_GAP, "run %d starts beside run %d", run->number, i);
        else if (run->mode == LOCK_EXCLUSIVE && other->mode == LOCK_EXCLUSIVE)
            BROKEN(ONE_AT_A_TIME, "run %d starts beside run %d", run->number, i);
        else if (run->mode == LOCK_EXCLUSIVE || other->mode == LOCK_EXCLUSIVE)
            BROKEN(READERS_OR_WRITER, "run %d starts beside run %d", run->number, i);
    }
    if (run->mode == LOCK_LIMIT && others >= run->limit)
        BROKEN(AT_MOST_N, "run %d starts beside %u others", run->number, others);
}

static const char *variable_of(char *const *environment, const char *name)
{
    size_t length = strlen(name);

    for (char *const *entry = environment; *entry; entry++)
        if (strncmp(*entry, name, length) == 0 && (*entry)[length] == '=')
            return *entry + length + 1;
    return "";
}

/* The keys that it has, with their tokens. */
static void read_environment(struct run *run, char *const *environment)
{
    const char *keys = variable_of(environment, "RLOCK_KEY");
    size_t wanted = run->take ? run->take : run->key_count;

    for (size_t i = 0; i < run->key_count; i++)
        if (strstr(keys, run->keys[i]))
            run->held[run->held_count++] = run->keys[i];
    sscanf(variable_of(environment, "RLOCK_FENCE"), "%lu %lu %lu", &run->fences[0], &run->fences[1],
           &run->fences[2]);
    if (run->held_count != wanted || strlen(keys) != 3 * wanted - 1 ||
        (wanted > 1 && strstr(keys, run->held[0]) > strstr(keys, run->held[1])))
        BROKEN(KEYS_TOLD, "run %d has %s", run->number, keys);
}

/* rlock(7): "even after the server has lost its data, unless its clock was set back as well".
 * rlock-stores(7), of quorums: "unless the clock of another one was ahead", and, of what counts as
 * forgetting there: "or a clock jumped ahead". */
static bool may_fall(void)
{
    bool jumped = server_count > 1 && circumstances.clock_set;

    return jumped || (circumstances.forgot &&
                      (circumstances.set_back || replication.split || server_clocks_differ()));
}

/* The nested command is of the run outside, which has had the same lock all the time. Not judged at
 * a quorum: a server whose clock is ahead, and which has not heard yet of the token that was
 * settled on, gives another one. */
static bool nests_in_holder(const struct run *run)
{
    return run->outer && server_count == 1 && run->key_count == run->outer->key_count &&
           strcmp(run->keys[0], run->outer->keys[0]) == 0 && !run->outer->forced &&
           !run->outer->forgotten && !circumstances.clock_set && !replication.moved &&
           !is_taken(run->outer) && is_holder(run->outer) && !is_excused(run->outer);
}

/* rlock-run(1): a KEY "that an ancestor already holds". A reservation that is over may be made anew
 * after a run of its user has taken the lock. Its new token is known when "reserve" has ended. */
static bool follows_outer(const struct run *run)
{
    const struct run *outer = run->outer;

    return outer->held_since < run->held_since &&
           (!outer->is_script || outer->held_since <= outer->ended_at);
}

static void check_fences(const struct run *run)
{
    for (size_t i = 0; i < run->held_count; i++) {
        uint64_t *last = &last_fences[run->held[i][1] - '1'];
        if (run->outer && (server_count > 1 || run->fences[i] == run->outer->fences[i]))
            continue; /* as nests_in_holder() has it */
        if (nests_in_holder(run) && follows_outer(run))
            BROKEN(NESTS, "run %d: %lu in %lu", run->number, run->fences[i], run->outer->fences[i]);
        if (run->mode == LOCK_EXCLUSIVE && run->fences[i] <= *last && !is_taken(run) &&
            !is_excused(run) && !may_fall())
            BROKEN(FENCES_RISE, "run %d: %lu after %lu", run->number, run->fences[i], *last);
        *last = run->fences[i] > *last ? run->fences[i] : *last;
    }
}

static bool shares_keys(const struct run *a, const struct run *b)
{
    for (size_t i = 0; i < a->key_count; i++)
        for (size_t j = 0; j < b->key_count; j++)
            if (strcmp(a->keys[i], b->keys[j]) == 0)
                return true;
    return false;
}

static bool has_succeeded(const struct run *run)
{
    return !run->is_script && run->ended && run->outcome.outcome == OUTCOME_COMPLETED &&
           run->outcome.command_status == 0 && !run->unreleased_told;
}

/* Nothing of it is left, or it seems to be of another time: rlock(7), "A store that forgets", "A
 * clock of the server that is stepped". */
static bool has_no_history(void)
{
    return circumstances.forgot || circumstances.clock_set;
}

/* 1 percent for the clocks. "Or if this process was stopped when the command ended", "if the lock
 * could not be released": rlock-run(1). */
static void check_done(const struct run *run)
{
    for (int i = 0; i < run_count; i++) {
        const struct run *other = &runs[i];
        if (!run->unless_done || has_no_history() || !has_succeeded(other) || other->faulted ||
            other->ended_unseen || other->ended_at >= run->granted_at || !shares_keys(run, other) ||
            other->take || other->outer) /* "except for one that nests in another run" */
            continue;
        if (run->granted_at - other->granted_at <
            run->unless_done - run->unless_done / 50 - 50 * MS)
            BROKEN(UNLESS_DONE, "run %d starts, and run %d was granted the lock %.3f s before",
                   run->number, i, (double)(run->granted_at - other->granted_at) / 1e9);
    }
}

static bool has_left_others(const struct run *run)
{
    for (int i = 0; i < kernel.process_count; i++)
        if (kernel.processes[i]->run == run && kernel.processes[i]->kind == DESCENDANT &&
            process_exists(kernel.processes[i]))
            return true;
    return false;
}

/* rlock(7), "Supervisor and agent stopped together": its host was suspended between a look at the
 * clock and what followed. */
static bool has_just_slept(void)
{
    return kernel.current->calls_awake == 0;
}

/* The command's time is over, and its process has looked at the clock since. */
static bool is_too_late(const struct proc *stopper, int64_t left)
{
    return world.now - stopper->born - 100 * MS > left && kernel.load < 3 && !kernel.slow_exec &&
           !has_just_slept();
}

static void on_stop_command(struct proc *process, char *const *environment)
{
    struct run *run = process->run;

    process->kind = STOPPER;
    run->stopper = process;
    run->stop_began = world.now;
    run->stop_held = is_holder(run);
    run->stop_left = atoll(variable_of(environment, "RLOCK_STOP_MS")) * MS;
    run->stop_due = process->born + run->stop_left;
    if (run->stops_seen++ && !run->killed && !run->agent_faulted)
        BROKEN(STOP_COMMAND, "run %d: --stop is run twice", run->number);
    if (run->stop_left > run->kill_after)
        BROKEN(STOP_LEFT, "run %d: it says that there are %.3f s", run->number,
               (double)run->stop_left / 1e9);
    if (is_too_late(process, run->stop_left))
        BROKEN(STOP_TOO_LATE, "run %d: --stop is run %.3f s after its KILL is due", run->number,
               (double)(world.now - process->born - run->stop_left) / 1e9);
    /* rlock(7): where the supervisor was killed, "the agent ends the command and its
     * descendants". */
    if (!is_holder(run) && !is_excused(run) && !run->command_alive &&
        !(run->killed && has_left_others(run)))
        BROKEN(STOP_COMMAND, "run %d: --stop is run without lock and command", run->number);
}

static const char *const notice_names[NOTICE_EVENTS] = {"waiting", "held", "lost", "timed-out",
                                                        "not-acquired"};

/* Whether such an event may have come. */
static bool has_reason(const struct run *run, enum notice_event event, int status)
{
    bool started = run->starts_seen > 0;
    int64_t waited = world.now - run->starts;

    switch (event) {
    case NOTICE_WAITING: return waited >= run->notify_after;
    case NOTICE_HELD: return run->outcome.granted && status == 0;
    case NOTICE_LOST: return run->outcome.granted && status == STATUS_LOST;
    case NOTICE_TIMED_OUT: return run->outcome.granted && status == STATUS_TIMED_OUT;
    case NOTICE_NOT_ACQUIRED: return !started && status != 0;
    case NOTICE_EVENTS: break;
    }
    return false;
}

static void on_notice(struct proc *process, const char *name, char *const *environment)
{
    struct run *run = process->run;
    int status = atoi(variable_of(environment, "RLOCK_STATUS"));

    process->kind = NOTICE;
    trace("tells of %s", name);
    for (unsigned event = 0; event < NOTICE_EVENTS; event++) {
        if (strcmp(name, notice_names[event]) != 0)
            continue;
        if (run->notices_seen >> event & 1)
            BROKEN(NOTIFIES, "run %d: %s comes twice", run->number, name);
        if (!has_reason(run, event, status))
            BROKEN(NOTIFIES, "run %d: %s with status %d", run->number, name, status);
        run->notices_seen |= 1U << event;
    }
}

void life_on_execute(struct proc *process, char *const *argv, char *const *environment)
{
    struct run *run = process->run;

    const char *notice = variable_of(environment, "RLOCK_EVENT");

    trace("executes %s", argv[0]);
    if (process->errand) {
        errand_on_execute(process, environment);
        return;
    }
    if (*notice) {
        on_notice(process, notice, environment);
        return;
    }
    if (strcmp(argv[0], "command") != 0 && strcmp(argv[0], "rlock") != 0) {
        on_stop_command(process, environment);
        return;
    }
    process->kind = COMMAND;
    run->command = process;
    run->command_alive = true;
    if (run->starts_seen++)
        BROKEN(ONE_AT_A_TIME, "run %d: its command is started twice", run->number);
    read_environment(run, environment);
    if (!is_excused(run) && !is_taken(run) && !may_be_split())
        check_others(run);
    if ((!is_excused(run) || run->agent_left) && !is_holder(run))
        BROKEN(NEVER_WITHOUT_LOCK, "run %d: its command is started without the lock", run->number);
    check_fences(run);
    check_done(run);
}

/* -- when a signal is sent --------------------------------------------------------------------- */

/* A lock that is handed over is held for so long until its first renewal: "for 9.5 s from before it
 * sent that request", rlock(7). */
static int64_t lease_handed_over(const struct run *run)
{
    return run->lease < 9500 * MS ? run->lease : 9500 * MS;
}

/* For a lease of that length, by rlock(7), TIMING. */
static int64_t least_time_to_end(const struct run *run)
{
    int64_t lease = lease_handed_over(run);
    int64_t end = lease - lease / 100 - 2 * MS, tenth = lease / 10;
    int64_t margin = tenth < 500 * MS ? tenth : 500 * MS;
    int64_t kill = end - (margin > 200 * MS ? margin : 200 * MS);
    int64_t term = kill - (run->kill_after < lease / 4 ? run->kill_after : lease / 4);

    term = term > lease * 7 / 10 ? term : lease * 7 / 10;
    return kill - term;
}

/* Taken away, it may have less time: "always before its lease would have ended". */
static bool has_less_time(const struct run *run)
{
    return run->faulted || run->forced || run->signalled || circumstances.network_bad ||
           kernel.load > 1 || kernel.slow_exec;
}

/* The command of --stop, while it runs, has until KILL, and half of that until TERM. */
static void check_stop_time(const struct run *run, int64_t has, const char *what)
{
    int64_t had = world.now - run->stop_began;

    if (run->stopper && run->stopper->life == ALIVE && had < has - 20 * MS && !has_less_time(run))
        BROKEN(STOP_HAS_TIME, "run %d: %s %.3f s after the start of --stop", run->number, what,
               (double)had / 1e9);
}

static void check_kill(const struct run *run)
{
    int64_t time = least_time_to_end(run) / (run->has_stop ? 2 : 1);

    if (has_less_time(run) || !run->kill_after)
        return;
    if (!run->termed_at)
        BROKEN(TERM_FIRST, "run %d: its command gets KILL, and never got TERM", run->number);
    else if (world.now - run->termed_at < time - 20 * MS)
        BROKEN(TERM_FIRST, "run %d: its command gets KILL %.3f s after TERM", run->number,
               (double)(world.now - run->termed_at) / 1e9);
}

/* The run around it ends it, or the kernel does when that dies. */
static void note_death(const struct proc *process, int signo)
{
    struct run *run = process->run;

    if ((process->kind != SUPERVISOR && process->kind != AGENT) || !run->outer ||
        (kernel.current && !kernel.from_outside && kernel.current->run == run))
        return;
    if (signo == SIGKILL)
        run->faulted = true;
    run->killed |= signo == SIGKILL && process->kind == SUPERVISOR;
    run->agent_faulted |= signo == SIGKILL && process->kind == AGENT;
    run->agents_killed += signo == SIGKILL && process->kind == AGENT;
    run->signalled = true;
}

static void check_interrupts(struct run *run)
{
    if (++run->interrupts_seen > run->interrupts)
        BROKEN(CTRL_C_ONCE, "run %d: it comes to its command %u times", run->number,
               run->interrupts_seen);
}

static void note_stray(struct run *victim)
{
    if (victim)
        victim->faulted = victim->killed = victim->agent_faulted = victim->signalled = true;
}

/* Whether a guard has made so many calls since then, CALLS_KEPT at most, the current one among
 * them. */
static bool has_called_since(const struct proc *guard, int64_t since, unsigned calls)
{
    return guard->calls > calls && guard->called[(guard->calls - calls) % CALLS_KEPT] > since;
}

/* The calls of a guard that sends a signal to a group: its last look, the clock, the signal. */
#define CALLS_OF_SIGNAL 3

/* The group's number is one that a process of the run had. Without pidfds, nothing tells the two
 * apart between a look and a signal; nor of a whole group, before Linux 6.9. rlock(7), "No usable
 * /proc": "A process group that has got its number since may then be taken for that of the
 * command." */
static void check_stray(const struct proc *process, const struct run *run, int signo)
{
    bool blind = kernel.proc == PROC_NONE || kernel.proc == PROC_PROCESSES ||
                 (run && world.now < run->blind_until);
    bool looked = has_called_since(kernel.current, process->born, CALLS_OF_SIGNAL);
    bool between = !kernel.signals_groups && (has_just_slept() || !looked);
    bool tells =
        process->kind == STRANGER && has_called_since(kernel.current, process->born, CALLS_KEPT);

    if ((kernel.no_pidfd || kernel.no_pidfd_signal || blind || between) && !tells)
        note_stray(process->run);
    else if (run)
        fail("run %d sends signal %d to process %d of others", run->number, signo, process->pid);
    else
        fail("an errand sends signal %d to process %d of others", signo, process->pid);
}

/* A run around it sends that one when its own lock is lost, and it is passed on to the command. */
static bool comes_from_outside(const struct run *run, int signo)
{
    const struct run *outer = run->outer;

    while (outer && outer->lost_signal != signo)
        outer = outer->outer;
    return outer;
}

/* Until KILL is due, for a command of --stop, when the supervisor is dead of a KILL now: that "is
 * not run, since it might hit another holder's work" when the lease is over: rlock-run(1). */
static bool has_time_left(const struct proc *supervisor)
{
    return state_moment(supervisor, 1) > world.now + kernel.kill_takes + 20 * MS;
}

/* The run's command gets TERM: --stop has begun before that, or the user was told why not. */
static void check_stopped_run(const struct run *run)
{
    const struct proc *supervisor = run->supervisor;

    if (kernel.current->kind == AGENT && run->has_stop && supervisor->stopped && !run->stops_seen &&
        !run->stop_told && !run->agents_killed)
        BROKEN(STOP_OF_STOPPED, "run %d: TERM comes, and --stop is not run", run->number);
}

void life_on_signal(const struct proc *process, int signo)
{
    const struct proc *sender = kernel.from_outside ? NULL : kernel.current;
    struct run *run = sender ? sender->run : NULL;

    if ((run && signo && !(process->run && run_is_beside(process->run, run))) ||
        (sender && sender->errand && signo && process->errand != sender->errand))
        check_stray(process, run, signo);
    if (process->kind == STRANGER)
        return;
    if (!process->run)
        return;
    note_death(process, signo);
    bool dies_first = process->run->outer && process->stopped; /* its command does */
    process->run->killed_at_work |= signo == SIGKILL && process->kind == SUPERVISOR &&
                                    process->life == ALIVE && process->run->command_alive &&
                                    has_time_left(process) && !dies_first;
    if (process == process->run->command && signo == SIGINT)
        check_interrupts(process->run);
    if (!run || !run_is_in(process->run, run))
        return;
    run->signal_seen |= signo == run->lost_signal;
    if (process == run->stopper && signo == SIGKILL)
        check_stop_time(run, run->stop_left, "it is killed");
    if (process->kind == AGENT && process->run == run && sender->kind == SUPERVISOR &&
        (signo == SIGTERM || signo == SIGKILL) && state_moment(sender, MOMENT_OF_KILL) != NEVER)
        BROKEN(RENEWS_ON, "run %d: its agent is ended with its command", run->number);
    if (process != run->command)
        return;
    if (signo == SIGKILL && process->life == ALIVE)
        check_kill(run);
    if (signo == SIGCONT && process->stopped && !(run->goes_on && !run->fixed) && !is_holder(run) &&
        !has_just_slept())
        BROKEN(NEVER_WITHOUT_LOCK, "run %d: its command is continued without the lock",
               run->number);
    if (signo == SIGTERM && !run->termed_at) {
        check_stopped_run(run);
        check_stop_time(run, run->stop_left / 2, "TERM comes");
        run->termed_at = world.now;
    }
    if (signo == run->lost_signal && run->signals_seen++ && !run->faulted &&
        !comes_from_outside(run, signo))
        BROKEN(SIGNAL_ONCE, "run %d: it is sent twice", run->number);
}

/* -- at the server ----------------------------------------------------------------------------- */

#define DEFAULT_BOUND (15 * 60 * SEC)

/* A waiter that has waited for longer in that queue is not passed. "The shortest one of all waiters
 * counts": rlock-run(1); that of a run that does not wait does not. ever: one that has left it may
 * still count. */
static int64_t bound_of(const char *name, const struct run *run, bool ever)
{
    int64_t bound = run->bound && run->waits ? run->bound : DEFAULT_BOUND;

    for (int i = 0; i < waiter_count; i++)
        if ((ever || waiters[i].waits) && waiters[i].bound && waiters[i].bound < bound &&
            strcmp(waiters[i].key, name) == 0)
            bound = waiters[i].bound;
    return bound;
}

/* The server measures by its own clock, whose rate is within 1 % of the truth. */
static int64_t clock_error(int64_t time)
{
    return time / 100 + 5 * MS;
}

/* "For a waiter of several KEYs, and for those behind it, the shortest when it came":
 * rlock-run(1). */
static bool has_earlier_bound(const struct waiter *waiter)
{
    for (int i = 0; i < waiter_count; i++)
        if (waiters[i].waits && waiters[i].run->key_count > 1 &&
            waiters[i].order <= waiter->order && strcmp(waiters[i].key, waiter->key) == 0)
            return true;
    return false;
}

/* Whether the waiter comes before a run, which waits as "mine" or has just come (NULL). */
static bool comes_before(const struct waiter *waiter, const struct run *run,
                         const struct waiter *mine)
{
    int64_t waited = world.now - waiter->since, my_time = mine ? world.now - run->starts : 0;
    int64_t bound = bound_of(waiter->key, run, mine && waiter->order >= mine->order);

    if (waiter->priority != run->priority && (run->key_count > 1 || has_earlier_bound(waiter)))
        return false;
    if (!mine || waiter->order < mine->order)
        return waiter->priority >= run->priority || waited > bound + clock_error(bound);
    /* "The clock of the server does not jump": rlock(7). */
    return waiter->priority > run->priority && my_time < bound - clock_error(bound) &&
           !circumstances.clock_set;
}

/* MAY_SHARE. */
static bool may_share(const struct waiter *waiter, const struct run *run)
{
    char holders[600];

    if (run->mode == LOCK_SHARED)
        return waiter->mode == 's' || waiter->mode == 'S';
    return run->mode == LOCK_LIMIT &&
           server_holders(waiter->key, holders, sizeof holders) < (int)run->limit;
}

/* NESTED_FIRST. */
static bool nests_at(const struct run *run, const char *name)
{
    for (const struct run *outer = run->outer; outer; outer = outer->outer)
        for (size_t i = 0; i < outer->key_count; i++)
            if (strstr(name, outer->keys[i]) && server_has_entry(outer->keys[i], outer->owner))
                return true;
    return false;
}

/* "While it is first in one and waits for another, a command with RLOCK_OWNER passes it, whether it
 * nests in a holder or not": rlock(7), of a waiter for several KEYs. */
static bool may_pass_nested(const struct run *run, const struct waiter *waiter)
{
    return run->outer && waiter->run->key_count > 1;
}

/* A waiter that was not heard of for 7 s is dropped. */
static bool still_waits(const struct waiter *waiter)
{
    return waiter->waited && waiter->waits && waiter->until > server_now();
}

/* Whether what a run has sent, and was answered, may come once more: a lock that it makes then is
 * nobody's for a lease. */
static bool may_come_twice(void)
{
    return network.twins_of_1000 || network.first_has_twin || server_count > 1 ||
           replication.servers || circumstances.forgot;
}

/* A stopped supervisor keeps neither what was under way then nor what is handed over to its place,
 * so a third grant was asked for. */
static void check_granted(struct run *run)
{
    const struct proc *supervisor = run->supervisor;

    /* "The clock of the server does not jump", rlock(7): a late request may be early again. */
    if (run->ended && run->outcome.outcome == OUTCOME_NOT_ACQUIRED && !may_come_twice() &&
        !circumstances.set_back)
        BROKEN(ENDS_REFUSED, "run %d is granted it behind its end", run->number);
    if (process_exists(supervisor) && supervisor->stopped && !run->starts_seen &&
        ++run->granted_stopped > 2 && run->key_count == 1 && !run->agent_faulted &&
        !may_come_twice() && kernel.proc == PROC_WHOLE)
        BROKEN(STOPPED_WAITS, "run %d is granted it for the third time", run->number);
}

void life_on_granted(const char *name, const char *owner)
{
    struct run *run = run_of_owner(owner);

    if (!run)
        return;
    faults_on_granted(run);
    const struct waiter *mine = queue_find(name, run);
    if (order_has_paused(name) && !nests_at(run, name))
        BROKEN(PAUSED, "run %d is granted %s", run->number, name);
    if (!run->granted_at)
        run->granted_at = world.now;
    run->held_since = world.now;
    if (run->is_script)
        script_on_granted(run);
    else
        check_granted(run);
    if (circumstances.forgot || circumstances.set_back)
        return; /* "The store does not forget", "the clock of the server does not jump": rlock(7) */
    if (database_here.commits_late)
        return; /* whose turn it was, and for how long others had waited, was asked before */
    for (int i = 0; i < waiter_count; i++) {
        const struct waiter *waiter = &waiters[i];
        if (strcmp(waiter->key, name) != 0 || waiter->run == run || !still_waits(waiter) ||
            nests_at(run, name) || !comes_before(waiter, run, mine) || may_share(waiter, run) ||
            may_pass_nested(run, waiter))
            continue;
        if (waiter->priority != run->priority)
            BROKEN(BY_PRIORITY, "run %d is granted it before run %d", run->number,
                   waiter->run->number);
        else
            BROKEN(FIRST_COME, "run %d is granted it before run %d", run->number,
                   waiter->run->number);
    }
}

void life_on_released(const struct run *run, bool remembered)
{
    if (run->starts_seen && !remembered && !may_come_twice())
        BROKEN(HISTORY_TELLS, "run %d is not in it when it releases its lock", run->number);
}

void life_on_asked(const char *owner)
{
    struct run *run = run_of_owner(owner);

    if (run)
        run->forced = true;
}

/* Where the server's clock was set back, each of the keys ends when somebody asks for that. An old
 * master that lives on beside the new one may keep what was lost in the failover. One whose command
 * has ended waits for none: of a lease that is over, the KEYs that no other run has asked for since
 * may still be kept for --at-least. */
static void check_all_or_none(const struct run *run)
{
    bool is_kept = run->at_least && run->starts_seen && !run->command_alive;
    size_t held = 0;

    for (size_t i = 0; i < run->key_count; i++)
        held += server_has_holder(run->keys[i], run->owner);
    if (held > 0 && held != (run->take ? run->take : run->key_count) && !run->forced &&
        !run->ended && !is_kept && !circumstances.set_back && !replication.moved)
        BROKEN(ALL_OR_NONE, "run %d holds %zu", run->number, held);
}

static void check_latest(const struct waiter *waiter)
{
    for (const struct waiter *other = waiters; other < waiter; other++)
        if (other->waits && strcmp(other->group, waiter->group) == 0 &&
            strcmp(other->key, waiter->key) == 0)
            BROKEN(LATEST, "run %d waits beside run %d", waiter->run->number, other->run->number);
}

void life_on_commit(void)
{
    for (int i = 0; i < run_count && !circumstances.set_back; i++)
        if (runs[i].key_count > 1)
            check_all_or_none(&runs[i]);
    for (int i = 0; i < waiter_count; i++)
        if (waiters[i].waits && *waiters[i].group)
            check_latest(&waiters[i]);
}

/* -- after each step --------------------------------------------------------------------------- */

static void note_guards(struct run *run)
{
    bool guarded = false;

    for (int i = 0; i < kernel.process_count; i++) {
        const struct proc *process = kernel.processes[i];
        if (process->run == run && (process->kind == SUPERVISOR || process->kind == AGENT))
            guarded |= process_can_run(process);
    }
    if (!guarded || run->unguarded)
        run->last_unguarded = world.now;
    run->unguarded = !guarded;
}

/* A member of a quorum is greeted before it is asked. */
static bool network_is_unsteady(void)
{
    if (replication.rule != REPLICAS_NONE)
        return true; /* "Too few replicas are an outage": rlock-stores(7) */
    bool slow =
        server_count > 1 ? network.delay + network.jitter > 25 * MS : network.delay > 20 * MS;

    return slow || names_are_slow() || network.late_of_1000 || network.twins_of_1000 ||
           network.first_has_twin || database_here.cuts_of_1000;
}

/* rlock(7), "No usable /proc": "A process that left it" (the process group of the command) "is
 * neither stopped nor waited for by --wait-descendants"; "with hidepid (proc(5)) the agent does not
 * find" some, "once they have left the process group", and rlock "finds them when the process that
 * started them has ended", which takes its time; "while the host has no descriptors or no
 * memory left for a look at /proc, it is as if there were none". */
static bool is_out_of_sight(const struct run *run, const struct proc *process)
{
    bool agent_alone = run->killed || run->supervisor_stopped || run->paused;

    return process->group != run->command->pid &&
           (kernel.proc == PROC_NONE || world.now < run->blind_until ||
            (process->hidden && (agent_alone || kernel.kill_takes)));
}

/* "The agent releases the lock as soon as the command's processes are dead": rlock(7), of an rlock
 * that is killed. Its command had not ended by itself. */
static bool ends_with_rlock(const struct run *run)
{
    return run->killed_at_work && (run->command_alive || run->command_status == SIGKILL);
}

static bool work_is_left(const struct run *run)
{
    bool all = run->wait_descendants || ends_with_rlock(run);

    for (int i = 0; i < kernel.process_count; i++) {
        const struct proc *process = kernel.processes[i];
        bool belongs = process->run == run &&
                       (process->kind == COMMAND ||
                        (process->kind == DESCENDANT && all && !is_out_of_sight(run, process)));
        if ((belongs || process == run->command) && is_at_work(process))
            return true;
    }
    return false;
}

static bool holds_any(const struct run *run)
{
    for (size_t i = 0; i < run->key_count; i++)
        if (server_has_holder(run->keys[i], run->owner))
            return true;
    return false;
}

/* Whether nothing has struck the run, and nothing its way to the server but what struck latest. */
static bool is_hindered_once(const struct run *run)
{
    return !run->faulted && !run->forced && kernel.load < 2 && !kernel.slow_exec &&
           kernel.kill_takes < 200 * MS && !network_is_unsteady() && circumstances.strikes == 1;
}

/* A run learns of the new master "when it first reaches" that, to which clients may be led later:
 * rlock-stores(7). */
static void check_forgotten(const struct run *run)
{
    bool led = !replication.moved || sentinels_here.told;
    bool learns = is_hindered_once(run) && led && circumstances.latest->now && !run->fixed &&
                  !holds_any(run); /* a new master may only have an earlier lease of it */
    bool stopped = run->goes_on || run->command->ended_by_rlock || run->stops_seen;
    int64_t since = run->forgotten > sentinels_here.told ? run->forgotten : sentinels_here.told;

    if (learns && !stopped && world.now > since + run->lease / 3 + 300 * MS + 10 * network.delay)
        BROKEN(LEARNS_OF_LOSS, "run %d: its command is not stopped", run->number);
}

/* One renewal, a third of a lease later at the latest, may follow; then the agent waits for it. A
 * lock that is handed over later counts from that time. "The lock is kept: it is renewed for as
 * long as they are stopped", by the terminal: rlock-run(1). */
static void check_stopped(struct run *run)
{
    const struct proc *agent = run_guard(run, AGENT);
    bool both = run->command_alive && is_at_rest(run->command) && agent && state_knows_pause(agent);
    bool any = process_exists(run->supervisor) && run->supervisor->stopped;
    bool stopped = any && run->supervisor->stop_signal == SIGSTOP && !both;

    if (!any)
        run->granted_stopped = 0;
    if (!stopped)
        run->stopped_since = 0;
    else if (!run->stopped_since || !holds_any(run))
        run->stopped_since = world.now;
    if (stopped && world.now > run->stopped_since + run->lease * 4 / 3 + SEC && holds_any(run) &&
        !run->goes_on && !run->at_least && !run->agent_faulted && !run->suspended &&
        !circumstances.network_bad)
        BROKEN(STOPPED_ENDS, "run %d still holds the lock", run->number);
}

/* Either guard does so. But of a message that the kernel refuses "the other one does not hear", "if
 * its sender is stopped in between": rlock(7). */
static void check_killed(const struct run *run)
{
    int64_t by = run->termed_at + run->kill_after + kernel.kill_takes + 500 * MS;
    bool unheard = run->lacking && run->supervisor_stopped;

    if (run->termed_at && run->command_alive && !run->signalled && !run->suspended && !unheard &&
        world.now > by && run->last_unguarded < run->termed_at)
        BROKEN(TERM_FIRST, "run %d: its command does not get KILL", run->number);
}

/* Whether nothing has struck the run but Ctrl-Z, nor what it needs. */
static bool is_only_paused(const struct run *run)
{
    return !run->lacking && !run->killed && !run->agent_faulted && !run->supervisor_stopped &&
           !run->suspended && !run->forced && !circumstances.network_bad && kernel.load < 3;
}

/* A second is enough for all that it takes to notice it, and to ask whether the lock is held. */
static void check_rest(struct run *run)
{
    const struct proc *command = run->command;
    bool rests = run->command_alive && is_at_rest(command) && process_can_run(run->supervisor) &&
                 !run->termed_at && /* KILL follows, "the time between TERM and KILL" later */
                 !(run->stopper && process_exists(run->stopper)); /* as TERM follows --stop */

    if (!rests)
        run->rests_since = 0;
    else if (!run->rests_since)
        run->rests_since = world.now;
    if (!rests || world.now < run->rests_since + SEC || !is_only_paused(run))
        return;
    if (!group_is_orphaned(run->supervisor->group))
        BROKEN(STOPS_WITH_COMMAND, "run %d: only its command is stopped", run->number);
    else if (command->stop_signal == SIGTSTP)
        BROKEN(CONTINUES_AT_ONCE, "run %d: its command stays stopped", run->number);
    else
        BROKEN(GETS_HUP, "run %d: its command stays stopped", run->number);
}

/* 10 s after the end of rlock. */
static void check_notices(const struct run *run)
{
    if (!run->notifies || !run->ended_at || run->suspended ||
        world.now < run->ended_at + 10 * SEC + 500 * MS + kernel.kill_takes)
        return;
    for (int i = 0; i < kernel.process_count; i++)
        if (kernel.processes[i]->run == run && kernel.processes[i]->kind == NOTICE &&
            process_exists(kernel.processes[i]))
            BROKEN(NOTICE_ENDS, "run %d: its --notify lives on", run->number);
}

/* Either guard does so: of a command of the other one, as far as it sees that. An extension puts
 * KILL off, also when one has come since. */
static void check_stopper_killed(struct run *run)
{
    for (unsigned kind = SUPERVISOR; kind <= AGENT; kind++) {
        const struct proc *guard = run_guard(run, kind);
        int64_t due = guard ? state_kills_at(guard) : NEVER;
        if (due != NEVER && due > run->stop_due)
            run->stop_due = due;
    }
    if (run->stopper->life == ALIVE && kernel.proc == PROC_WHOLE && world.now >= run->blind_until &&
        run->last_unguarded < run->stop_due && !run->suspended && kernel.load < 2 &&
        world.now > run->stop_due + 60 * MS)
        BROKEN(STOP_KILLED, "run %d: its --stop lives on", run->number);
}

/* Where it was run because the lock is lost, there is none to keep. rlock(7), "No usable /proc":
 * the agent of an rlock that was stopped "only knows the process group of the command". */
static void check_stopper(const struct run *run)
{
    bool is_running = run->stopper && run->stopper->life == ALIVE;
    /* rlock(7), "No usable /proc": "A process that left [the group] is neither stopped nor waited
     * for [...]. While the host has no descriptors [...], it is as if there were none." */
    bool unseen =
        run->supervisor_stopped && (kernel.proc == PROC_NONE || world.now < run->blind_until);
    /* rlock-run(1): "dies with it, perhaps a moment after that release". Linux closes the files of
     * a process that ends, then kills those that die with it, and in between an agent may hear of
     * the end. */
    bool dies = is_running && run->supervisor->life == EXITING &&
                run->stopper->parent == run->supervisor->pid;

    if (is_running && run->stop_held && !run->forced && !unseen && !dies && !is_holder(run) &&
        !is_excused(run))
        BROKEN(STOP_KEEPS_LOCK, "run %d: the lock is released", run->number);
}

/* Whether the run's command has ended, so that rlock relies on the lock no more: its agent may have
 * released it, or told the store to "keep the lock for that long, counted from when it was
 * acquired": rlock-run(1), of --at-least. A lease that rlock hears of only then was one before
 * that. */
static bool has_let_go(const struct run *run)
{
    return (run->at_least || run->starts_seen) && !run->command_alive && !work_is_left(run);
}

/* "It counts the lease from before the request was sent": rlock(7). So whenever its supervisor has
 * heard of another one, the store keeps that for as long, and grants the lock to no other owner. */
static void check_lease(struct run *run)
{
    int64_t end = state_moment(run->supervisor, MOMENT_OF_LEASE);

    if (end == NEVER || end == run->lease_end || run->held_count == 0)
        return;
    run->lease_end = end;
    if (run->taken.until > world.now || run->thinned.until > world.now || is_excused(run) ||
        has_let_go(run) || circumstances.clock_set || end <= world.now)
        return;
    for (size_t i = 0; i < run->held_count; i++) {
        int64_t kept = server_lease_end(run->held[i], run->owner);
        if (kept != NEVER && kept < end)
            BROKEN(NEVER_WITHOUT_LOCK, "run %d: its lease ends %.3f s later than the store's",
                   run->number, (double)(end - kept) / 1e9);
    }
}

static void check_run(struct run *run)
{
    note_guards(run);
    check_lease(run);
    check_killed(run);
    if (!process_exists(run->supervisor) && run->command_alive && !run->supervisor_died)
        run->supervisor_died = world.now;
    if (run->supervisor_died && run->command_alive && !run->command->frozen &&
        world.now > run->supervisor_died + kernel.kill_takes + 20 * MS)
        BROKEN(DIES_WITH_RLOCK, "run %d: its command lives on", run->number);
    if (run->forgotten && run->command_alive)
        check_forgotten(run);
    if (work_is_left(run) && !is_holder(run) && !is_excused(run))
        BROKEN(NEVER_WITHOUT_LOCK, "run %d: its command is alive %s", run->number,
               server_has_entry(run->held[0], run->owner) ? "after the end of its lease"
                                                          : "and its lock is released");
    check_stopper(run);
    if (run->stopper)
        check_stopper_killed(run);
    check_stopped(run);
    check_rest(run);
    check_notices(run);
}

/* -- scripts ----------------------------------------------------------------------------------- */

/* Whether anything was amiss with the way to the server so far. */
static bool network_has_failed(void)
{
    return network_is_unsteady() || replication.servers || replication.grace ||
           circumstances.strikes > 0 || circumstances.names_failed;
}

/* So long a renewer that nothing disturbs takes to notice an end, and to release the lock; half of
 * it where its peer dies, which it hears of at once. */
#define GIVES_BACK_NS (2 * SEC)

static void check_script(const struct run *run)
{
    bool blind = kernel.no_pidfd && kernel.proc != PROC_WHOLE; /* the number may be used again */
    bool disturbed = run->agent_faulted || run->suspended || network_has_failed() || blind;

    if (life_counts_on(run) && !is_holder(run) && world.now < script.counts_until)
        BROKEN(HELD_FOR_A_LEASE, "run %d: its lock is gone", run->number);
    else if (life_counts_on(run) && !is_holder(run))
        BROKEN(RENEWED, "run %d: its lock is gone", run->number);
    if (disturbed || !holds_any(run))
        return;
    if (script.released)
        BROKEN(RENEWED, "run %d: it is released, and is held again", run->number);
    /* A stopped rlock acquire may only ask for the lock when the script has ended. */
    if (script.ended && !run->fixed && !run->supervisor_stopped &&
        world.now > script.ended + GIVES_BACK_NS)
        BROKEN(GIVEN_BACK, "run %d still holds the lock", run->number);
    if (!script.failed || world.now < script.failed + GIVES_BACK_NS / 2)
        return;
    if (run->ended)
        BROKEN(NOTHING_PRINTED, "run %d holds the lock", run->number);
    else if (!run->fixed)
        BROKEN(KILLED_BEFORE, "run %d holds the lock", run->number);
}

/* -- after each step --------------------------------------------------------------------------- */

void life_check(void)
{
    for (int i = 0; i < run_count; i++)
        if (runs[i].is_script)
            check_script(&runs[i]);
        else if (runs[i].supervisor)
            check_run(&runs[i]);
}

/* One that is not over yet lasts on. */
static void add_span(struct span *sum, struct span added)
{
    if (sum->until > world.now && sum->from < added.from)
        added.from = sum->from;
    if (sum->until > added.until)
        added.until = sum->until;
    *sum = added;
}

void life_on_shortened(const char *owner, struct span span)
{
    struct run *run = run_of_owner(owner);

    if (run)
        add_span(&run->taken, span);
}

void life_on_taken(const char *owner, int64_t deadline)
{
    const struct run *run = run_of_owner(owner);

    if (run && !run->forced && deadline > world.now)
        BROKEN(ONLY_SHOWN, "run %d loses it", run->number);
    life_on_shortened(owner, (struct span){world.now, deadline});
}

void life_on_thinned(const char *owner, struct span span)
{
    struct run *run = run_of_owner(owner);

    if (run)
        add_span(&run->thinned, span);
}

void life_on_unreplicated(const char *owner)
{
    const struct run *run = run_of_owner(owner);

    if (run && run->command_alive && !run->forced && !is_excused(run) && !is_taken(run) &&
        !run->command->ended_by_rlock)
        BROKEN(SURVIVES_FAILOVER, "run %d: it is not at the new master", run->number);
}

/* "It asks the Sentinels every 3 s, and at least three times within a lease": rlock-stores(7). Half
 * of them is too few to name another one. */
void life_on_left(const struct run *run)
{
    int64_t asks = run->lease / 3 < 3 * SEC ? run->lease / 3 : 3 * SEC;
    bool steady = circumstances.strikes == 1 && network.delay < 20 * MS && !network.late_of_1000 &&
                  !network.twins_of_1000 && !network.first_has_twin && kernel.load < 2;

    if (steady && !run->faulted && sentinels_here.told &&
        world.now > sentinels_here.told + asks + 2500 * MS)
        BROKEN(LEAVES_MASTER, "run %d asks it still", run->number);
}

/* The latest time counts: who is led by a name has its lock at an old master "for as long as it
 * accepts writes": rlock-stores(7). */
void life_on_forgotten(const char *owner, struct span span)
{
    struct run *run = run_of_owner(owner);

    if (run)
        run->forgotten = world.now;
    life_on_shortened(owner, span);
}

/* -- at an end --------------------------------------------------------------------------------- */

static bool network_is_disturbed(void)
{
    return network_is_unsteady() || world.now < circumstances.disturbed_until;
}

/* A release that is not waited for has arrived. "The clock of the server does not jump", rlock(7):
 * a late request may be early again, and come behind it. */
static void check_released(void *arg)
{
    const struct run *run = arg;

    if (holds_any(run) && !circumstances.set_back)
        BROKEN(RELEASE_TOLD, "run %d ends (outcome %d), still holds the lock, and does not say so",
               run->number, (int)run->outcome.outcome);
}

/* Nothing else has struck it. An agent that owes an answer is continued. */
static bool has_stopped_agent(const struct run *run)
{
    return run->agent_stopped && !run->agents_killed && !run->supervisor_stopped && !run->killed &&
           !run->suspended && !run->paused && !run->lacking;
}

static void check_release(struct run *run)
{
    enum outcome outcome = run->outcome.outcome;
    bool answers = !run->faulted || (has_stopped_agent(run) && run->ended_held);
    /* rlock(7): "rlock reports that not all processes could be killed, and leaves the lock to its
     * lease." */
    bool unkilled = outcome != OUTCOME_COMPLETED && has_left_others(run);
    bool calm = answers && !circumstances.network_bad && !kernel.kill_takes && !unkilled;
    bool certain = (outcome == OUTCOME_COMPLETED || outcome == OUTCOME_NOT_ACQUIRED) &&
                   !may_come_twice() && replication.rule == REPLICAS_NONE && !run->at_least;
    /* The release by the agent of a stopped rlock has failed, and all is well by now. */
    bool before = run->supervisor_stopped && circumstances.network_bad;
    bool admitted = run->at_least || network_is_disturbed() || outcome == OUTCOME_FAILED ||
                    (outcome == OUTCOME_INTERRUPTED &&
                     (run->agent_faulted || before || network.delay + network.jitter > 25 * MS));

    if (holds_any(run) && !run->unreleased_told && !run->loss_told && (certain || !admitted))
        world_at(world.now + network.delay + network.jitter, check_released, run);
    if (outcome == OUTCOME_COMPLETED && run->starts_seen && run->ended_held && !run->loss_told &&
        !run->unreleased_told && run->served_at < run->command_ended)
        BROKEN(RELEASE_TOLD, "run %d: no server has heard of its end", run->number);
    if (run->unreleased_told && calm)
        BROKEN(RELEASE_TOLD, "run %d: nothing has failed", run->number);
}

static void check_completed(const struct run *run)
{
    const struct supervisor_outcome *outcome = &run->outcome;
    int status = run->command_status;
    bool true_status = WIFEXITED(status)
                           ? outcome->command_status == WEXITSTATUS(status) &&
                                 outcome->status == WEXITSTATUS(status)
                           : outcome->command_status == -1 && outcome->signal == WTERMSIG(status);

    if (!run->starts_seen && run->signalled && outcome->command_signal)
        return; /* it died of the user's signal before it was executed */
    if (!run->starts_seen)
        BROKEN(ENDS_AS_COMMAND, "run %d: no command ran", run->number);
    else if (!true_status)
        BROKEN(ENDS_AS_COMMAND, "run %d: the status is another", run->number);
    else if (run->command->ended_by_rlock && !run->signalled && !run->hung_up)
        BROKEN(ENDS_AS_COMMAND, "run %d: rlock has ended it", run->number);
    else if (!run->ended_held && !run->goes_on)
        BROKEN(ENDS_AS_COMMAND, "run %d: its end came behind that of its lease", run->number);
}

/* A supervisor that sees an end late cannot know when that was. An agent ends the command of a
 * lease that is nearly over before anybody is told. */
static void check_lost(const struct run *run)
{
    bool late = run->supervisor_stopped || run->suspended || kernel.load > 1 || kernel.kill_takes ||
                circumstances.network_bad;

    if (!run->loss_told)
        BROKEN(ENDS_LOST, "run %d: and not a word", run->number);
    if (run->outcome.outcome == OUTCOME_LOST && run->starts_seen && run->ended_held &&
        !run->command->ended_by_rlock && !run->ended_lost && !run->forced &&
        !run->wait_descendants && !late)
        BROKEN(ENDS_LOST, "run %d: its command had ended before that", run->number);
}

/* LATEST. */
static bool may_be_superseded(const struct run *run)
{
    for (int i = 0; i < run_count; i++)
        if (&runs[i] != run && run->group && runs[i].group && runs[i].supervisor &&
            strcmp(run->group, runs[i].group) == 0 && shares_keys(run, &runs[i]))
            return true;
    return false;
}

/* UNLESS_DONE. */
static bool may_be_done(const struct run *run)
{
    for (int i = 0; i < run_count; i++)
        if (&runs[i] != run && run->unless_done && runs[i].starts_seen && !runs[i].command_alive &&
            runs[i].command_status == 0 && shares_keys(run, &runs[i]))
            return true;
    return false;
}

/* "If a renewal gets no answer within L / 6, [...] rlock closes the connection and retries on a new
 * one": rlock(7). A connection, its greeting, a script's digest and its text are four trips. */
static bool needs_attempts(const struct run *run)
{
    return 4 * 2 * (network.delay + network.jitter) > run->lease / 6;
}

/* How long the server was away, if that was all; NEVER: there was more. A full one is away for new
 * locks. */
static int64_t find_outage(const struct run *run)
{
    const struct fault *fault = circumstances.latest;

    if (!is_hindered_once(run) || needs_attempts(run))
        return NEVER;
    switch (fault->kind) {
    case FAULT_CUT:
    case FAULT_SCRIPTS: return 0;
    case FAULT_LOSE: return run->lease / 6;
    case FAULT_FORGET: return replication.grace && !run->fixed ? fault->length : NEVER;
    case FAULT_NAMES: return fault->now && fault->names != NAMES_SILENT ? run->lease / 6 : NEVER;
    case FAULT_TROUBLE:
        /* rlock-stores(7): in a quorum "a replica is refused with 78 when it answers". */
        return trouble_passes(fault->trouble) &&
                       (server_count == 1 || !trouble_is_replica(fault->trouble))
                   ? fault->length
                   : NEVER;
    case FAULT_FREEZE:
    case FAULT_RESTART: return fault->length;
    default: return NEVER;
    }
}

/* rlock tries again after as long as the server was away, at the latest. "If the time of -w ends
 * during an outage, the status is 69": rlock(7). */
static void check_outage(const struct run *run)
{
    int64_t outage = find_outage(run), again = 2 * outage + 300 * MS;
    int64_t lease = run->outcome.waited > 0 ? lease_handed_over(run) : run->lease;
    int64_t harmless = lease * 7 / 10 - lease / 3;

    if (outage == NEVER)
        return;
    if (circumstances.latest->kind == FAULT_NAMES)
        again = outage + 300 * MS; /* another connection works at once */
    if (run->outcome.outcome == OUTCOME_LOST && again < harmless && circumstances.forgot)
        BROKEN(CLAIMS, "run %d: lost after %.3f s", run->number, (double)outage / 1e9);
    else if (run->outcome.outcome == OUTCOME_LOST && again < harmless && circumstances.names_failed)
        BROKEN(KEEPS_ADDRESSES, "run %d: lost after %.3f s", run->number, (double)outage / 1e9);
    else if (run->outcome.outcome == OUTCOME_LOST && again < harmless)
        BROKEN(OUTLIVES_OUTAGE, "run %d: lost after %.3f s", run->number, (double)outage / 1e9);
    /* "A name that does not exist" is "not retried": rlock(1). A grace period takes a lease. */
    if (circumstances.names_failed || replication.grace)
        return;
    /* "A server that takes no more clients is waited for as a queue": rlock(1). */
    if (circumstances.latest->trouble == TROUBLE_CLIENTS && !run->waits)
        return;
    /* "If the time of -w ends during an outage, the status is 69": rlock(7). */
    if (run->outcome.outcome == OUTCOME_FAILED && again < run->lease &&
        (run->waits == NEVER || !run->waits))
        BROKEN(WAITS_FOR_STORE, "run %d: failed after %.3f s", run->number, (double)outage / 1e9);
}

static void check_at_least(const struct run *run)
{
    bool disturbed = run->faulted || run->forced || circumstances.network_bad;
    int64_t acquired = run->ended_at - run->outcome.held; /* or a little before */
    int64_t over = acquired + run->at_least + clock_error(run->at_least);

    for (size_t i = 0; i < run->held_count && run->at_least && run->ended && !disturbed; i++) {
        int64_t kept = server_lease_end(run->held[i], run->owner);
        if (kept != NEVER && kept > over)
            BROKEN(AT_LEAST, "run %d: it is kept for %.3f s more", run->number,
                   (double)(kept - over) / 1e9);
    }
    if (run->outcome.outcome == OUTCOME_COMPLETED && run->starts_seen && !disturbed &&
        run->at_least - clock_error(run->at_least) > run->outcome.held + 300 * MS &&
        !holds_any(run))
        BROKEN(AT_LEAST, "run %d has released it after %.3f s", run->number,
               (double)run->outcome.held / 1e9);
}

/* An agent that does not answer is continued, or another one takes its place. */
static void check_wait(const struct run *run)
{
    bool only_agent = !run->supervisor_stopped && !run->suspended && !run->signalled;

    if (run->waits > 0 && run->waits != NEVER && !run->outcome.granted && only_agent &&
        !circumstances.network_bad && kernel.load < 2 &&
        world.now > run->starts + run->waits + 3 * SEC)
        BROKEN(WAITS_AT_MOST, "run %d ends %.3f s late", run->number,
               (double)(world.now - run->starts - run->waits) / 1e9);
}

/* "If it cannot be made, --cgroup ends with 71 before it asks for the lock": rlock-run(1). */
static bool lacks_cgroup(const struct run *run)
{
    if (run->cgroup && !cgroups_have_a_way() && run->asked)
        fail("run %d has no cgroup, and asks for the lock", run->number);
    return run->cgroup && !cgroups_have_a_way();
}

/* And nothing else has struck it. */
static bool has_lost_one_agent(const struct run *run)
{
    return run->agents_killed == 1 && !run->agent_stopped && !run->supervisor_stopped &&
           !run->lacking && !run->killed && !run->suspended && !run->paused && !run->forced &&
           !run->outer && !run->inner && !circumstances.network_bad && !circumstances.clock_set &&
           kernel.load < 2 && !kernel.slow_exec && kernel.kill_takes < 200 * MS;
}

/* rlock(7): "If that fails, the command is stopped in time", or what it has left, where that is
 * waited for; with --on-lost it may continue: rlock-run(1). */
static bool was_left_without_agent(const struct run *run)
{
    return run->agent_unstarted && (run->goes_on || run->termed_at || run->wait_descendants ||
                                    WIFSIGNALED(run->command_status));
}

/* rlock-stores(7): "A server that a new quorum first asks 100 ms after the others, as the first run
 * was killed before that", looks like one without its data, and does not count for a lease. */
static bool may_miss_young_servers(void)
{
    for (int i = 0; i < run_count && server_count > 1; i++)
        if (runs[i].killed && world.now < runs[0].starts + 2 * runs[0].lease)
            return true;
    return false;
}

/* Each status but the command's own has a reason. At a quorum, a forced release withdraws what a
 * run is asking for, also where it has no lock: at the end of its wait that counts as servers that
 * have failed. */
static void check_reason(const struct run *run)
{
    enum outcome outcome = run->outcome.outcome;
    bool withdrawn = run->forced && server_count > 1;
    bool disturbed = run->faulted || circumstances.network_bad || kernel.load > 2;

    if (outcome == OUTCOME_FAILED && lacks_cgroup(run))
        return;
    if (run->agent_missed && !run->agents_killed && !run->survivors_told && !run->agent_left &&
        !run->blind_until)
        BROKEN(ANOTHER_AGENT, "run %d says so, and none was killed", run->number);
    if (outcome == OUTCOME_LOST && has_lost_one_agent(run) && !was_left_without_agent(run))
        BROKEN(RENEWS_ON, "run %d has lost it", run->number);
    if (outcome == OUTCOME_LOST && run->outcome.status != STATUS_LOST)
        BROKEN(ENDS_LOST, "run %d: status %d", run->number, run->outcome.status);
    if (outcome == OUTCOME_LOST && !disturbed && !run->forced)
        BROKEN(ENDS_LOST, "run %d: without a reason", run->number);
    if (outcome == OUTCOME_LOST && run->paused && run->starts_seen && is_only_paused(run))
        BROKEN(KEPT_WHILE_STOPPED, "run %d: it is lost", run->number);
    if (outcome == OUTCOME_TIMED_OUT && !run->at_most && !run->fixed)
        BROKEN(ENDS_IN_TIME, "run %d: it has no limit", run->number);
    if (outcome == OUTCOME_NOT_ACQUIRED && nests_in_holder(run) && !disturbed &&
        run->outer->command_alive)
        BROKEN(NESTS, "run %d does not get it", run->number);
    if (outcome == OUTCOME_NOT_ACQUIRED && run->starts_seen)
        BROKEN(ENDS_REFUSED, "run %d: it has begun", run->number);
    if (outcome == OUTCOME_NOT_ACQUIRED && run->waits == NEVER && !may_be_superseded(run) &&
        !may_be_done(run))
        BROKEN(ENDS_REFUSED, "run %d: it waits for ever", run->number);
    if (outcome == OUTCOME_LOST && run->continues_told && run->lost_signal && !run->signal_seen &&
        !run->faulted && !run->signalled) /* which may end it before */
        BROKEN(SIGNAL_ONCE, "run %d: it is not sent", run->number);
    if (outcome == OUTCOME_INTERRUPTED && (!run->signalled || run->starts_seen))
        fail("run %d: interrupted without a signal, or with a command", run->number);
    if (outcome == OUTCOME_FAILED && !disturbed && !withdrawn && !may_miss_young_servers())
        fail("run %d: failed without a reason", run->number);
    if (outcome == OUTCOME_NOT_EXECUTED && !run->faulted) /* files may be short */
        fail("run %d: not executed", run->number);
    check_wait(run);
    check_at_least(run);
    check_outage(run);
    if (circumstances.calm && network.delay < 20 * MS && !run->at_most && !run->fixed &&
        run->waits == NEVER && outcome != OUTCOME_COMPLETED && outcome != OUTCOME_NOT_ACQUIRED &&
        !run->forced && !run->signalled) /* by a run around it */
        BROKEN(ENDS_AS_COMMAND, "run %d: outcome %d in a calm life", run->number, (int)outcome);
}

static void check_outcome(struct run *run)
{
    enum outcome outcome = run->outcome.outcome;
    bool stopped = run->command && run->command->ended_by_rlock && !run->signalled && !run->hung_up;

    if (run->command_alive && !is_excused(run))
        BROKEN(NEVER_WITHOUT_LOCK, "run %d ends before its command", run->number);
    check_release(run);
    if (outcome == OUTCOME_COMPLETED)
        check_completed(run);
    if (run->has_stop && stopped && !run->goes_on && !run->stops_seen && !run->stop_told)
        BROKEN(STOP_COMMAND, "run %d: --stop is neither run nor missed", run->number);
    if (outcome == OUTCOME_LOST || outcome == OUTCOME_TIMED_OUT)
        check_lost(run);
    check_reason(run);
}

/* "rlock acquire" has ended by itself. */
static void check_acquired(const struct run *run)
{
    int status = run->outcome.status;
    bool disturbed = run->faulted || run->signalled || circumstances.network_bad || run->forced ||
                     kernel.load > 2;
    bool printed = script.output->size == strlen(run->owner) + 1;
    bool names_end = status == STATUS_NO || status == STATUS_USAGE; /* of what --keep names */

    if (run->outcome.signal)
        return;
    if (status == STATUS_OK && !printed)
        BROKEN(TOKEN_PRINTED, "run %d: it is not", run->number);
    if (status == STATUS_OK && !disturbed && !circumstances.clock_set)
        check_others(run);
    if (status == STATUS_NOT_ACQUIRED && script.output->size > 0)
        BROKEN(NOTHING_PRINTED, "run %d: it has printed", run->number);
    if (status == STATUS_NOT_ACQUIRED && run->waits == NEVER)
        BROKEN(ENDS_REFUSED, "run %d: it waits for ever", run->number);
    if (status == STATUS_NOT_ACQUIRED)
        check_wait(run);
    else if (status != STATUS_OK && !disturbed && !(names_end && script.ended) &&
             !(status == STATUS_SYSTEM && script.unread) &&
             !(status == STATUS_UNAVAILABLE && may_miss_young_servers()))
        fail("run %d: failed without a reason, status %d", run->number, status);
}

static void note_end_of_script(const struct proc *process)
{
    const struct run *run = process->run;

    if (process == run->command)
        script.ended = world.now, script.pid = process->pid;
    if (process != run->supervisor)
        return;
    if (process->status != 0)
        script.failed = world.now;
    if (run->ended)
        check_acquired(run);
}

void life_on_answered(const struct run *run, bool counted, int status)
{
    trace("is answered: 0x%x", (unsigned)status);
    /* The lease may be over on the way, and the lock be released "by force": rlock-acquire(1). */
    counted &=
        !run->forced && ((!run->fixed && !run->suspended) || world.now < script.counts_until);
    if (WEXITSTATUS(status) == STATUS_NO && !circumstances.network_bad && counted)
        BROKEN(NOT_HOLDER, "run %d holds it", run->number);
}

void life_on_end(const struct proc *process)
{
    struct run *run = process->run;

    for (int i = 0; i < run_count; i++)
        if (runs[i].command == process) {
            runs[i].command_alive = false;
            runs[i].command_status = process->status;
            runs[i].ended_held = is_holder(&runs[i]);
            runs[i].command_ended = world.now;
            runs[i].ended_unseen = runs[i].supervisor && runs[i].supervisor->stopped;
            runs[i].ended_lost = runs[i].loss_told;
        }
    if (process->errand)
        errand_on_end(process);
    else if (run && run->is_script)
        note_end_of_script(process);
    else if (process->kind == AGENT && WIFEXITED(process->status) &&
             process_exists(run->supervisor))
        run->agent_left = true;
    else if (process->kind == SUPERVISOR && run->ended)
        check_outcome(run);
}

/* -- the history ------------------------------------------------------------------------------- */

/* Copies the owner's last entry, that it has ended; returns how many there are. */
static unsigned find_entries(const char *record, const char *owner, char *out, size_t size)
{
    unsigned count = 0;

    char word[OWNER_ROOM + 2];

    *out = '\0';
    snprintf(word, sizeof word, " %s ", owner);
    for (const char *at = strstr(record, "\nr:"); at; at = strstr(at + 1, "\nr:")) {
        char line[600];
        snprintf(line, sizeof line, "%.*s", (int)strcspn(at + 1, "\n"), at + 1);
        if (!strstr(line, word) || strstr(line, " expired="))
            continue;
        count++;
        snprintf(out, size, "%s", line);
    }
    return count;
}

/* How it says that the command ended, must be how it did. */
static void check_entry(const struct run *run, const char *entry)
{
    const char *exit = strstr(entry, " exit="), *signal = strstr(entry, " signal=");
    int status = run->command_status;
    bool completed =
        run->ended && run->outcome.outcome == OUTCOME_COMPLETED && !run->unreleased_told;
    bool lost = run->ended && run->outcome.outcome == OUTCOME_LOST && !run->unreleased_told;

    if (exit && (!run->starts_seen || !WIFEXITED(status) || atoi(exit + 6) != WEXITSTATUS(status)))
        BROKEN(HISTORY_TELLS, "run %d: %s, but 0x%x", run->number, entry, (unsigned)status);
    if (signal && run->starts_seen &&
        (!WIFSIGNALED(status) || atoi(signal + 8) != WTERMSIG(status)))
        BROKEN(HISTORY_TELLS, "run %d: %s, but 0x%x", run->number, entry, (unsigned)status);
    if (completed && strstr(entry, " lost="))
        BROKEN(HISTORY_TELLS, "run %d: completed, but %s", run->number, entry);
    if (completed && strstr(entry, " killed=") && !circumstances.network_bad)
        BROKEN(HISTORY_TELLS, "run %d: completed, but %s", run->number, entry);
    if (run->ended && run->outcome.outcome == OUTCOME_TIMED_OUT && strstr(entry, " lost=") &&
        !run->forced && !run->unreleased_told && !has_no_history())
        BROKEN(HISTORY_TELLS, "run %d: its time was over, but %s", run->number, entry);
    if (lost && exit && !strstr(entry, " lost=") && !strstr(entry, " revoked=") && !run->forced &&
        !(run->held_count > 1 && (circumstances.clock_set || replication.moved))) /* one of them */
        BROKEN(HISTORY_TELLS, "run %d: lost, but %s", run->number, entry);
}

/* The command itself dies with rlock; its work elsewhere does not. An rlock that was ending it has
 * said so of its own CMD, or leaves it to its agent. rlock-run(1): not "where rlock is stopped
 * inside another one that is killed, whose agent ends both: the command dies first". */
static void check_stopped_by_agent(const struct run *run)
{
    if (run->killed_at_work && run->has_stop && !run->stops_seen && !run->stop_told &&
        !run->agent_faulted && !run->suspended)
        BROKEN(STOP_BY_AGENT, "run %d: --stop is neither run nor missed", run->number);
}

/* The notifier has told all. "A warning says so where it cannot be started": rlock-run(1). */
static void check_told(const struct run *run)
{
    static const unsigned wanted[OUTCOME_FAILED + 1] = {
        [OUTCOME_LOST] = 1U << NOTICE_LOST,
        [OUTCOME_TIMED_OUT] = 1U << NOTICE_TIMED_OUT,
        [OUTCOME_NOT_ACQUIRED] = 1U << NOTICE_NOT_ACQUIRED};
    unsigned missing = wanted[run->outcome.outcome] & ~run->notices_seen;

    if (run->notifies && run->ended && !run->outer && missing && !run->unnotified_told)
        BROKEN(NOTIFIES, "run %d: outcome %d is not told", run->number, (int)run->outcome.outcome);
}

static void check_history(const struct run *run, const char *key)
{
    char entry[600];
    unsigned count = find_entries(server_record(key), run->owner, entry, sizeof entry);
    bool disturbed = run->faulted || circumstances.network_bad || run->forced || run->killed;
    /* rlock(7), "No usable /proc": "the lock then always ends with its lease". */
    bool sees = kernel.proc != PROC_NONE && kernel.proc != PROC_PROCESSES;
    bool only_killed = run->killed && sees && !circumstances.network_bad && !run->forced &&
                       !run->agent_faulted && !run->supervisor_stopped && !run->suspended;

    if (count > 1 && !disturbed)
        BROKEN(HISTORY_TELLS, "run %d: %u entries", run->number, count);
    /* rlock(7): "a process that is sent SIGKILL is dead within" so long, maybe behind its lease.
     * Where it is not, rlock "leaves the lock to its lease", and has said so. */
    bool late =
        run->outcome.outcome != OUTCOME_COMPLETED && (kernel.kill_takes || run->unreleased_told);
    if (run->starts_seen && !count && !late && (only_killed || !disturbed))
        BROKEN(HISTORY_TELLS, "run %d is not in it", run->number);
    if (count)
        check_entry(run, entry);
}

/* -- when nothing is left to happen ------------------------------------------------------------ */

/* The process died of the user's signal before it blocked that, as any process does. */
static bool died_at_start(const struct run *run)
{
    return run->signalled && !run->asked && run->supervisor && WIFSIGNALED(run->supervisor->status);
}

/* "The clock of the server does not jump": rlock(7). */
static bool pause_lasts_on(void)
{
    return runs[0].pause_lasts && circumstances.set_back;
}

/* "A first request takes two round trips", and "--connect-timeout must be twice as long as those":
 * rlock(7). */
static bool connects_too_slowly(void)
{
    return run_address().connect_timeout < 2 * 2 * 2 * (network.delay + network.jitter);
}

/* rlock-stores(7), of quorums: "if a round trip takes half of the lease or more, no attempt
 * succeeds". "Once an attempt was refused in time, a run that waits tries on, as in a later
 * outage: until -w is over." */
static bool never_has_quorum(const struct run *run)
{
    return server_count > 1 && run->waits == NEVER &&
           run->lease < 4 * (network.delay + network.jitter);
}

/* rlock-acquire(1), of --keep: "Where the kernel has no pidfd_open(2), and /proc does not show that
 * process, a later one with its number counts as the same." */
static bool keeps_for_another(void)
{
    const struct proc *other = process_find(script.pid);

    return script.ended && kernel.no_pidfd && kernel.proc == PROC_NONE && other &&
           process_exists(other);
}

static bool may_wait_for_ever(const struct run *run)
{
    return never_has_quorum(run) || connects_too_slowly() || pause_lasts_on() ||
           keeps_for_another();
}

/* An administrator's command waits for the end of a lease, too: "The clock of the server does not
 * jump", rlock(7). */
static bool may_be_left(const struct proc *process)
{
    return may_wait_for_ever(process->run) || (process->kind == ADMIN && circumstances.set_back);
}

void oracle_end(void)
{
    char holders[600];

    for (int i = 0; i < run_count; i++)
        if (!runs[i].ended && !runs[i].killed && !may_wait_for_ever(&runs[i]) &&
            !((runs[i].outer || runs[i].is_script) && !runs[i].supervisor) &&
            !died_at_start(&runs[i]))
            fail("run %d is stuck", i);
    for (int i = 0; i < kernel.process_count; i++)
        if (process_exists(kernel.processes[i]) && kernel.processes[i]->run &&
            !may_be_left(kernel.processes[i]))
            BROKEN(RELEASED_AT_END, "process %d of run %d is left", kernel.processes[i]->pid,
                   kernel.processes[i]->run->number);
    for (int i = 0; i < run_count; i++)
        for (size_t k = 0; k < runs[i].held_count && server_count == 1; k++)
            check_history(&runs[i], runs[i].held[k]);
    for (int i = 0; i < run_count; i++) {
        check_stopped_by_agent(&runs[i]);
        check_told(&runs[i]);
    }
    latch_end();
    fence_end();
    /* Where the server's clock was set back, the next one that asks ends it. */
    world.now += 60 * SEC;
    for (int k = 0; k <= KEYS && !circumstances.set_back; k++) {
        const char key[] = {'k', (char)('1' + k), '\0'};
        if (server_holders(key, holders, sizeof holders))
            BROKEN(ONE_LEASE_AT_MOST, "the lock is left: %s", holders);
    }
}
