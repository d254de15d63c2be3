/* Starting the local server. */
#include "local_start.h"
#include "child.h"
#include "clock.h"
#include "tree.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#define LOOK_NS    (3 * NS_PER_MS)
#define ANSWER_SEC 1                 /* for one that runs to answer a PING */
#define SOCKET_NS  (1 * NS_PER_SEC)  /* for one that has just been started, or ends */
#define END_NS     (5 * NS_PER_SEC)  /* for one that nobody can reach any more */
#define START_NS   (30 * NS_PER_SEC) /* to read its data */
#define LOG_MAX    262144

#define DIRECTORY_FILENO 3

/* -- does it answer? ------------------------------------------------------------------------- */

enum state { STATE_DEAD, STATE_LOADING, STATE_UP };

/* One that takes connections and is silent is for those who want something of it to judge. */
static enum state listen_to(int fd)
{
    const struct timeval patience = {.tv_sec = ANSWER_SEC};
    char answer[64] = "";

    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    if (send(fd, "PING\r\n", 6, MSG_NOSIGNAL) != 6)
        return STATE_DEAD;
    ssize_t got = recv(fd, answer, sizeof answer - 1, 0);
    if (got == 0 || (got < 0 && errno != EAGAIN))
        return STATE_DEAD;
    return strncmp(answer, "-LOADING", 8) == 0 ? STATE_LOADING : STATE_UP;
}

static enum state state_of(const struct local_place *place)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    enum state state = STATE_DEAD;
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    if (fd < 0)
        return state;
    strcpy(address.sun_path, place->socket);
    if (connect(fd, (const struct sockaddr *)&address, sizeof address) == 0)
        state = listen_to(fd);
    close(fd);
    return state;
}

static void rest(void)
{
    const struct timespec pause = {.tv_nsec = LOOK_NS};
    nanosleep(&pause, NULL);
}

/* Waits until it answers; "pid" is it, if it is a child. False if it ended or was not there in time. */
static bool comes_up(const struct local_place *place, pid_t pid, int64_t patience)
{
    struct moment end = moment_plus(moment_now(), patience);
    enum state state;

    while ((state = state_of(place)) != STATE_UP) {
        if (pid > 0 && waitpid(pid, NULL, WNOHANG) != 0)
            return false;
        if (state == STATE_DEAD && moment_reached(end, moment_now()))
            return false;
        rest();
    }
    return true;
}

/* -- what is started ------------------------------------------------------------------------- */

/* The program, by its absolute path. */
static bool find_program(char *path, size_t size)
{
    static const char *const names[] = {"redis-server", "valkey-server"};
    const char *given = getenv("PATH");
    const char *list = given ? given : "/usr/local/bin:/usr/bin:/bin";

    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        for (const char *from = list; *from; from += strspn(from, ":")) {
            int length = (int)strcspn(from, ":");
            snprintf(path, size, "%.*s/%s", length, from, names[i]);
            if (*from == '/' && access(path, X_OK) == 0)
                return true;
            from += length;
        }
    }
    return false;
}

/* It is to outlive this process, and may have to serve others longer than a limit on this one allows. */
static void lift_limits(void)
{
    static const int limits[] = {RLIMIT_CPU, RLIMIT_FSIZE, RLIMIT_AS, RLIMIT_DATA, RLIMIT_NOFILE};
    struct rlimit limit;

    for (size_t i = 0; i < sizeof limits / sizeof *limits; i++) {
        if (getrlimit(limits[i], &limit) == 0) {
            limit.rlim_cur = limit.rlim_max;
            setrlimit(limits[i], &limit);
        }
    }
}

static void reset_signals(void)
{
    sigset_t none;

    for (int signo = 1; signo <= SIGRTMAX; signo++)
        signal(signo, SIG_DFL);
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
}

/* Standard input is the file that says who the server is; a record lock stays over exec, is not inherited by the
 * children that rewrite its data, and would go with any other descriptor of that file that is closed. The lock on
 * its directory keeps systemd-tmpfiles from cleaning it up as old. */
static bool take_descriptors(const struct local_place *place, int log)
{
    struct flock life = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    int server = local_open(place, "server", O_RDWR | O_CREAT);
    int directory = local_open(place, ".", O_RDONLY | O_DIRECTORY);

    if (log < 0 || server < 0 || directory < 0 || dup2(log, STDOUT_FILENO) < 0 ||
        dup2(log, STDERR_FILENO) < 0 || dup2(server, STDIN_FILENO) < 0 ||
        dup2(directory, DIRECTORY_FILENO) < 0)
        return false;
    close_range(DIRECTORY_FILENO + 1, ~0U, 0);
    fcntl(DIRECTORY_FILENO, F_SETFD, 0); /* it may have been that already */
    flock(DIRECTORY_FILENO, LOCK_SH | LOCK_NB);
    return fcntl(STDIN_FILENO, F_SETLK, &life) == 0 && fchdir(DIRECTORY_FILENO) == 0;
}

/* appendfsync no: every write is handed to the kernel before it is answered, so a server that is killed
 * loses nothing. With "everysec" it holds writes back while the disk is slow. What the kernel loses at
 * a power failure is nobody's any more: all who held something were on this host. */
__attribute__((noreturn)) static void become_server(const struct local_place *place, int log)
{
    static const char *const options[][2] = {{"--port", "0"},
                                             {"--unixsocketperm", "700"},
                                             {"--appendonly", "yes"},
                                             {"--appendfsync", "no"},
                                             {"--auto-aof-rewrite-min-size", "1mb"},
                                             {"--save", ""},
                                             {"--maxmemory-policy", "noeviction"},
                                             {"--loglevel", "warning"}};
    const char *argv[2 * (sizeof options / sizeof *options) + 6] = {
        TREE_SPARED, "--unixsocket", place->socket, "--dir", place->directory};
    const char *path = getenv("PATH");
    char variable[8192];
    char *const environment[] = {variable, NULL};

    memcpy(argv + 5, options, sizeof options);
    snprintf(variable, sizeof variable, "PATH=%s", path ? path : "/usr/bin:/bin");
    reset_signals();
    lift_limits();
    umask(077);
    if (take_descriptors(place, log))
        execve(TREE_SPARED, (char *const *)(uintptr_t)argv, environment);
    dprintf(STDERR_FILENO, "%s\n", strerror(errno));
    _exit(127);
}

/* -- starting it ----------------------------------------------------------------------------- */

static bool make_link(const struct local_place *place, char *fault, size_t size)
{
    char program[4096], link[sizeof place->directory + 32];

    if (!find_program(program, sizeof program)) {
        snprintf(fault, size, "redis-server is not installed (install it, or give --url)");
        return false;
    }
    snprintf(link, sizeof link, "%s/" TREE_SPARED, place->directory);
    unlink(link);
    if (symlink(program, link) == 0)
        return true;
    snprintf(fault, size, "%s: %s", link, strerror(errno));
    return false;
}

/* A full disk does not keep it from starting to say so. */
static int open_log(const struct local_place *place, off_t *start)
{
    struct stat stat;
    int log = local_open(place, "log", O_RDWR | O_CREAT | O_APPEND);

    if (log < 0)
        return open("/dev/null", O_RDWR | O_CLOEXEC);
    if (fstat(log, &stat) == 0 && stat.st_size > LOG_MAX && ftruncate(log, 0) == 0)
        stat.st_size = 0;
    *start = stat.st_size;
    return log;
}

/* The last line of the log without pid and time; "" if nothing was written since "start". */
static void read_reason(int log, off_t start, char *out, size_t size)
{
    char text[1024];
    off_t end = lseek(log, 0, SEEK_END);
    off_t from = end - (off_t)sizeof text + 1 > start ? end - (off_t)sizeof text + 1 : start;
    ssize_t got = pread(log, text, sizeof text - 1, from);

    *out = '\0';
    while (got > 0 && text[got - 1] == '\n')
        got--;
    if (got <= 0)
        return;
    text[got] = '\0';
    const char *line = strrchr(text, '\n');
    line = line ? line + 1 : text;
    const char *mark = strstr(line, " # ");
    snprintf(out, size, "%.120s", mark ? mark + 3 : line);
}

static bool is_full(const struct local_place *place)
{
    struct statvfs disk;
    return statvfs(place->directory, &disk) == 0 && disk.f_bavail == 0;
}

static bool launch(const struct local_place *place, char *fault, size_t size)
{
    char reason[128];
    off_t start = 0;
    bool up = false;

    if (!make_link(place, fault, size))
        return false;
    int log = open_log(place, &start);
    pid_t pid = child_fork_survivor(TREE_SPARED);
    if (pid == 0)
        become_server(place, log);
    if (pid < 0) {
        snprintf(fault, size, "cannot start redis-server: %s", strerror(errno));
    } else if (!(up = comes_up(place, pid, START_NS))) {
        read_reason(log, start, reason, sizeof reason);
        if (!*reason)
            strcpy(reason, is_full(place) ? strerror(ENOSPC) : "see its log");
        snprintf(fault, size, "redis-server did not start: %s", reason);
    }
    close(log);
    return up;
}

/* With the start lock held. One that lives without a socket is either not quite there, or about to go, or somebody
 * has removed the socket: it is ended, and its data is read by another one. */
static bool replace(const struct local_place *place, char *fault, size_t size)
{
    pid_t pid = local_server(place);

    if (pid != 0 && comes_up(place, 0, SOCKET_NS))
        return true;
    if (pid == 0 || local_end(place, false, END_NS))
        return launch(place, fault, size);
    snprintf(fault, size, "process %d serves, but its socket has gone, and it does not end",
             (int)pid);
    return false;
}

bool local_start(struct local_place *place, char *fault, size_t size)
{
    if (!local_make(place, fault, size))
        return false;
    int held = local_hold(place, INT64_MAX);
    if (held < 0) {
        snprintf(fault, size, "%s/lock: %s", place->directory, strerror(errno));
        return false;
    }
    bool up = comes_up(place, 0, 0) || replace(place, fault, size);
    close(held);
    return up;
}
