/* The hand-over of a lock by one message. A waiter offers, with each acquisition that it listens
 * after, to take the lock as soon as a script hands it over: with a token that it draws for this
 * one acquisition, and that only a client that may read the lock learns. The script keeps
 * token and place together; when the lock becomes free it makes the place the waiter's lease, and
 * publishes "TOKEN FENCE SLOT". Pure but for the randomness of the token. */
#pragma once

#include "store/store.h"

#define HANDOVER_TOKEN_SIZE 23 /* 128 bits in base64, and the 0 */

struct handover {
    char token[HANDOVER_TOKEN_SIZE];         /* of the latest offer */
    struct moment offered;                   /* from before that was sent */
    bool open;                               /* it was answered, and not taken up yet */
    struct lock_grant grants[LOCK_KEYS_MAX]; /* as it was handed over: only the first */
};

/* Draws a token for an acquisition that is about to be sent; an earlier one is worth nothing from
 * now on. False, with "" for a token, without entropy. */
bool handover_offer(struct handover *handover, struct moment now);

/* Whether the message hands the lock over that was asked for with a lease of "lease" ns: then
 * *grant is GRANTED, with the lease counted so that it ends when what was handed over does; it
 * points into *handover. An offer is taken up once. */
bool handover_take(struct handover *handover, const char *message, int64_t lease,
                   struct answer *grant);
