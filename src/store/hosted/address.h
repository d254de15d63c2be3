/* URLs of databases: what follows "SCHEME://", as the records of stores have it parsed and printed
 * (store/store_record.h). Pure. */
#ifndef RLOCK_STORE_HOSTED_ADDRESS_H
#define RLOCK_STORE_HOSTED_ADDRESS_H

#include "store/url.h"

/* The longest ?table=NAME: what the tables are called is a little longer, and databases take names
 * of up to 63 characters. */
#define HOSTED_TABLE_MAX 53

const char *hosted_parse_postgresql(struct url *url, char *rest);
void hosted_print_postgresql(const struct url *url, char *out, size_t size);
const char *hosted_parse_mysql(struct url *url, char *rest);
void hosted_print_mysql(const struct url *url, char *out, size_t size);

#endif
