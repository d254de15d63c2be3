/* The files of reservations. Each has four lines: the owner token, until when (ms since 1970), the
 * store, and the prefix with the key; its name is a hash of the last two. */
#include "cli/reservation.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/decimal.h"
#include "base/hash.h"
#include "base/mem.h"
#include "lock/own_identity.h"
#include "os/file.h"

#define STORE_SIZE 4096 /* bytes of all URLs as text */
#define FILE_MOST  16384
/* How long after its end a reservation is still looked up: clocks differ. */
#define KEPT_MS INT64_C(86400000)
/* How long to wait for another command that changes the files: it may be stopped. */
#define LOCKED_NS (10 * NS_PER_SEC)

struct entry {
    char owner[OWNER_SIZE];
    int64_t until_ms;
    char *what; /* the lines that say which lock */
};

/* Returns the directory of the files, or "" if there is none. The caller frees. */
static char *reservation_directory(void)
{
    const char *base = getenv("XDG_STATE_HOME"), *home = getenv("HOME");

    if (base && *base == '/') /* the specification has a relative one ignored */
        return strbuf_print("%s/rlock", base);
    return home && *home == '/' ? strbuf_print("%s/.local/state/rlock", home) : mem_strdup("");
}

/* Words which store and key a reservation is of. The caller frees. */
static char *describe_reservation(const struct settings *settings, const char *key)
{
    const struct store_address *address = &settings->address;
    struct strbuf what = {0};
    char url[STORE_SIZE];

    for (size_t i = 0; i < address->url_count; i++)
        strbuf_printf(&what, "%s%s", i ? " " : "", url_print(&address->urls[i], url, sizeof url));
    strbuf_printf(&what, "\n%s %s\n", address->prefix, key);
    return strbuf_detach(&what);
}

/* The file of a reservation, by the hash of what it is of. Two locks with one hash would only be
 * one reservation. The caller frees. */
static char *path_of(const char *what)
{
    uint64_t hash = hash_add(HASH_START, what, strlen(what));
    char *place FREED = reservation_directory();

    return strbuf_print("%s/%016" PRIx64, place, hash);
}

static void free_entry(struct entry *entry)
{
    free(entry->what);
}

/* Reads the file of a reservation. False: there is none; a damaged one counts as missing. The
 * caller frees the entry. */
static bool read_entry(const char *path, struct entry *entry)
{
    const struct file_options options = {.limit = FILE_MOST, .again = true};
    struct file file ENDED_BY(file_wipe) = {0};
    char *until, *what;

    if (file_read(&file, path, &options, NULL, 0) != 0)
        return false;
    until = strchr(file.text, '\n');
    what = until ? strchr(until + 1, '\n') : NULL;
    if (what) {
        *until++ = *what++ = '\0';
        if (!owner_fault(file.text) &&
            decimal_read(until, strlen(until), INT64_MAX, &entry->until_ms)) {
            strcpy(entry->owner, file.text);
            entry->what = mem_strdup(what);
        }
    }
    return entry->what != NULL;
}

static int64_t now_ms(void)
{
    return clock_wall() / NS_PER_MS;
}

/* Whether a file may be removed: what it is about was over at that time (ms since 1970), a while
 * ago. */
static bool is_stale(int64_t until_ms)
{
    return until_ms + KEPT_MS < now_ms();
}

bool reservation_find(const struct settings *settings, const char *key, char owner[OWNER_SIZE],
                      int64_t *until_ms)
{
    char *place FREED = reservation_directory();

    if (access(place, F_OK) < 0) /* most users have never reserved */
        return false;
    char *what FREED = describe_reservation(settings, key), *path FREED = path_of(what);
    struct entry entry ENDED_BY(free_entry) = {.what = NULL};

    if (!read_entry(path, &entry) || is_stale(entry.until_ms) || strcmp(entry.what, what) != 0)
        return false;
    strcpy(owner, entry.owner);
    if (until_ms)
        *until_ms = entry.until_ms;
    return true;
}

/* Chooses the owner for a new reservation: that of the user's others, or a new one. Removes the
 * files that are out of date. */
static void choose_owner(char owner[OWNER_SIZE])
{
    char *place FREED = reservation_directory();
    DIR *all = *place ? opendir(place) : NULL;
    const struct dirent *one;
    struct stat status;
    bool found = false;

    own_identity_uuid(owner);
    while (all && (one = readdir(all))) {
        char *path FREED = strbuf_print("%s/%s", place, one->d_name);
        struct entry entry ENDED_BY(free_entry) = {.what = NULL};
        bool reserved = one->d_name[0] != '.' && read_entry(path, &entry);
        /* A command that was killed was writing it. */
        bool unfinished = one->d_name[0] == '.' && stat(path, &status) == 0 &&
                          S_ISREG(status.st_mode) && is_stale((int64_t)status.st_mtime * 1000);
        if (reserved ? is_stale(entry.until_ms) : unfinished) {
            unlink(path);
        } else if (reserved && !found && entry.until_ms > now_ms()) {
            found = true;
            strcpy(owner, entry.owner);
        }
    }
    if (all)
        closedir(all);
}

/* Makes a directory and its parents. Returns 0 or errno. */
static int make_directory(char *path)
{
    for (char *slash = path + 1; *slash; slash++) {
        if (*slash != '/')
            continue;
        *slash = '\0';
        int made = mkdir(path, 0700);
        *slash = '/';
        if (made < 0 && errno != EEXIST && access(path, F_OK) < 0)
            return errno;
    }
    return mkdir(path, 0700) == 0 || errno == EEXIST ? 0 : errno;
}

/* Words why the file of a reservation cannot be kept. */
static void word_cannot_keep(const char *place, int error, char *fault, size_t size)
{
    snprintf(fault, size, "cannot keep it in %.150s: %s", place, strerror(error));
}

/* Opens the directory, which is made where there is none, and locks it: without that two first
 * reservations at a time would have two owners, and one file, and a command could remove the file
 * that another one has just saved. Returns it, or -1 with a message in "fault". */
static int lock_directory(char *fault, size_t size)
{
    char *place FREED = reservation_directory();
    int error = *place ? make_directory(place) : 0;
    int fd = *place && !error ? open(place, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;

    if (!*place)
        snprintf(fault, size, "neither XDG_STATE_HOME nor HOME says where to keep it");
    else if (fd < 0)
        word_cannot_keep(place, error ? error : errno, fault, size);
    else if (file_lock(fd, LOCKED_NS) != ETIME) /* or there are no such locks */
        return fd;
    else
        snprintf(fault, size, "cannot keep it in %.150s: another rlock command has it locked",
                 place);
    file_close(fd);
    return -1;
}

/* Saves the owner of a reservation, for this user only. False with a message in "fault". */
static bool save_entry(const struct settings *settings, const char *key, const char *owner,
                       int64_t until_ms, char *fault, size_t size)
{
    char *place FREED = reservation_directory(), *what FREED = describe_reservation(settings, key);
    char *path FREED = path_of(what);
    char *text FREED = strbuf_print("%s\n%" PRId64 "\n%s", owner, until_ms, what);
    mode_t mask = umask(077);
    int error = file_replace(path, text, strlen(text));
    umask(mask);

    if (error)
        word_cannot_keep(place, error, fault, size);
    return !error;
}

bool reservation_begin(const struct settings *settings, const char *key, int64_t ns,
                       char owner[OWNER_SIZE], int64_t *fresh, char *fault, size_t size)
{
    int locked = lock_directory(fault, size);
    int64_t until_ms = now_ms() + ns / NS_PER_MS, before_ms = 0;

    if (locked < 0)
        return false;
    bool known = reservation_find(settings, key, owner, &before_ms);
    if (!known)
        choose_owner(owner);
    *fresh = known ? 0 : until_ms;
    bool saved =
        save_entry(settings, key, owner, until_ms > before_ms ? until_ms : before_ms, fault, size);
    close(locked);
    return saved;
}

void reservation_forget(const struct settings *settings, const char *key, int64_t until_ms)
{
    int locked = lock_directory(NULL, 0);
    char *what FREED = describe_reservation(settings, key), *path FREED = path_of(what);
    struct entry entry ENDED_BY(free_entry) = {.what = NULL};

    if (locked >= 0 && read_entry(path, &entry) && entry.until_ms == until_ms)
        unlink(path);
    file_close(locked);
}

bool reservation_save(const struct settings *settings, const char *key, const char *owner,
                      int64_t ns, char *fault, size_t size)
{
    int locked = lock_directory(fault, size);
    bool saved =
        locked >= 0 && save_entry(settings, key, owner, now_ms() + ns / NS_PER_MS, fault, size);

    file_close(locked);
    return saved;
}
