/* The certificates of a server that rlock asks by way of a host. For the doctor, rlock connects to
 * that server itself, begins TLS, and looks at the certificates that the server shows. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "store/store.h"

struct sql_dialect;
struct tls_expiry;

/* Looks at the certificates of the URL's first host, which speaks TLS, for less than
 * connect_timeout. dialect: of the database there; NULL: TLS begins at once. Returns true with
 * *expiry set, or false with the reason in "fault". Blocks. */
bool certificate_look(const struct store_address *address, const struct sql_dialect *dialect,
                      struct tls_expiry *expiry, char *fault, size_t size);
