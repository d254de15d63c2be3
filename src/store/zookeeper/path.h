/* Which node is which lock's. Pure. */
#ifndef RLOCK_STORE_ZOOKEEPER_PATH_H
#define RLOCK_STORE_ZOOKEEPER_PATH_H

#include "store/zookeeper/message.h"

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

#endif
