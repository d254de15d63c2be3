/* HTTP for rlock serve, by libmicrohttpd, in the caller's loop. It answers only GET and HEAD: a
 * page, which is part of the program, and the documents that its owner publishes. A connection is
 * for one request and has a limited time. The size of a request's headers and the number of
 * connections are limited: beyond it, the oldest connection without a whole request is closed. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/strbuf.h"

struct http;
struct loop;
struct loop_io;

enum http_document { HTTP_LOCKS, HTTP_HISTORY, HTTP_TABLE, HTTP_METRICS, HTTP_DOCUMENTS };

/* Serves these documents from now on. http takes over and frees the texts; a request for one that
 * is empty waits for the next. */
struct http_texts {
    struct strbuf all[HTTP_DOCUMENTS];
    bool away; /* all but the metrics say why there is none: status 503 */
};

enum http_admission { HTTP_ADMITTED, HTTP_STRANGER, HTTP_BUSY };

struct http_events {
    /* Called when one of the documents is asked for, which is there if one was published: whether
     * that is good enough; if not, the request waits for http_publish(). */
    bool (*is_fresh)(void *arg, enum http_document wanted, bool there);
    /* Whether a page that is asked for under this name, the Host of its request, may have what is
     * for browsers, which is all but the metrics. NULL: under any. */
    bool (*knows_host)(void *arg, const char *host);
    /* Whether that is a user and the password: of all requests but those that ask whether anything
     * is served here. NULL: it is not asked for. */
    enum http_admission (*admits)(void *arg, const char *user, const char *password);
    const char *about; /* the data of the page about the store, as JSON */
};

/* Starts to answer on "count" sockets that listen, do not block and stay open until http_stop().
 * NULL if the library refuses. "listeners" and "events" are borrowed. */
struct http *http_start(struct loop *loop, struct loop_io *listeners, size_t count,
                        const struct http_events *events, void *arg);
/* Replaces the texts, and answers all clients that wait. */
void http_publish(struct http *http, const struct http_texts *texts);
/* Breaks off all connections. */
void http_stop(struct http *http);

/* The page: the files in src/serve/page, embedded at build time. */
extern const char page_html[], page_css[], page_js[];
