/* To judge by a further sentence: quote it in the table, and check it where its facts are known: at
 * the start or the end of a process, after each step, or at the end of a life. An exception names
 * the sentence that admits it. */
#include "lives/oracle.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "lives/faults.h"
#include "lives/life.h"
#include "lives/network.h"
#include "lives/server.h"
#include "run/exit_status.h"

enum sentence {
    ONE_AT_A_TIME,
    NEVER_WITHOUT_LOCK,
    READERS_OR_WRITER,
    AT_MOST_N,
    FENCES_RISE,
    DIES_WITH_RLOCK,
    ONE_LEASE_AT_MOST,
    ENDS_AS_COMMAND,
    ENDS_LOST,
    ENDS_IN_TIME,
    ENDS_REFUSED,
    STOP_COMMAND,
    RELEASE_TOLD,
    HISTORY_TELLS,
    AT_LEAST,
    RELEASED_AT_END
};

static const struct {
    const char *page, *text;
} sentences[] = {
    [ONE_AT_A_TIME] = {"rlock.7", "at most one command runs at a time"},
    [NEVER_WITHOUT_LOCK] = {"rlock.7", "a command never continues without its lock"},
    [READERS_OR_WRITER] = {"rlock.7", "but never beside a writer"},
    [AT_MOST_N] = {"rlock.7", "at most N commands run at a time"},
    [FENCES_RISE] = {"rlock.7", "strictly greater than every number given out before for that KEY"},
    [DIES_WITH_RLOCK] = {"rlock.7", "the command itself still dies"},
    [ONE_LEASE_AT_MOST] = {"rlock.7", "a dead holder blocks the lock for one lease at most"},
    [ENDS_AS_COMMAND] = {"rlock.1", "The command ran to its end under the lock."},
    [ENDS_LOST] = {"rlock.1", "The lock was lost while the command ran."},
    [ENDS_IN_TIME] = {"rlock.1",
                      "The limit of --at-most, or the lease of --no-renew, was reached."},
    [ENDS_REFUSED] = {"rlock.1", "Not acquired: held by others."},
    [STOP_COMMAND] = {"rlock-run.1", "when rlock stops the command"},
    [RELEASE_TOLD] = {"rlock-run.1",
                      "If the lock cannot be released after the command has ended, rlock prints a "
                      "warning"},
    [HISTORY_TELLS] = {"rlock-history.1", "the last 20 runs"},
    [AT_LEAST] = {"rlock-run.1", "Keep the lock for that long, counted from when it was acquired"},
    [RELEASED_AT_END] = {"rlock.7",
                         "the agent releases the lock as soon as the command's processes are dead"},
};

static uint64_t last_fences[2]; /* of each KEY */

void oracle_print_sentences(void)
{
    for (size_t i = 0; i < sizeof sentences / sizeof *sentences; i++)
        printf("%s\t%s\n", sentences[i].page, sentences[i].text);
}

void oracle_begin(void)
{
    memset(last_fences, 0, sizeof last_fences);
}

#define BROKEN(sentence, format, ...)                                                              \
    fail(format " (%s: \"%s\")", __VA_ARGS__, sentences[sentence].page, sentences[sentence].text)

/* -- exceptions -------------------------------------------------------------------------------- */

/* rlock(7), "Supervisor and agent stopped together", and for a moment after that; and
 * "--on-lost continue". */
static bool is_excused(const struct run *run)
{
    return (run->goes_on && !run->fixed) ||
           (run->last_unguarded && run->last_unguarded > world.now - 300 * MS - kernel.kill_takes);
}

/* rlock(7), "rlock force-release --now". */
static bool is_taken(const struct run *run)
{
    return run->taken_until > server_now();
}

/* Stopped by the user's Ctrl-Z, it does nothing. */
static bool is_at_work(const struct proc *process)
{
    return process_exists(process) && !(process->stopped && process->stop_signal == SIGTSTP);
}

/* -- at a start -------------------------------------------------------------------------------- */

static bool is_holder(const struct run *run)
{
    if (is_taken(run))
        return true;
    for (size_t i = 0; i < run->key_count; i++)
        if (server_deadline(run->keys[i], run->owner) <= server_now())
            return false;
    return true;
}

static bool share_a_key(const struct run *a, const struct run *b)
{
    for (size_t i = 0; i < a->key_count; i++)
        for (size_t j = 0; j < b->key_count; j++)
            if (strcmp(a->keys[i], b->keys[j]) == 0)
                return true;
    return false;
}

static void check_others(const struct run *run)
{
    unsigned others = 0;

    for (int i = 0; i < run_count; i++) {
        const struct run *other = &runs[i];
        if (other == run || !other->command_alive || !is_at_work(other->command) ||
            is_taken(other) || is_excused(other) || !share_a_key(run, other))
            continue;
        others++;
        if (run->mode == LOCK_EXCLUSIVE && other->mode == LOCK_EXCLUSIVE)
            BROKEN(ONE_AT_A_TIME, "run %d starts beside run %d", run->number, i);
        else if (run->mode == LOCK_EXCLUSIVE || other->mode == LOCK_EXCLUSIVE)
            BROKEN(READERS_OR_WRITER, "run %d starts beside run %d", run->number, i);
    }
    if (run->mode == LOCK_LIMIT && others >= run->limit)
        BROKEN(AT_MOST_N, "run %d starts beside %u others", run->number, others);
}

static void read_fences(struct run *run, char *const *environment)
{
    static const char name[] = "RLOCK_FENCE=";

    for (char *const *entry = environment; *entry; entry++)
        if (strncmp(*entry, name, strlen(name)) == 0)
            sscanf(*entry + strlen(name), "%lu %lu", &run->fences[0], &run->fences[1]);
}

static void check_fences(const struct run *run)
{
    for (size_t i = 0; i < run->key_count; i++) {
        uint64_t *last = &last_fences[run->keys[i][1] - '1'];
        if (run->mode == LOCK_EXCLUSIVE && run->fences[i] <= *last && !is_taken(run) &&
            !is_excused(run))
            BROKEN(FENCES_RISE, "run %d: %lu after %lu", run->number, run->fences[i], *last);
        *last = run->fences[i] > *last ? run->fences[i] : *last;
    }
}

static void on_stop_command(struct proc *process)
{
    struct run *run = process->run;

    process->kind = STOPPER;
    if (run->stops_seen++ && !run->faulted)
        BROKEN(STOP_COMMAND, "run %d: --stop is run twice", run->number);
    if (!is_holder(run) && !is_excused(run) && !run->command_alive)
        BROKEN(STOP_COMMAND, "run %d: --stop is run without lock and command", run->number);
}

void life_on_execute(struct proc *process, char *const *argv, char *const *environment)
{
    struct run *run = process->run;

    trace("executes %s", argv[0]);
    if (strcmp(argv[0], "command") != 0) {
        on_stop_command(process);
        return;
    }
    process->kind = COMMAND;
    run->command = process;
    run->command_alive = true;
    if (run->starts_seen++)
        BROKEN(ONE_AT_A_TIME, "run %d: its command is started twice", run->number);
    if (!is_excused(run) && !is_taken(run))
        check_others(run);
    if (!is_excused(run) && !is_holder(run))
        BROKEN(NEVER_WITHOUT_LOCK, "run %d: its command is started without the lock", run->number);
    read_fences(run, environment);
    check_fences(run);
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

static bool work_is_left(const struct run *run)
{
    for (int i = 0; i < kernel.process_count; i++) {
        const struct proc *process = kernel.processes[i];
        bool belongs =
            process->kind == COMMAND || (process->kind == DESCENDANT && run->wait_descendants);
        if (process->run == run && belongs && is_at_work(process))
            return true;
    }
    return false;
}

static void check_run(struct run *run)
{
    note_guards(run);
    if (!process_exists(run->supervisor) && run->command_alive && !run->supervisor_died)
        run->supervisor_died = world.now;
    if (run->supervisor_died && run->command_alive && !run->command->frozen &&
        world.now > run->supervisor_died + kernel.kill_takes + 20 * MS)
        BROKEN(DIES_WITH_RLOCK, "run %d: its command lives on", run->number);
    if (work_is_left(run) && !is_holder(run) && !is_excused(run))
        BROKEN(NEVER_WITHOUT_LOCK, "run %d: its command is alive %s", run->number,
               server_deadline(run->keys[0], run->owner) ? "after the end of its lease"
                                                         : "and its lock is released");
}

void life_check(void)
{
    for (int i = 0; i < run_count; i++)
        if (runs[i].supervisor)
            check_run(&runs[i]);
}

void life_on_taken(const char *owner, int64_t deadline)
{
    for (int i = 0; i < run_count; i++)
        if (strcmp(runs[i].owner, owner) == 0 && runs[i].taken_until < deadline)
            runs[i].taken_until = deadline;
}

/* -- at an end --------------------------------------------------------------------------------- */

static bool network_is_disturbed(void)
{
    return network.delay > 20 * MS || network.late_of_1000 || network.twins_of_1000 ||
           network.first_has_twin || world.now < circumstances.disturbed_until;
}

static bool holds_any(const struct run *run)
{
    for (size_t i = 0; i < run->key_count; i++)
        if (server_deadline(run->keys[i], run->owner) > server_now())
            return true;
    return false;
}

static void check_release(const struct run *run)
{
    enum outcome outcome = run->outcome.outcome;
    bool admitted = run->at_least || network_is_disturbed() || outcome == OUTCOME_FAILED ||
                    (outcome == OUTCOME_INTERRUPTED && run->agent_faulted);

    if (holds_any(run) && !run->unreleased_told && !run->loss_told && !admitted)
        BROKEN(RELEASE_TOLD, "run %d ends (outcome %d), still holds the lock, and does not say so",
               run->number, (int)outcome);
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
    else if (run->command->ended_by_rlock && !run->signalled)
        BROKEN(ENDS_AS_COMMAND, "run %d: rlock has ended it", run->number);
}

/* Each status but the command's own has a reason. */
static void check_reason(const struct run *run)
{
    enum outcome outcome = run->outcome.outcome;
    bool disturbed = run->faulted || circumstances.network_bad || kernel.load > 2;

    if (outcome == OUTCOME_LOST && run->outcome.status != STATUS_LOST)
        BROKEN(ENDS_LOST, "run %d: status %d", run->number, run->outcome.status);
    if (outcome == OUTCOME_LOST && !disturbed && !run->forced)
        BROKEN(ENDS_LOST, "run %d: without a reason", run->number);
    if (outcome == OUTCOME_TIMED_OUT && !run->at_most && !run->fixed)
        BROKEN(ENDS_IN_TIME, "run %d: it has no limit", run->number);
    if (outcome == OUTCOME_NOT_ACQUIRED && (run->waits == NEVER || run->starts_seen))
        BROKEN(ENDS_REFUSED, "run %d: it waits for ever, or has begun", run->number);
    if (outcome == OUTCOME_INTERRUPTED && (!run->signalled || run->starts_seen))
        fail("run %d: interrupted without a signal, or with a command", run->number);
    if (outcome == OUTCOME_FAILED && !disturbed)
        fail("run %d: failed without a reason", run->number);
    if (outcome == OUTCOME_NOT_EXECUTED)
        fail("run %d: not executed", run->number);
    if (circumstances.calm && network.delay < 20 * MS && !run->at_most && !run->fixed &&
        run->waits == NEVER && outcome != OUTCOME_COMPLETED)
        BROKEN(ENDS_AS_COMMAND, "run %d: outcome %d in a calm life", run->number, (int)outcome);
}

static void check_outcome(const struct run *run)
{
    enum outcome outcome = run->outcome.outcome;
    bool stopped = run->command && run->command->ended_by_rlock && !run->signalled;

    if (run->command_alive && !is_excused(run))
        BROKEN(NEVER_WITHOUT_LOCK, "run %d ends before its command", run->number);
    check_release(run);
    if (outcome == OUTCOME_COMPLETED)
        check_completed(run);
    if (run->has_stop && stopped && !run->goes_on && !run->stops_seen && !run->stop_told)
        BROKEN(STOP_COMMAND, "run %d: --stop is neither run nor missed", run->number);
    if ((outcome == OUTCOME_LOST || outcome == OUTCOME_TIMED_OUT) && !run->loss_told)
        BROKEN(ENDS_LOST, "run %d: outcome %d, and not a word", run->number, (int)outcome);
    check_reason(run);
}

void life_on_end(const struct proc *process)
{
    struct run *run = process->run;

    if (process->kind == COMMAND) {
        run->command_alive = false;
        run->command_status = process->status;
    }
    if (process->kind == SUPERVISOR && run->ended)
        check_outcome(run);
}

/* -- the history ------------------------------------------------------------------------------- */

/* Copies the owner's last entry, that it has ended; returns how many there are. */
static unsigned find_entries(const char *record, const char *owner, char *out, size_t size)
{
    unsigned count = 0;

    *out = '\0';
    for (const char *at = strstr(record, "\nr:"); at; at = strstr(at + 1, "\nr:")) {
        char line[600];
        snprintf(line, sizeof line, "%.*s", (int)strcspn(at + 1, "\n"), at + 1);
        if (!strstr(line, owner) || strstr(line, " expired="))
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
    if (lost && exit && !strstr(entry, " lost=") && !strstr(entry, " revoked=") && !run->forced)
        BROKEN(HISTORY_TELLS, "run %d: lost, but %s", run->number, entry);
}

static void check_history(const struct run *run, const char *key)
{
    char entry[600];
    unsigned count = find_entries(server_record(key), run->owner, entry, sizeof entry);
    bool disturbed = run->faulted || circumstances.network_bad || run->forced || run->killed;
    bool only_killed = run->killed && !circumstances.network_bad && !run->forced &&
                       !run->agent_faulted && !run->supervisor_stopped && !run->suspended;

    if (count > 1 && !disturbed)
        BROKEN(HISTORY_TELLS, "run %d: %u entries", run->number, count);
    if (run->starts_seen && !count && (only_killed || !disturbed))
        BROKEN(HISTORY_TELLS, "run %d is not in it", run->number);
    if (count)
        check_entry(run, entry);
}

/* -- when nothing is left to happen ------------------------------------------------------------ */

void oracle_end(void)
{
    char holders[600];

    for (int i = 0; i < run_count; i++)
        if (!runs[i].ended && !runs[i].killed)
            fail("run %d is stuck", i);
    for (int i = 0; i < kernel.process_count; i++)
        if (process_exists(kernel.processes[i]))
            BROKEN(RELEASED_AT_END, "process %d of run %d is left", kernel.processes[i]->pid,
                   kernel.processes[i]->run->number);
    for (int i = 0; i < run_count; i++)
        for (size_t k = 0; k < runs[i].key_count; k++)
            check_history(&runs[i], runs[i].keys[k]);
    world.now += 60 * SEC;
    for (size_t k = 0; k < 2; k++)
        if (server_holders(k ? "k2" : "k1", holders, sizeof holders))
            BROKEN(ONE_LEASE_AT_MOST, "the lock is left: %s", holders);
}
