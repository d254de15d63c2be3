/* The event loop: file descriptors, deadlines and signals wake a process.
 *
 * poll(2), one absolute timerfd on CLOCK_BOOTTIME and a signalfd. Watchers and timers are embedded
 * in their owner's struct; the loop never allocates or frees one, and each may be removed at any
 * time, also from within a callback. The clock is read once a turn; a turn runs signals first, then
 * urgent timers (the end of a lease), then descriptors, then the other timers: after a suspend
 * the expired lease is noticed before a stale reply is believed. */
#pragma once

#include "base/clock.h"
#include <signal.h>

struct loop;

/* LOOP_GONE: the other end hung up or the descriptor failed; always reported. */
enum loop_events { LOOP_READ = 1, LOOP_WRITE = 2, LOOP_GONE = 4 };

struct loop_io {
    int fd;
    int events; /* LOOP_READ | LOOP_WRITE; may be changed while watched */
    void (*ready)(struct loop_io *io, int events);
    void *owner;
    struct loop_io *next; /* the loop's */
    bool watched;         /* the loop's */
};

struct loop_timer {
    struct moment due; /* set by loop_arm() */
    void (*fire)(struct loop_timer *timer);
    void *owner;
    bool urgent;
    struct loop_timer *next; /* the loop's */
    bool armed;              /* the loop's */
};

/* A thing to which only the loop refers from now on. */
struct loop_owned {
    void (*discard)(struct loop_owned *owned); /* the loop is freed */
    struct loop_owned *next;                   /* the loop's */
};

struct loop *loop_new(void);
/* Discards what it owns. NULL: harmless. */
void loop_free(struct loop *loop);

/* Has the loop discard the thing when it is freed; or not any more. */
void loop_own(struct loop *loop, struct loop_owned *owned);
void loop_disown(struct loop *loop, struct loop_owned *owned);

/* Watches the descriptor from now on. The loop refers to "io" until loop_remove(). */
void loop_add(struct loop *loop, struct loop_io *io);
/* Harmless if it is not watched. */
void loop_remove(struct loop *loop, struct loop_io *io);

/* Calls timer->fire once when "due" has come; arming an armed timer moves it. */
void loop_arm(struct loop *loop, struct loop_timer *timer, struct moment due);
/* Harmless if it is not armed. */
void loop_disarm(struct loop *loop, struct loop_timer *timer);

/* Reads the signals of "set" (blocked by the caller) and hands each to "caught", unless it is
 * ignored: what nohup(1) has switched off must not reach a command; nor does what is about a limit
 * of this process. -1 with errno. */
int loop_signals(struct loop *loop, const sigset_t *set, void (*caught)(void *owner, int signo),
                 void *owner);

/* The moment this turn began. */
struct moment loop_now(const struct loop *loop);

/* Runs turns until loop_stop(); -1 with errno if the kernel refuses to wait. */
int loop_run(struct loop *loop);
/* Runs turns for so many ns at most; 0: what is due, such as the end of a connection. Returns 0
 * when the time is over, 1 after loop_stop(), or -1 with errno. */
int loop_run_for(struct loop *loop, int64_t ns);
/* Has loop_run() return, after the callback that has called this. */
void loop_stop(struct loop *loop);
