/* TLS as a codec: bytes in, bytes out; the socket is the connection's. OpenSSL is loaded when TLS
 * is first asked for, so that a run without it does not pay for it.
 *
 * The peer is always verified: its chain against --tls-ca or the system's certificates, its name
 * against the host that was asked for or --tls-server-name, by what its certificate says in
 * subjectAltName. The system's configuration of OpenSSL counts; TLS 1.2 at least, whatever that
 * allows. */
#ifndef RLOCK_NET_TLS_H
#define RLOCK_NET_TLS_H

#include "net/tls_options.h"

#include <stdbool.h>
#include <stddef.h>

struct tls;         /* whom to trust, and who we are: for any number of connections */
struct tls_session; /* one connection */

/* A file that can be read again is, when a session came to nothing: certificates are renewed while
 * a lock is held. NULL with a message in "fault", which names the file and where it was set. */
struct tls *tls_new(const struct tls_options *options, char *fault, size_t size);
/* Not tls_free: OpenSSL 3.2 and newer has a function of that name, which a static binary would
 * meet. */
void tls_discard(struct tls *tls);

/* A session with "host" (a name or a numeric address) as its client. One that cannot be verified
 * fails in its handshake. */
struct tls_session *tls_start(struct tls *tls, const char *host);
void tls_end(struct tls_session *session);

enum tls_state {
    TLS_GOING,  /* done as far as the bytes at hand allow */
    TLS_CLOSED, /* the peer closed the session in order */
    TLS_FAILED, /* why is in "fault" */
};

/* Takes in bytes that came from the socket. */
void tls_take(struct tls_session *session, const char *bytes, size_t size);
/* Continues the handshake; *done once it is over and the peer is verified. */
enum tls_state tls_handshake(struct tls_session *session, bool *done, char *fault, size_t size);
/* Decrypts what has come in: *got bytes into "bytes", 0: nothing yet. */
enum tls_state tls_read(struct tls_session *session, char *bytes, size_t size, size_t *got,
                        char *fault, size_t fault_size);
/* Encrypts "size" bytes, all of them. False if the session is broken. */
bool tls_write(struct tls_session *session, const char *bytes, size_t size);
/* Guesses why the peer ended the connection; NULL: not known. */
const char *tls_guess_refusal(const struct tls_session *session);
/* Bytes that have to go to the socket: moves up to "size" of them out; returns how many. */
size_t tls_give(struct tls_session *session, char *bytes, size_t size);

#endif
