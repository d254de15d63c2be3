/* HTTP for rlock serve, by libmicrohttpd, in the caller's loop. It answers GET and HEAD alone: a
 * page, which is part of the program, and two texts that its owner publishes. A connection is for
 * one request and has a limited time; there is a limit to what a request may have in its headers,
 * and to how many connections there are: where they are too many, the oldest one without a whole
 * request has to go. */
#ifndef RLOCK_SERVE_HTTP_H
#define RLOCK_SERVE_HTTP_H

#include <stdbool.h>
#include <stddef.h>

struct http;
struct loop;

/* What is served from now on; the texts become http's, which frees them. */
struct http_texts {
    char *json, *metrics;
    size_t json_length, metrics_length;
    bool away; /* "json" says why there is none: status 503 */
};

enum http_admission { HTTP_ADMITTED, HTTP_STRANGER, HTTP_BUSY };

struct http_events {
    /* Called when one of the texts is asked for: whether what was published is good enough; if not,
     * the request waits for http_publish(). */
    bool (*is_fresh)(void *arg);
    /* Whether a page that is asked for under this name, the Host of its request, may have what is
     * for browsers, which is all but the metrics. NULL: under any. */
    bool (*knows_host)(void *arg, const char *host);
    /* Whether that is a user and the password: of all requests but those that ask whether anything
     * is served here. NULL: it is not asked for. */
    enum http_admission (*admits)(void *arg, const char *user, const char *password);
};

/* Starts to answer on a descriptor that listens, and is http's from then on. NULL if the library
 * refuses. "events" is borrowed. */
struct http *http_start(struct loop *loop, int listener, const struct http_events *events,
                        void *arg);
/* Replaces the texts, and answers everybody who waits. */
void http_publish(struct http *http, const struct http_texts *texts);
/* Breaks off all connections. */
void http_stop(struct http *http);

#endif
