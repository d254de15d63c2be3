/* The process of the local server: ended, and no other one. */
#include "base/clock.h"
#include "store/local/local.h"

#include "tap.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define END_NS   (10 * NS_PER_SEC)
#define NONE_NS  (50 * NS_PER_MS) /* for one that does not end */
#define FORCE_NS (3 * NS_PER_SEC) /* before it is killed, and for the KILL */

/* A process that is the server for as long as it is not told to be none. */
struct server {
    pid_t pid;
    int orders; /* closed: it gives the lock up, and lives on */
    int told;   /* a byte for each of: it is the server, it is not any more */
};

static struct server *leaving; /* gives up what it is as soon as somebody has a descriptor of it */
static int killed_by_number;

static void await_word(const struct server *server)
{
    char word;
    while (read(server->told, &word, 1) < 0 && errno == EINTR)
        ;
}

static void leave(struct server *server)
{
    close(server->orders);
    await_word(server);
}

/* In place of the C library's. */
int kill(pid_t pid, int signo)
{
    killed_by_number++;
    return (int)syscall(SYS_kill, pid, signo);
}

long syscall(long number, ...)
{
    static long (*original)(long, ...);
    long a[4];
    va_list args;

    va_start(args, number);
    for (size_t i = 0; i < sizeof a / sizeof *a; i++)
        a[i] = va_arg(args, long);
    va_end(args);
    if (!original)
        *(void **)&original = dlsym(RTLD_NEXT, "syscall");
    long result = original(number, a[0], a[1], a[2], a[3]);
    if (number == SYS_pidfd_open && leaving) {
        leave(leaving);
        leaving = NULL;
    }
    return result;
}

__attribute__((noreturn)) static void serve(const struct local_place *place, int orders, int told,
                                            bool ignores)
{
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    int fd = local_open(place, "server", O_RDWR | O_CREAT);
    char word;

    signal(SIGTERM, ignores ? SIG_IGN : SIG_DFL);
    if (fcntl(fd, F_SETLK, &lock) != 0 || write(told, "y", 1) != 1)
        _exit(1);
    if (read(orders, &word, 1) == 0) {
        close(fd);
        if (write(told, "n", 1) != 1)
            _exit(1);
    }
    for (;;)
        pause();
}

static struct server server_start(const struct local_place *place, bool ignores)
{
    int orders[2] = {-1, -1}, told[2] = {-1, -1};
    struct server server = {0};

    if (pipe2(orders, O_CLOEXEC) == 0 && pipe2(told, O_CLOEXEC) == 0)
        server.pid = fork();
    if (server.pid == 0) {
        close(orders[1]);
        serve(place, orders[0], told[1], ignores);
    }
    close(orders[0]);
    close(told[1]);
    server.orders = orders[1];
    server.told = told[0];
    await_word(&server);
    return server;
}

/* The signal that it has died of; 0: it lives. */
static int signal_of(const struct server *server)
{
    int status = 0;
    return waitpid(server->pid, &status, WNOHANG) > 0 && WIFSIGNALED(status) ? WTERMSIG(status) : 0;
}

static void server_end(const struct server *server)
{
    close(server->told);
    syscall(SYS_kill, server->pid, SIGKILL);
    waitpid(server->pid, NULL, 0);
}

/* A server that obeys TERM is ended by it. */
static void test_end(const struct local_place *place)
{
    struct server server = server_start(place, false);

    tap_ok(local_server(place) == server.pid, "the server's process");
    tap_ok(local_end(place, END_NS) && local_server(place) == 0, "it is ended");
    tap_ok(signal_of(&server) == SIGTERM, "by a TERM");
    server_end(&server);
    tap_ok(local_force_end(place, END_NS), "there is none to be ended");
}

/* A server that ignores TERM stays, until KILL is allowed. */
static void test_force(const struct local_place *place)
{
    struct server server = server_start(place, true);

    tap_ok(!local_end(place, NONE_NS) && signal_of(&server) == 0, "one that ignores a TERM");
    tap_ok(local_force_end(place, FORCE_NS), "by force");
    tap_ok(signal_of(&server) == SIGKILL, "by a KILL");
    server_end(&server);
}

/* The server's number is another process's when the signal is due. */
static void test_bystander(const struct local_place *place)
{
    struct server server = server_start(place, false);

    leaving = &server;
    bool none = local_force_end(place, END_NS);
    tap_ok(none && !leaving, "there is none any more");
    tap_ok(signal_of(&server) == 0, "H128 whoever has its number by then is left alone");
    server_end(&server);
}

int main(void)
{
    char directory[] = "/tmp/rlock-test-XXXXXX", fault[256];
    struct local_place place;

    if (!mkdtemp(directory) || setenv("XDG_RUNTIME_DIR", directory, 1) != 0 ||
        !local_make(&place, fault, sizeof fault))
        return 1;
    test_end(&place);
    test_force(&place);
    test_bystander(&place);
    tap_ok(killed_by_number == 0 || syscall(SYS_pidfd_open, getpid(), 0) < 0,
           "H128 no process is signalled by a number");
    remove(strcat(strcpy(fault, place.directory), "/server"));
    remove(place.directory);
    remove(directory);
    return tap_done();
}
