/* The record of a quorum, which several URLs of single servers make. */
#ifndef RLOCK_STORE_QUORUM_STORE_RECORD_H
#define RLOCK_STORE_QUORUM_STORE_RECORD_H

#include "store/store_record.h"

extern const struct store_record quorum_record;

#endif
