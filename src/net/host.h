/* Hosts: names or numeric addresses. Pure. */
#ifndef RLOCK_NET_HOST_H
#define RLOCK_NET_HOST_H

#include <stdbool.h>

/* A name by RFC 1123, with '_' as a letter; a '.' may end it. Numbers with dots between them are a
 * name, too. */
bool host_is_name(const char *text);
/* An IPv4 or IPv6 address, without brackets and zone. */
bool host_is_address(const char *text);

#endif
