/* Finds, starts and ends the user's own server of this host. It reads and changes one directory,
 * whose files local.h lists, and starts redis-server in it. */
#include "store/local/local.h"
#include "base/clock.h"
#include "base/mem.h"
#include "os/cgroup.h"
#include "os/child.h"
#include "os/file.h"
#include "os/kernel.h"
#include "os/tree.h"
#include "store/redis/checkup.h"
#include "store/redis/store.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#define SESSIONS "/run/user/"
#define LOOK_NS  (3 * NS_PER_MS) /* between two looks at something that is waited for */

/* How long to wait for: */
#define ANSWER_SEC 1                 /* the answer of a server that runs to a PING */
#define SOCKET_NS  (1 * NS_PER_SEC)  /* the socket of one that has just been started, or ends */
#define END_NS     (5 * NS_PER_SEC)  /* the end of a server that cannot be reached any more */
#define START_NS   (30 * NS_PER_SEC) /* a new server to have read its data */

#define LOG_MAX          262144 /* bytes, after which the log begins anew */
#define DIRECTORY_FILENO 3      /* in the server */

/* -- the directory --------------------------------------------------------------------------- */

/* Whether both describe one file. */
static bool is_same(const struct stat *a, const struct stat *b)
{
    return a->st_dev == b->st_dev && a->st_ino == b->st_ino;
}

/* Whether this user may make a directory in that one, by its mode: it is sticky and open to all, or
 * the user's own. The mode is the same for all processes; access(2) would not be: a unit may see
 * the directory read-only. */
static bool lets_in(const char *directory)
{
    struct stat there;

    if (stat(directory, &there) != 0 || !S_ISDIR(there.st_mode))
        return false;
    return (there.st_mode & 01003) == 01003 || /* sticky, and others may write and enter */
           (there.st_uid == geteuid() && (there.st_mode & 0300) == 0300);
}

/* Whether the directory is one that systemd has made for a unit with PrivateTmp=yes. */
static bool is_of_unit(const char *directory)
{
    char *line FREED = NULL, root[4096], point[4096];
    FILE *mounts = fopen("/proc/self/mountinfo", "re");
    size_t room = 0;
    bool found = false;

    while (mounts && getline(&line, &room, mounts) > 0)
        if (sscanf(line, "%*s %*s %*s %4095s %4095s", root, point) == 2 &&
            strcmp(point, directory) == 0)
            found = strstr(root, "/systemd-private-") != NULL; /* the last one covers the others */
    if (mounts)
        fclose(mounts);
    return found;
}

/* Whether this process has another directory of that name than the rest of its host, as far as it
 * may see. Process 1 has the host's, if both have one root; otherwise, as in a container or after
 * chroot(2), only a unit's directory is known to be another. */
static bool is_private(const char *directory)
{
    struct stat root, here, there;
    char path[64];

    snprintf(path, sizeof path, "/proc/1/root%s", directory);
    if (stat("/", &root) != 0 || stat("/proc/1/root/", &there) != 0 || !is_same(&root, &there))
        return is_of_unit(directory);
    return stat(path, &there) == 0 && (stat(directory, &here) != 0 || !is_same(&here, &there));
}

/* Finds the number of this user for the host, which is where process 1 is: in a user name space of
 * its own (unshare --map-root-user), a process has another one. False: this name space does not say
 * (unshare --user), and has the same number for many. */
static bool user_of_host(unsigned *user)
{
    char own[4096], first[4096];

    *user = (unsigned)getauxval(AT_EUID); /* geteuid() may be a library's (fakeroot) */
    ssize_t got =
        file_read_small(open("/proc/self/uid_map", O_RDONLY | O_CLOEXEC), own, sizeof own);
    file_read_small(open("/proc/1/uid_map", O_RDONLY | O_CLOEXEC), first, sizeof first);
    if (got < 0 || (got > 0 && strcmp(own, first) == 0))
        return true;
    /* Lines of: the first number inside, the first outside, how many. */
    for (const char *line = own; line && *line; line = strchr(line + 1, '\n')) {
        char *rest;
        unsigned long inside = strtoul(line, &rest, 10), outside = strtoul(rest, &rest, 10);
        if (*user >= inside && *user - inside < strtoul(rest, NULL, 10)) {
            *user = (unsigned)(outside + (*user - inside));
            return true;
        }
    }
    return false;
}

/* Chooses the place of users without a directory in the environment. False with a message in
 * "fault": this process cannot know it, or does not see it. */
static bool choose_shared(char *path, size_t size, char *fault, size_t fault_size)
{
    const char *const parents[] = {"/run/lock", "/tmp"};
    size_t i = is_private(parents[0]) || lets_in(parents[0]) ? 0 : 1;
    unsigned user;

    if (!user_of_host(&user)) {
        snprintf(fault, fault_size,
                 "this process's user has no number outside of its name space of users (map it, as "
                 "unshare --map-root-user does, or set XDG_RUNTIME_DIR)");
        return false;
    }
    snprintf(path, size, "%s/rlock-%u", parents[i], user);
    if (!is_private(parents[i]))
        return true;
    snprintf(fault, fault_size,
             "this process has a %s of its own, where no other command looks (set "
             "XDG_RUNTIME_DIR to a directory that they share)",
             parents[i]);
    return false;
}

/* Chooses the same place for all commands of a user, whatever exists so far, and whatever one of
 * them may do: a command that looks elsewhere would have another lock. False with a message in
 * "fault". */
static bool choose_place(struct local_place *place, char *fault, size_t size)
{
    const char *session = getenv("XDG_RUNTIME_DIR");
    struct stat own, all;
    char path[4096];

    /* /run/user/1000, where systemd mounts it, goes with the user's last session. */
    bool passes = session && strncmp(session, SESSIONS, strlen(SESSIONS)) == 0 &&
                  stat(session, &own) == 0 && stat(SESSIONS, &all) == 0 && own.st_dev != all.st_dev;
    place->shared = !session || *session != '/' || passes;
    if (!place->shared)
        snprintf(path, sizeof path, "%s/rlock", session);
    else if (!choose_shared(path, sizeof path, fault, size))
        return false;
    if (strlen(path) + sizeof "/socket" > sizeof place->socket ||
        strlen(path) >= sizeof place->directory) {
        snprintf(fault, size, "XDG_RUNTIME_DIR is too long for a Unix socket: %.60s...", path);
        return false;
    }
    strcpy(place->directory, path);
    snprintf(place->socket, sizeof place->socket, "%.99s/socket", path);
    return true;
}

/* Returns whether the directory is there, belongs to this user, and is closed to all others. False
 * with an empty fault: it is not there yet; with a message: it must not be used. */
static bool check_place(const struct local_place *place, char *fault, size_t size)
{
    const char *path = place->directory;
    struct stat there;

    *fault = '\0';
    if (lstat(path, &there) != 0) {
        if (errno != ENOENT)
            snprintf(fault, size, "%s: %s", path, strerror(errno));
    } else if (S_ISLNK(there.st_mode)) {
        snprintf(fault, size, "%s is a symbolic link", path);
    } else if (!S_ISDIR(there.st_mode)) {
        snprintf(fault, size, "%s is not a directory", path);
    } else if (there.st_uid != geteuid()) {
        snprintf(fault, size, "%s belongs to user %u (root has to remove it)", path,
                 (unsigned)there.st_uid);
    } else if (there.st_mode & 077) {
        snprintf(fault, size, "%s is open to others (its mode is %04o, not 0700)", path,
                 (unsigned)there.st_mode & 07777);
    } else {
        return true;
    }
    return false;
}

bool local_find(struct local_place *place, char *fault, size_t size)
{
    return choose_place(place, fault, size) && check_place(place, fault, size);
}

bool local_make(struct local_place *place, char *fault, size_t size)
{
    if (!choose_place(place, fault, size))
        return false;
    /* Anybody may make a directory of root's name where everybody may make one. It holds nothing of
     * root's, and in the way of its locks it would stop its jobs: root puts it aside. */
    char aside[sizeof place->directory + 32];
    struct stat there;
    if (place->shared && geteuid() == 0 && lstat(place->directory, &there) == 0 &&
        there.st_uid != 0) {
        snprintf(aside, sizeof aside, "%s.of-%u-%lld", place->directory, (unsigned)there.st_uid,
                 (long long)moment_now().ns);
        rename(place->directory, aside);
    }
    mode_t mask = umask(077); /* this process's may take away what the owner needs */
    bool made = mkdir(place->directory, 0700) == 0 || errno == EEXIST;
    umask(mask);
    if (!made) {
        snprintf(fault, size, "cannot make %s: %s%s", place->directory, strerror(errno),
                 errno == EROFS ? " (in a unit, ReadWritePaths= allows it)" : "");
        return false;
    }
    if (check_place(place, fault, size))
        return true;
    if (!*fault)
        snprintf(fault, size, "%s has gone", place->directory);
    return false;
}

/* -- the process ----------------------------------------------------------------------------- */

int local_open(const struct local_place *place, const char *name, int flags)
{
    char path[sizeof place->directory + 32];

    snprintf(path, sizeof path, "%s/%s", place->directory, name);
    return open(path, flags | O_CLOEXEC | O_NOFOLLOW, 0600);
}

pid_t local_server(const struct local_place *place)
{
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    int fd = local_open(place, "server", O_RDWR);

    if (fd < 0)
        return 0;
    if (fcntl(fd, F_GETLK, &lock) != 0)
        lock.l_type = F_UNLCK;
    close(fd);
    if (lock.l_type == F_UNLCK)
        return 0;
    return lock.l_pid > 0 ? lock.l_pid : -1;
}

const char *local_server_words(pid_t server, char *words, size_t size)
{
    if (server > 0)
        snprintf(words, size, "%d", (int)server);
    else
        snprintf(words, size, "of another name space");
    return words;
}

/* Waits for a moment between two looks at something. */
static void pause_briefly(void)
{
    const struct timespec pause = {.tv_nsec = LOOK_NS};
    nanosleep(&pause, NULL);
}

int local_hold(const struct local_place *place, int64_t timeout)
{
    int fd = local_open(place, "lock", O_RDWR | O_CREAT);

    if (fd < 0)
        return -1;
    int error = file_lock(fd, timeout);
    if (!error)
        return fd;
    close(fd);
    errno = error;
    return -1;
}

/* Waits for the local server to end, for so many ns. Returns whether it has. */
static bool await_end(const struct local_place *place, int64_t timeout)
{
    struct moment end = moment_plus(moment_now(), timeout);

    while (local_server(place) != 0) {
        if (moment_reached(end, moment_now()))
            return false;
        pause_briefly();
    }
    return true;
}

/* Signals the server, if it runs and can be seen. Its number may be another process's by the time
 * that it is signalled: a descriptor of the process is the server's if the number still is when the
 * descriptor is open. */
static void signal_server(const struct local_place *place, int signo)
{
    pid_t pid = local_server(place);

    if (pid <= 0)
        return;
    int fd = kernel_pidfd(pid);
    if (local_server(place) == pid)
        kernel_signal(pid, fd, signo);
    file_close(fd);
}

bool local_end(const struct local_place *place, int64_t timeout)
{
    signal_server(place, SIGTERM);
    return await_end(place, timeout);
}

bool local_force_end(const struct local_place *place, int64_t timeout)
{
    if (local_end(place, timeout))
        return true;
    signal_server(place, SIGKILL);
    return await_end(place, timeout);
}

/* -- does it answer? ------------------------------------------------------------------------- */

enum state { STATE_DEAD, STATE_LOADING, STATE_UP };

/* Returns the state of the server at the other end of the socket fd, by its answer to a PING. One
 * that takes connections but is silent counts as up: its clients will judge that. */
static enum state listen_to(int fd)
{
    const struct timeval timeout = {.tv_sec = ANSWER_SEC};
    char answer[64] = "";

    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof timeout);
    if (send(fd, "PING\r\n", 6, MSG_NOSIGNAL) != 6)
        return STATE_DEAD;
    ssize_t got = recv(fd, answer, sizeof answer - 1, 0);
    if (got == 0 || (got < 0 && errno != EAGAIN)) /* EAGAIN: silent */
        return STATE_DEAD;
    return strncmp(answer, "-LOADING", 8) == 0 ? STATE_LOADING : STATE_UP;
}

/* Returns whether a server answers at the place's socket, and has loaded its data. DEAD as well
 * where it cannot be asked. */
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

/* Waits until the server answers, for "timeout" ns, and longer while it reads its data. pid: its
 * process, if that is a child; 0: it is not. False if it ended or did not answer in time. */
static bool await_answer(const struct local_place *place, pid_t pid, int64_t timeout)
{
    struct moment end = moment_plus(moment_now(), timeout);
    enum state state;

    while ((state = state_of(place)) != STATE_UP) {
        if (pid > 0 && waitpid(pid, NULL, WNOHANG) != 0)
            return false;
        if (state == STATE_DEAD && moment_reached(end, moment_now()))
            return false;
        pause_briefly();
    }
    return true;
}

/* -- the program ------------------------------------------------------------------------- */

/* Finds redis-server, or else valkey-server, along PATH, as an absolute path. False: neither is
 * there. */
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

/* Gives this process, which is about to become the server, its descriptors and locks. log: its
 * output. Standard input is the file whose lock says who the server is: a record lock stays over
 * exec, is not inherited by the children that rewrite its data, and would go with any other
 * descriptor of that file that is closed. False with errno. */
static bool take_descriptors(const struct local_place *place, int log)
{
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    int server = local_open(place, "server", O_RDWR | O_CREAT);
    int directory = local_open(place, ".", O_RDONLY | O_DIRECTORY);

    if (log < 0 || server < 0 || directory < 0 || dup2(log, STDOUT_FILENO) < 0 ||
        dup2(log, STDERR_FILENO) < 0 || dup2(server, STDIN_FILENO) < 0 ||
        dup2(directory, DIRECTORY_FILENO) < 0)
        return false;
    kernel_close(DIRECTORY_FILENO + 1, -1);
    fcntl(DIRECTORY_FILENO, F_SETFD, 0); /* it may have had that number already, close-on-exec */
    flock(DIRECTORY_FILENO, LOCK_SH | LOCK_NB); /* so that systemd-tmpfiles does not clean it up */
    return fcntl(STDIN_FILENO, F_SETLK, &lock) == 0 && fchdir(DIRECTORY_FILENO) == 0;
}

/* Sets the limits of a server that is about to begin to what they can be. The server outlives this
 * process, and others need it: it must not inherit this one's limits, nor its place behind other
 * programs (nice(1), chrt(1)), as far as this user may change them. */
static void be_unlimited(void)
{
    static const int limits[] = {RLIMIT_CPU, RLIMIT_FSIZE, RLIMIT_AS, RLIMIT_DATA, RLIMIT_NOFILE};

    for (size_t i = 0; i < sizeof limits / sizeof *limits; i++) {
        struct rlimit limit = {RLIM_INFINITY, RLIM_INFINITY};
        if (setrlimit(limits[i], &limit) != 0 && getrlimit(limits[i], &limit) == 0) {
            limit.rlim_cur = limit.rlim_max;
            setrlimit(limits[i], &limit);
        }
    }
    sched_setscheduler(0, SCHED_OTHER, &(struct sched_param){0});
    if (getpriority(PRIO_PROCESS, 0) > 0)
        setpriority(PRIO_PROCESS, 0, 0);
}

/* Becomes redis-server, with all options that it needs, or ends with the reason in the log. */
__attribute__((noreturn)) static void become_server(const struct local_place *place, int log)
{
    /* appendfsync no: each write is handed to the kernel before it is answered, so a server that is
     * killed loses nothing. With "everysec" it delays writes while the disk is slow. A power
     * failure loses locks, but also ends all their holders: they were on this host. */
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

    memcpy(argv + 5, options, sizeof options); /* behind the five words that are there */
    snprintf(variable, sizeof variable, "PATH=%s", path ? path : "/usr/bin:/bin");
    sigset_t none;
    for (int signo = 1; signo <= SIGRTMAX; signo++)
        signal(signo, SIG_DFL);
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    be_unlimited();
    umask(077);
    if (take_descriptors(place, log))
        execve(TREE_SPARED, (char *const *)(uintptr_t)argv, environment);
    dprintf(STDERR_FILENO, "%s\n", strerror(errno));
    _exit(127);
}

/* -- starting it ----------------------------------------------------------------------------- */

/* Links redis-server under the name TREE_SPARED, with which rlock does not take it for a descendant
 * of the command that it ends. False with a message in "fault". */
static bool make_link(const struct local_place *place, char *fault, size_t size)
{
    char program[4096], link[sizeof place->directory + 32];

    if (!find_program(program, sizeof program)) {
        snprintf(fault, size, "redis-server is not installed (install it, or name another store)");
        return false;
    }
    snprintf(link, sizeof link, "%s/" TREE_SPARED, place->directory);
    unlink(link);
    if (symlink(program, link) == 0)
        return true;
    snprintf(fault, size, "%s: %s", link, strerror(errno));
    return false;
}

/* Opens the server's log; *start is set to where its next words go. If there can be none, as on a
 * full disk, returns /dev/null: the server starts all the same. */
static int open_log(const struct local_place *place, off_t *start)
{
    struct stat stat;
    int log = local_open(place, "log", O_RDWR | O_CREAT | O_APPEND);

    if (log < 0)
        return file_open_null(O_RDWR);
    if (fstat(log, &stat) == 0 && stat.st_size > LOG_MAX && ftruncate(log, 0) == 0)
        stat.st_size = 0;
    *start = stat.st_size;
    return log;
}

/* Copies the last line of the log without pid and time; "" if nothing was written since "start". */
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
    const char *mark = strstr(line, " # "); /* between the time and a warning */
    snprintf(out, size, "%.120s", mark ? mark + 3 : line);
}

/* The argument of serve_place(), the process of a new server. */
struct launch {
    const struct local_place *place;
    int log;
};

/* Is the process of a new server; arg: a struct launch. Never returns. */
static int serve_place(const void *arg)
{
    const struct launch *launch = arg;

    child_detach();
    cgroup_leave();
    become_server(launch->place, launch->log);
}

/* Starts the server as a process that outlives this one, and waits until it answers. False with a
 * message in "fault", which has the server's own last words, if its log has any. */
static bool launch_server(const struct local_place *place, char *fault, size_t size)
{
    char reason[128];
    struct statvfs disk;
    off_t start = 0;
    bool up = false;

    if (!make_link(place, fault, size))
        return false;
    int log = open_log(place, &start);
    pid_t pid = child_fork_survivor(TREE_SPARED, serve_place, &(struct launch){place, log});
    if (pid < 0) {
        snprintf(fault, size, "cannot start redis-server: %s", strerror(errno));
    } else if (!(up = await_answer(place, pid, START_NS))) {
        read_reason(log, start, reason, sizeof reason);
        bool full = statvfs(place->directory, &disk) == 0 && disk.f_bavail == 0;
        if (!*reason)
            strcpy(reason, full ? strerror(ENOSPC) : "see its log");
        snprintf(fault, size, "redis-server did not start: %s", reason);
    }
    close(log);
    return up;
}

/* Makes sure that a server serves the place, as none answers there. The caller holds the lock of
 * local_hold(). A server that runs is starting, about to end, or has lost its socket: if it does
 * not answer soon, it is ended, and a new one reads its data. False with a message in "fault". */
static bool replace_server(const struct local_place *place, char *fault, size_t size)
{
    pid_t pid = local_server(place);
    char words[LOCAL_WORDS_SIZE];

    if (pid != 0 && await_answer(place, 0, SOCKET_NS))
        return true;
    if (pid == 0 || local_end(place, END_NS))
        return launch_server(place, fault, size);
    snprintf(fault, size, "process %s serves, but its socket has gone, and it does not end",
             local_server_words(pid, words, sizeof words));
    return false;
}

/* -- its kind ---------------------------------------------------------------------------------- */

/* Finds the server's socket ("find_server" of a store_kind). */
static bool find_socket(char *socket, size_t size)
{
    struct local_place place;
    char fault[160];

    if (!local_find(&place, fault, sizeof fault))
        return false;
    snprintf(socket, size, "%s", place.socket);
    return true;
}

/* Starts the user's own server, if it does not run ("start_server" of a store_kind). Any number of
 * processes may call this at once, and all find the server that the first has started, when it has
 * read its data. Waits, too, while another process starts or stops the server. */
static bool start_local_server(char *socket, size_t socket_size, char *fault, size_t size)
{
    struct local_place place;

    if (!local_make(&place, fault, size))
        return false;
    int held = local_hold(&place, INT64_MAX);
    if (held < 0) {
        snprintf(fault, size, "%s/lock: %s", place.directory, strerror(errno));
        return false;
    }
    bool up = await_answer(&place, 0, 0) || replace_server(&place, fault, size);
    close(held);
    snprintf(socket, socket_size, "%s", place.socket);
    return up;
}

struct url local_url(const struct local_place *place)
{
    return (struct url){.kind = &unix_kind, .path = place->socket};
}

const struct store_kind local_kind = {.scheme = "local",
                                      .name = "local:",
                                      .abilities = REDIS_ABILITIES,
                                      .mirrors = redis_mirrors,
                                      .no_password = true,
                                      .find_server = find_socket,
                                      .start_server = start_local_server,
                                      .open = store_redis_open,
                                      .check = redis_check};
