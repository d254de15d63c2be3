/* Which names a browser may know the server by. Pure.
 *
 * A foreign page whose own name leads here all at once (DNS rebinding) reads what a server on
 * localhost says, with the user's browser for its hand. Its requests name the foreign host: by that
 * they are told from those of a page that came from here. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* Whether "header", the value of a Host header, is an IP address, which no name server can lead
 * elsewhere, or one of the names, in upper or lower case, with any port or none. */
bool host_header_is_known(const char *header, const char *const *names, size_t count);

/* Whether that may be one of the names: no port, and nothing that a name cannot have. */
bool host_header_is_name(const char *name);
