/* One of several keys, any of which will do (any_of_keys.c): its store, what may be ours
 * there, and what was answered last. A part is asked for one thing at a time. */
#ifndef RLOCK_STORE_ANY_PART_H
#define RLOCK_STORE_ANY_PART_H

#include "store/store.h"

/* What may be ours. */
enum hold { HOLD_NOTHING, HOLD_PLACE, HOLD_LOCK };
enum doing { IDLE, TAKING, STANDING, LEAVING, RENEWING, RELEASING };

/* What all parts have in common. */
struct part_home {
    struct loop *loop;
    /* Opens a store of one key. */
    struct store *(*open_one)(struct loop *loop, const struct store_address *address, char *fault,
                              size_t size);
    const struct store_address *address;
    char *owner; /* whose the parts are; NULL: nobody's */
    size_t count;
    struct lock_request request; /* of the operation under way, or the latest */
    void (*answered)(void *arg); /* some part has been */
    void (*poked)(void *arg);    /* some part is to be asked again */
    void *arg;
};

/* One of the keys. */
struct part {
    struct part_home *home;
    char *key;
    struct store *store; /* NULL: not open */
    enum doing doing;
    struct moment sent, until; /* of the latest request */

    /* What may be ours there. */
    enum hold hold;
    bool unsure;               /* a lock, as something was not answered */
    struct moment loose_until; /* an acquisition that was not answered may be executed until then */
    struct moment stray_until; /* then nothing is left of it */
    struct moment until_gone;  /* a release that was not answered may be executed until then */
    struct moment retry;       /* not to be given back again before */
    bool chosen;               /* it is one of those that were granted */

    /* An acquisition. */
    bool poked;           /* since it was asked about last */
    bool replaces;        /* whoever holds it is to be asked to give it back */
    bool failed;          /* the latest request was not answered */
    bool tried;           /* in this acquisition */
    unsigned times;       /* it was asked about in this acquisition */
    struct moment heard;  /* when the answer came; zero: it says nothing any more */
    struct answer answer; /* the latest */

    /* A renewal or release. */
    bool wanted; /* it is among the keys, and is not asked about yet */
    size_t at;   /* as which of the keys */
};

/* False with the failure as its answer. */
bool part_open(struct part *part);
/* Ends what is under way. */
void part_close(struct part *part);

bool part_may_be_lock(const struct part *part);
bool part_has_something(const struct part *part);
/* Whether it is free, and the owner comes first. */
bool part_is_ready(const struct part *part);
/* Whether it is free, and somebody else comes first. */
bool part_is_kept_by_another(const struct part *part);
/* Nothing is acquired where a release that is under way could take it away again. */
bool part_may_be_asked(const struct part *part);

/* It was held, and may be held no more. */
void part_doubt(struct part *part);
/* It was answered: what was asked after an acquisition could be executed no more has found out what
 * became of it. */
void part_note_sure(struct part *part);

/* Of a part that is idle; "answered" follows, unless its store cannot be opened. */
void part_begin(struct part *part, enum doing doing, struct moment until);
/* doing: TAKING or STANDING. */
void part_ask(struct part *part, enum doing doing, struct moment until);
/* Gives back a lock that was not used, and the place. returns: the place is wanted again. */
void part_leave(struct part *part, bool returns);

#endif
