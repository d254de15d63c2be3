/* Requests to one of several servers that stand for each other, over HTTP or HTTPS, by libcurl. */
#pragma once

#include "base/strbuf.h"
#include "host/store.h"

/* Sets which servers there are, and chooses one of them by chance. Connects to none yet, and no
 * request carries a token yet. target->host: a host, or HOST:PORT,HOST:PORT… The texts of the
 * target are borrowed for as long as the program runs. */
void http_open(const struct host_target *target);
/* How many servers there are, and the number of the one that is asked, from 0. */
size_t http_servers(void);
size_t http_server(void);
/* Asks that one from now on; behind the last one comes the first again. */
void http_choose(size_t server);
/* The token of the user goes with all further requests; NULL: none does. */
void http_authorize(const char *token);

/* A request is JSON, or a message of gRPC, which is HTTP/2. */
enum http_form { HTTP_JSON, HTTP_GRPC, HTTP_FORMS };
enum http_effect { HTTP_READS, HTTP_WRITES };

struct http_request {
    enum http_form form;
    const char *path;
    struct slice body;
    enum http_effect effect;
};

/* Sends a POST, and waits for the answer. A request that only reads is sent again, to the next
 * server, if one does not answer; one that writes only if no server can have got it. Returns HTTP's
 * status, and the body in "reply", which is emptied first. 0: there was no answer, and why is in
 * *why. */
long http_post(const struct http_request *request, struct strbuf *reply, struct host_error *why);

/* The value of a header of the latest reply, or of what follows its body. NULL: it had none. */
const char *http_header(const char *name);

/* Sets how long requests that write may take from now on, ms; 0: they have no limit. */
void http_limit(long ms);

/* The Date of the latest reply, us since 1970; 0: it had none. */
int64_t http_date_us(void);

/* Adds a message of gRPC to a body. */
void http_add_message(struct strbuf *body, struct slice message);
/* Takes the first whole message from the front of what has come, to which it points. False: there
 * is none yet. */
bool http_take_message(struct slice *bytes, struct slice *message);

/* Begins a stream, a request by gRPC whose reply has no end, and ends the one before it. The body
 * is copied. */
void http_stream_begin(const char *path, struct slice body);
void http_stream_end(void);
/* Whether there is a stream, of the server that is asked now: one of another may be silent. */
bool http_stream_is_open(void);
/* The descriptor to read from; -1: none yet. *ms: http_stream_read() must be called by then; -1:
 * any time. */
int http_stream_fd(int *ms);
/* Calls "take" with each whole message that has come. False: the stream has ended, or broke. */
bool http_stream_read(void (*take)(struct slice message));
