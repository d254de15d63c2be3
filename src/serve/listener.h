/* Where rlock serve listens: ADDR:PORT, [ADDR]:PORT or unix:PATH. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/stat.h>

#include "net/loop.h"

enum listener_result {
    LISTENER_OPEN,
    LISTENER_MISUSED, /* not an address */
    LISTENER_REFUSED, /* the system refuses, or another program listens there */
};

struct listener {
    struct loop_io *sockets; /* one for each address, not in a loop yet */
    size_t count;            /* of these */
    char *path;              /* of a Unix socket, else NULL */
    char *host;              /* as the address names it; of a Unix socket NULL */
    struct stat file;        /* of that, to be recognized */
};

/* Listens at "address": of a name, at all its addresses but those that this host lacks; a Unix
 * socket without a listener is replaced. Otherwise a message that follows the address is in
 * "fault". listener_close() in either case. */
enum listener_result listener_open(struct listener *listener, const char *address, char *fault,
                                   size_t size);
/* Prints the address of one descriptor: "http://127.0.0.1:9750/", with the port that the kernel has
 * chosen for port 0, or "unix:PATH". Returns out. */
char *listener_print(const struct listener *listener, size_t index, char *out, size_t size);
/* Whether only this host can connect. */
bool listener_is_local(const struct listener *listener);
/* Closes the descriptors, and removes the Unix socket, unless another one is in its place by now.
 */
void listener_close(struct listener *listener);
