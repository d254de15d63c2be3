/* TLS as a codec: bytes in, bytes out; the socket is the connection's. OpenSSL is loaded when TLS is first
 * asked for, so that a run without it does not pay for it.
 *
 * The peer is always verified: its chain against --tls-ca or the system's certificates, its name against
 * the host that was asked for or --tls-server-name. TLS 1.2 at least. */
#ifndef RLOCK_TLS_H
#define RLOCK_TLS_H

#include <stdbool.h>
#include <stddef.h>

struct tls;         /* whom to trust, and who we are: for any number of connections */
struct tls_session; /* one connection */

/* What it points to is borrowed for as long as the struct tls lives; NULL: not given. */
struct tls_options {
    const char *ca;          /* PEM file or directory of hashed ones; NULL: the system's */
    const char *cert, *key;  /* PEM files of a client certificate; key NULL: in cert's file */
    const char *server_name; /* verified, and sent as SNI, instead of the host's name */
};

/* Reads the files, and again when a session came to nothing: certificates are renewed while a lock is held.
 * NULL with a message in "fault", which names the file. */
struct tls *tls_new(const struct tls_options *options, char *fault, size_t size);
/* Not tls_free: OpenSSL 3.2 and newer has a function of that name, which a static binary would meet. */
void tls_discard(struct tls *tls);

/* A session with "host" (a name or a numeric address) as its client. */
struct tls_session *tls_start(struct tls *tls, const char *host);
void tls_end(struct tls_session *session);

enum tls_state {
    TLS_GOING,  /* done as far as the bytes at hand allow */
    TLS_CLOSED, /* the peer closed the session in order */
    TLS_FAILED, /* why is in "fault" */
};

/* Does what can be done while the first answer of the peer is on its way: reads what is left of the files. */
void tls_meanwhile(struct tls_session *session);
/* Takes in bytes that came from the socket. */
void tls_take(struct tls_session *session, const char *bytes, size_t size);
/* Goes on with the handshake; *done once it is over and the peer is verified. */
enum tls_state tls_shake_hands(struct tls_session *session, bool *done, char *fault, size_t size);
/* Decrypts what has come in: *got bytes into "bytes", 0: nothing yet. */
enum tls_state tls_read(struct tls_session *session, char *bytes, size_t size, size_t *got,
                        char *fault, size_t fault_size);
/* Encrypts "size" bytes, all of them. False if the session is broken. */
bool tls_write(struct tls_session *session, const char *bytes, size_t size);
/* What the peer may have meant when it ended the connection; NULL: no idea. */
const char *tls_suspicion(const struct tls_session *session);
/* Bytes that have to go to the socket: moves up to "size" of them out; returns how many. */
size_t tls_give(struct tls_session *session, char *bytes, size_t size);

#endif
