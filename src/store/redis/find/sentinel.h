/* One Sentinel, asked who the master is, and which other Sentinels it knows. Once it has answered,
 * its connection stays open for the next time. */
#ifndef RLOCK_STORE_REDIS_SENTINEL_H
#define RLOCK_STORE_REDIS_SENTINEL_H

#include "base/clock.h"
#include "store/redis/find/sentinel_vote.h"
#include "store/url.h"

struct loop;
struct sentinel;
struct tls;

/* Another Sentinel that one tells of. */
struct sentinel_peer {
    char host[256];
    int port;
    char id[SENTINEL_ID_SIZE];
};

/* Makes a Sentinel at that host, to be asked about the URL's master. Both are borrowed like "tls"
 * (NULL: plain) until sentinel_free(). "heard" comes once for each question that was not followed
 * by another before its answer, never before sentinel_ask() returned; another may be asked from
 * there. */
struct sentinel *sentinel_new(struct loop *loop, const struct url *url, const struct url_host *host,
                              struct tls *tls, void (*heard)(void *arg), void *arg);
void sentinel_free(struct sentinel *sentinel);

/* Asks; there is a word by "until" at the latest. password: for a Sentinel that requires one; NULL:
 * none; borrowed until there is a word. peers: asks for these, too. */
void sentinel_ask(struct sentinel *sentinel, const char *password, bool peers, struct moment until);
/* Ends the question, without its "heard". */
void sentinel_hush(struct sentinel *sentinel);
/* Returns the answer, or that it is still ASKED. */
const struct sentinel_word *sentinel_word(const struct sentinel *sentinel);
/* Returns the other Sentinels, as it told last; borrowed until it is asked again. */
const struct sentinel_peer *sentinel_peers(const struct sentinel *sentinel, size_t *count);
/* Whether this is a numeric address of its host, as far as that is known. */
bool sentinel_is_at(const struct sentinel *sentinel, const char *host, int port);

#endif
