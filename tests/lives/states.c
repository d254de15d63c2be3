#include "lives/states.h"

#include <stdio.h>
#include <string.h>

#include "lives/life.h"

struct states *states;

static unsigned latest[RUNS + 2], details[2][RUNS + 2]; /* of each run, and of its guards */

void states_begin(void)
{
    memset(latest, 0, sizeof latest);
    memset(details, 0, sizeof details);
    memset(states->together, 0, sizeof states->together);
}

static unsigned state_of_run(const struct run *run)
{
    const struct proc *supervisor = run_guard(run, SUPERVISOR), *agent = run_guard(run, AGENT);
    unsigned state = (supervisor ? state_of_supervisor(supervisor) : 0) * STATES_AGENT +
                     (agent ? state_of_agent(agent) : 0);

    return state * 4 + (supervisor && !process_can_run(supervisor)) * 2 +
           (agent && !process_can_run(agent));
}

/* The state of a run, the flags of its guards, and which moments are over, as a set of facts. */
static uint64_t facts_of(const struct run *run, unsigned state)
{
    const struct proc *supervisor = run_guard(run, SUPERVISOR);
    unsigned s = state / 4 / STATES_AGENT, a = state / 4 % STATES_AGENT, number = run->number;
    uint64_t facts = state % 4 | (uint64_t)details[SUPERVISOR][number] << 2 |
                     (uint64_t)details[AGENT][number] << 15;

    for (unsigned which = 0; supervisor && which < MOMENTS; which++)
        facts |= (uint64_t)(state_moment(supervisor, which) <= world.now) << (58 + which);
    if (s > 0)
        facts |= UINT64_C(1) << (29 + (s - 1) / 3) | UINT64_C(1) << (36 + (s - 1) % 3);
    if (a > 0)
        facts |= UINT64_C(1) << (39 + (a - 1) / 40) | UINT64_C(1) << (45 + (a - 1) / 8 % 5) |
                 UINT64_C(1) << (50 + (a - 1) % 8);
    return facts;
}

static void note_facts(uint64_t facts)
{
    for (uint64_t left = facts; left; left &= left - 1)
        states->together[__builtin_ctzll(left)] |= facts;
}

void states_end(void (*note)(void *arg, unsigned one, unsigned other), void *arg)
{
    for (unsigned one = 0; one < FACTS; one++)
        for (uint64_t left = states->together[one] >> one; left; left &= left - 1)
            note(arg, one, one + (unsigned)__builtin_ctzll(left));
}

static void note_else(unsigned one, unsigned other)
{
    bool *seen = &states->others[(one * 2654435761U ^ other * 40503U) % STATES_ELSE];

    states->reached += !*seen;
    *seen = true;
}

void states_note(const struct proc *process)
{
    if (!states || !process->run || process->kind > AGENT)
        return;
    unsigned number = run_number(process->run), *before = &latest[number];
    unsigned state = state_of_run(process->run), *detail = &details[process->kind][number];
    unsigned detail_before = *detail;
    *detail = process->kind == SUPERVISOR ? state_detail_of_supervisor(process)
                                          : state_detail_of_agent(process);
    if (state == *before && *detail == detail_before)
        return;
    life_on_change(process->run);
    note_facts(facts_of(process->run, state));
    note_else(STATES * (2 + process->kind) + *detail, state);
    if (state == *before)
        return;
    states->pairs += !states->seen[state];
    states->reached += !states->seen[state];
    states->seen[state]++;
    note_else(*before, state);
    *before = state;
}

void states_note_fault(const struct run *run, unsigned kind)
{
    if (states)
        note_else(STATES + kind, latest[run_number(run)]);
}

/* -- what is told ------------------------------------------------------------------------------ */

static const char *const jobs[] = {"idle",      "running",  "paused", "verifying",
                                   "lingering", "stopping", "ended"};
static const char *const leavings[] = {"staying", "releasing", "cancelling"};
static const char *const agents[] = {"seeking", "offered",   "holding",
                                     "lost",    "releasing", "cancelling"};
static const char *const phases[] = {"idle", "watching", "delaying", "ending", "orphaned"};
static const char *const keepers[] = {"trying", "waiting", "paused",    "confirming",
                                      "held",   "lost",    "releasing", "over"};

/* Two parts, each of which has some states, and how often both were in these at once. */
struct pair {
    const char *of;
    const char *const *names[2];
    unsigned counts[2];
    unsigned long seen[8][8];
};

/* A line of those that were reached, and one of those that were not. */
static void print_pair(const struct pair *pair)
{
    for (int reached = 1; reached >= 0; reached--) {
        printf("%s, %s:", pair->of, reached ? "reached" : "never reached");
        for (unsigned i = 0; i < pair->counts[0]; i++)
            for (unsigned j = 0; j < pair->counts[1]; j++)
                if ((pair->seen[i][j] > 0) == reached)
                    printf(" %s/%s", pair->names[0][i], pair->names[1][j]);
        putchar('\n');
    }
}

void states_print(const struct states *of)
{
    struct pair pairs[] = {{"job/agent", {jobs, agents}, {7, 6}, {{0}}},
                           {"job/watchdog", {jobs, phases}, {7, 5}, {{0}}},
                           {"job/keeper", {jobs, keepers}, {7, 8}, {{0}}},
                           {"agent/watchdog", {agents, phases}, {6, 5}, {{0}}},
                           {"agent/keeper", {agents, keepers}, {6, 8}, {{0}}},
                           {"watchdog/keeper", {phases, keepers}, {5, 8}, {{0}}},
                           {"leaving/agent", {leavings, agents}, {3, 6}, {{0}}}};

    for (unsigned state = 0; state < STATES; state++) {
        unsigned s = state / 4 / STATES_AGENT, a = state / 4 % STATES_AGENT;
        if (s == 0 || a == 0 || of->seen[state] == 0)
            continue;
        unsigned job = (s - 1) / 3, leaving = (s - 1) % 3, keeper = (a - 1) % 8,
                 phase = (a - 1) / 8 % 5, agent = (a - 1) / 40;
        pairs[0].seen[job][agent]++;
        pairs[1].seen[job][phase]++;
        pairs[2].seen[job][keeper]++;
        pairs[3].seen[agent][phase]++;
        pairs[4].seen[agent][keeper]++;
        pairs[5].seen[phase][keeper]++;
        pairs[6].seen[leaving][agent]++;
    }
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++)
        print_pair(&pairs[i]);
}
