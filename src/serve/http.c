/* Answers requests for the pages, which are part of the program, and for the documents that the
 * owner has published. It changes its list of clients and the sockets it listens on. To add a
 * document, edit enum http_document (http.h) and the table here. */
#include "serve/http.h"

#include <errno.h>
#include <microhttpd.h>
#include <strings.h>
#include <sys/socket.h>

#include "base/mem.h"
#include "cli/metrics.h"
#include "cmd/commands.h"
#include "net/loop.h"

#define CONNECTIONS_MAX 64U
#define HEADERS_MAX     ((size_t)16 * 1024) /* bytes of a request, its headers among them */
#define SILENCE_SECONDS 5U                  /* of a client in the middle of its request */
#define LIFETIME        (30 * NS_PER_SEC)   /* of a connection, however slow its client is */

/* The browser may load and run this page's own files, and nothing else. */
#define POLICY                                                                                     \
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "                \
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

#define TEXT "text/plain; charset=utf-8"

enum { CONTENT_TOO_LARGE = 413 }; /* which versions of the library name differently */

struct client {
    struct MHD_Connection *connection;
    struct moment until;
    bool asked; /* its request is whole */
    bool waits; /* it is suspended until something is published */
    struct client *next;
};

struct http {
    struct loop *loop;
    struct MHD_Daemon *daemon;
    struct loop_io *listeners;
    size_t listener_count;
    struct loop_io io;       /* the library's epoll descriptor */
    struct loop_timer work;  /* when it wants to be called again */
    struct loop_timer limit; /* when the oldest client's time is up */
    const struct http_events *events;
    void *arg;
    struct client *clients; /* oldest first: they have the same time */
    unsigned client_count;
    struct MHD_Response *documents[HTTP_DOCUMENTS];
    bool away;
};

/* -- responses --------------------------------------------------------------------------------- */

/* Makes a response with the headers that all have. It takes the text over; the caller destroys the
 * response. */
static struct MHD_Response *make_response(char *text, size_t length, const char *type)
{
    static const char *const headers[][2] = {
        {"Cache-Control", "no-store"},       {"Connection", "close"},
        {"Content-Security-Policy", POLICY}, {"Cross-Origin-Resource-Policy", "same-origin"},
        {"Referrer-Policy", "no-referrer"},  {"X-Content-Type-Options", "nosniff"},
    };
    struct MHD_Response *response =
        mem_checked(MHD_create_response_from_buffer(length, text, MHD_RESPMEM_MUST_FREE));

    MHD_add_response_header(response, "Content-Type", type);
    for (size_t i = 0; i < sizeof headers / sizeof *headers; i++)
        MHD_add_response_header(response, headers[i][0], headers[i][1]);
    return response;
}

/* Answers with a text that is copied, and with the headers that belong to the status. */
static enum MHD_Result answer_constant(struct MHD_Connection *connection, unsigned status,
                                       const char *text, const char *type)
{
    char *copy = mem_strdup(text);
    struct MHD_Response *response = make_response(copy, strlen(copy), type);

    if (status == MHD_HTTP_METHOD_NOT_ALLOWED)
        MHD_add_response_header(response, "Allow", "GET, HEAD");
    if (status == MHD_HTTP_TOO_MANY_REQUESTS)
        MHD_add_response_header(response, "Retry-After", "1");
    if (status == MHD_HTTP_UNAUTHORIZED)
        MHD_add_response_header(response, "WWW-Authenticate",
                                "Basic realm=\"rlock\", charset=\"UTF-8\"");
    enum MHD_Result result = MHD_queue_response(connection, status, response);
    MHD_destroy_response(response);
    return result;
}

static enum MHD_Result answer_text(struct MHD_Connection *connection, unsigned status,
                                   const char *text)
{
    return answer_constant(connection, status, text, TEXT);
}

/* -- requests ---------------------------------------------------------------------------------- */

static const struct {
    const char *path, *text, *type;
} pages[] = {
    {"/", page_html, "text/html; charset=utf-8"},
    {"/page.css", page_css, "text/css; charset=utf-8"},
    {"/page.js", page_js, "text/javascript; charset=utf-8"},
};

/* Returns the place in the list of the client of this connection; NULL: the end of the list. */
static struct client **find_client(struct http *http, const struct MHD_Connection *connection)
{
    struct client **place = &http->clients;

    while (*place && (*place)->connection != connection)
        place = &(*place)->next;
    return place;
}

static const struct {
    const char *path, *type;
} documents[HTTP_DOCUMENTS] = {
    [HTTP_LOCKS] = {"/locks.json", "application/json"},
    [HTTP_HISTORY] = {"/history.json", "application/json"},
    [HTTP_TABLE] = {"/locks.txt", TEXT},
    [HTTP_METRICS] = {"/metrics", METRICS_CONTENT_TYPE},
};

/* Answers with a document, or suspends the request until a newer one is published. *waited is NULL
 * at first, and not when the library asks again after that: the present document is taken then. */
static enum MHD_Result answer_document(struct http *http, struct MHD_Connection *connection,
                                       enum http_document wanted, void **waited)
{
    bool there = http->documents[wanted];
    bool fresh = *waited || http->events->is_fresh(http->arg, wanted, there);

    if (!fresh || !there) {
        *waited = http;
        (*find_client(http, connection))->waits = true;
        MHD_suspend_connection(connection);
        return MHD_YES;
    }
    return MHD_queue_response(connection,
                              http->away && wanted != HTTP_METRICS ? MHD_HTTP_SERVICE_UNAVAILABLE
                                                                   : MHD_HTTP_OK,
                              http->documents[wanted]);
}

#define HEALTH    "/healthz"
#define HOST_SIZE 300 /* of a name with its port */

/* Whether a page may have led a browser here by its own name: a browser names the host in each
 * request; an HTTP/1.0 client need not, and is not a browser. Metrics are for Prometheus, which
 * asks for them by whatever name its configuration has for this host, and needs no browser to ask.
 * So such a page learns from them which locks there are and how long they are held, but not by
 * whom, nor why. */
static bool is_led_here(const struct http *http, const char *url, const char *host)
{
    bool for_browsers = strcmp(url, "/metrics") != 0 && strcmp(url, HEALTH) != 0;

    return for_browsers && host && http->events->knows_host &&
           !http->events->knows_host(http->arg, host);
}

/* Counts the Host headers: two could be read in two ways. */
static enum MHD_Result on_host(void *arg, enum MHD_ValueKind kind, const char *key,
                               const char *value)
{
    (void)kind, (void)value;
    *(unsigned *)arg += strcasecmp(key, "Host") == 0;
    return MHD_YES;
}

/* Returns the path of a request's target. In absolute form a target names the host: *named is that
 * then, in "host", and the header does not count (RFC 9112, 3.2.2). */
static const char *take_target(const char *target, char host[HOST_SIZE], const char **named)
{
    static const char scheme[] = "http://";

    if (strncasecmp(target, scheme, strlen(scheme)) != 0)
        return target;
    target += strlen(scheme);
    size_t length = strcspn(target, "/");
    snprintf(host, HOST_SIZE, "%.*s", (int)length, target);
    *named = host;
    return target[length] ? target + length : "/";
}

/* Asks the owner whether the user whose name and password the client tells may come in. */
static enum http_admission admit_client(const struct http *http, struct MHD_Connection *connection)
{
    char *password = NULL, *user = MHD_basic_auth_get_username_password(connection, &password);
    enum http_admission admission = HTTP_STRANGER;

    if (user && password)
        admission = http->events->admits(http->arg, user, password);
    MHD_free(user);
    MHD_free(password);
    return admission;
}

/* Answers a request, or begins to wait for fresh locks, which *waited notes. The order of the
 * checks matters: only the health of the server is shown without a password. */
static enum MHD_Result on_request(void *arg, struct MHD_Connection *connection, const char *url,
                                  const char *method, const char *version, const char *upload,
                                  size_t *upload_size, void **waited)
{
    const char *host = MHD_lookup_connection_value(connection, MHD_HEADER_KIND, "Host");
    struct http *http = arg;
    enum http_admission admission;
    char named[HOST_SIZE];

    url = take_target(url, named, &host);
    (void)upload;
    (void)upload_size;
    (*find_client(http, connection))->asked = true;
    if (strcmp(method, "GET") != 0 && strcmp(method, "HEAD") != 0)
        return answer_text(connection, MHD_HTTP_METHOD_NOT_ALLOWED, "only GET and HEAD\n");
    const char *length = MHD_lookup_connection_value(connection, MHD_HEADER_KIND, "Content-Length");
    if ((length && strcmp(length, "0") != 0) ||
        MHD_lookup_connection_value(connection, MHD_HEADER_KIND, "Transfer-Encoding"))
        return answer_text(connection, CONTENT_TOO_LARGE, "no body, please\n");
    unsigned hosts = 0;
    MHD_get_connection_values(connection, MHD_HEADER_KIND, on_host, &hosts);
    if (hosts > 1 || (hosts == 0 && strcmp(version, "HTTP/1.0") != 0))
        return answer_text(connection, MHD_HTTP_BAD_REQUEST, "one Host, please\n");
    if (is_led_here(http, url, host))
        return answer_text(
            connection, MHD_HTTP_FORBIDDEN,
            "The name of the host in the address is not known to this server. With rlock "
            "serve " ALLOW_HOST " NAME it is.\n");
    if (strcmp(url, HEALTH) == 0)
        return answer_text(connection, MHD_HTTP_OK, "ok\n");
    if (http->events->admits && (admission = admit_client(http, connection)) != HTTP_ADMITTED) {
        if (admission == HTTP_BUSY)
            return answer_text(connection, MHD_HTTP_TOO_MANY_REQUESTS,
                               "a password was wrong just now\n");
        return answer_text(connection, MHD_HTTP_UNAUTHORIZED, "a user and a password, please\n");
    }
    for (size_t i = 0; i < sizeof pages / sizeof *pages; i++)
        if (strcmp(url, pages[i].path) == 0)
            return answer_constant(connection, MHD_HTTP_OK, pages[i].text, pages[i].type);
    if (strcmp(url, "/about.json") == 0)
        return answer_constant(connection, MHD_HTTP_OK, http->events->about, "application/json");
    for (enum http_document i = 0; i < HTTP_DOCUMENTS; i++)
        if (strcmp(url, documents[i].path) == 0)
            return answer_document(http, connection, i, waited);
    return answer_text(connection, MHD_HTTP_NOT_FOUND,
                       "there are /, /metrics, /locks.json, /history.json, /locks.txt and " HEALTH
                       "\n");
}

/* -- connections ------------------------------------------------------------------------------- */

/* Arms the timer for the end of the oldest client's time. */
static void arm_limit(struct http *http)
{
    loop_disarm(http->loop, &http->limit);
    if (http->clients)
        loop_arm(http->loop, &http->limit, http->clients->until);
}

/* Shuts a connection down; the library finds it broken, and ends it. */
static void break_off(const struct client *client)
{
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(client->connection, MHD_CONNECTION_INFO_CONNECTION_FD);

    shutdown(info->connect_fd, SHUT_RDWR);
}

/* Watches the listeners for these events; 0: further connections wait in the kernel. */
static void watch_listeners(struct http *http, int events)
{
    for (size_t i = 0; i < http->listener_count; i++)
        http->listeners[i].events = events;
}

/* Called by the library: keeps the list of clients as they come and leave, oldest first. At the
 * limit, one that has sent no request is broken off, which makes room for the next. */
static void on_connection(void *arg, struct MHD_Connection *connection, void **context,
                          enum MHD_ConnectionNotificationCode code)
{
    struct http *http = arg;

    (void)context;
    if (code == MHD_CONNECTION_NOTIFY_STARTED) {
        struct client *client = mem_zeroed(sizeof *client);
        client->connection = connection;
        client->until = moment_plus(moment_now(), LIFETIME);
        *find_client(http, NULL) = client;
        http->client_count++;
        watch_listeners(http, http->client_count < CONNECTIONS_MAX ? LOOP_READ : 0);
        arm_limit(http);
        /* The oldest one without a request, but not the one that has just come. */
        struct client *silent = http->clients;
        while (silent && (silent->asked || !silent->next))
            silent = silent->next;
        if (http->client_count >= CONNECTIONS_MAX && silent)
            break_off(silent);
    } else {
        struct client **place = find_client(http, connection), *client = *place;
        if (client) {
            *place = client->next;
            free(client);
            http->client_count--;
            watch_listeners(http, LOOP_READ);
            arm_limit(http);
        }
    }
}

/* Breaks off the oldest clients, those whose time is over, and arms the timer for the next. */
static void on_limit(struct loop_timer *timer)
{
    struct http *http = timer->owner;
    struct moment now = moment_now();

    for (struct client *client = http->clients; client; client = client->next) {
        if (!moment_reached(client->until, now)) {
            loop_arm(http->loop, timer, client->until);
            return;
        }
        break_off(client);
    }
}

/* -- the library in the loop ------------------------------------------------------------------- */

/* Has libmicrohttpd do what it can, and asks when it wants to again. */
static void run_daemon(struct http *http)
{
    MHD_UNSIGNED_LONG_LONG ms;

    MHD_run(http->daemon);
    loop_disarm(http->loop, &http->work);
    if (MHD_get_timeout(http->daemon, &ms) == MHD_YES)
        loop_arm(http->loop, &http->work, moment_plus(moment_now(), (int64_t)ms * NS_PER_MS));
}

static void on_ready(struct loop_io *io, int events)
{
    (void)events;
    run_daemon(io->owner);
}

static void on_work(struct loop_timer *timer)
{
    run_daemon(timer->owner);
}

/* Accepts a connection. The library would accept connections at one descriptor only. */
static void on_connecting(struct loop_io *io, int events)
{
    struct http *http = io->owner;
    struct sockaddr_storage address;
    socklen_t length = sizeof address;
    struct sockaddr *plain = (struct sockaddr *)&address;

    if (!(events & io->events)) /* the limit was reached in this turn */
        return;
    int fd = accept4(io->fd, plain, &length, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (fd >= 0)
        MHD_add_connection(http->daemon, fd, plain, length); /* closes it in any case */
    else if ((errno == EMFILE || errno == ENFILE) && http->clients)
        watch_listeners(http, 0); /* until one of these has ended */
    run_daemon(http);
}

struct http *http_start(struct loop *loop, struct loop_io *listeners, size_t count,
                        const struct http_events *events, void *arg)
{
    struct http *http = mem_zeroed(sizeof *http);

    http->loop = loop;
    http->events = events;
    http->arg = arg;
    http->work = (struct loop_timer){.fire = on_work, .owner = http};
    http->limit = (struct loop_timer){.fire = on_limit, .owner = http};
    http->daemon =
        MHD_start_daemon(MHD_USE_EPOLL | MHD_USE_NO_LISTEN_SOCKET | MHD_ALLOW_SUSPEND_RESUME, 0,
                         NULL, NULL, on_request, http, MHD_OPTION_CONNECTION_TIMEOUT,
                         SILENCE_SECONDS, MHD_OPTION_CONNECTION_MEMORY_LIMIT, HEADERS_MAX,
                         MHD_OPTION_NOTIFY_CONNECTION, on_connection, http, MHD_OPTION_END);
    if (!http->daemon) {
        free(http);
        return NULL;
    }
    http->io = (struct loop_io){
        .fd = MHD_get_daemon_info(http->daemon, MHD_DAEMON_INFO_EPOLL_FD)->epoll_fd,
        .events = LOOP_READ,
        .ready = on_ready,
        .owner = http};
    loop_add(loop, &http->io);
    http->listeners = listeners;
    http->listener_count = count;
    watch_listeners(http, LOOP_READ);
    for (size_t i = 0; i < count; i++) {
        listeners[i].ready = on_connecting;
        listeners[i].owner = http;
        loop_add(loop, &listeners[i]);
    }
    return http;
}

/* Drops the texts of all documents; responses that are being sent keep what they need. */
static void forget_texts(struct http *http)
{
    for (enum http_document i = 0; i < HTTP_DOCUMENTS; i++) {
        if (http->documents[i])
            MHD_destroy_response(http->documents[i]);
        http->documents[i] = NULL;
    }
}

/* Continues the clients that wait for a document. */
static void wake_clients(struct http *http)
{
    for (struct client *client = http->clients; client; client = client->next) {
        if (client->waits)
            MHD_resume_connection(client->connection);
        client->waits = false;
    }
}

void http_publish(struct http *http, const struct http_texts *texts)
{
    forget_texts(http);
    http->away = texts->away;
    for (enum http_document i = 0; i < HTTP_DOCUMENTS; i++)
        if (texts->all[i].text)
            http->documents[i] =
                make_response(texts->all[i].text, texts->all[i].size, documents[i].type);
    if (http->documents[HTTP_TABLE]) /* for browsers without JavaScript */
        MHD_add_response_header(http->documents[HTTP_TABLE], "Refresh", "5");
    wake_clients(http);
    run_daemon(http);
}

void http_stop(struct http *http)
{
    wake_clients(http); /* none may be suspended */
    for (size_t i = 0; i < http->listener_count; i++)
        loop_remove(http->loop, &http->listeners[i]);
    loop_remove(http->loop, &http->io);
    MHD_stop_daemon(http->daemon);
    loop_disarm(http->loop, &http->work);
    loop_disarm(http->loop, &http->limit);
    forget_texts(http);
    free(http);
}
