#include "host/http.h"

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
    char **bases; /* "http://HOST:PORT" */
    size_t count, at;
    struct curl_slist *headers;
    CURL *easy;
    long limit_ms; /* of a request that writes */
    char said[CURL_ERROR_SIZE];

    CURLM *streams;
    CURL *stream;
    struct strbuf heard;
    char *stream_text;
    struct body stream_body;
    bool stream_ended;
} http;

static size_t take(char *bytes, size_t size, size_t count, void *to)
{
    strbuf_add(to, bytes, size * count);
    return size * count;
}

static size_t give(char *to, size_t size, size_t count, void *from)
{
    struct body *body = from;
    size_t most = size * count, next = body->left < most ? body->left : most;

    memcpy(to, body->at, next);
    body->at += next;
    body->left -= next;
    return next;
}

static void set_headers(CURL *easy)
{
    curl_easy_setopt(easy, CURLOPT_HTTPHEADER, http.headers);
}

static CURL *new_easy(struct strbuf *to)
{
    const struct host_target *target = &http.target;
    CURL *easy = mem_checked(curl_easy_init());

    curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(easy, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
    curl_easy_setopt(easy, CURLOPT_PROXY, "");
    curl_easy_setopt(easy, CURLOPT_POST, 1L);
    curl_easy_setopt(easy, CURLOPT_READFUNCTION, give);
    curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, take);
    curl_easy_setopt(easy, CURLOPT_WRITEDATA, to);
    curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, http.said);
    set_headers(easy);
    if (target->tls) {
        curl_easy_setopt(easy, CURLOPT_CAINFO, *target->ca ? target->ca : ca_bundle_find());
        if (*target->certificate) {
            curl_easy_setopt(easy, CURLOPT_SSLCERT, target->certificate);
            curl_easy_setopt(easy, CURLOPT_SSLKEY, target->key);
        }
    }
    return easy;
}

static void set_request(CURL *easy, const char *path, const char *text, struct body *body)
{
    char *url = strbuf_print("%s%s", http.bases[http.at], path);

    *body = (struct body){text, strlen(text)};
    curl_easy_setopt(easy, CURLOPT_READDATA, body);
    curl_easy_setopt(easy, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)body->left);
    curl_easy_setopt(easy, CURLOPT_URL, url);
    free(url);
}

static void add_header(const char *header)
{
    http.headers = mem_checked(curl_slist_append(http.headers, header));
}

/* Clients spread over the servers, and one that begins anew is likely to begin with another. */
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
    http.at = (size_t)random() % http.count;
    curl_global_init(target->tls ? CURL_GLOBAL_SSL : CURL_GLOBAL_NOTHING);
    http_authorize(NULL);
}

size_t http_servers(void)
{
    return http.count;
}

size_t http_server(void)
{
    return http.at;
}

void http_choose(size_t server)
{
    http.at = server % http.count;
}

void http_authorize(const char *token)
{
    curl_slist_free_all(http.headers);
    http.headers = NULL;
    add_header("Content-Type: application/json");
    add_header("Expect:");
    /* A member that is cut off from the others says so, instead of waiting for them. */
    add_header("Grpc-Metadata-hasleader: true");
    if (token) {
        char *header = strbuf_print("Authorization: %s", token);
        add_header(header);
        free(header);
    }
    if (http.easy)
        set_headers(http.easy);
}

/* -- one request ------------------------------------------------------------------------------- */

static bool is_unsent(CURLcode code)
{
    return code == CURLE_COULDNT_CONNECT || code == CURLE_COULDNT_RESOLVE_HOST;
}

static bool is_about_tls(CURLcode code)
{
    return code == CURLE_PEER_FAILED_VERIFICATION || code == CURLE_SSL_CACERT_BADFILE ||
           code == CURLE_SSL_CERTPROBLEM || code == CURLE_SSL_CONNECT_ERROR;
}

static long fail(CURLcode code, struct host_error *why)
{
    bool strange = code == CURLE_UNSUPPORTED_PROTOCOL || code == CURLE_WEIRD_SERVER_REPLY;

    host_error_set(why,
                   code == CURLE_COULDNT_RESOLVE_HOST ? WIRE_NOWHERE
                   : is_about_tls(code)               ? WIRE_NO_TLS
                   : strange                          ? WIRE_STRANGER
                                                      : WIRE_UNREACHABLE,
                   *http.said ? http.said : curl_easy_strerror(code));
    why->maybe_done = !is_unsent(code) && !is_about_tls(code);
    return 0;
}

long http_post(const char *path, const char *text, bool writes, struct strbuf *reply,
               struct host_error *why)
{
    CURLcode code = CURLE_OK;
    long status = 0;
    bool again = true;

    if (!http.easy)
        http.easy = new_easy(reply);
    curl_easy_setopt(http.easy, CURLOPT_WRITEDATA, reply);
    /* Once more than there are servers: the first one may have closed an old connection. */
    for (size_t i = 0; again && i <= http.count; i++) {
        struct body body;
        bool last = i + 1 >= http.count;
        if (i > 0)
            http_choose(http.at + 1);
        strbuf_cut(reply, 0);
        *http.said = '\0';
        set_request(http.easy, path, text, &body);
        curl_easy_setopt(http.easy, CURLOPT_CONNECTTIMEOUT_MS, last ? 0L : READ_MS);
        long limit_ms = writes ? http.limit_ms : last ? 0L : READ_MS;
        curl_easy_setopt(http.easy, CURLOPT_TIMEOUT_MS, limit_ms);
        code = curl_easy_perform(http.easy);
        again = code != CURLE_OK && !is_about_tls(code) && (!writes || is_unsent(code));
    }
    if (code != CURLE_OK)
        return fail(code, why);
    curl_easy_getinfo(http.easy, CURLINFO_RESPONSE_CODE, &status);
    return status;
}

void http_limit(long ms)
{
    http.limit_ms = ms;
}

int64_t http_date_us(void)
{
    struct curl_header *header;
    time_t date = 0;

    if (curl_easy_header(http.easy, "Date", 0, CURLH_HEADER, -1, &header) == CURLHE_OK)
        date = curl_getdate(header->value, NULL);
    return date > 0 ? date * US_PER_S : 0;
}

/* -- a stream ---------------------------------------------------------------------------------- */

void http_stream_end(void)
{
    if (!http.stream)
        return;
    curl_multi_remove_handle(http.streams, http.stream);
    curl_easy_cleanup(http.stream);
    http.stream = NULL;
    free(http.stream_text);
    strbuf_cut(&http.heard, 0);
}

static void perform(void)
{
    CURLMsg *message;
    int running, left;

    curl_multi_perform(http.streams, &running);
    while ((message = curl_multi_info_read(http.streams, &left)))
        http.stream_ended |= message->msg == CURLMSG_DONE;
}

void http_stream_begin(const char *path, const char *body)
{
    http_stream_end();
    if (!http.streams)
        http.streams = mem_checked(curl_multi_init());
    http.stream = new_easy(&http.heard);
    http.stream_text = mem_strdup(body);
    http.stream_ended = false;
    set_request(http.stream, path, http.stream_text, &http.stream_body);
    curl_multi_add_handle(http.streams, http.stream);
    perform();
}

bool http_stream_is_open(void)
{
    return http.stream;
}

int http_stream_rest(int *ms)
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

bool http_stream_hear(void (*take_line)(const char *line))
{
    char *end;

    if (!http.stream)
        return true;
    perform();
    while (http.heard.size > 0 && (end = memchr(http.heard.text, '\n', http.heard.size))) {
        char *line = mem_strdup(http.heard.text);
        size_t size = (size_t)(end - http.heard.text);
        line[size] = '\0';
        strbuf_drop(&http.heard, size + 1);
        take_line(line);
        free(line);
        if (!http.stream)
            return true;
    }
    return !http.stream_ended;
}
