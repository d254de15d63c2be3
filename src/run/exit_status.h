/* The exit statuses of rlock that are not the command's own, and which of them a store's
 * answer is. */
#pragma once

#include <errno.h>

#include "store/store.h"

enum status {
    STATUS_OK = 0,
    STATUS_NO = 1,               /* a plain no: not the holder, nothing to release */
    STATUS_USAGE = 64,           /* found on the command line, before anything is opened */
    STATUS_UNAVAILABLE = 69,     /* the store cannot be reached or cannot do it */
    STATUS_BUG = 70,             /* in rlock */
    STATUS_SYSTEM = 71,          /* the operating system refused */
    STATUS_NOT_ACQUIRED = 75,    /* held by others */
    STATUS_DENIED = 77,          /* by the store: authentication or permission */
    STATUS_CONFIG = 78,          /* the environment, a config file, or the key's type */
    STATUS_LOST = 79,            /* the lock, while the command ran */
    STATUS_TIMED_OUT = 124,      /* --at-most, or the lease of --no-renew */
    STATUS_NOT_EXECUTABLE = 126, /* the command */
    STATUS_NOT_FOUND = 127,      /* the command */
};

/* The status for a command that could not be executed, by the errno of that. */
static inline enum status status_of_fault(int error)
{
    return error == ENOENT ? STATUS_NOT_FOUND : STATUS_NOT_EXECUTABLE;
}

/* The status for a store's answer of this cause. */
static inline enum status status_of_cause(enum cause cause)
{
    switch (cause) {
    case CAUSE_NONE: return STATUS_OK;
    case CAUSE_HELD:
    case CAUSE_SUPERSEDED:
    case CAUSE_REVOKED:
    case CAUSE_DONE:
    case CAUSE_CLOSED: return STATUS_NOT_ACQUIRED;
    case CAUSE_NOT_HOLDER:
    case CAUSE_ABSENT:
    case CAUSE_EXISTS:
    case CAUSE_CHANGED: return STATUS_NO;
    case CAUSE_MISFIT: return STATUS_CONFIG;
    case CAUSE_DENIED: return STATUS_DENIED;
    case CAUSE_GRACE:
    case CAUSE_UNFIT:
    case CAUSE_CLUSTER:
    case CAUSE_NOT_READY:
    case CAUSE_UNREACHABLE: return STATUS_UNAVAILABLE;
    case CAUSE_SYSTEM: return STATUS_SYSTEM;
    }
    return STATUS_BUG;
}

/* Whether the store may be back later. */
static inline bool cause_is_outage(enum cause cause)
{
    return cause == CAUSE_SYSTEM || status_of_cause(cause) == STATUS_UNAVAILABLE;
}
