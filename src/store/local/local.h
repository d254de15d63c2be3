/* The store of "local:": a redis-server of the user's own on a Unix socket, started when it is
 * needed and left running, so that nobody has to set one up.
 *
 * Everything about it is in one directory, which only its user may enter:
 *   socket        where it listens
 *   server        locked (fcntl) by the server for as long as it lives, which tells its pid
 *   lock          locked (flock) by whoever starts or stops it
 *   log           what it said
 *   rlock-server  a link to the program, which gives the process its name
 * and its append-only file, from which it goes on when it is started again. Every write is with the
 * kernel before it is answered, so that one who is killed has lost nothing.
 *
 * The directory is rlock in $XDG_RUNTIME_DIR; else rlock-UID in /run/lock, or where that cannot be
 * written to, in /tmp. A login session's own /run/user/UID is left out: it goes away with the last
 * session, while commands run on, and cron does not have it. */
#ifndef RLOCK_STORE_LOCAL_LOCAL_H
#define RLOCK_STORE_LOCAL_LOCAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct local_place {
    char directory[100];
    char socket[108];
};

/* Where this user's server is, or would be. False if there is no directory yet, with "" in "fault",
 * or it is not to be trusted, with a message: somebody else's, a link, open to others. */
bool local_find(struct local_place *place, char *fault, size_t size);

/* The same, making the directory if there is none. */
bool local_make(struct local_place *place, char *fault, size_t size);
/* Opens a file in it, as open(2); -1 with errno. */
int local_open(const struct local_place *place, const char *name, int flags);

/* Finds the place and makes sure that the server runs and has read its data. Any number may do so
 * at once, and all of them find the one that the first has started. Blocks, also while another
 * process starts or stops it. False with a message in "fault". */
bool local_start(struct local_place *place, char *fault, size_t size);

/* The server's process: 0 if none runs, -1 if it is there but cannot be seen from here (a
 * container). */
pid_t local_server(const struct local_place *place);

/* Keeps others from starting or stopping it until the descriptor returned is closed; -1 with errno,
 * ETIME after "timeout" ns. */
int local_hold(const struct local_place *place, int64_t timeout);
/* To be called with local_hold(): tells it to end, its data written, and waits for "timeout" ns.
 * False if it lives on. force: it is killed then. */
bool local_end(const struct local_place *place, bool force, int64_t timeout);

#endif
