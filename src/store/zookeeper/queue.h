/* Who holds a lock, and who waits for it: the children of the lock's node, as Curator's recipes lay
 * them out. Pure.
 *
 * A child is _c_UUID-WORD##########, where ########## is the parent's count of creations. WORD
 * tells readers (__READ__) from all others. A writer of rlock's has two children, lock- for
 * Curator's InterProcessMutex and __WRIT__ for its InterProcessReadWriteLock, because each of these
 * looks at names of its own alone. Whoever has no child in the way that has a lower number holds
 * the lock. A child that is nested in a holder's has the same number, and so is before all that
 * wait. */
#ifndef RLOCK_STORE_ZOOKEEPER_QUEUE_H
#define RLOCK_STORE_ZOOKEEPER_QUEUE_H

#include "lock/lock.h"
#include "lock/owner.h"
#include "store/zookeeper/message.h"

struct zk_contender {
    const char *name; /* of the node */
    bool reader;
    int32_t number;
    int64_t order; /* the numbers overflow: what they are sorted by */
    /* Whose it is, of any library; "": it does not tell. All with the same one are the same
     * party. */
    char uuid[OWNER_UUID_SIZE];
    bool heads; /* the first node of its party */
    bool holds;
};

/* In the order of their numbers. */
struct zk_queue {
    struct zk_contender *all;
    size_t count;
    bool semaphore; /* there are nodes among them below which a semaphore is, or was */
    char *text;     /* the names */
};

/* Reads the children of a lock's node; names that are not a contender's are left out, and a node
 * that is not there has none. Returns ZK_OK; the error of the reply; or ZK_MARSHALLING where the
 * names make no sense. The caller frees *queue by zk_queue_free(), also after an error. */
int zk_queue_read(const struct zk_reply *children, struct zk_queue *queue);
void zk_queue_free(struct zk_queue *queue);

/* Of a semaphore: all leases hold it, and all in its queue wait. */
void zk_queue_set_holding(struct zk_queue *queue, bool holding);

/* The first node of the party; NULL if it has none. */
const struct zk_contender *zk_queue_find(const struct zk_queue *queue, const char *uuid);
/* The node of that name. */
const struct zk_contender *zk_queue_named(const struct zk_queue *queue, const char *name);
/* The outermost ancestor of the owner that holds the lock: its first node; NULL: none does. */
const struct zk_contender *zk_queue_ancestor(const struct zk_queue *queue, const char *owner);
/* The nearest node that keeps "own" from holding the lock; NULL: none does. */
const struct zk_contender *zk_queue_in_the_way(const struct zk_queue *queue,
                                               const struct zk_contender *own);
/* How many parties hold the lock, and how many wait up to "own", who counts as well; NULL: how many
 * wait at all. */
size_t zk_queue_holders(const struct zk_queue *queue);
size_t zk_queue_position(const struct zk_queue *queue, const struct zk_contender *own);
/* Who has held it for longest; NULL: nobody. */
const struct zk_contender *zk_queue_oldest(const struct zk_queue *queue);
/* Of a party whose nodes these are, the next node after *at, NULL at first; NULL after the last. */
const struct zk_contender *zk_queue_next_of(const struct zk_queue *queue, const char *uuid,
                                            const struct zk_contender *at);

/* -- what is in a node ------------------------------------------------------------------------- */

/* rlock/1 OWNER MODE FENCE LEASE PASSWORD WHO, where the MODE of a semaphore is limit:LIMIT:SLOT.
 * Who nests has FENCE:ELDER:…, an ELDER for each ancestor, outermost first.
 * The password is the session's: whoever may read the node may delete it as well, and a process
 * that takes another one's place goes on with its session. */
struct zk_node_data {
    char owner[OWNER_SIZE];
    enum lock_mode mode;
    uint64_t fence; /* that it has of whom it nests in; 0: its own node's czxid is it */
    /* The czxid of the node that each ancestor had when this one was made, outermost first; 0: it
     * had none. */
    int64_t ancestors[OWNER_DEPTH];
    unsigned limit; /* of a semaphore, otherwise 0 */
    unsigned slot;  /* that it has of it; 0: none, it waits */
    int64_t lease;  /* ns: as it was granted */
    char password[ZK_PASSWORD_SIZE];
    const char *who; /* the rest, not ended by a NUL when read */
    size_t who_size;
};

/* The caller frees. */
char *zk_node_data_print(const struct zk_node_data *data);
/* False if it was not written by rlock. */
bool zk_node_data_parse(struct jute_text text, struct zk_node_data *data);

/* What is known of a contender by what is in its first node. stat: zeroed if that node may not be
 * read. now_ms: the wall clock, since 1970. */
void zk_read_party(const struct zk_contender *contender, struct jute_text text,
                   const struct zk_stat *stat, int64_t now_ms, struct lock_party *party);

/* The last UUID of an owner token, which is its own. */
const char *zk_owner_uuid(const char *owner);

#endif
