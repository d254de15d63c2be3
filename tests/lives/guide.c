#include "lives/guide.h"

#include "lives/live.h"
#include "lives/states.h"

/* Later ones take the place of others. */
#define KEPT   2048
#define LATEST 64

/* Facts that have come together in so many lives are not rare. */
#define RARE 1000
/* The rarest of so many pairs of facts is chosen. */
#define LOOKS 32

struct guide {
    struct plan kept[KEPT];
    unsigned count;                 /* all that were ever kept */
    unsigned long reached;          /* before the latest life */
    struct plan rare[FACTS][FACTS]; /* the latest in which these two facts came together */
};

struct guide *guide_new(void *(*share)(size_t size))
{
    states = share(sizeof *states);
    return share(sizeof(struct guide));
}

unsigned guide_kept(const struct guide *guide)
{
    return guide->count;
}

/* The guide's own chances: those of the plan are for the plan. */
static uint64_t state;

static uint64_t draw(uint64_t limit)
{
    state = state * 6364136223846793005U + 1442695040888963407U;
    return (state >> 33) % limit;
}

/* A part with a seed of its own, of which nothing is known yet. */
static void choose_part_anew(struct plan *plan, unsigned part)
{
    unsigned kept = 0;

    plan->seeds[part] = 1 + draw(1 << 30);
    for (unsigned i = 0; i < plan->change_count; i++)
        if (plan->changes[i].part != part)
            plan->changes[kept++] = plan->changes[i];
    plan->change_count = kept;
}

/* A little more or less, half or twice as much, or any other number. */
static void change_choice(struct plan *plan, unsigned part)
{
    unsigned count = plan_choices(part);
    uint64_t limit, value;

    if (count == 0)
        return;
    unsigned number = (unsigned)draw(count);
    value = plan_chosen(part, number, &limit);
    switch (draw(5)) {
    case 0: value += 1 + value / 100; break;
    case 1: value -= value > 0 ? 1 + value / 100 : 0; break;
    case 2: value /= 2; break;
    case 3: value *= 2; break;
    default: value = draw(1 << 30) << 30 | draw(1 << 30); break;
    }
    plan_change(plan, part, number, value);
}

/* Often a fault. */
static unsigned choose_part(void)
{
    if (draw(8) == 0)
        return PLAN_NAMES + (unsigned)draw(PLAN_PARTS - PLAN_NAMES);
    return draw(3) ? PLAN_FAULT + (unsigned)draw(5) : (unsigned)draw(PLAN_FAULT + 1);
}

static void change(struct plan *plan)
{
    switch (draw(4)) {
    case 0: choose_part_anew(plan, choose_part()); break;
    case 1: /* by the same plan, with other chances in the life */ break;
    default: change_choice(plan, choose_part()); break;
    }
}

/* Any, or one of the latest: these have reached what few lives do. */
static unsigned choose_kept(unsigned count)
{
    unsigned most = draw(2) ? KEPT : LATEST;

    return (count - 1 - (unsigned)draw(count < most ? count : most)) % KEPT;
}

/* A plan in which rare facts came together; NULL: none was found. */
static const struct plan *choose_rare(const struct guide *guide)
{
    const struct plan *rarest = NULL;
    unsigned fewest = RARE;

    for (int look = 0; look < LOOKS; look++) {
        uint64_t one = draw(FACTS), other = draw(FACTS);
        const struct plan *plan = &guide->rare[one][other];
        if (!plan->seed || states->lives[one][other] >= fewest)
            continue;
        fewest = states->lives[one][other];
        rarest = plan;
    }
    return rarest;
}

struct plan guide_choose(const struct guide *guide, uint64_t seed)
{
    state = seed * 0x9e3779b97f4a7c15;
    if (guide->count == 0 || draw(2) == 0)
        return (struct plan){.seed = seed};
    const struct plan *rare = draw(2) ? choose_rare(guide) : NULL;
    struct plan plan = rare ? *rare : guide->kept[choose_kept(guide->count)];
    if (!plan.base)
        plan.base = plan.seed;
    plan_make(&plan);
    for (uint64_t times = 1 + draw(3); times > 0; times--)
        change(&plan);
    plan.seed = seed;
    return plan;
}

struct noting {
    struct guide *guide;
    const struct plan *plan; /* NULL: it has too many changes to be kept */
};

static void note_pair(void *arg, unsigned one, unsigned other)
{
    const struct noting *noting = arg;

    if (++states->lives[one][other] < RARE && noting->plan)
        noting->guide->rare[one][other] = *noting->plan;
}

void guide_note(struct guide *guide, const struct plan *plan)
{
    struct noting noting = {guide, plan->change_count < PLAN_CHANGES / 2 ? plan : NULL};

    if (states->reached > guide->reached && noting.plan)
        guide->kept[guide->count++ % KEPT] = *plan;
    guide->reached = states->reached;
    states_end(note_pair, &noting);
}
