/* The state of a count-down latch, and requests about one. Plain data; a pointer to it is borrowed
 * for the call. */
#ifndef RLOCK_LOCK_LATCH_H
#define RLOCK_LOCK_LATCH_H

#include <stdbool.h>
#include <stdint.h>

#define LATCH_NUMBER_MAX 1000000000
#define LATCH_WORD_SIZE  40

enum latch_verb {
    LATCH_LOOK,
    LATCH_LIST, /* looks, and tells the ids */
    LATCH_SET,
    LATCH_COUNT,
    LATCH_DELETE,
};

struct latch_request {
    const char *key;
    enum latch_verb verb;
    const char *id; /* COUNT: what was counted under it once is not counted again */
    bool unnamed;   /* COUNT: the id was made for this call, not given by the user */
    /* SET: fresh for each call: tells the latch from others that had, or will have, the same name.
     * COUNT: counts only on that latch; NULL: on any that has the name. */
    const char *word;
    int64_t number; /* SET: how many there are to count; COUNT: how many at once */
    int64_t ttl;    /* SET: ns */
    bool listen;    /* LOOK: have the store call "poked" when it is worth looking again */
    void (*each)(void *arg, const char *id); /* LIST: called for each id, sorted */
    void *each_arg;
};

struct latch_state {
    char word[LATCH_WORD_SIZE];
    int64_t number, left; /* how many in all; how many are left, 0: open */
    int64_t since_ms;     /* the store's wall clock, ms since 1970: only for display */
    int64_t age_ms;       /* the same as an age, by the store's own clock */
    int64_t ttl_ms;       /* until it expires, open or not */
    int64_t unnamed;      /* LIST: calls that counted without an id */
    bool counted; /* COUNT: by this call; false: that id was counted before, or it was open */
};

#endif
