/* A store that answers as it was told. */
#ifndef FAKE_STORE_H
#define FAKE_STORE_H

#include "fake_loop.h"
#include "store/store.h"

/* The answers, in the order they are given, whatever is asked: words of one of
 *   +  granted
 *   /  the same, for half the time that was asked for
 *   <  the same, counted from before the call: three tenths of the time that was asked for
 *   *  the same; a renewal: though it was forgotten, or 0 where the caller does not say what was
 *      granted
 *   d  granted, and does not listen for who asks for it
 *   -  refused: held by someone else, whose lease has 20 s left
 *   0  refused: the caller holds nothing; to an acquisition the same as -
 *   g  refused: the store may have forgotten who holds it, for 1 s; to others than an acquisition
 *      the same as 0
 *   m  refused: the key is something else
 *   ?  unknown, but it may have been done
 *   !  unknown, not done: there is no connection
 *   ~  unknown, not done: the server is not ready
 *   x  unknown, not done: permission denied
 *   .  none, which is unknown at the end of the time for it
 *   ,  the same, not done: there is no connection all that time, for a release without waiting
 *      either
 * and after how many ms: "-", "+4000". The last one is repeated. */
struct fake_store {
    struct store base;
    struct loop *loop;
    const char *answers;
    struct loop_timer reply;
    store_done *done; /* NULL: nothing is under way */
    void *done_arg;
    char call;   /* it is: a acquire, q and queue, l and listen, r renew, h the same of what was
                                 handed over, f release, u uncertainly */
    char answer; /* as above */
    struct moment until;
    struct moment sent;  /* the latest request for a lease, or from when its grant counts */
    struct moment heard; /* the latest answer */
    int64_t lease;       /* asked for by it, or granted */
    bool offered; /* the latest acquisition, if refused, takes the lock without being asked again */
    char owner[OWNER_SIZE];
    bool holds;                /* the caller may hold the lock, as far as the answers tell */
    bool loose;                /* an acquisition may be under way yet */
    struct moment loose_until; /* and not be executed any more */
    bool parted;       /* a release, waited for or not, was sent since it may have held it */
    char log[1500];    /* the events, in words */
    const char *fault; /* the caller's first; NULL: none */
};

void fake_store_init(struct fake_store *store, struct loop *loop, const char *answers);
/* Adds a word to the log; a call that is repeated is there once. */
void fake_log(struct fake_store *store, const char *word);
/* As what a connection that broke, or another's release, calls for. */
void fake_poke(struct fake_store *store);
/* As another's release hands over what the latest acquisition was refused, for 9.5 s from when that
 * was sent. Nothing if it has not offered to take it, or something is under way. */
void fake_hand(struct fake_store *store);
/* As a session that has expired. */
void fake_lose(struct fake_store *store);

#endif
