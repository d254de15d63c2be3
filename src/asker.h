/* Who asks for a lock: this process, as others are to see it. */
#ifndef RLOCK_ASKER_H
#define RLOCK_ASKER_H

#include "lock.h"

/* Fills in host, user, pid and the name of the program that is to run. */
void asker_identity(struct identity *who, const char *program);

/* Sets the label to the URL of the CI job that this runs in, where the environment tells one. */
void asker_label(struct identity *who);

/* A fresh owner token: 128 random bits as a UUID in lower case. False with errno. */
bool asker_owner(char owner[OWNER_SIZE]);

#endif
