/* The holders of a lock and its waiters: the children of the lock's node, as Curator's recipes lay
 * them out. Pure.
 *
 * A child is _c_UUID-WORD##########, where ########## is the parent's count of creations. WORD
 * tells readers (__READ__) from all others. A writer of rlock has two children, lock- for
 * Curator's InterProcessMutex and __WRIT__ for its InterProcessReadWriteLock, because each of
 * these only looks at names of its own. A client holds the lock if no child with a lower number
 * is in its way. A child that nests in a holder has the holder's number, and so is before all
 * that wait. */
#pragma once

#include "lock/owner.h"
#include "store/zookeeper/message.h"

/* -- keys as nodes ----------------------------------------------------------------------------- */

/* The node that all locks are children of: the URL's path, without its '/' in front; where it has
 * none, /PREFIX. "" is the root. The caller frees. */
char *zk_path_folder(const char *url_path, const char *prefix);

/* A child of it: FOLDER/NAME, where NAME is the key with all that no name of a node may have
 * written as %XX. The caller frees. */
char *zk_path_of_key(const char *folder, const char *key);

/* The key that a child's name stands for; NULL if it is none's, or not written as above. The caller
 * frees. */
char *zk_path_to_key(struct jute_text name);

/* NODE/CHILD. The caller frees. */
char *zk_path_join(const char *node, const char *child);

/* Where owners have their nodes: below the key's node; those that hold a semaphore below its child
 * "leases", and those that wait for it below its child "locks". */
enum zk_branch { ZK_PLAIN, ZK_LEASES, ZK_LOCKS, ZK_BRANCHES };

/* -- contenders -------------------------------------------------------------------------------- */

struct zk_contender {
    const char *name; /* of the node */
    bool reader;
    int32_t number;
    int64_t order; /* for sorting: the numbers overflow */
    /* The owner's, in any library; "": unknown. Nodes with the same one are the same party's. */
    char uuid[OWNER_UUID_SIZE];
    bool first_of_party;
    bool holds;
};

/* In the order of their numbers. */
struct zk_queue {
    struct zk_contender *all;
    size_t count;
    bool semaphore; /* there are nodes among them below which a semaphore is, or was */
    char *text;     /* the names */
};

/* Reads the children of a branch; names that are not a contender's are left out, and a node that is
 * not there has none. All leases of a semaphore hold it, and all in its queue wait. Returns ZK_OK;
 * the error of the reply; or ZK_MARSHALLING where the names make no sense. The caller frees *queue
 * by zk_queue_free(), also after an error. */
int zk_queue_read(const struct zk_reply *children, enum zk_branch branch, struct zk_queue *queue);
void zk_queue_free(struct zk_queue *queue);

/* All nodes that the functions below return are the queue's. */

/* Returns the first node of the party; NULL if it has none. */
const struct zk_contender *zk_queue_find(const struct zk_queue *queue, const char *uuid);
/* Returns the node of that name; NULL: there is none. */
const struct zk_contender *zk_queue_named(const struct zk_queue *queue, const char *name);
/* Returns the first node of the outermost ancestor of the owner that holds the lock; NULL: none
 * does. */
const struct zk_contender *zk_queue_ancestor(const struct zk_queue *queue, const char *owner);
/* Returns the nearest node that keeps "own" from holding the lock; NULL: none does. */
const struct zk_contender *zk_queue_in_the_way(const struct zk_queue *queue,
                                               const struct zk_contender *own);
/* Returns the number of parties that hold the lock. */
size_t zk_queue_holders(const struct zk_queue *queue);
/* Returns the number of parties that wait up to "own", which counts as well; own NULL: of all that
 * wait. */
size_t zk_queue_position(const struct zk_queue *queue, const struct zk_contender *own);
/* Returns the first node of the party that has held the lock for longest; NULL: none holds it. */
const struct zk_contender *zk_queue_oldest(const struct zk_queue *queue);
/* Returns the next node of that party after "at" (NULL: the first one); NULL: there is none. */
const struct zk_contender *zk_queue_next_of(const struct zk_queue *queue, const char *uuid,
                                            const struct zk_contender *at);

/* -- what is in a node ------------------------------------------------------------------------- */

/* rlock/1 OWNER MODE FENCE LEASE PASSWORD WHO, where the MODE of a semaphore is limit:LIMIT:SLOT.
 * An owner that nests has FENCE:CZXID:…, a CZXID for each ancestor, outermost first.
 * The password is the session's: a user who may read the node may delete it as well, and a process
 * that takes the place of another continues its session. */
struct zk_node_data {
    char owner[OWNER_SIZE];
    enum lock_mode mode;
    uint64_t fence; /* of the holder that it nests in; 0: its own node's czxid is it */
    /* The czxid of the node that each ancestor had when this one was made, outermost first; 0: it
     * had none. */
    int64_t ancestors[OWNER_DEPTH];
    unsigned limit; /* of a semaphore, otherwise 0 */
    unsigned slot;  /* of the semaphore; 0: it waits */
    int64_t lease;  /* ns: as it was granted */
    char password[ZK_PASSWORD_SIZE];
    const char *who; /* the rest, not ended by a NUL when read */
    size_t who_size;
};

/* Returns the text for a node; the caller frees it. */
char *zk_node_data_print(const struct zk_node_data *data);
/* Reads what is in a node; data->who points into it. False if it was not written by rlock. */
bool zk_node_data_parse(struct jute_text text, struct zk_node_data *data);

/* Describes a contender by the data of its first node. stat: zeroed if that node may not be read.
 * now_ms: the wall clock, since 1970. */
void zk_read_party(const struct zk_contender *contender, struct jute_text text,
                   const struct zk_stat *stat, int64_t now_ms, struct lock_party *party);

/* Returns the last UUID of an owner token, which is its own, within the token. */
const char *zk_owner_uuid(const char *owner);

/* -- those that nest in the same holder -------------------------------------------------------- */

/* Their nodes all have the holder's number. An owner shares the lock with those that it nests in.
 * Siblings, and those within them, exclude each other, in the order of their arrival: of two, those
 * ancestors are compared that they have below the innermost ancestor of both, as an owner within
 * the first must not wait for those that wait for the first. An ancestor that has gone still
 * counts: an owner within it may hold the lock. */
struct zk_nested {
    struct zk_node_data data;
    int64_t since;    /* the zxid that made its node */
    const char *name; /* of its node, for the caller; borrowed */
};

/* Returns the last one that is before all[own] and keeps it from holding the lock; NULL: none.
 * "all" are those whose nodes have that number; some of them may not be related. */
const struct zk_nested *zk_nested_in_the_way(const struct zk_nested *all, size_t count, size_t own);

/* -- the leases of a semaphore ----------------------------------------------------------------- */

/* Each lease is a child _c_UUID-lease-########## of KEY/leases, as Curator's
 * InterProcessSemaphoreV2 makes them. Curator knows no slots, and keeps no limit; rlock's leases
 * tell both in what is in them. Those that nest in a holder have its slot, and count with it. */
struct zk_room {
    unsigned taken; /* leases, but several of one slot count once */
    unsigned slot;  /* the lowest that is free, from 1 */
    unsigned limit; /* that rlock's leases tell, the first of them; 0: there is none */
    bool gone;      /* a lease has gone: one that nests in it, with its slot, may be missing */
};

/* Returns what room there is beside these leases. data: of each one the reply to OP_GET_DATA. */
struct zk_room zk_leases_room(const struct zk_reply *data, size_t count);
