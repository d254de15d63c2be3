/* Connects to a database server: of the addresses that the URL's hosts have, to the one that takes
 * writes. */
#pragma once

#include "host/store.h"

/* -- for each kind of database ----------------------------------------------------------------- */

/* With TLS the library takes the name in the certificate for where to connect to. */
extern const bool database_connects_by_name;

/* An attempt to connect to one server. */
struct database_attempt;

/* The event that an attempt waits for, or its end. */
enum database_wait {
    DATABASE_READS,
    DATABASE_WRITES,
    DATABASE_UP,
    DATABASE_DOWN /* it is freed */
};

/* asks: also whether the server takes writes, as one that takes none will not do. */
struct database_attempt *database_begin(const struct host_target *target, bool asks);
/* Continues it; also called at first. *why: why it is down. */
enum database_wait database_continue(struct database_attempt *attempt, struct host_error *why);
int database_attempt_fd(const struct database_attempt *attempt);
/* How often a server of this history was promoted, by a server that is up; 0: not known. */
uint64_t database_promotions(struct database_attempt *attempt);
/* Frees an attempt: ends it; or makes it the connection of this process, to that target. */
void database_drop(struct database_attempt *attempt);
void database_take(struct database_attempt *attempt, const struct host_target *target);

/* -- for all of them --------------------------------------------------------------------------- */

/* Returns true when there is one. */
bool primary_connect(const struct host_target *target, struct host_error *fault);
