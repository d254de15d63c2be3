#include "lives/faults.h"

#include <signal.h>
#include <stdlib.h>

#include "lives/errand.h"
#include "lives/life.h"
#include "lives/names.h"
#include "lives/network.h"
#include "lives/orders.h"
#include "lives/plan.h"
#include "lives/sentinels.h"
#include "lives/server.h"
#include "lives/shell.h"
#include "lives/states.h"

struct fault faults[FAULTS_MAX];
int fault_count;
struct circumstances circumstances;

static unsigned kinds_on; /* a set of kinds: a life with few kinds goes further with these */

static bool is_of_network(enum fault_kind kind)
{
    return kind >= FAULT_CUT;
}

/* -- striking ---------------------------------------------------------------------------------- */

static struct proc *other_guard(const struct fault *fault)
{
    return run_guard(fault->run, fault->guard == SUPERVISOR ? AGENT : SUPERVISOR);
}

static void go_on(void *arg)
{
    struct proc *process = arg;

    if (process_exists(process) && process->stopped) {
        trace("%d is continued", process->pid);
        signal_send(process, SIGCONT);
    }
}

static void strike_guard(const struct fault *fault)
{
    struct run *run = fault->run;
    struct proc *process = run_guard(run, fault->guard), *other = other_guard(fault);

    /* One of the two always runs, but in wild lives, and where there is no command. KILL also ends
     * one that is stopped. */
    if (!process || (process->stopped && fault->kind == FAULT_STOP) ||
        !(circumstances.wild || run->is_script || (other && process_can_run(other))))
        return;
    run->faulted = true;
    run->agent_faulted |= fault->guard == AGENT;
    run->agent_stopped |= fault->guard == AGENT && fault->kind == FAULT_STOP;
    run->agents_killed += fault->guard == AGENT && fault->kind == FAULT_KILL;
    run->supervisor_stopped |= fault->guard == SUPERVISOR && fault->kind == FAULT_STOP;
    run->killed |= fault->guard == SUPERVISOR && fault->kind == FAULT_KILL;
    trace("FAULT: %s of %s of run %d, pid %d, for %.3f s",
          fault->kind == FAULT_KILL ? "KILL" : "STOP",
          fault->guard == SUPERVISOR ? "the supervisor" : "the agent", run->number, process->pid,
          (double)fault->length / 1e9);
    if (fault->kind == FAULT_STOP)
        world_at(world.now + fault->length, go_on, process);
    signal_send(process, fault->kind == FAULT_KILL ? SIGKILL : SIGSTOP);
}

/* The key's signal comes to whoever is on that terminal, or nests there. */
static void note_key(struct run *run, const struct fault *fault)
{
    if (!run_is_beside(run, fault->run))
        return;
    run->signalled |= fault->now;
    run->faulted |= fault->signo == SIGTSTP;
    run->paused |= fault->signo == SIGTSTP;
    run->interrupts += fault->signo == SIGINT;
}

static void strike_by_signal(const struct fault *fault)
{
    struct proc *process = run_guard(fault->run, SUPERVISOR);

    /* Ctrl-Z is for the whole job. */
    if (!process || (fault->signo == SIGTSTP && fault->run->outer))
        return;
    trace("FAULT: signal %d to run %d", fault->signo, fault->run->number);
    fault->run->signalled = true;
    for (int i = 0; i < run_count; i++)
        note_key(&runs[i], fault);
    shell_signal(fault->run, fault->signo, fault->now);
}

static void thaw(void *process)
{
    process_thaw(process);
}

static void suspend_host(const struct fault *fault)
{
    struct run *run = fault->run;

    trace("FAULT: the host of run %d is suspended for %.3f s", run->number,
          (double)fault->length / 1e9);
    for (int i = 0; i < run_count; i++)
        if (run_is_beside(&runs[i], run))
            runs[i].faulted = runs[i].suspended = true;
    for (int i = 0; i < kernel.process_count; i++) {
        struct proc *process = kernel.processes[i];
        if (!process->run || !run_is_beside(process->run, run) || !process_exists(process) ||
            process->frozen)
            continue;
        process_freeze(process, fault->length);
        world_at(world.now + fault->length, thaw, process);
    }
}

/* rlock-stores(7): "While the name service fails, ... the addresses that were known are kept." */
static bool is_strike(const struct fault *fault)
{
    return fault->kind != FAULT_NAMES || fault->now || fault->names == NAMES_SILENT;
}

static bool disturbs_for_ever(enum fault_kind kind)
{
    return kind == FAULT_LOSE || kind == FAULT_NAMES || kind == FAULT_FAILOVER;
}

static bool lasts(enum fault_kind kind)
{
    return kind == FAULT_STOP || kind == FAULT_SUSPEND || kind == FAULT_AWAY ||
           kind == FAULT_STALL || kind == FAULT_FREEZE || kind == FAULT_RESTART ||
           kind == FAULT_TROUBLE || kind == FAULT_NAMES;
}

static void come(void *arg);

/* The fault behind it may strike amid what is done about this one, or about its end. */
static void come_next(const struct fault *fault)
{
    struct fault *next = &faults[fault - faults + 1];
    int64_t from = world.now;

    if (next == faults + fault_count || next->trigger != AT_FAULT || next->used)
        return;
    next->used = true;
    if (next->behind && lasts(fault->kind))
        from += fault->length;
    world_at(from + next->at, come, next);
}

static int64_t moment_of(const struct fault *fault, unsigned which)
{
    const struct proc *supervisor = run_guard(fault->run, SUPERVISOR);

    return supervisor ? state_moment(supervisor, which) : NEVER;
}

static void choose_end(struct fault *fault)
{
    int64_t moment = fault->has_end ? moment_of(fault, fault->end_moment) : NEVER;

    if (moment != NEVER && moment + fault->end_by > world.now)
        fault->length = moment + fault->end_by - world.now;
}

static void strike(void *arg)
{
    struct fault *fault = arg;

    choose_end(fault);
    double length = (double)fault->length / 1e9;

    states_note_fault(fault->run, fault->kind * 2 + fault->guard);
    if (is_of_network(fault->kind)) {
        int64_t until =
            disturbs_for_ever(fault->kind) ? NEVER : world.now + fault->length + 3 * SEC;
        if (circumstances.disturbed_until < until)
            circumstances.disturbed_until = until;
        if (is_strike(fault)) {
            circumstances.strikes++;
            circumstances.latest = fault;
        }
    }
    switch (fault->kind) {
    case FAULT_KILL:
    case FAULT_STOP: strike_guard(fault); break;
    case FAULT_SIGNAL: strike_by_signal(fault); break;
    case FAULT_SUSPEND: suspend_host(fault); break;
    case FAULT_FORCE:
        trace("FAULT: force-release%s of run %d", fault->now ? " --now" : "", fault->run->number);
        order_force(fault->run, fault->now);
        break;
    case FAULT_CUT:
        trace("FAULT: connections are cut");
        network_cut(one_in(2));
        break;
    case FAULT_AWAY:
        trace("FAULT: the network is away for %.3f s", length);
        network.away_until = world.now + fault->length;
        break;
    case FAULT_LOSE:
        trace("FAULT: connections are lost");
        network_lose();
        break;
    case FAULT_STALL:
        trace("FAULT: connections stand still for %.3f s", length);
        network_stall(world.now + fault->length);
        break;
    case FAULT_FREEZE:
        trace("FAULT: server %d stands still for %.3f s", fault->server, length);
        server_freeze(fault->server, fault->length);
        break;
    case FAULT_RESTART:
        trace("FAULT: server %d is down for %.3f s", fault->server, length);
        server_restart(fault->server, fault->length);
        break;
    case FAULT_FORGET:
        trace("FAULT: server %d %s its data", fault->server,
              fault->now ? "is told to drop" : "restarts without");
        circumstances.forgot = true;
        server_forget(fault->server);
        if (!fault->now)
            server_restart(fault->server, fault->length);
        break;
    case FAULT_SCRIPTS:
        trace("FAULT: server %d forgets its scripts", fault->server);
        server_forget_scripts(fault->server);
        break;
    case FAULT_CLOCK:
        trace("FAULT: the clock of server %d is set by %.3f s", fault->server,
              (double)fault->step / 1e9);
        circumstances.clock_set = true;
        circumstances.set_back |= fault->step < 0;
        server_step_clock(fault->server, fault->step);
        break;
    case FAULT_TROUBLE:
        trace("FAULT: server %d is %s for %.3f s", fault->server, trouble_name(fault->trouble),
              length);
        server_trouble(fault->server, fault->trouble, fault->length);
        break;
    case FAULT_NAMES:
        trace("FAULT: the name service %s for %.3f s%s",
              ((const char *[]){"fails", "does not know the name", "is silent"})[fault->names],
              length, fault->now ? ", and connections are lost" : "");
        if (fault->now)
            network_lose();
        naming.away_until = world.now + fault->length;
        naming.away = (unsigned)fault->names;
        circumstances.names_failed = true;
        break;
    case FAULT_FAILOVER:
        trace("FAULT: a replica takes the master's place%s",
              fault->failover.lives ? ", which lives on" : "");
        replication_fail_over(&fault->failover);
        break;
    case FAULT_KINDS: break;
    }
    come_next(fault);
}

static void come(void *arg)
{
    struct fault *fault = arg;

    fault->has_come = fault->calls > 0;
    if (!fault->has_come)
        strike(fault);
}

/* A renewal puts the moment off. */
static void await_moment(void *arg)
{
    struct fault *fault = arg;
    int64_t moment = moment_of(fault, fault->number);

    if (!run_guard(fault->run, SUPERVISOR) && fault->run->supervisor)
        return;
    if (moment == NEVER)
        world_at(world.now + 10 * MS + chance_below(20 * MS), await_moment, fault);
    else if (moment + fault->at > world.now)
        world_at(moment + fault->at, await_moment, fault);
    else
        come(fault);
}

/* Amid what a process does. */
static void strike_now(struct fault *fault)
{
    kernel.from_outside = true;
    strike(fault);
    kernel.from_outside = false;
}

/* Whether the guard has done so many of these, and the latest just now. */
static bool is_deed(const struct fault *fault, const struct proc *guard, enum deed deed)
{
    const unsigned *deeds = guard->run->deeds[guard->kind];
    unsigned number = 0;

    if (fault->deed < DEEDS)
        return fault->deed == deed && fault->number == deeds[deed];
    for (unsigned i = 0; i < DEEDS_MOST; i++)
        number += deeds[i];
    return fault->number == number;
}

/* A guard makes its next call (DEEDS), or does its next deed: the faults that are for this one
 * strike. */
static void count(const struct proc *process, enum deed deed)
{
    if (process->kind != SUPERVISOR && process->kind != AGENT)
        return;
    const unsigned *calls = &process->run->calls[process->kind];
    if (deed == DEEDS)
        process->run->calls[process->kind]++;
    else
        process->run->deeds[process->kind][deed]++;
    for (int i = 0; i < fault_count; i++) {
        struct fault *fault = &faults[i];
        bool due = deed == DEEDS ? fault->trigger == AT_CALL && fault->number == *calls
                                 : fault->trigger == AT_DEED && is_deed(fault, process, deed);
        if (!due || fault->used || fault->run != process->run || fault->guard != process->kind)
            continue;
        fault->used = true;
        if (fault->trigger == AT_DEED && (fault->at || fault->calls))
            world_at(world.now + fault->at, come, fault);
        else
            strike_now(fault);
    }
}

/* Faults that have come strike in that one of the guard's calls, or of its deeds. */
static void strike_amid(const struct proc *guard, bool deed)
{
    for (int i = 0; i < fault_count; i++) {
        struct fault *fault = &faults[i];
        if (fault->has_come && fault->of_deeds == deed && fault->run == guard->run &&
            fault->guard == guard->kind && fault->calls > 0 && --fault->calls == 0)
            strike_now(fault);
    }
}

/* Calls of a child, before it executes anything, are its parent's. */
void life_on_call(struct proc *process)
{
    const struct proc *guard = process->kind == CHILD ? process_find(process->parent) : process;

    if (!guard)
        return;
    if (process->errand)
        errand_on_call(process);
    count(guard, DEEDS);
    strike_amid(guard, false);
}

void life_on_deed(const struct proc *process, enum deed deed)
{
    if (!process)
        return;
    strike_amid(process, true);
    count(process, deed);
}

static bool is_due(const struct fault *fault, const struct run *run)
{
    return !fault->used && fault->run == run &&
           ((fault->trigger == AT_REQUEST && fault->number == run->requests) ||
            (fault->trigger == AT_GRANT && fault->number == run->grants) ||
            (fault->trigger == AT_CHANGE && fault->number == run->changes));
}

static void come_if_due(const struct run *run)
{
    for (int i = 0; i < fault_count; i++) {
        struct fault *fault = &faults[i];
        if (!is_due(fault, run))
            continue;
        fault->used = true;
        world_at(world.now + fault->at, come, fault);
    }
}

void life_on_request(struct run *run)
{
    run->requests++;
    run->requested_at = world.now;
    come_if_due(run);
}

void faults_on_granted(struct run *run)
{
    run->grants++;
    come_if_due(run);
}

void life_on_change(struct run *run)
{
    run->changes++;
    come_if_due(run);
}

bool life_is_first_request(struct run *run)
{
    bool first = run && !run->asked;

    if (run)
        run->asked = true;
    return first;
}

/* -- choosing ---------------------------------------------------------------------------------- */

static enum fault_kind choose_kind(void)
{
    static const enum fault_kind kinds[] = {
        FAULT_KILL, FAULT_KILL,  FAULT_KILL,   FAULT_KILL,    FAULT_STOP,    FAULT_STOP,
        FAULT_STOP, FAULT_STOP,  FAULT_SIGNAL, FAULT_SIGNAL,  FAULT_SUSPEND, FAULT_FORCE,
        FAULT_CUT,  FAULT_AWAY,  FAULT_FREEZE, FAULT_RESTART, FAULT_FORGET,  FAULT_SCRIPTS,
        FAULT_LOSE, FAULT_STALL, FAULT_STALL,  FAULT_CLOCK,   FAULT_TROUBLE, FAULT_TROUBLE};
    enum fault_kind kind;
    int tries = 0;

    do {
        kind = kinds[chance_below(sizeof kinds / sizeof *kinds)];
    } while (++tries < 20 && !(kinds_on >> kind & 1));
    return kind;
}

/* Often until a moment that counts: the end of a lease, and a little before or behind it. */
static int64_t choose_length(int64_t lease)
{
    switch (chance_below(4)) {
    case 0: return chance_below(50 * MS);
    case 1: return chance_below(3 * lease);
    case 2: return lease - chance_below(lease / 3);
    default: return lease + chance_below(300 * MS);
    }
}

static unsigned choose_moment(const struct run *run)
{
    unsigned moment = (unsigned)chance_below(MOMENTS);

    return moment == MOMENT_AT_MOST && !run->at_most ? 0 : moment;
}

static void choose_trigger(struct fault *fault)
{
    bool of_process = fault->kind <= FAULT_SUSPEND;

    if (fault > faults && one_in(4)) {
        fault->trigger = AT_FAULT;
        fault->run = fault[-1].run;
        fault->at = one_in(2) ? chance_below(CHOOSE(1, 50, 2000) * MS) : 0;
    } else if (one_in(4)) {
        fault->trigger = AT_CHANGE;
        fault->number = 1 + (unsigned)chance_below(one_in(2) ? 10 : 40);
        fault->at = one_in(2) ? chance_below(CHOOSE(1, 100) * MS) : 0;
    } else if (one_in(3)) {
        fault->trigger = AT_REQUEST;
        fault->number = 1 + (unsigned)chance_below(CHOOSE(1, 4, 12));
        fault->at = chance_below(one_in(2) ? 3 * network.delay + MS : 50 * MS);
    } else if (of_process && one_in(3)) {
        fault->trigger = AT_DEED;
        fault->number = 1 + (unsigned)chance_below(one_in(2) ? 8 : 30);
        fault->at = one_in(2) ? chance_below(one_in(2) ? 20 * US : MS) : 0;
    } else if (of_process && one_in(3)) {
        fault->trigger = AT_CALL;
        fault->number = 1 + (unsigned)chance_below(one_in(2) ? 150 : 700);
    } else if (one_in(of_process ? 2 : 3)) {
        fault->trigger = AT_MOMENT;
        fault->number = choose_moment(fault->run);
        fault->at = (one_in(2) ? 1 : -1) * chance_below(CHOOSE(0, 3, 100) * MS);
    } else {
        fault->trigger = AT_TIME;
        fault->at = fault->run->starts + chance_below(one_in(2) ? 200 * MS : 4 * fault->run->lease);
    }
    if (of_process && fault->trigger != AT_CALL && one_in(2)) {
        fault->of_deeds = one_in(2);
        fault->calls = 1 + (unsigned)chance_below(fault->of_deeds ? 6 : CHOOSE(5, 20, 80));
    }
}

static void choose_aim(struct fault *fault)
{
    fault->deed = one_in(2) ? (enum deed)chance_below(DEEDS_MOST) : DEEDS;
    /* A run may have few deeds of one kind, so a small number is chosen. */
    if (fault->trigger == AT_DEED && fault->deed != DEEDS)
        fault->number = 1 + fault->number % 6;
    fault->has_end = one_in(2);
    fault->end_moment = choose_moment(fault->run);
    fault->end_by = (one_in(3) ? -1 : 1) * chance_below(CHOOSE(0, 3, 100, 1000) * MS);
    fault->behind = one_in(2);
    if (fault->trigger != AT_REQUEST || !one_in(3))
        return;
    fault->trigger = AT_GRANT;
    fault->number = 1 + fault->number % 2;
}

/* rlock-stores(7) says how many servers of a quorum "may forget": the first ones here. */
static int choose_server(enum fault_kind kind)
{
    bool forgets = kind == FAULT_FORGET || kind == FAULT_CLOCK;

    if (replication.servers)
        return one_in(3) ? (int)chance_below(replication.servers) : 0;
    return (int)chance_below(forgets ? (server_count + 1) / 2 - (server_count > 1) : server_count);
}

/* A name matters where the server is left that it led to. */
static void choose_fault_of_name(struct fault *fault)
{
    if (!one_in(replication.servers ? 6 : 2))
        return;
    fault->kind = FAULT_NAMES;
    fault->length += 2 * fault->run->lease;
}

/* While the lock is held, often. */
static void choose_time_of_name(struct fault *fault)
{
    if (!one_in(2))
        return;
    fault->trigger = AT_GRANT;
    fault->number = 1;
    fault->at = chance_below(fault->run->lease);
    fault->calls = 0;
}

/* Often the first request stands still until it was sent once more, on another connection, but not
 * until it would be too late: the time to connect is for both. */
static void choose_stall(struct fault *fault)
{
    int64_t least = run_address().connect_timeout / 2;

    if (!one_in(2))
        return;
    fault->trigger = AT_REQUEST;
    fault->number = 1;
    fault->at = 0;
    fault->has_end = false;
    fault->length = least + chance_below(least);
}

/* all_on: NULL for any run. */
static void choose_fault(struct fault *fault, struct run *all_on)
{
    static const int signals[] = {SIGTERM, SIGINT,  SIGHUP,  SIGTSTP,
                                  SIGTSTP, SIGTSTP, SIGQUIT, SIGUSR1};

    *fault = (struct fault){.kind = choose_kind(),
                            .run = all_on ? all_on : &runs[chance_below(run_count)],
                            .guard = one_in(2) ? SUPERVISOR : AGENT,
                            .signo = signals[chance_below(sizeof signals / sizeof *signals)],
                            .now = one_in(2)};
    fault->length = choose_length(fault->run->lease);
    fault->step = (one_in(2) ? 1 : -1) * (one_in(2) ? fault->length : chance_below(3600 * SEC));
    fault->trouble = 1 + (enum trouble)chance_below(TROUBLES - 1);
    fault->server = choose_server(fault->kind);
    choose_trigger(fault);
    fault->names = (int)chance_below(NAMES_AWAY);
    if (naming.used)
        choose_fault_of_name(fault);
    fault->failover = replication_choose_failover(fault->run->lease);
    if (replication.servers && (naming.used || sentinels_here.used) && one_in(2))
        fault->kind = FAULT_FAILOVER;
    choose_aim(fault);
    if (fault->kind == FAULT_STALL)
        choose_stall(fault);
    if (fault->kind == FAULT_NAMES)
        choose_time_of_name(fault);
}

/* A chain, in some lives: the first fault strikes in a deed, and each further one, of the same run,
 * amid what is done about that before it. So two or three meet where chance hardly ever brings them
 * together. */
struct link {
    enum fault_kind kind;
    enum kind guard;
    enum deed deed;
    unsigned number;
    int64_t length, after; /* of the lease, in percent; ns */
};

static void choose_chain(struct link links[FAULTS_MAX])
{
    static const enum fault_kind kinds[] = {FAULT_STOP,  FAULT_SUSPEND, FAULT_KILL,
                                            FAULT_FORCE, FAULT_STOP,    FAULT_SIGNAL};

    for (int i = 0; i < FAULTS_MAX; i++)
        links[i] = (struct link){.kind = kinds[chance_below(i == 0 ? 3 : 6)],
                                 .guard = one_in(3) ? AGENT : SUPERVISOR,
                                 .deed = (enum deed)chance_below(DEEDS),
                                 .number = 1 + (unsigned)chance_below(one_in(2) ? 2 : 6),
                                 .length = CHOOSE(10, 50, 105),
                                 .after = chance_below(CHOOSE(0, 1, 50, 1000) * MS)};
}

static void chain(struct fault *fault, const struct link *link)
{
    fault->kind = link->kind;
    fault->guard = link->guard;
    fault->deed = link->deed;
    fault->number = link->number;
    fault->trigger = AT_DEED;
    fault->calls = 0;
    fault->at = 0;
    fault->has_end = false;
    fault->length = fault->run->lease / 100 * link->length;
    if (fault == faults)
        return;
    fault->trigger = AT_FAULT;
    fault->run = fault[-1].run;
    fault->at = link->after;
}

void faults_choose(unsigned mask)
{
    struct run *last = &runs[run_count - 1];
    bool in_script = last->is_script || (last->outer && last->outer->is_script);
    struct run *all_on = !one_in(2) ? NULL : in_script && one_in(2) ? last : &runs[0];

    kinds_on = one_in(3) ? ~0U : (unsigned)chance();
    fault_count = circumstances.calm ? 0 : 1 + (int)chance_below(5);
    struct link links[FAULTS_MAX];
    plan_part(PLAN_CHAIN);
    bool chained = one_in(6);
    choose_chain(links);
    for (int i = 0; i < fault_count; i++) {
        struct fault *fault = &faults[i];
        plan_part(PLAN_FAULT + (unsigned)i);
        choose_fault(fault, all_on);
        if (chained)
            chain(fault, &links[i]);
        circumstances.network_bad |= is_of_network(fault->kind);
        fault->used = !(mask >> i & 1);
        if (fault->used || (fault->trigger != AT_TIME && fault->trigger != AT_MOMENT))
            continue;
        fault->used = true;
        if (fault->trigger == AT_TIME)
            world_at(fault->at, come, fault);
        else
            world_at(fault->run->starts, await_moment, fault);
    }
}
