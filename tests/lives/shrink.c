/* Finds the simplest plan that goes wrong in the same way as a life did, and traces it. */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "lives/faults.h"
#include "lives/live.h"
#include "lives/world.h"

/* A plan is tried in at most so many ways, for so many seconds of processor. */
#define LIVES_MOST   2000
#define SECONDS_MOST 10
#define TRACE_LINES  60

static char wrong[sizeof world.verdict]; /* the verdict, without its numbers */
static unsigned lives;
static clock_t began;

static void keep_letters(char *out, const char *text)
{
    for (; *text; text++)
        if (!isdigit((unsigned char)*text))
            *out++ = *text;
    *out = '\0';
}

static bool is_enough(void)
{
    return lives >= LIVES_MOST || clock() - began > SECONDS_MOST * CLOCKS_PER_SEC;
}

/* Takes the simpler plan for the better one if it goes wrong, too. */
static bool take_if_wrong(struct plan *plan, const struct plan *simpler)
{
    char letters[sizeof wrong];

    if (is_enough())
        return false;
    lives++;
    live(simpler, NULL);
    keep_letters(letters, world.verdict);
    if (strcmp(letters, wrong) != 0)
        return false;
    *plan = *simpler;
    return true;
}

static bool leave_out_faults(struct plan *plan, int count)
{
    bool better = false;

    for (int i = 0; i < count; i++) {
        struct plan simpler = *plan;
        simpler.left_out |= 1U << i;
        better |= simpler.left_out != plan->left_out && take_if_wrong(plan, &simpler);
    }
    return better;
}

static bool take_with_choice(struct plan *plan, unsigned part, unsigned number, uint64_t value)
{
    struct plan simpler = *plan;

    return plan_change(&simpler, part, number, value) && take_if_wrong(plan, &simpler);
}

/* Looks for the lowest number that it can be: 0, or by halves. */
static bool lower_choice(struct plan *plan, unsigned part, unsigned number)
{
    uint64_t limit, high = plan_chosen(part, number, &limit), low = 0;
    bool better = false;

    if (high == 0 || limit == 0)
        return false;
    if (take_with_choice(plan, part, number, 0))
        return true;
    for (int i = 0; i < 6 && low + 1 < high; i++) {
        uint64_t middle = low + (high - low) / 2;
        if (take_with_choice(plan, part, number, middle)) {
            high = middle;
            better = true;
        } else {
            low = middle;
        }
    }
    return better;
}

static bool lower_choices(struct plan *plan)
{
    bool better = false;

    for (unsigned part = 0; part < PLAN_PARTS; part++) {
        if (part >= PLAN_FAULT && part < PLAN_NAMES && plan->left_out >> (part - PLAN_FAULT) & 1)
            continue;
        for (unsigned number = 0;; number++) {
            plan_make(plan); /* its choices are known then */
            if (number >= plan_choices(part))
                break;
            better |= lower_choice(plan, part, number);
        }
    }
    return better;
}

unsigned shrink(struct plan *plan)
{
    bool better = true;

    lives = 0;
    began = clock();
    live(plan, NULL);
    keep_letters(wrong, world.verdict);
    while (better && !is_enough()) {
        better = leave_out_faults(plan, fault_count);
        better |= lower_choices(plan);
    }
    return lives;
}

/* -- the trace --------------------------------------------------------------------------------- */

/* A reader needs such lines to find a way through the other ones. */
static bool is_signpost(const char *line)
{
    static const char *const words[] = {"FAULT",     "WRONG",  " run ",   "tells",       "executes",
                                        "ends with", "ends: ", "granted", "second time", "forks"};

    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strstr(line, words[i]))
            return true;
    return false;
}

static size_t split(char *text, char **lines, size_t most)
{
    size_t count = 0;

    for (char *line; (line = strsep(&text, "\n")) && count < most;)
        if (*line)
            lines[count++] = line;
    return count;
}

/* Chooses the latest of these lines, as far as there is room. */
static size_t choose_lines(char *const *lines, size_t count, bool signposts, bool *chosen,
                           size_t room)
{
    for (size_t i = count; i-- > 0 && room > 0;)
        if (!chosen[i] && (!signposts || is_signpost(lines[i]))) {
            chosen[i] = true;
            room--;
        }
    return room;
}

void live_traced(const struct plan *plan)
{
    static char *lines[100000];
    static bool chosen[100000];
    char *text = NULL;
    size_t size, count;
    FILE *trace_to = open_memstream(&text, &size);

    live(plan, trace_to);
    fclose(trace_to);
    count = split(text, lines, sizeof lines / sizeof *lines);
    memset(chosen, 0, sizeof chosen);
    choose_lines(lines, count, false, chosen,
                 choose_lines(lines, count, true, chosen, TRACE_LINES));
    for (size_t i = 0; i < count; i++)
        if (chosen[i])
            printf("    %s\n", lines[i]);
    free(text);
}
