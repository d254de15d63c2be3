/* SHA-1, as redis.sha1hex() and the names of scripts have it. Pure. */
#ifndef RLOCK_HOST_SHA1_H
#define RLOCK_HOST_SHA1_H

#include "host/record.h"

#define SHA1_HEX_SIZE 41 /* 40 digits and the 0 */

void sha1_hex(struct piece piece, char hex[SHA1_HEX_SIZE]);

#endif
