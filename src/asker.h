/* Who asks for a lock: this process, as others are to see it. */
#ifndef RLOCK_ASKER_H
#define RLOCK_ASKER_H

#include "identity.h"
#include "owner.h"
#include <sys/types.h>

/* Fills in host, user, the pid and the name of its program. */
void asker_identity(struct identity *who, const char *program, pid_t pid);

/* Sets the label to the URL of the CI job that this runs in, where the environment tells one. */
void asker_label(struct identity *who);

/* 128 random bits as a UUID in lower case. False with errno. */
bool asker_uuid(char uuid[OWNER_UUID_SIZE]);

#endif
