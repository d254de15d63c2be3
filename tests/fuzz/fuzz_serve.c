/* The requests of rlock serve: whatever somebody sends, with the real library behind a real socket,
 * the answer is one of HTTP, and tells of locks only to whoever says the password.
 *
 * First byte: how many bytes come at a time. Second byte: whether the request has to wait. The rest
 * is what comes. */
#include "../unit/fake_loop.h"
#include "fuzz.h"
#include "serve/host_header.h"
#include "serve/users.h"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "../../src/serve/http.c"

#define SECRET "SECRET"
#define HASH   "$2y$04$abcdefghijklmnopqrstuufznL8bkzdtHwLhca4To/v9Lo9bA7fR6"
#define ROUNDS 1000

const char page_html[] = SECRET, page_css[] = SECRET, page_js[] = SECRET;

static struct http *server;
static struct users *users;
static struct sockaddr_un listener_address = {.sun_family = AF_UNIX};
static socklen_t listener_length = sizeof listener_address;
static bool at_once;
static bool said; /* the password */

static bool is_fresh(void *arg, enum http_document wanted, bool there)
{
    (void)arg, (void)wanted, (void)there;
    return at_once;
}

static bool knows_host(void *arg, const char *host)
{
    static const char *const names[] = {"localhost"};

    (void)arg;
    return host_header_is_known(host, names, 1);
}

static enum http_admission admits(void *arg, const char *user, const char *password)
{
    bool right = users_admit(users, user, password);

    (void)arg;
    MUST(right == (strcmp(user, "user") == 0 && strcmp(password, "pass") == 0));
    said |= right;
    return right ? HTTP_ADMITTED : HTTP_STRANGER;
}

static void publish(void)
{
    struct http_texts texts = {.away = false};

    for (int i = 0; i < HTTP_DOCUMENTS; i++)
        strbuf_puts(&texts.all[i], SECRET);
    http_publish(server, &texts);
}

static void start(void)
{
    static const struct http_events events = {is_fresh, knows_host, admits, SECRET};
    static struct loop_io listener;
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    char fault[256];
    unsigned line;

    users = users_parse("user:" HASH, strlen("user:" HASH), &line, fault, sizeof fault);
    /* The kernel finds a name for it. */
    MUST(users &&
         bind(fd, (struct sockaddr *)&listener_address, sizeof listener_address.sun_family) == 0);
    MUST(listen(fd, 8) == 0);
    MUST(getsockname(fd, (struct sockaddr *)&listener_address, &listener_length) == 0);
    listener.fd = fd;
    server = http_start(loop_new(), &listener, 1, &events, NULL);
    MUST(server);
    publish();
}

static void check_answer(const char *answer, size_t size)
{
    static const char *const known[] = {"200", "400", "401", "403", "404", "405",
                                        "408", "413", "414", "431", "501", "505"};
    bool right = size == 0;

    for (size_t i = 0; !right && i < sizeof known / sizeof *known; i++)
        right =
            size > 12 && memcmp(answer, "HTTP/1.", 7) == 0 && memcmp(answer + 9, known[i], 3) == 0;
    MUST(right);
    MUST(said || !memmem(answer, size, SECRET, strlen(SECRET)));
}

/* Reads what has come; false at its end. */
static bool take(int fd, char *answer, size_t room, size_t *size)
{
    ssize_t count = recv(fd, answer + *size, room - *size, MSG_DONTWAIT);

    if (count > 0)
        *size += (size_t)count;
    return count > 0 || (count < 0 && (errno == EAGAIN || errno == EINTR));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static char answer[65536];
    size_t told = 0, at_most, at = 2;

    if (size < 2)
        return 0;
    if (!server)
        start();
    at_most = *data + 1U;
    at_once = data[1] % 2 == 0;
    said = false;
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    MUST(connect(fd, (struct sockaddr *)&listener_address, listener_length) == 0);
    on_connecting(server->listeners, LOOP_READ);
    for (size_t count; at < size; at += count) {
        count = size - at < at_most ? size - at : at_most;
        if (send(fd, data + at, count, MSG_NOSIGNAL | MSG_DONTWAIT) < 0)
            break;
        run_daemon(server);
    }
    shutdown(fd, SHUT_WR);
    for (int round = 0; round < ROUNDS && take(fd, answer, sizeof answer, &told); round++) {
        run_daemon(server);
        if (round == 2)
            publish();
    }
    check_answer(answer, told);
    close(fd);
    for (int round = 0; server->clients && round < ROUNDS; round++)
        run_daemon(server);
    MUST(!server->clients);
    return 0;
}
