/* A loop (net/loop.h) whose time passes only when something is due: hours of leases take no time,
 * and every run is the same. */
#pragma once

#include "net/loop.h"

/* One turn of the loop: time advances to the next timer, and that happens, in net/loop.h's order.
 * False if nothing ever will. The store's answers are what descriptors are to the real one. */
bool fake_turn(struct loop *loop);
/* When the next turn is due; never, if nothing is. Where there are several loops, each a process of
 * its own, whoever turns always the one that is due next keeps them in one time. */
struct moment fake_due(const struct loop *loop);
/* A turn at that time, or later. */
void fake_turn_at(struct loop *loop, struct moment now);
/* This process is stopped for "ns" before the next turn. */
void fake_suspend(struct loop *loop, int64_t ns);
/* Timers with this "fire" stand for descriptors. */
void fake_descriptor(struct loop *loop, void (*fire)(struct loop_timer *timer));
/* The descriptors that are watched, linked by "next"; the test of the other end calls "ready". */
struct loop_io *fake_ios(const struct loop *loop);
