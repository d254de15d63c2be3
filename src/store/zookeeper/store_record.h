/* The record of zookeeper:// and zookeepers:// (store/store_record.h). */
#ifndef RLOCK_STORE_ZOOKEEPER_STORE_RECORD_H
#define RLOCK_STORE_ZOOKEEPER_STORE_RECORD_H

#include "store/store_record.h"

extern const struct store_record zookeeper_record;

#endif
