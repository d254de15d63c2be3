/* A database in place of a Redis: the connection of a host to it breaks in the middle of a unit of
 * work, so that its client cannot know what became of it; or the server does it later. */
#pragma once

#include "host/store.h"

/* The database of this life. */
extern struct database {
    unsigned cuts_of_1000; /* units; 0: it is a Redis */
    int64_t late;          /* ns, a unit that is done later is so at most */
    bool commits_late;     /* one is just being done later */
} database_here;

/* Chooses whether there is one. */
void database_choose(void);
/* The records in memory, by way of such a database. */
extern const struct host_store database_store;
/* The server loses what is under way. */
void database_drop(void);
