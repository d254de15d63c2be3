/* A cgroup of its own for a command (cgroups(7), version 2): the kernel kills all that is in it at
 * once, and nothing that runs in it can leave it without a right to. */
#pragma once

#include <limits.h>
#include <stdbool.h>
#include <sys/types.h>

/* A cgroup, in memory that is shared with the other process that may have to end the command.
 * Zeroed: there is none. */
struct cgroup {
    char path[PATH_MAX]; /* "" where there is none */
};

/* CGROUP_IF_DELEGATED: only where systemd has delegated that of this process (Delegate=yes). */
enum cgroup_need { CGROUP_IF_DELEGATED, CGROUP_REQUIRED };

/* Makes a cgroup in that of this process. Returns 0, also where none can be made and none is
 * required; -1 with errno. */
int cgroup_make(struct cgroup *cgroup, enum cgroup_need need);
static inline bool cgroup_exists(const struct cgroup *cgroup)
{
    return cgroup && cgroup->path[0];
}
/* Forks a process into the cgroup. Returns its pid, and 0 in it; -1 with errno. */
pid_t cgroup_fork(const struct cgroup *cgroup);
/* Moves this process into the cgroup. 0; -1 with errno. */
int cgroup_enter(const struct cgroup *cgroup);
/* Kills all that is in the cgroup. 0; -1 with errno. */
int cgroup_kill(const struct cgroup *cgroup);
/* Returns whether processes are left in the cgroup: 1 or 0; -1: that cannot be seen. */
int cgroup_is_populated(const struct cgroup *cgroup);
/* Removes the cgroup, once nothing has to be ended in it any more: processes that are left continue
 * in the one around it. */
void cgroup_remove(const struct cgroup *cgroup);
/* Moves this process, which must outlive a command, out of that command's cgroup, if it is in
 * one. */
void cgroup_leave(void);
