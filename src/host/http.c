/* Sends requests by libcurl: one at a time, which blocks; and besides one stream, a request by gRPC
 * whose reply has no end, which does not block. A server is known by its number. gRPC is HTTP/2,
 * and a request of JSON is HTTP/1.1; over TLS, both are HTTP/2 over one connection. */
#include "host/http.h"

#include <arpa/inet.h>
#include <curl/curl.h>
#include <stdio.h>
#include <time.h>

#include "base/ca_bundle.h"
#include "base/clock.h"
#include "base/mem.h"

/* How long one of several servers may take for what only reads, before the next one is asked. */
#define READ_MS 1500L
/* How often a stream looks whether it is connected. */
#define CONNECTING_MS 10

/* The rest of a request. libcurl cannot begin it anew: it would send a request a second time where
 * a connection breaks that was used before, and a write must not be done twice unknown to rlock. */
struct body {
    const char *at;
    size_t left;
};

static struct {
    struct host_target target;
    char **bases;         /* "http://HOST:PORT", of each server */
    size_t count, chosen; /* servers, and the number of the one that is asked */
    struct curl_slist *headers[HTTP_FORMS];
    CURL *easy[HTTP_FORMS], *latest; /* over TLS, the first one does for both */
    size_t grpc_server; /* the number of the one that answers by gRPC, from 1; 0: none */
    bool grpc_heard;    /* some server has answered by it */
    long limit_ms;      /* of a request that writes */
    char curl_error[CURL_ERROR_SIZE]; /* libcurl's words, "": none */

    CURLM *streams;
    CURL *stream;
    size_t stream_server;     /* the number of its server */
    struct strbuf heard;      /* bytes of it that were not taken yet */
    struct slice stream_text; /* its request */
    struct body stream_body;
    bool stream_ended;
} http;

/* For libcurl: keeps bytes of an answer in *to, a strbuf. Returns how many were taken: all. */
static size_t keep_bytes(char *bytes, size_t size, size_t count, void *to)
{
    strbuf_add(to, bytes, size * count);
    return size * count;
}

/* For libcurl: fills "to" with the next bytes of the request. Returns how many. */
static size_t give_bytes(char *to, size_t size, size_t count, void *from)
{
    struct body *body = from;
    size_t most = size * count, next = body->left < most ? body->left : most;

    memcpy(to, body->at, next);
    body->at += next;
    body->left -= next;
    return next;
}

/* The room for an answer, bytes. Where an answer of HTTP/2 does not fit, libcurl 7.88 sleeps for a
 * second before it hands on the rest, which it has already. It has 16 kB unless told otherwise. */
#define ANSWER_SIZE (512L * 1024)

/* Makes a transfer to the target, with all that is the same for each request. The
 * caller owns it. */
static CURL *new_easy(void)
{
    const struct host_target *target = &http.target;
    CURL *easy = mem_checked(curl_easy_init());

    curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(easy, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
    curl_easy_setopt(easy, CURLOPT_PROXY, "");
    curl_easy_setopt(easy, CURLOPT_POST, 1L);
    curl_easy_setopt(easy, CURLOPT_READFUNCTION, give_bytes);
    curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, keep_bytes);
    curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, http.curl_error);
    curl_easy_setopt(easy, CURLOPT_MAXCONNECTS, 1L);
    curl_easy_setopt(easy, CURLOPT_BUFFERSIZE, ANSWER_SIZE);
    /* A firewall forgets a connection over which nothing is said for minutes. */
    curl_easy_setopt(easy, CURLOPT_TCP_KEEPALIVE, 1L);
    if (target->tls) {
        curl_easy_setopt(easy, CURLOPT_CAINFO, *target->ca ? target->ca : ca_bundle_find());
        if (*target->ca) /* libcurl may be built to trust a directory of the system's besides */
            curl_easy_setopt(easy, CURLOPT_CAPATH, NULL);
#if LIBCURL_VERSION_NUM >= 0x075700 /* it keeps what it has read of the file for a day otherwise */
        curl_easy_setopt(easy, CURLOPT_CA_CACHE_TIMEOUT, 0L);
#endif
        if (*target->certificate) {
            curl_easy_setopt(easy, CURLOPT_SSLCERT, target->certificate);
            curl_easy_setopt(easy, CURLOPT_SSLKEY, target->key);
        }
    }
    return easy;
}

/* Sets what one request has: its path, body and headers, and where the reply goes. */
static void set_request(CURL *easy, const struct http_request *request, struct body *body,
                        struct strbuf *reply)
{
    char *url = strbuf_print("%s%s", http.bases[http.chosen], request->path);

    *body = (struct body){request->body.at, request->body.size};
    curl_easy_setopt(easy, CURLOPT_HTTPHEADER, http.headers[request->form]);
    curl_easy_setopt(easy, CURLOPT_WRITEDATA, reply);
    curl_easy_setopt(easy, CURLOPT_READDATA, body);
    curl_easy_setopt(easy, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)body->left);
    curl_easy_setopt(easy, CURLOPT_URL, url);
    free(url);
}

static void add_header(enum http_form form, const char *header)
{
    http.headers[form] = mem_checked(curl_slist_append(http.headers[form], header));
}

void http_open(const struct host_target *target)
{
    bool several = strchr(target->host, ',');
    const char *scheme = target->tls ? "https" : "http";
    char *hosts = mem_strdup(target->host), *rest = hosts, *host;

    http.target = *target;
    while ((host = strsep(&rest, ","))) {
        char **base = MEM_APPEND(http.bases, http.count);
        if (several)
            *base = strbuf_print("%s://%s", scheme, host);
        else
            *base = strbuf_print(strchr(host, ':') ? "%s://[%s]:%s" : "%s://%s:%s", scheme, host,
                                 target->port);
    }
    free(hosts);
    /* So clients spread over the servers, and one that begins anew is likely to begin with
     * another. */
    http.chosen = (size_t)random() % http.count;
    curl_global_init(target->tls ? CURL_GLOBAL_SSL : CURL_GLOBAL_NOTHING);
    http_authorize(NULL);
}

size_t http_servers(void)
{
    return http.count;
}

size_t http_server(void)
{
    return http.chosen;
}

void http_choose(size_t server)
{
    http.chosen = server % http.count;
}

void http_authorize(const char *token)
{
    char *header = token ? strbuf_print("Authorization: %s", token) : NULL;

    http_stream_end(); /* it may not have sent the headers yet that are freed here */
    for (size_t form = 0; form < HTTP_FORMS; form++) {
        curl_slist_free_all(http.headers[form]);
        http.headers[form] = NULL;
        add_header(form, "Expect:"); /* libcurl would wait before it sends a long body */
        if (header)
            add_header(form, header);
    }
    /* A member that is cut off from the others says so, instead of waiting for them. */
    add_header(HTTP_JSON, "Grpc-Metadata-hasleader: true");
    add_header(HTTP_JSON, "Content-Type: application/json");
    add_header(HTTP_GRPC, "hasleader: true");
    add_header(HTTP_GRPC, "Content-Type: application/grpc");
    add_header(HTTP_GRPC, "TE: trailers");
    free(header);
}

/* -- one request ------------------------------------------------------------------------------- */

/* Whether no server can have got the request. */
static bool is_unsent(CURLcode code)
{
    return code == CURLE_COULDNT_CONNECT || code == CURLE_COULDNT_RESOLVE_HOST;
}

static bool is_about_tls(CURLcode code)
{
    return code == CURLE_PEER_FAILED_VERIFICATION || code == CURLE_SSL_CACERT_BADFILE ||
           code == CURLE_SSL_CERTPROBLEM || code == CURLE_SSL_CONNECT_ERROR;
}

/* A server of HTTP/1.1, such as a proxy, ends a connection that begins with HTTP/2. */
#define NO_GRPC "no answer by gRPC, which takes HTTP/2 all the way to etcd"
/* As Redis does, which takes HTTP for an attack. */
#define NO_ANSWER "it ends the connection without an answer; it may be no etcd"

/* Words why libcurl has failed. Returns 0, the status of a request without an answer. */
static long fail_by_code(CURLcode code, enum http_form form, struct host_error *why)
{
    bool sent = !is_unsent(code) && !is_about_tls(code); /* so it may be done */
    /* A server that ends the first connection, and says nothing, does not speak gRPC. */
    bool no_grpc =
        sent && code != CURLE_OPERATION_TIMEDOUT && form == HTTP_GRPC && !http.grpc_heard;
    bool no_answer = code == CURLE_GOT_NOTHING && !http.grpc_heard;
    bool no_http = code == CURLE_UNSUPPORTED_PROTOCOL || code == CURLE_WEIRD_SERVER_REPLY;

    host_error_set(why,
                   code == CURLE_COULDNT_RESOLVE_HOST ? WIRE_NOWHERE
                   : is_about_tls(code)               ? WIRE_NO_TLS
                   : no_http                          ? WIRE_STRANGER
                                                      : WIRE_UNREACHABLE,
                   no_grpc            ? NO_GRPC
                   : no_answer        ? NO_ANSWER
                   : *http.curl_error ? http.curl_error
                                      : curl_easy_strerror(code));
    why->maybe_done = sent;
    return 0;
}

/* libcurl's word for HTTP/2. Over TLS, both sides agree on that; without TLS, libcurl has to be
 * told that a server speaks it. */
static long curl_http_2(void)
{
    return http.target.tls ? CURL_HTTP_VERSION_2TLS : CURL_HTTP_VERSION_2_PRIOR_KNOWLEDGE;
}

/* Has libcurl speak the version of HTTP that the form takes: HTTP/2, but for JSON without TLS. */
static void set_version(CURL *easy, enum http_form form)
{
    /* The latest answer by gRPC was this server's; grpc_server counts from 1. */
    bool speaks_http_2 = !http.target.tls && http.grpc_server == http.chosen + 1;

    if (!http.target.tls && form == HTTP_JSON)
        return;
    /* Without TLS, libcurl 7.88, of Debian 12, fails if it is told of HTTP/2 (curl_http_2()) a
     * second time over the same connection. So it is told of that only for a fresh connection, and
     * not again while the server speaks HTTP/2 over that one. Where that one has broken, libcurl
     * makes a connection of HTTP/1.1, over which etcd does not know the path: then http_post() asks
     * again. */
    curl_easy_setopt(easy, CURLOPT_HTTP_VERSION,
                     speaks_http_2 ? (long)CURL_HTTP_VERSION_2_0 : curl_http_2());
    curl_easy_setopt(easy, CURLOPT_FRESH_CONNECT, speaks_http_2 || http.target.tls ? 0L : 1L);
}

long http_post(const struct http_request *request, struct strbuf *reply, struct host_error *why)
{
    CURL **easy = &http.easy[http.target.tls ? 0 : request->form];
    CURLcode code = CURLE_OK;
    long status = 0, version = 0;
    bool again = true;

    if (!*easy)
        *easy = new_easy();
    http.latest = *easy;
    /* Once more than there are servers: the first one may have closed an old connection. */
    for (size_t i = 0; again && i <= http.count; i++) {
        struct body body;
        bool is_last = i + 1 >= http.count; /* it may take as long as it likes */
        if (i > 0)
            http_choose(http.chosen + 1);
        strbuf_cut(reply, 0);
        *http.curl_error = '\0';
        set_version(*easy, request->form);
        set_request(*easy, request, &body, reply);
        curl_easy_setopt(*easy, CURLOPT_CONNECTTIMEOUT_MS, is_last ? 0L : READ_MS);
        long limit_ms = request->effect == HTTP_WRITES ? http.limit_ms : is_last ? 0L : READ_MS;
        curl_easy_setopt(*easy, CURLOPT_TIMEOUT_MS, limit_ms);
        code = curl_easy_perform(*easy);
        curl_easy_getinfo(*easy, CURLINFO_HTTP_VERSION, &version);
        /* gRPC over another version of HTTP was not understood, so nothing was done. */
        again = code != CURLE_OK
                    ? !is_about_tls(code) && (request->effect == HTTP_READS || is_unsent(code))
                    : request->form == HTTP_GRPC && version != CURL_HTTP_VERSION_2_0;
        if (request->form == HTTP_GRPC)
            http.grpc_server = code == CURLE_OK && !again ? http.chosen + 1 : 0;
    }
    if (code != CURLE_OK)
        return fail_by_code(code, request->form, why);
    if (again) {
        host_error_set(why, WIRE_UNREACHABLE, NO_GRPC);
        why->maybe_done = true;
        return 0;
    }
    http.grpc_heard |= request->form == HTTP_GRPC;
    curl_easy_getinfo(*easy, CURLINFO_RESPONSE_CODE, &status);
    return status;
}

void http_limit(long ms)
{
    http.limit_ms = ms;
}

const char *http_header(const char *name)
{
    struct curl_header *header;
    unsigned where = CURLH_HEADER | CURLH_TRAILER;

    if (curl_easy_header(http.latest, name, 0, where, -1, &header) != CURLHE_OK)
        return NULL;
    return header->value;
}

int64_t http_date_us(void)
{
    const char *header = http_header("Date");
    time_t date = header ? curl_getdate(header, NULL) : 0;

    return date > 0 ? date * US_PER_S : 0;
}

/* -- messages ---------------------------------------------------------------------------------- */

/* In front of each: that it is not compressed, and its size, in four bytes. */
#define FRAME_SIZE 5

void http_add_message(struct strbuf *body, struct slice message)
{
    uint32_t size = htonl((uint32_t)message.size);

    strbuf_putc(body, '\0');
    strbuf_add(body, &size, sizeof size);
    strbuf_add(body, message.at, message.size);
}

bool http_take_message(struct slice *bytes, struct slice *message)
{
    uint32_t size;

    if (bytes->size < FRAME_SIZE)
        return false;
    memcpy(&size, bytes->at + 1, sizeof size);
    *message = (struct slice){bytes->at + FRAME_SIZE, ntohl(size)};
    if (message->size > bytes->size - FRAME_SIZE)
        return false;
    bytes->at += FRAME_SIZE + message->size;
    bytes->size -= FRAME_SIZE + message->size;
    return true;
}

/* -- a stream ---------------------------------------------------------------------------------- */

void http_stream_end(void)
{
    if (!http.stream)
        return;
    curl_multi_remove_handle(http.streams, http.stream);
    curl_easy_cleanup(http.stream);
    http.stream = NULL;
    slice_free(&http.stream_text);
    strbuf_cut(&http.heard, 0);
}

/* Has libcurl send what it can of the stream's request, and read what has come; notes whether the
 * stream has ended. */
static void continue_stream(void)
{
    CURLMsg *message; /* libcurl's own, on the state of the transfer */
    int running, left;

    curl_multi_perform(http.streams, &running);
    while ((message = curl_multi_info_read(http.streams, &left)))
        http.stream_ended |= message->msg == CURLMSG_DONE;
}

void http_stream_begin(const char *path, struct slice body)
{
    http_stream_end();
    if (!http.streams)
        http.streams = mem_checked(curl_multi_init());
    http.stream = new_easy();
    http.stream_text = slice_duplicate(body);
    http.stream_server = http.chosen;
    http.stream_ended = false;
    const struct http_request request = {HTTP_GRPC, path, http.stream_text, HTTP_READS};
    curl_easy_setopt(http.stream, CURLOPT_HTTP_VERSION, curl_http_2());
    curl_easy_setopt(http.stream, CURLOPT_FRESH_CONNECT, 1L);
    curl_easy_setopt(http.stream, CURLOPT_FORBID_REUSE, 1L);
    set_request(http.stream, &request, &http.stream_body, &http.heard);
    curl_multi_add_handle(http.streams, http.stream);
    continue_stream();
}

bool http_stream_is_open(void)
{
    return http.stream && http.stream_server == http.chosen;
}

int http_stream_fd(int *ms)
{
    fd_set reads, writes, fails;
    int fd = -1;
    long wanted = -1;

    *ms = -1;
    if (!http.stream)
        return -1;
    FD_ZERO(&reads);
    FD_ZERO(&writes);
    FD_ZERO(&fails);
    curl_multi_fdset(http.streams, &reads, &writes, &fails, &fd);
    curl_multi_timeout(http.streams, &wanted);
    if (fd < 0 || FD_ISSET(fd, &writes)) /* it connects, or sends what it asks */
        *ms = CONNECTING_MS;
    else if (wanted >= 0)
        *ms = (int)wanted;
    return fd;
}

bool http_stream_read(void (*take_message)(struct slice message))
{
    struct slice message;

    if (!http.stream)
        return true;
    continue_stream();
    struct slice bytes = {http.heard.text, http.heard.size};
    while (http.stream && http_take_message(&bytes, &message))
        take_message(message);
    if (!http.stream) /* take_message() has ended it */
        return true;
    strbuf_drop(&http.heard, http.heard.size - bytes.size);
    return !http.stream_ended;
}
