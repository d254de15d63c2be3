/* One Sentinel, asked who the master is. Once it has answered, its connection stays open for the next time. */
#ifndef RLOCK_SENTINEL_H
#define RLOCK_SENTINEL_H

#include "clock.h"
#include "sentinel_vote.h"
#include "url.h"

struct loop;
struct sentinel;
struct tls;

/* One of the hosts of a URL, which is borrowed like "tls" for as long as the Sentinel lives; tls NULL: plain.
 * "heard" comes once for each question that was not followed by another before its answer, and later than
 * it was asked; another may be asked from there. */
struct sentinel *sentinel_new(struct loop *loop, const struct url *url, size_t host,
                              struct tls *tls, void (*heard)(void *arg), void *arg);
void sentinel_free(struct sentinel *sentinel);

/* Asks; there is a word by "until" at the latest. password: for one that does not answer without; NULL: none;
 * borrowed until there is. */
void sentinel_ask(struct sentinel *sentinel, const char *password, struct moment until);
/* The answer, or that it is still ASKED. */
const struct sentinel_word *sentinel_word(const struct sentinel *sentinel);
#endif
