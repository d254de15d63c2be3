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

/* Begins an attempt, which one of the functions below frees. asks: also whether the server takes
 * writes, as one that takes none will not do. */
struct database_attempt *database_begin(const struct host_target *target, bool asks);
/* Continues the attempt, if what it waits for has come; also called at first. Returns what it waits
 * for next, or its end; *why: why it is down. */
enum database_wait database_continue(struct database_attempt *attempt, struct host_error *why);
/* The descriptor on which it waits. */
int database_attempt_fd(const struct database_attempt *attempt);
/* How often the server of an attempt that is up was promoted, or those before it were, whose data
 * it has; 0: not known. */
uint64_t database_promotions(struct database_attempt *attempt);
/* Frees an attempt: ends it; or makes it the connection of this process, to that target. */
void database_drop(struct database_attempt *attempt);
void database_take(struct database_attempt *attempt, const struct host_target *target);

/* -- for all of them --------------------------------------------------------------------------- */

/* Connects this process, and waits for that. False: why no server will do is in the fault. */
bool primary_connect(const struct host_target *target, struct host_error *fault);
