/* Cgroups of version 2, as os/cgroup.c uses them: cgroups(7). */
#pragma once

#include "lives/files.h"

/* Makes the one that all processes are in, and forgets all others. */
void cgroups_begin(void);
/* Chooses what the host's cgroups can do. */
void cgroups_choose(void);
/* Whether one with a cgroup.kill can be made. */
bool cgroups_have_a_way(void);
/* Opens a file of theirs, or the one in /proc that names the own one; -1 with errno: 0 if the path
 * is of neither. */
int cgroup_open(const char *path, int flags);
ssize_t cgroup_write(const struct file *file, const void *bytes, size_t size);
/* Puts a child into the cgroup behind that descriptor of its parent; -1: into its parent's. */
void cgroup_add(struct proc *child, const struct proc *parent, int fd);
