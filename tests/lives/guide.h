/* Chooses plans by what lives have reached so far: a plan that has led to states in which no life
 * was before, or in which few were, is kept, and changed a little for a further life. */
#pragma once

#include "lives/plan.h"

/* In memory that batches share. */
struct guide;
struct guide *guide_new(void *(*share)(size_t size));
/* The plan of the life with that seed: a new one, or one that is kept, changed. */
struct plan guide_choose(const struct guide *guide, uint64_t seed);
/* That plan was lived. */
void guide_note(struct guide *guide, const struct plan *plan);
unsigned guide_kept(const struct guide *guide);
