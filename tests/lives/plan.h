/* The plan of a life: all that is chosen before it begins, from the command lines to the faults.
 * Its text is "SEED", with all that is not as the seed has it:
 *
 *   77@5          all parts are chosen as by the seed 5
 *   77+9=1234     part 9 is chosen as by the seed 1234
 *   77+9.3=17     the choice 3 (from 0 on) in part 9 is 17
 *   77-2          fault 2 (from 0 on) is left out */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum plan_part {
    PLAN_WORLD,
    PLAN_RUNS,
    PLAN_RUN,
    PLAN_FAULTS = PLAN_RUN + 4,
    PLAN_FAULT,
    PLAN_NAMES = PLAN_FAULT + 8, /* and all that follow */
    PLAN_REPLICAS,
    PLAN_INTERRUPTS,
    PLAN_PROC,
    PLAN_SHORTAGES,
    PLAN_CGROUPS,
    PLAN_SCRIPT,
    PLAN_LATCH,
    PLAN_DATABASE,
    PLAN_OPTIONS,
    PLAN_FENCE,
    PLAN_CHAIN,
    PLAN_PARTS
};

/* Each part of a plan has a seed and so chances of its own: it can be chosen anew, and a choice in
 * it be changed, without another part of it. */
#define PLAN_CHANGES 64
struct plan {
    uint64_t seed; /* of the life */
    uint64_t base; /* of each part that has none; 0: the same */
    uint64_t seeds[PLAN_PARTS];
    struct plan_change {
        uint8_t part, number; /* of the choice in the part: 0 is the first */
        uint64_t value;       /* chosen there */
    } changes[PLAN_CHANGES];
    unsigned change_count;
    unsigned left_out; /* faults: a bit for each */
};

/* The plan begins; the choices that follow are of part 0. */
void plan_begin(const struct plan *plan);
/* The choices that follow are of this part, from its first on. */
void plan_part(unsigned part);
/* The life begins: all further chances are its own. */
void plan_end(void);
/* How many choices a part has; known when the plan is made. */
unsigned plan_choices(unsigned part);
/* Returns the choice, a number below "limit"; 0: any. */
uint64_t plan_chosen(unsigned part, unsigned number, uint64_t *limit);
/* Changes a choice. False if there is no room. */
bool plan_change(struct plan *plan, unsigned part, unsigned number, uint64_t value);
/* Writes its text. */
void plan_print(const struct plan *plan, char *out, size_t size);
/* False: it is not the text of a plan. */
bool plan_read(struct plan *plan, const char *text);
