/* URLs of databases: the part behind "SCHEME://", parsed and printed for the records of stores
 * (store/store_record.h). Pure. */
#ifndef RLOCK_STORE_HOSTED_ADDRESS_H
#define RLOCK_STORE_HOSTED_ADDRESS_H

#include "store/url.h"

/* The longest ?table=NAME: names of tables are a little longer, and databases take up to 63
 * characters. */
#define HOSTED_TABLE_MAX 53

const char *hosted_parse_postgresql(struct url *url, char *rest);
void hosted_print_postgresql(const struct url *url, char *out, size_t size);
const char *hosted_parse_mysql(struct url *url, char *rest);
void hosted_print_mysql(const struct url *url, char *out, size_t size);

#endif
