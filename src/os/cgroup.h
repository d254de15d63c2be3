/* A cgroup of its own for a command (cgroups(7), version 2): the kernel kills all that is in it at
 * once, and nothing that runs in it can leave it without a right to. */
#ifndef RLOCK_OS_CGROUP_H
#define RLOCK_OS_CGROUP_H

#include <limits.h>
#include <stdbool.h>
#include <sys/types.h>

/* In memory that is shared with whoever else has to end the command. Zeroed: there is none. */
struct cgroup {
    char path[PATH_MAX]; /* "" where there is none */
};

/* Makes one in that of this process, where systemd has delegated that (Delegate=yes); required: in
 * any case. 0, also where there is none and none is required; -1 with errno. */
int cgroup_make(struct cgroup *cgroup, bool required);
static inline bool cgroup_exists(const struct cgroup *cgroup)
{
    return cgroup && cgroup->path[0];
}
/* Forks a process into it. Its pid, and 0 in it; -1 with errno. */
pid_t cgroup_fork(const struct cgroup *cgroup);
/* This process enters it. -1 with errno. */
int cgroup_enter(const struct cgroup *cgroup);
/* Kills all that is in it. */
void cgroup_kill(const struct cgroup *cgroup);
/* 1: processes are left in it; 0: none are; -1: it cannot be seen. */
int cgroup_is_populated(const struct cgroup *cgroup);
/* Nothing happens while processes are left in it. */
void cgroup_remove(const struct cgroup *cgroup);
/* This process leaves the cgroup of a command, if it is in one, for a process that outlives it. */
void cgroup_leave(void);

#endif
