/* One server of a quorum: a store (store/store.h) with more in its requests and answers. */
#pragma once

#include "store/store.h"

#define MEMBER_SERVER_SIZE 48

/* Further terms of an acquisition or a renewal at a member (operation.terms). */
struct member_terms {
    /* For each key, the fence to note instead of the one that the member has, which is lower; and
     * an acquisition is of what is held elsewhere already. NULL: none. */
    const uint64_t *fences;
    /* An acquisition: the fence to give, if it is higher than all before; 0: none is proposed. */
    uint64_t proposal;
};

/* ms, 1 at least; 0: the member does not tell. */
struct seniority {
    int64_t memory_ms;  /* for how long it has forgotten nothing */
    int64_t service_ms; /* for how long it has been one, as far as it remembers */
};

/* A member's report about itself. */
struct member_report {
    /* Which process of which server it was connected to last; "": it has not told yet. */
    char server[MEMBER_SERVER_SIZE];
    bool sent;                  /* the request under way was sent, and may be executed */
    struct seniority seniority; /* as told with the latest answer */
};

/* A member copies what it needs of a request and of the terms before store_start() returns: what a
 * quorum asks of it may outlive the caller's operation. */
struct member {
    struct store *store;
    const struct member_report *report; /* the store's: an operation may change it */
};
