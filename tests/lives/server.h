/* The server: the real host (src/host/) with its Lua, over records in memory. */
#pragma once

#include "lives/network.h"

/* 2027-01-15: the wall clock of hosts at the beginning of the world's. */
#define WALL_BASE (INT64_C(1800000000) * SEC)
/* The host knows a connection by this and its number. */
#define SERVER_DESCRIPTORS 1000

/* Once, before all lives. */
void server_load(void);
/* It has no client, and no record. rate: parts per million by which its clock is fast. */
void server_begin(int64_t rate);
/* Its wall clock, in ns. */
int64_t server_now(void);

/* -- for the network --------------------------------------------------------------------------- */

bool server_is_up(void);
void server_accept(struct connection *connection);
void server_close(struct connection *connection);
void server_read_from(struct connection *connection);

/* -- faults ------------------------------------------------------------------------------------ */

/* It does nothing for that time. */
void server_freeze(int64_t ns);
/* It refuses connections for that time, and comes back with its data. */
void server_restart(int64_t ns);

/* -- for the oracle ---------------------------------------------------------------------------- */

/* Until when an owner holds a lock, by the server's clock in ns; 0: it does not. */
int64_t server_deadline(const char *key, const char *owner);
/* How many hold it now; prints them. */
int server_holders(const char *key, char *out, size_t size);
/* Its record, a field a line; "": there is none. */
const char *server_record(const char *key);
