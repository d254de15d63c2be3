/* What is set about the way to the store, judged together: which URL has which password, what TLS is for,
 * which URLs go together. */
#ifndef RLOCK_ADDRESS_H
#define RLOCK_ADDRESS_H

#include "collection.h"

/* Completes settings->address, whose parts are set. Returns STATUS_OK, or a status with the message in
 * the collection's fault. */
int address_settle(const struct collection *all, struct settings *settings);

#endif
