/* Records in memory, as a host's store (host/store.h) of one process. For the tests. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "host/unit.h"

struct memory_kind {
    char *name; /* as record_print_name() has it */
    char *text; /* as record_print() has it */
    int64_t version;
};

/* The records of one server; all zero: none. */
struct memory_records {
    struct memory_kind *all;
    size_t count;
};

/* Whom to tell of a record that has changed, and then of the whole unit. Either may be NULL. */
struct memory_watch {
    void (*changed)(const char *name, const struct record *record);
    void (*committed)(void);
};

/* The host's units are of these records from now on. Both are borrowed. */
void memory_records_use(struct memory_records *records, const struct memory_watch *watch);
void memory_records_clear(struct memory_records *records);
/* Loads a key amid a unit, which needs not be done again for it then. */
void memory_records_reach(struct unit *unit, struct slice name, enum unit_use use);

extern const struct host_store memory_records_store;
