/* Shared by all sessions: the host's policy, trusted certificates, and the own one. */
#ifndef RLOCK_NET_TLS_CONTEXT_H
#define RLOCK_NET_TLS_CONTEXT_H

#include "net/tls_library.h"
#include "net/tls_options.h"

/* Starts OpenSSL, once for the process, under the configuration of this host (openssl.cnf, or the
 * file in OPENSSL_CONF): least versions, ciphers, FIPS. The host's administrator sets it for all
 * programs; one that cannot be kept is an error. "ciphers": those for keys with a passphrase may be
 * needed. False with a message in "fault" that names the file. */
bool tls_context_load_policy(const struct tls_library *library, bool ciphers, char *fault,
                             size_t size);

/* Whose certificates are trusted: --tls-ca, or what the system trusts. */
struct tls_trust {
    const struct tls_library *library;
    bool complete; /* there is no bundle of the system's that could be read, too */
};

/* The place among a session's own data (SSL_set_ex_data()) of the name that its certificate has to
 * be for. */
#define TLS_TRUST_HOST 0
/* The reason of a refusal with this verdict: the certificate names the host only in its subject
 * (CN). */
#define TLS_TRUST_SUBJECT_ONLY X509_V_ERR_APPLICATION_VERIFICATION

/* Makes a context under the policy, with TLS 1.2 at least, of what stands in the files. "trust" is
 * filled, and borrowed for as long as the context lives. NULL with a message in "fault", and
 * *status that of the file that is the reason, or as it was. */
SSL_CTX *tls_context_new(const struct tls_library *library, const struct tls_options *options,
                         struct tls_trust *trust, int *status, char *fault, size_t size);
/* The same of what stands there now, for the same "trust"; NULL, and that as it was, where a file
 * cannot be read or makes no sense. */
SSL_CTX *tls_context_again(const struct tls_library *library, const struct tls_options *options,
                           struct tls_trust *trust);

#endif
