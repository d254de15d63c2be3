/* The records of the stores in databases.
 *
 * postgresql://[USER:PASS@]HOST[:PORT]/DATABASE[?table=NAME]   (PORT 5432, NAME rlock)
 * postgresql://[USER:PASS@]/DATABASE?host=DIRECTORY[&port=PORT][&table=NAME]
 * mysql://[USER:PASS@]HOST[:PORT]/DATABASE[?table=NAME]   (PORT 3306), mariadb:// likewise
 * mysql://[USER:PASS@]/DATABASE?socket=PATH[&table=NAME]
 *
 * postgresqls, mysqls and mariadbs are the same over TLS; a Unix socket takes none. USER, PASS,
 * DATABASE, DIRECTORY and PATH are percent-decoded. */
#ifndef RLOCK_STORE_SQL_STORE_RECORD_H
#define RLOCK_STORE_SQL_STORE_RECORD_H

#include "store/store_record.h"

extern const struct store_record mysql_record, mariadb_record;

#endif
