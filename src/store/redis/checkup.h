/* Is a Redis server fit to hold locks? What doctor/ has for the records of this store, and of those
 * that consist of Redis servers. */
#pragma once

#include "store/diagnosis.h"

/* For how long a server remembers, by which the members of a quorum are compared. A negative number
 * or an empty text means that it could not be told. */
struct redis_memory {
    char run_id[48];
    /* As a member: for how long it has forgotten nothing, and has been one (lua/member.lua), ms;
     * and when that was told, by the clock here. */
    int64_t remembers_ms, serves_ms;
    struct moment told;
};

/* Looks at the server of plan->address, one URL: "check" of a store_kind, which says what false
 * means. */
bool redis_check(const struct checkup_plan *plan, struct checkup *checkup, char *fault,
                 size_t size);

/* Looks at one of the plan's servers, or at a node that "url" leads to; *memory is filled in
 * unless it is NULL. Changes nothing there. False with a message in "fault" if the question could
 * not even be asked here. */
bool redis_check_server(const struct checkup_plan *plan, const struct url *url,
                        struct checkup *checkup, struct redis_memory *memory, char *fault,
                        size_t size);
/* Adds a server that could not be asked, for that reason. */
void redis_check_none(const struct checkup_plan *plan, const struct url *url,
                      const struct answer *failure, struct checkup *checkup);

/* Returns the command that gives all rights to a user; the caller frees. clustered: for a node of a
 * Cluster. */
char *rights_command(const char *user, const char *prefix, bool clustered);
