/* The checks that rlock doctor has etcd's host make: each asks the cluster, and adds a finding.
 * They read, and change nothing. To add one, write a function, a row of its table, and its name in
 * store/hosted/store_kind.c. */
#pragma once

#include "host/store.h"

struct etcd_check {
    int64_t margin_us;  /* by which the members' clocks may differ */
    struct strbuf *out; /* the finding, by host_find(); of "ping", "ok" and the version of etcd */
    struct host_fault *fault;
};

/* Makes the check of that name. False: it could not be made, and why is in the fault. */
bool etcd_doctor_ask(const char *what, const struct etcd_check *check);
