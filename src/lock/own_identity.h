/* The identity of this process. */
#pragma once

#include "lock/identity.h"
#include "lock/owner.h"
#include <sys/types.h>

/* Fills in the host's name; leaves it as it is if that has none. */
void own_identity_host(struct identity *who);

/* Fills in the zone: a hash of this process's pid namespace and of the host's start; leaves it as
 * it is where /proc does not tell. A host name may be that of several containers, and their
 * processes have the same numbers. */
void own_identity_zone(struct identity *who);

/* Fills in host, zone, user, version, the pid of a process of this name space, and the name of its
 * program, of which "program" may be the path. */
void own_identity_fill(struct identity *who, const char *program, pid_t pid);

/* Returns the line (identity_print()) of a person, not of a process: host and user, unless
 * anonymous, and the label. The caller frees. */
char *own_identity_person(bool anonymous, const char *label);

/* Writes the name of this process's connections, as "rlock:ci-3:4121", its host and pid: printable
 * ASCII without spaces. anonymous: "rlock". */
void own_identity_client(char *out, size_t size, bool anonymous);

/* Sets the label to the URL of the CI job that this runs in, where the environment tells one. */
void own_identity_label(struct identity *who);

/* Makes a random UUID (version 4), in lower case. */
void own_identity_uuid(char uuid[OWNER_UUID_SIZE]);
