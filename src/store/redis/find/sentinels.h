/* All Sentinels of a master, asked at once who that is: those of the URL, and those that they tell
 * of. */
#ifndef RLOCK_STORE_REDIS_SENTINELS_H
#define RLOCK_STORE_REDIS_SENTINELS_H

#include "store/redis/find/sentinel_vote.h"
#include "store/store.h"

struct sentinels;
struct tls;

/* "url" and "tls" (NULL: plain) are borrowed for as long as they live. */
struct sentinels *sentinels_new(struct loop *loop, const struct url *url, struct tls *tls);
void sentinels_free(struct sentinels *sentinels);

typedef void sentinels_done(void *arg, const struct sentinel_vote *vote);

/* Asks all; "done" comes once, later, at "until" at the latest, and as soon as the vote is clear.
 * One question at a time; the next may be asked from there. password: for those who want one; NULL:
 * none. */
void sentinels_ask(struct sentinels *sentinels, const char *password, struct moment until,
                   sentinels_done *done, void *arg);
/* The same of those that are known already: which others there are is not asked again. */
void sentinels_ask_known(struct sentinels *sentinels, const char *password, struct moment until,
                         sentinels_done *done, void *arg);
/* As sentinels_ask(), but "done" comes when all have answered, or cannot. */
void sentinels_ask_all(struct sentinels *sentinels, const char *password, struct moment until,
                       sentinels_done *done, void *arg);
/* Ends a question; "done" comes no more. Harmless if none is open. */
void sentinels_hush(struct sentinels *sentinels);

/* Whether any of them has said anything but that this is the master. */
bool sentinels_contradict(const struct sentinels *sentinels, const char *host, int port);
/* How many have been asked; where each is, and its last word. */
size_t sentinels_count(const struct sentinels *sentinels);
const struct url_host *sentinels_host(const struct sentinels *sentinels, size_t i);
const struct sentinel_word *sentinels_word(const struct sentinels *sentinels, size_t i);
/* Any vote but NAME as an UNKNOWN answer, which names those who have not answered. */
void sentinels_explain(const struct sentinels *sentinels, const struct sentinel_vote *vote,
                       struct answer *answer);

#endif
