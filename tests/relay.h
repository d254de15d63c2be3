/* The connections of faultproxy, and the faults that they suffer. */
#pragma once

#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

enum { UP, DOWN };                 /* client to target, target to client */
enum { LINKS = 1100, LINE = 512 }; /* connections at most; bytes of a command */

/* The faults of one direction. */
struct fault {
    bool drop, hold;
    int64_t delay, trickle; /* ms */
    int64_t cut;            /* bytes to go, -1: no cut */
    bool cut_closes;
};

#define FAULTS_NONE                                                                                \
    {                                                                                              \
        {.cut = -1},                                                                               \
        {                                                                                          \
            .cut = -1                                                                              \
        }                                                                                          \
    }

struct relay_count {
    unsigned long accepted;
    int open;
    unsigned long long passed[2]; /* bytes */
};

/* Connects a client that was accepted to "target", with these faults; closes it if that fails. */
void relay_open(int client, const struct sockaddr *target, socklen_t length,
                const struct fault faults[2]);
/* Sets the faults of all connections. */
void relay_set(const struct fault faults[2]);
/* Resets all connections. */
void relay_reset(void);
/* Once, when a chunk with "text" ("any": every chunk) goes by in that direction: that connection
 * alone gets these faults besides its own, or is reset where they are NULL. */
void relay_trigger(int way, const char *text, const struct fault *faults);
struct relay_count relay_count(void);

/* Fills a set of 2 * LINKS; returns ms until something is due, -1 for never. */
int relay_watch(struct pollfd *set);
/* Moves what can be moved after poll(). */
void relay_move(const struct pollfd *set);
