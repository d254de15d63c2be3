/* A Redis server that cannot serve: what it answers, in its own words and at the same places:
 * processCommand() refuses a command of a client, and a transaction with it; scriptCall() a command
 * of a script, which fails with that. Pure. */
#pragma once

#include <stdbool.h>

#include "host/record.h"

enum trouble {
    TROUBLE_NONE,
    TROUBLE_REPLICA, /* it has become a read-only one */
    TROUBLE_CUT_OFF, /* and cannot reach its master (replica-serve-stale-data no) */
    TROUBLE_DISK,    /* it cannot save its data */
    TROUBLE_FEW_REPLICAS,
    TROUBLE_MEMORY,  /* it is full */
    TROUBLE_CLIENTS, /* it takes no more of them */
    TROUBLE_LOADING,
    TROUBLE_BUSY,  /* with a script that takes long */
    TROUBLE_PROXY, /* one in front of it answers with errors, whether the server was asked or not */
    TROUBLES
};

const char *trouble_name(enum trouble trouble);
bool trouble_is_replica(enum trouble trouble);
/* Whether its answers say that it may pass. */
bool trouble_passes(enum trouble trouble);
/* The answer to a call of a script, whether that is done or not; NULL: the server's own. */
const char *trouble_with_call(enum trouble trouble);
/* All that a new client is told before it is hung up on; NULL: it is welcome. */
const char *trouble_with_client(enum trouble trouble);
/* The error for a command; NULL: it is done. queues: behind a MULTI. */
const char *trouble_with_command(enum trouble trouble, struct slice name, bool queues);
/* The error for a command of a script; NULL: it is done. has_written: an earlier one of it has. */
const char *trouble_with_write(enum trouble trouble, struct slice name, bool has_written);
