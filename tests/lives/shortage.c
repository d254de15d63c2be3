#include "lives/shortage.h"

#include <errno.h>
#include <string.h>

#include "lives/faults.h"
#include "lives/life.h"
#include "lives/plan.h"

static struct shortage {
    enum { OF_DESCRIPTORS, OF_FILES, OF_MEMORY, OF_PROCESSES, SHORTAGE_KINDS } kind;
    struct run *run;     /* its host, or one of its guards */
    enum kind guard;     /* OF_DESCRIPTORS, which each process has some of; or of OF_MEMORY */
    int64_t from, until; /* ns */
    int of_100;          /* of the calls that want it, so many are refused */
    bool at_start;       /* also before its command has begun */
} shortages[SHORTAGES];
static int shortage_count;

/* The error of a call that wants what there is none of; 0: it can do without. */
static int error_of(const struct shortage *shortage, const struct proc *process, enum want want)
{
    bool file = want == WANT_FILE || want == WANT_SOCKET;

    switch (shortage->kind) {
    case OF_DESCRIPTORS: return file && !process->has_reserve ? EMFILE : 0;
    case OF_FILES: return file || want == WANT_LOOK ? ENFILE : 0;
    case OF_MEMORY: return want == WANT_SOCKET && one_in(2) ? ENOBUFS : ENOMEM;
    case OF_PROCESSES: return want == WANT_PROCESS ? EAGAIN : 0;
    case SHORTAGE_KINDS: break;
    }
    return 0;
}

static bool concerns(const struct shortage *shortage, const struct proc *process)
{
    const struct run *run = shortage->run;

    if (world.now < shortage->from || world.now >= shortage->until || !process->run ||
        process->kind > CHILD || !(shortage->at_start || run->starts_seen))
        return false;
    if (shortage->kind == OF_DESCRIPTORS)
        return process->run == run && process->kind == shortage->guard;
    return run_is_beside(process->run, run);
}

int life_on_want(struct proc *process, enum want want)
{
    int error = 0;

    for (int i = 0; i < shortage_count && !error; i++)
        if (concerns(&shortages[i], process) && chance_below(100) < shortages[i].of_100)
            error = error_of(&shortages[i], process, want);
    if (!error)
        return 0;
    trace("SHORTAGE: is refused: %s", strerror(error));
    process->run->faulted = process->run->lacking = true;
    process->run->agent_faulted |= process->kind == AGENT;
    if (want == WANT_LOOK)
        process->run->blind_until = world.now + SEC;
    return error;
}

void shortages_choose(void)
{
    plan_part(PLAN_SHORTAGES);
    shortage_count = circumstances.calm || !one_in(5) ? 0 : 1 + (int)chance_below(SHORTAGES);
    for (int i = 0; i < shortage_count; i++) {
        struct run *run = &runs[chance_below(run_count)];
        int64_t from = run->starts + chance_below(one_in(2) ? 100 * MS : 2 * run->lease);
        shortages[i] = (struct shortage){
            .kind = (unsigned)chance_below(SHORTAGE_KINDS),
            .run = run,
            .guard = one_in(2) ? SUPERVISOR : AGENT,
            .from = from,
            .until = from + chance_below(one_in(2) ? 2 * run->lease : 100 * SEC),
            .of_100 = one_in(2) ? 100 : 1 + (int)chance_below(99),
        };
    }
    for (int i = 0; i < shortage_count; i++) {
        shortages[i].at_start = one_in(3);
        if (shortages[i].at_start && one_in(2))
            shortages[i].from = shortages[i].run->starts;
    }
}
