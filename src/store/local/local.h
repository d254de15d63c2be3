/* The store of "local:": a redis-server of the user's own on a Unix socket, started when it is
 * needed and left running, so that no one needs to set one up.
 *
 * Everything about it is in one directory, which only its user may enter:
 *   socket        where it listens
 *   server        locked (fcntl) by the server for as long as it lives, which tells its pid
 *   lock          locked (flock) by a process that starts or stops it
 *   log           its messages
 *   rlock-server  a link to the program, which gives the process its name
 * and its append-only file, which it reads when it is started again. Each write is handed to the
 * kernel before it is answered, so a server that is killed loses nothing.
 *
 * The directory is rlock in $XDG_RUNTIME_DIR; otherwise rlock-UID in /run/lock, or, if the mode of
 * that does not let the user in, in /tmp. The /run/user/UID of a login is not used: it goes away
 * with the last login while commands continue, and cron does not have it. A process that may not
 * use the place, or has another directory in its stead, has no server: it takes no other place. */
#pragma once

#include <stdint.h>
#include <sys/types.h>

#include "store/store_kind.h"
#include "store/url.h"

struct local_place {
    bool shared; /* its parent is everybody's */
    char directory[100];
    char socket[108];
};

/* Finds where this user's server is, or would be. False if its directory is not there yet, with ""
 * in "fault", or cannot be trusted, with a message: owned by another user, a link, open to
 * others. */
bool local_find(struct local_place *place, char *fault, size_t size);

/* Finds the place as local_find(), and makes the directory if it is missing; so a false always
 * comes with a message. In a parent that is everybody's, root renames a directory of its name that
 * another user has made. */
bool local_make(struct local_place *place, char *fault, size_t size);
/* Opens a file in the directory, as open(2) with these flags; -1 with errno. */
int local_open(const struct local_place *place, const char *name, int flags);

/* Returns the server's process: 0 if none runs, -1 if it runs but cannot be seen from here (a
 * container). */
pid_t local_server(const struct local_place *place);
#define LOCAL_WORDS_SIZE 40
/* Says which process that is: "4121", or "of another name space". Returns "words". */
const char *local_server_words(pid_t server, char *words, size_t size);

/* Keeps other processes from starting or stopping the server until the returned descriptor is
 * closed; -1 with errno, ETIME after "timeout" ns. */
int local_hold(const struct local_place *place, int64_t timeout);
/* Ends the server, its data written, and waits for "timeout" ns; requires local_hold(). False if it
 * still runs. */
bool local_end(const struct local_place *place, int64_t timeout);
/* Kills the server if local_end() does not end it, and waits as long again. False if it still
 * runs. */
bool local_force_end(const struct local_place *place, int64_t timeout);

extern const struct store_kind local_kind;

/* Returns the address of a server that runs there, which is not started by whoever connects to it.
 * It borrows from *place, and needs no url_free(). */
struct url local_url(const struct local_place *place);
