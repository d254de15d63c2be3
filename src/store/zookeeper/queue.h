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

struct contender {
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
struct queue {
    struct contender *all;
    size_t count;
    bool semaphore; /* there are nodes among them below which a semaphore is, or was */
    char *text;     /* the names */
};

/* Reads the children of a lock's node. What is no contender's is left out. False if the names make
 * no sense. *queue is to be given back with queue_free(). */
bool queue_read(const struct zk_reply *children, struct queue *queue);
void queue_free(struct queue *queue);

/* Of a semaphore: all leases hold it, and all in its queue wait. */
void queue_set_holding(struct queue *queue, bool holding);

/* The first node of the party; NULL if it has none. */
const struct contender *queue_find(const struct queue *queue, const char *uuid);
/* The node of that name. */
const struct contender *queue_named(const struct queue *queue, const char *name);
/* The outermost ancestor of the owner that holds the lock: its first node; NULL: none does. */
const struct contender *queue_ancestor(const struct queue *queue, const char *owner);
/* The nearest node that keeps "own" from holding the lock; NULL: none does. */
const struct contender *queue_in_the_way(const struct queue *queue, const struct contender *own);
/* How many parties hold the lock, and how many wait up to "own", who counts as well; NULL: how many
 * wait at all. */
size_t queue_holders(const struct queue *queue);
size_t queue_position(const struct queue *queue, const struct contender *own);
/* Who has held it for longest; NULL: nobody. */
const struct contender *queue_oldest(const struct queue *queue);
/* Of a party whose nodes these are, the next node after *at, NULL at first; NULL after the last. */
const struct contender *queue_next_of(const struct queue *queue, const char *uuid,
                                      const struct contender *at);

/* -- what is in a node ------------------------------------------------------------------------- */

/* rlock/1 OWNER MODE FENCE LEASE PASSWORD WHO, where the MODE of a semaphore is limit:LIMIT:SLOT.
 * Who nests has FENCE:ELDER:…, an ELDER for each ancestor, outermost first.
 * The password is the session's: whoever may read the node may delete it as well, and a process
 * that takes another one's place goes on with its session. */
struct node_data {
    char owner[OWNER_SIZE];
    enum lock_mode mode;
    uint64_t fence; /* that it has of whom it nests in; 0: its own node's czxid is it */
    /* The czxid of the node that each ancestor had when this one was made, outermost first; 0: it
     * had none. */
    int64_t elders[OWNER_DEPTH];
    unsigned limit; /* of a semaphore, otherwise 0 */
    unsigned slot;  /* that it has of it; 0: none, it waits */
    int64_t lease;  /* ns: as it was granted */
    char password[ZK_PASSWORD_SIZE];
    const char *who; /* the rest, not ended by a NUL when read */
    size_t who_size;
};

/* The caller frees. */
char *node_data_print(const struct node_data *data);
/* False if it was not written by rlock. */
bool node_data_parse(struct jute_text text, struct node_data *data);

/* What is known of a contender by what is in its first node. stat: zeroed if that node may not be
 * read. now_ms: the wall clock, since 1970. */
void queue_party(const struct contender *contender, struct jute_text text,
                 const struct zk_stat *stat, int64_t now_ms, struct lock_party *party);

/* The last UUID of an owner token, which is its own. */
const char *queue_uuid(const char *owner);

#endif
