/* Starting the local server. */
#ifndef RLOCK_LOCAL_START_H
#define RLOCK_LOCAL_START_H

#include "local.h"

/* Finds the place and makes sure that the server runs and has read its data. Any number may do so at once, and all
 * of them find the one that the first has started. Blocks, also while another one starts or stops it. False
 * with a message in "fault". */
bool local_start(struct local_place *place, char *fault, size_t size);

#endif
