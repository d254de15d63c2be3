/* What a user reads while rlock waits for a lock: who holds it, since when, and who comes first. */
#ifndef RLOCK_WAITING_H
#define RLOCK_WAITING_H

#include "loop.h"
#include "notice.h"
#include "store.h"
#include <stdbool.h>

struct waiting {
    struct loop *loop;
    const struct lock_request *request;
    const char *title; /* of all its keys */
    struct notice notice;
    struct answer refusal; /* the latest */
    struct moment heard;   /* when it came; 0: never */
};

/* "request" and "title" are borrowed. */
void waiting_init(struct waiting *waiting, struct loop *loop, const struct lock_request *request,
                  const char *title, bool silent);
/* Still refused, for this reason. */
void waiting_heard(struct waiting *waiting, const struct answer *refusal);
/* "KEY: not acquired: held by …", for the last refusal of a wait that has ended. Returns out. */
char *waiting_refused(const struct waiting *waiting, const struct answer *refusal, char *out,
                      size_t size);
/* It is over: wipes what was drawn. */
void waiting_end(struct waiting *waiting);

/* "by USER@HOST pid N (COMMAND) for AGE, label LABEL", or what is known of it. "later" is the time since
 * the party's age was read, in ns. Returns out. */
char *waiting_describe(const struct lock_party *party, int64_t later, char *out, size_t size);

#endif
