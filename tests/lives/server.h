/* The servers: each is the real host (src/host/) with its Lua, over records in memory. */
#pragma once

#include "lives/network.h"
#include "lives/trouble.h"

#define SERVERS 5
/* 2027-01-15: the wall clock of hosts at the beginning of the world's. */
#define WALL_BASE (INT64_C(1800000000) * SEC)
/* The host knows a connection by this and its number. */
#define SERVER_DESCRIPTORS 1000

/* The servers of this life: more than one make a quorum. */
extern int server_count;

/* Once, before all lives. */
void server_load(void);
/* None has a client, nor a record. rate: parts per million by which a clock is fast at most. */
void server_begin(int64_t rate);
/* Begins with the replicas in the same way. */
void server_begin_replicas(void);
/* True if the clocks of a quorum are apart, other than by their rates. */
bool server_clocks_differ(void);
/* The first one stands before a database (database.h), if there is one in this life. */
void server_begin_database(void);
/* The wall clock of the one that acts now, in ns. */
int64_t server_now(void);

/* -- for the network --------------------------------------------------------------------------- */

bool server_is_up(int number);
/* The server answers WAIT, and reads again. */
void server_unblock(struct connection *connection, unsigned count);
void server_accept(struct connection *connection);
void server_close(struct connection *connection);
void server_read_from(struct connection *connection);

/* Whether the request under way is an administrator's. */
bool server_serves_admin(void);
struct unit;
/* The first server does that unit, whose client is told nothing. */
void server_commit(struct unit *unit);

/* -- for the replication ----------------------------------------------------------------------- */

struct memory_kind;

/* All that it has; it does nothing before that time. */
const struct memory_records *server_records(int number);
int64_t server_frozen_until(int number);
/* A replica has received a record, if it is later than its own, or all. */
void server_take(int number, const struct memory_kind *record);
void server_copy(int from, int to);
/* Calls "tell" for each entry of "old" that "new" lacks, or has for a shorter time; it would have
 * lasted until then. */
void server_compare(int old, int new,
                    void (*tell)(const char *owner, int64_t deadline, bool lacks));
/* The server has become a master in the place of "old". */
void server_promote(int number, int old);
/* The server has become a replica of "new". */
void server_demote(int number, int new);

/* -- faults ------------------------------------------------------------------------------------ */

/* The server does nothing for that time. */
void server_freeze(int number, int64_t ns);
/* The server refuses connections for that time; it has its data then, but not its scripts. */
void server_restart(int number, int64_t ns);
void server_forget_scripts(int number);
/* The server loses all records. */
void server_forget(int number);
/* Somebody sets its clock. */
void server_step_clock(int number, int64_t ns);
/* The server is in that trouble for that time. */
void server_trouble(int number, enum trouble trouble, int64_t ns);

/* -- for the oracle ---------------------------------------------------------------------------- */

/* Whether an owner has an entry at a server, which may have ended. */
bool server_has_entry(const char *key, const char *owner);
/* When a majority of the servers lets its lock end, as the world counts; NEVER: it has none. */
int64_t server_lease_end(const char *key, const char *owner);
/* Whether an owner holds a lock now, at a majority of the servers. */
bool server_has_holder(const char *key, const char *owner);
/* How many entries there are that have not ended; prints them. */
int server_holders(const char *key, char *out, size_t size);
/* A KEY's record, a field a line; "": there is none. */
const char *server_record(const char *key);
