/* The records of the stores in databases: postgresql://, mysql:// and mariadb://. */
#ifndef RLOCK_STORE_SQL_STORE_RECORD_H
#define RLOCK_STORE_SQL_STORE_RECORD_H

#include "store/store_record.h"

extern const struct store_record postgresql_record, mysql_record, mariadb_record;

#endif
