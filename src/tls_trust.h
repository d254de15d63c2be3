/* Whose certificates are trusted: --tls-ca, or what the system trusts. */
#ifndef RLOCK_TLS_TRUST_H
#define RLOCK_TLS_TRUST_H

#include "tls_library.h"

struct tls_trust {
    const struct tls_library *library;
    bool bundle_read; /* the system's file of all certificates in one */
};

/* Has a context verify by them; ca NULL: the system's. "trust" is borrowed for as long as the context lives. False
 * if there is nothing to trust in "ca". */
bool tls_trust_take(struct tls_trust *trust, const struct tls_library *library, SSL_CTX *context,
                    const char *ca);

#endif
