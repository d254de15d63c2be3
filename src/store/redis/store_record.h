/* The records of the stores that are one Redis server.
 *
 * redis://[USER[:PASS]@]HOST[:PORT][/DB]   (PORT 6379, DB 0; HOST may be an IPv6 address in [ ])
 * unix:///PATH[?db=N]   or   unix://[USER[:PASS]@]/PATH[?db=N]
 * sentinel://[USER[:PASS]@]HOST[:PORT][,HOST[:PORT]...]/MASTER[/DB]   (PORT 26379)
 *
 * rediss and sentinels are the same over TLS. USER, PASS, PATH and MASTER are percent-decoded. */
#ifndef RLOCK_STORE_REDIS_STORE_RECORD_H
#define RLOCK_STORE_REDIS_STORE_RECORD_H

#include "store/store_record.h"

/* Returns the command that gives a user its rights; see store_record.h. */
char *redis_schema(const struct store_address *address, const char *user, size_t i);

extern const struct store_record redis_record, unix_record, sentinel_record;

#define REDIS_PORT 6379

extern const char *const redis_mirrors[];

/* The abilities of a Redis server. */
#define REDIS_ABILITIES                                                                            \
    (STORE_READERS | STORE_SEMAPHORES | STORE_SEVERAL_KEYS | STORE_QUEUE | STORE_AT_LEAST |        \
     STORE_REPLICAS | STORE_GRACE | STORE_MARK | STORE_FORCE | STORE_ASK | STORE_REPLACE |         \
     STORE_LATCHES | STORE_DETACHED | STORE_GROUPS | STORE_MIRROR | STORE_LIMITS | STORE_MEMORY |  \
     STORE_TOGETHER | STORE_PRIORITIES | STORE_PAUSES | STORE_ANY | STORE_GLOB_PAUSES |            \
     STORE_MINIMUM)

#endif
