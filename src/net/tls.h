/* TLS as a codec: bytes in, bytes out; the socket is the connection's. OpenSSL is loaded when TLS
 * is first asked for, so that a run without it does not pay for it.
 *
 * The peer is always verified: its chain against --tls-ca or the system's certificates, its name
 * against the host that was asked for or --tls-server-name, by what its certificate says in
 * subjectAltName. The system's configuration of OpenSSL counts; TLS 1.2 at least, whatever that
 * allows. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A file or directory that a user names: borrowed for as long as the struct tls lives. */
struct tls_file {
    const char *path; /* NULL: nothing */
    const char *text; /* its content, of "size" bytes; NULL: it is a directory */
    size_t size;
    bool rereadable;   /* it can be read again */
    const char *place; /* where it was set: "--tls-ca", "/etc/rlock.conf:3: tls-ca" */
    int status;        /* exit status where it makes no sense */
};

/* A user's settings of TLS. */
struct tls_options {
    /* Certificates to trust, by themselves or in a directory; without: the system's. */
    struct tls_file ca;
    struct tls_file cert, key; /* of a client; without a key: in cert's file */
    const char *server_name;   /* verified, and sent as SNI, instead of the host's name */
    /* tls_new() notes here what to exit with if it fails: the status of the file that is wrong, or
     * one of the next two, as there is no OpenSSL, or its configuration makes no sense. */
    int *status;
    int library_status, policy_status;
};

/* The longest of these files. */
#define TLS_FILE_SIZE_MAX (8U << 20)

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

/* Takes in bytes that came from the socket; at least one. */
void tls_take(struct tls_session *session, const char *bytes, size_t size);
/* Continues the handshake. *done: it is over and the peer is verified. */
enum tls_state tls_handshake(struct tls_session *session, bool *done, char *fault, size_t size);
/* Decrypts what has come in: *got bytes into "bytes", 0: nothing yet. */
enum tls_state tls_read(struct tls_session *session, char *bytes, size_t size, size_t *got,
                        char *fault, size_t fault_size);
/* Encrypts "size" bytes, all of them. False if the session is broken. */
bool tls_write(struct tls_session *session, const char *bytes, size_t size);
/* Whether the peer has sent something, which is not TLS. */
bool tls_hears_plain(const struct tls_session *session);
/* Guesses why the peer ended the connection; NULL: not known. */
const char *tls_guess_refusal(const struct tls_session *session);
/* The certificate that ought to be renewed first of those that a session relies on. */
struct tls_expiry {
    const char *whose; /* "the server's certificate"; NULL: it uses none */
    int64_t left_s;    /* until it ends */
    int64_t spare_s; /* until it is late to renew it: two weeks before its end, or of a short-lived
                        * one, when a quarter of its time is left */
};
/* Fills in which certificate of the session that is, after the handshake. *expiry is all zero
 * before. */
void tls_session_expiry(const struct tls_session *session, struct tls_expiry *expiry);
/* Bytes that have to go to the socket: moves up to "size" of them out; returns how many. */
size_t tls_give(struct tls_session *session, char *bytes, size_t size);
