/* The rows of rlock top: which locks, in which order, and which of them is chosen. Pure. */
#pragma once

#include "lock/lock.h"
#include "store/views.h"

#define ROWS_FILTER_SIZE 128

enum rows_order {
    ROWS_BY_URGENCY, /* those that others wait for, by how long the first one waits; the others */
    ROWS_BY_AGE,     /* the longest held first */
    ROWS_BY_WAITERS, /* the most waiters first */
    ROWS_BY_KEY,
    ROWS_ORDERS
};

/* All zero: none. */
struct rows {
    struct lock_view *locks; /* shallow copies, what hurts most first */
    size_t count;
    size_t chosen;                 /* of them; 0 if there are none */
    size_t first;                  /* at the top of the window */
    char *key;                     /* of the chosen one, also while it is not there; or NULL */
    char filter[ROWS_FILTER_SIZE]; /* "": everything */
    enum rows_order order;
};

/* Takes the locks that the filter lets through, sorted. The chosen lock stays chosen wherever it
 * goes. The rows borrow from the locks until the next call. */
void rows_take(struct rows *rows, const struct lock_views *locks);
/* Chooses another one, so many rows further down, or up if it is negative; at most the last, or the
 * first. */
void rows_move(struct rows *rows, long by);
/* Moves the window, of so many rows, to where the chosen one is. */
void rows_scroll(struct rows *rows, size_t room);
/* The chosen lock, or NULL. */
const struct lock_view *rows_chosen(const struct rows *rows);
void rows_free(struct rows *rows);
