/* One connection that carries bytes, by TCP or a Unix socket, plain or over TLS. The socket is ours
 * (close-on-exec, no SIGPIPE, never blocking); tls.h encrypts. Its owner speaks a protocol on it,
 * as net/conn.h does RESP. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct endpoint;
struct loop;
struct stream;
struct tls;
struct tls_expiry;

/* The protocol that the other end seems to speak. */
enum stream_language { STREAM_OURS, STREAM_TLS, STREAM_PLAIN };

struct stream_events {
    void (*connected)(void *arg);
    /* Bytes, as they came. stream_close() may be called from here. */
    void (*received)(void *arg, const char *bytes, size_t size);
    /* Not by stream_close(): refused, reset, ended by the server. The connection is closed by
     * then. */
    void (*broken)(void *arg, const char *why);
};

/* A stream that is closed. events: borrowed. */
struct stream *stream_new(struct loop *loop, const struct stream_events *events, void *arg);
void stream_free(struct stream *stream);

/* Starts to connect, over TLS to "host" where tls is not NULL; "connected" or "broken" follows,
 * never before this returned. -1 with errno. */
int stream_open(struct stream *stream, const struct endpoint *to, struct tls *tls,
                const char *host);
/* Starts with a copy of "fd", a socket that is connected to a program of this host; fd stays the
 * caller's. "connected" follows, or "broken", as above. -1 with errno. */
int stream_adopt(struct stream *stream, int fd);
/* Has a plain connection continue over TLS, with what the other end says next: "connected" comes
 * once more, or "broken". */
void stream_secure(struct stream *stream, struct tls *tls, const char *host);
/* Drops the connection and what was queued. Harmless if it is closed. */
void stream_close(struct stream *stream);

/* Sends bytes, which are copied: at once, or when the other end takes more, or when the connection
 * is made that stream_open() has begun. */
void stream_send(struct stream *stream, const char *bytes, size_t size);

/* Notes that the other end has said something that makes sense: where it ends the connection later,
 * the language is not the reason. */
void stream_trust(struct stream *stream);
/* Ends the connection, as the other end makes no sense, and will not: "broken" comes with that
 * reason. */
void stream_refuse(struct stream *stream, const char *why);
/* Whether it broke because the other end speaks something else, or is not to be trusted: trying
 * again is of no use. */
bool stream_is_foreign(const struct stream *stream);

/* Fills in which certificate of the connection ought to be renewed first (tls.h), while it is
 * connected; all zero: it has none, being plain. */
void stream_expiry(const struct stream *stream, struct tls_expiry *expiry);

/* The protocol that the other end seems to speak, after the connection broke, or while it is
 * overdue. */
enum stream_language stream_language(const struct stream *stream);
/* Whether it broke because the other end has reset it. */
bool stream_was_reset(const struct stream *stream);

/* Describes what has not come yet, for a caller that gives up waiting. */
const char *stream_overdue(const struct stream *stream);
