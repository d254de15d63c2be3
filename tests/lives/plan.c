#include "lives/plan.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "lives/world.h"

static uint64_t state; /* of chance */

/* The plan, while it is made. */
#define CHOICES 250
static const struct plan *plan;
static struct {
    uint64_t value, limit;
} choices[PLAN_PARTS][CHOICES];
static unsigned choice_counts[PLAN_PARTS];
static unsigned part; /* PLAN_PARTS: it is made */

/* -- chance: splitmix64 ------------------------------------------------------------------------ */

static uint64_t mixed(uint64_t z)
{
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
}

static uint64_t draw(void)
{
    return mixed(state += 0x9e3779b97f4a7c15);
}

void plan_begin(const struct plan *of_life)
{
    plan = of_life;
    memset(choice_counts, 0, sizeof choice_counts);
    plan_part(0);
}

void plan_part(unsigned new_part)
{
    uint64_t base = plan->base ? plan->base : plan->seed;
    uint64_t seed = plan->seeds[new_part] ? plan->seeds[new_part] : base;

    part = new_part;
    choice_counts[part] = 0;
    state = mixed(seed) + part;
}

void plan_end(void)
{
    part = PLAN_PARTS;
    state = mixed(plan->seed) + part;
}

unsigned plan_choices(unsigned of_part)
{
    return choice_counts[of_part];
}

uint64_t plan_chosen(unsigned of_part, unsigned number, uint64_t *limit)
{
    *limit = choices[of_part][number].limit;
    return choices[of_part][number].value;
}

bool plan_change(struct plan *changed, unsigned of_part, unsigned number, uint64_t value)
{
    struct plan_change *change = changed->changes;
    const struct plan_change *end = change + changed->change_count;

    while (change < end && (change->part != of_part || change->number != number))
        change++;
    if (change == changed->changes + PLAN_CHANGES)
        return false;
    changed->change_count += change == end;
    *change = (struct plan_change){(uint8_t)of_part, (uint8_t)number, value};
    return true;
}

/* A choice of the plan: below "limit"; 0: any. */
static uint64_t choose(uint64_t limit)
{
    unsigned number = choice_counts[part]++;
    uint64_t value = draw();

    if (number >= CHOICES)
        abort();
    for (unsigned i = 0; i < plan->change_count; i++)
        if (plan->changes[i].part == part && plan->changes[i].number == number)
            value = plan->changes[i].value;
    value = limit ? value % limit : value;
    choices[part][number].value = value;
    choices[part][number].limit = limit;
    return value;
}

uint64_t chance(void)
{
    return part < PLAN_PARTS ? choose(0) : draw();
}

int64_t chance_below(int64_t limit)
{
    if (limit <= 0)
        return 0;
    return (int64_t)(part < PLAN_PARTS ? choose((uint64_t)limit) : draw() % (uint64_t)limit);
}

bool one_in(unsigned n)
{
    return chance_below(n) == n - 1;
}

/* -- text -------------------------------------------------------------------------------------- */

void plan_print(const struct plan *printed, char *out, size_t size)
{
    *out = '\0';
    text_append(out, size, "%" PRIu64, printed->seed);
    if (printed->base)
        text_append(out, size, "@%" PRIu64, printed->base);
    for (unsigned i = 0; i < PLAN_PARTS; i++)
        if (printed->seeds[i])
            text_append(out, size, "+%u=%" PRIu64, i, printed->seeds[i]);
    for (unsigned i = 0; i < printed->change_count; i++)
        text_append(out, size, "+%u.%u=%" PRIu64, printed->changes[i].part,
                    printed->changes[i].number, printed->changes[i].value);
    for (unsigned i = 0; i < 32; i++)
        if (printed->left_out >> i & 1)
            text_append(out, size, "-%u", i);
}

/* Reads "=NUMBER". */
static bool read_value(const char **at, uint64_t *value)
{
    char *end;

    if (**at != '=')
        return false;
    *value = strtoull(*at + 1, &end, 10);
    *at = end;
    return true;
}

/* Reads "PART=SEED" or "PART.CHOICE=VALUE". */
static bool read_change(struct plan *read, const char **at)
{
    char *end;
    unsigned long of_part = strtoul(*at, &end, 10), number;
    uint64_t value;

    *at = end;
    if (of_part >= PLAN_PARTS)
        return false;
    if (**at != '.')
        return read_value(at, &read->seeds[of_part]);
    number = strtoul(*at + 1, &end, 10);
    *at = end;
    return number < CHOICES && read_value(at, &value) &&
           plan_change(read, (unsigned)of_part, (unsigned)number, value);
}

bool plan_read(struct plan *read, const char *text)
{
    char *end;

    *read = (struct plan){.seed = strtoull(text, &end, 10)};
    while (*end) {
        char sign = *end;
        const char *at = end + 1;
        if (sign == '@')
            read->base = strtoull(at, &end, 10);
        else if (sign == '-')
            read->left_out |= 1U << strtoul(at, &end, 10);
        else if (sign == '+' && read_change(read, &at))
            end = (char *)(uintptr_t)at;
        else
            return false;
    }
    return end > text;
}
