/* The certificates of a server that a program of its own talks to: rlock connects by itself, begins
 * TLS, and looks at what it has been shown. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "store/store.h"

struct sql_dialect;
struct tls_expiry;

/* Looks at those of the URL's first host, which speaks TLS, for less than connect_timeout. dialect:
 * of the database there; NULL: TLS begins at once. False with the reason in "fault". */
bool certificate_look(const struct store_address *address, const struct sql_dialect *dialect,
                      struct tls_expiry *expiry, char *fault, size_t size);
