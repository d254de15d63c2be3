/* The local server: its directory, and its process. */
#include "local.h"
#include "clock.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#define SESSIONS "/run/user/"
#define LOOK_NS  (5 * NS_PER_MS)

/* -- the directory --------------------------------------------------------------------------- */

/* True for /run/user/1000 where systemd has mounted it. */
static bool ends_with_session(const char *path)
{
    struct stat own, all;

    return strncmp(path, SESSIONS, strlen(SESSIONS)) == 0 && stat(path, &own) == 0 &&
           stat(SESSIONS, &all) == 0 && own.st_dev != all.st_dev;
}

static bool may_be_made_in(const char *parent, const char *path)
{
    struct stat there;

    return lstat(path, &there) == 0 || faccessat(AT_FDCWD, parent, W_OK | X_OK, AT_EACCESS) == 0;
}

/* The same for all commands of a user, whatever there is so far: who looks elsewhere has another lock. */
static bool choose(struct local_place *place, char *fault, size_t size)
{
    const char *session = getenv("XDG_RUNTIME_DIR");
    unsigned uid = geteuid();
    char path[4096];

    if (session && *session == '/' && !ends_with_session(session)) {
        snprintf(path, sizeof path, "%s/rlock", session);
    } else {
        snprintf(path, sizeof path, "/run/lock/rlock-%u", uid);
        if (!may_be_made_in("/run/lock", path))
            snprintf(path, sizeof path, "/tmp/rlock-%u", uid);
    }
    if (strlen(path) + sizeof "/socket" > sizeof place->socket ||
        strlen(path) >= sizeof place->directory) {
        snprintf(fault, size, "XDG_RUNTIME_DIR is too long for a Unix socket: %.60s...", path);
        return false;
    }
    strcpy(place->directory, path);
    snprintf(place->socket, sizeof place->socket, "%.99s/socket", path);
    return true;
}

/* What is ours and closed to others cannot be put out of the way by them: its parent is ours, or sticky. */
static bool check(const struct local_place *place, char *fault, size_t size)
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
        snprintf(fault, size, "%s belongs to user %u", path, (unsigned)there.st_uid);
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
    return choose(place, fault, size) && check(place, fault, size);
}

bool local_make(struct local_place *place, char *fault, size_t size)
{
    if (!choose(place, fault, size))
        return false;
    if (mkdir(place->directory, 0700) != 0 && errno != EEXIST) {
        snprintf(fault, size, "cannot make %s: %s", place->directory, strerror(errno));
        return false;
    }
    if (check(place, fault, size))
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
    struct flock life = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    int fd = local_open(place, "server", O_RDWR);

    if (fd < 0)
        return 0;
    if (fcntl(fd, F_GETLK, &life) != 0)
        life.l_type = F_UNLCK;
    close(fd);
    if (life.l_type == F_UNLCK)
        return 0;
    return life.l_pid > 0 ? life.l_pid : -1;
}

static void rest(void)
{
    const struct timespec pause = {.tv_nsec = LOOK_NS};
    nanosleep(&pause, NULL);
}

int local_hold(const struct local_place *place, int64_t patience)
{
    struct moment end = moment_plus(moment_now(), patience);
    int fd = local_open(place, "lock", O_RDWR | O_CREAT);

    if (fd < 0)
        return -1;
    while (flock(fd, LOCK_EX | LOCK_NB) != 0) {
        int error = errno;
        bool busy = error == EWOULDBLOCK;
        if (busy && !moment_reached(end, moment_now())) {
            rest();
            continue;
        }
        close(fd);
        errno = busy ? ETIME : error;
        return -1;
    }
    return fd;
}

static bool has_ended(const struct local_place *place, int64_t patience)
{
    struct moment end = moment_plus(moment_now(), patience);

    while (local_server(place) != 0) {
        if (moment_reached(end, moment_now()))
            return false;
        rest();
    }
    return true;
}

bool local_end(const struct local_place *place, bool force, int64_t patience)
{
    pid_t pid = local_server(place);

    if (pid > 0)
        kill(pid, SIGTERM);
    if (has_ended(place, patience))
        return true;
    if (!force || (pid = local_server(place)) < 0)
        return false;
    if (pid > 0)
        kill(pid, SIGKILL);
    return has_ended(place, patience);
}
