/* Whose certificates are trusted: --tls-ca, or what the system trusts. */
#ifndef RLOCK_TLS_TRUST_H
#define RLOCK_TLS_TRUST_H

#include "tls_library.h"

struct tls_trust {
    const struct tls_library *library;
    const char *unread; /* --tls-ca, as long as nobody had time to read it; NULL: nothing is left to read */
    bool useless;       /* it was read, and there is nothing to trust in it */
    bool complete;      /* there is no bundle of the system's that could be read, too */
};

/* Has a context verify by them; ca NULL: the system's. It and "trust" are borrowed for as long as the context lives.
 * soon: tls_trust_read() follows, when there is time, so for now it only looks into "ca". False if there is
 * nothing to trust in it. */
bool tls_trust_take(struct tls_trust *trust, const struct tls_library *library, SSL_CTX *context,
                    const char *ca, bool soon);
/* Reads what is left to read. It has to be the context that it was left by. */
void tls_trust_read(struct tls_trust *trust, SSL_CTX *context);

#endif
