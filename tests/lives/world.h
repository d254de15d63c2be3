/* The world that a life takes place in: one clock, one source of chance, what will happen later,
 * and the verdict. Everything in a life follows from its plan: no call of the real kernel decides
 * anything.  world_begin(plan);  world_at(when, happen, arg);      ... things to happen
 * kernel_run(until);                until nothing is left to happen, or that time if
 * (*world.verdict) ...           what went wrong first / */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#define US    INT64_C(1000)
#define MS    INT64_C(1000000)
#define SEC   INT64_C(1000000000)
#define NEVER INT64_MAX

struct plan; /* plan.h */

extern struct world {
    int64_t now;       /* ns since the host's boot */
    FILE *trace;       /* NULL: none is written */
    bool over;         /* nothing happens any more */
    char verdict[400]; /* the first thing that went wrong; "": nothing */
} world;

void world_begin(const struct plan *plan);
/* Calls "happen" at that time, or now if it has passed; several of one time in the order in which
 * they were asked for. */
void world_at(int64_t when, void (*happen)(void *arg), void *arg);
/* When the next of these is due; NEVER: none is left. */
int64_t world_next(void);
/* Makes it that time, if it is later, and has the next one happen. */
void world_step(void);

/* -- chance ------------------------------------------------------------------------------------ */

uint64_t chance(void);
/* A number from 0 to less than "limit"; 0 where that is not above 0. While a plan is made
 * (plan.h), the lower one should be the simpler. */
int64_t chance_below(int64_t limit);
bool one_in(unsigned n);
#define CHOOSE(...)                                                                                \
    (((const int64_t[]){                                                                           \
        __VA_ARGS__})[chance_below(sizeof((const int64_t[]){__VA_ARGS__}) / sizeof(int64_t))])

/* -- what is told of it ------------------------------------------------------------------------ */

/* A line of the trace, if there is one. */
void trace(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* The life has gone wrong: it ends with this verdict, unless it has one. */
void fail(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* Prints, for the trace, who acts now. */
extern void (*world_actor)(char *out, size_t size);
