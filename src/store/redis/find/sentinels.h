/* All Sentinels of a master, asked at once which server that is: those of the URL, and those that
 * they tell of. */
#pragma once

#include "store/redis/find/sentinel_vote.h"
#include "store/store.h"

struct sentinels;
struct tls;

/* The user and password for Sentinels that require them. */
struct sentinel_login {
    const char *user;     /* NULL: the default one */
    const char *password; /* NULL: none */
};

/* Returns the login for Sentinels, which borrows its words. own: their own password; NULL: that of
 * the servers is tried (servers; NULL: none). */
struct sentinel_login sentinel_login(const struct store_address *address, const char *own,
                                     const char *servers);

/* "url" and "tls" (NULL: plain) are borrowed until sentinels_free(). */
struct sentinels *sentinels_new(struct loop *loop, const struct url *url, struct tls *tls);
void sentinels_free(struct sentinels *sentinels);

enum sentinels_question {
    SENTINELS_VOTE,  /* until the vote is clear */
    SENTINELS_KNOWN, /* the same, without asking which other Sentinels there are */
    SENTINELS_ALL,   /* until each has answered, or cannot */
};

typedef void sentinels_done(void *arg, const struct sentinel_vote *vote);

/* Asks the Sentinels; "done" comes once, later, at "until" at the latest. One question at a time;
 * the next may be asked from there. The user's name is borrowed until sentinels_free(). */
void sentinels_ask(struct sentinels *sentinels, enum sentinels_question question,
                   const struct sentinel_login *login, struct moment until, sentinels_done *done,
                   void *arg);
/* Ends a question; "done" is not called for it. Harmless if none is open. */
void sentinels_hush(struct sentinels *sentinels);

/* Returns, of the certificates of all open connections, the one that ought to be renewed first;
 * whose NULL: there is none. */
struct tls_expiry sentinels_expiry(const struct sentinels *sentinels);
/* Whether any of them has said anything but that this is the master. */
bool sentinels_contradict(const struct sentinels *sentinels, const char *host, int port);
/* Returns where each Sentinel is, and its latest word; borrowed. */
const struct sentinel_facts *sentinels_facts(const struct sentinels *sentinels);
/* Makes an UNKNOWN answer of any vote but NAME, with the Sentinels that have not answered. */
void sentinels_explain(const struct sentinels *sentinels, const struct sentinel_vote *vote,
                       struct answer *answer);
