/* The network between the processes and the server: segments that are delayed, connections that are
 * refused, cut or silent, and requests that arrive a second time. */
#pragma once

#include <sys/socket.h>

#include "lives/kernel.h"

struct resp_in;

struct connection {
    struct connection *next;
    int number, server;
    struct run *run;
    bool by_admin; /* not rlock run's */
    /* The client's side. */
    bool open, connecting, refused, established, reset, ended;
    char *received;
    size_t received_size;
    /* The server's side. */
    bool accepted, client_ended;
    bool lost;   /* a router has forgotten it: nothing passes any more */
    bool aborts; /* a command of its transaction was refused */
    /* The client waits for so many replicas to have what it wrote last: the units of its server. */
    bool waits;
    unsigned wanted;
    unsigned long written;
    int64_t waits_until;
    struct resp_in *asks; /* a Sentinel; NULL: it has not yet */
    char *arrived;
    size_t arrived_size;
    /* When the latest segment arrives, each way: bytes keep their order. */
    int64_t last_to_server, last_to_client;
    int64_t stalled_until; /* nothing reaches the server before */
    int64_t delay;         /* ns: some are quicker than others */
};

/* The network of this life. */
extern struct network {
    int64_t delay, jitter; /* ns, of each segment */
    unsigned late_of_1000; /* segments that come much later */
    /* Requests, of 1000, that come a second time: their connection is reset, and what was sent
     * arrives later, on a connection that no client has, as out of a proxy. */
    unsigned twins_of_1000;
    bool first_has_twin; /* so has each run's first request, every other time */
    unsigned long twins; /* how many there were */
    int64_t away_until;  /* whatever is sent before arrives after this */
} network;

void network_begin(void);

/* -- for the client ---------------------------------------------------------------------------- */

/* Begins to connect, for the current process, to a server: 10.0.0.1 is the first. */
struct connection *network_connect(const struct sockaddr *to);
/* As send() and recv(). */
ssize_t network_send(struct connection *connection, const void *bytes, size_t size);
ssize_t network_receive(struct connection *connection, void *bytes, size_t size);
/* The events that poll() reports of it; NULL: it is not connected. */
int network_events(const struct connection *connection);
void network_close(struct connection *connection);

/* -- for the server ---------------------------------------------------------------------------- */

struct connection *network_find(int number);
/* Sends to the client. */
void network_answer(struct connection *connection, const void *bytes, size_t size);
/* Takes what has arrived, as read(). */
ssize_t network_take(struct connection *connection, void *bytes, size_t size);
/* The server has closed it. */
void network_hang_up(struct connection *connection);
/* Calls "each" for those that the server has accepted. */
void network_each(void (*each)(struct connection *connection));

/* -- faults ------------------------------------------------------------------------------------ */

/* Cuts all connections, or about half of them. */
void network_cut(bool all);
/* Connections that are open pass nothing any more, and no process is told. */
void network_lose(void);
/* Nothing that is sent on those that are there reaches its server before that time. */
void network_stall(int64_t until);
/* Resets those of a server for the client, with no word to the server. */
void network_reset_clients(int server);
