#include "lives/network.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>

#include "lives/life.h"
#include "lives/names.h"
#include "lives/sentinels.h"
#include "lives/server.h"

struct network network;
static struct connection *connections;
static int connection_count;

void network_begin(void)
{
    for (struct connection *connection = connections, *next; connection; connection = next) {
        next = connection->next;
        free(connection->received);
        free(connection->arrived);
        sentinel_forget(connection);
        free(connection);
    }
    connections = NULL;
    connection_count = 0;
    network = (struct network){.delay = 0};
}

static struct connection *connection_new(struct run *run, bool by_admin, int server)
{
    struct connection *connection = calloc(1, sizeof *connection);

    *connection = (struct connection){.next = connections,
                                      .number = connection_count++,
                                      .run = run,
                                      .by_admin = by_admin,
                                      .server = server};
    connection->delay = one_in(2) ? network.delay : chance_below(network.delay);
    return connections = connection;
}

struct connection *network_find(int number)
{
    struct connection *connection = connections;

    while (connection && connection->number != number)
        connection = connection->next;
    return connection;
}

/* -- segments ---------------------------------------------------------------------------------- */

struct segment {
    struct connection *connection;
    size_t size;
    char bytes[];
};

static struct segment *segment_new(struct connection *connection, const void *bytes, size_t size)
{
    struct segment *segment = malloc(sizeof *segment + size);

    segment->connection = connection;
    segment->size = size;
    memcpy(segment->bytes, bytes, size);
    return segment;
}

static void append(char **bytes, size_t *size, const struct segment *segment)
{
    *bytes = realloc(*bytes, *size + segment->size);
    memcpy(*bytes + *size, segment->bytes, segment->size);
    *size += segment->size;
}

static ssize_t take(char *from, size_t *from_size, void *bytes, size_t size)
{
    size_t taken = size < *from_size ? size : *from_size;

    memcpy(bytes, from, taken);
    memmove(from, from + taken, *from_size -= taken);
    return (ssize_t)taken;
}

/* While the network is away, the kernel sends again and again, until it is back. */
static int64_t choose_delay(const struct connection *connection)
{
    int64_t delay = connection->delay + chance_below(network.jitter);

    if (network.late_of_1000 && chance_below(1000) < network.late_of_1000)
        delay += chance_below(one_in(4) ? 3 * SEC : 300 * MS);
    if (world.now < network.away_until)
        delay += network.away_until - world.now + chance_below(300 * MS);
    return delay;
}

/* Behind what was sent before. */
static int64_t arrives_at(const struct connection *connection, int64_t *last)
{
    int64_t at = world.now + choose_delay(connection);

    return *last = at > *last ? at : *last;
}

/* -- what arrives ------------------------------------------------------------------------------ */

static void arrive_reset(void *arg)
{
    struct connection *connection = arg;

    if (connection->lost)
        return;
    connection->reset = true;
    connection->connecting = false;
}

static void reset_client(struct connection *connection)
{
    world_at(arrives_at(connection, &connection->last_to_client), arrive_reset, connection);
}

static void arrive_at_client(void *arg)
{
    struct segment *segment = arg;
    struct connection *connection = segment->connection;

    if (connection->open && !connection->reset && !connection->lost)
        append(&connection->received, &connection->received_size, segment);
    free(segment);
}

static void arrive_end_at_client(void *arg)
{
    struct connection *connection = arg;

    connection->ended |= !connection->lost;
}

/* During a stall, an event happens only at its end. */
static bool is_stalled(const struct connection *connection, void (*happen)(void *arg), void *arg)
{
    if (world.now < connection->stalled_until)
        world_at(connection->stalled_until, happen, arg);
    return world.now < connection->stalled_until;
}

static void arrive_at_server(void *arg)
{
    struct segment *segment = arg;
    struct connection *connection = segment->connection;

    if (is_stalled(connection, arrive_at_server, segment))
        return;
    if (connection->accepted && !connection->lost) {
        append(&connection->arrived, &connection->arrived_size, segment);
        server_read_from(connection);
    } else {
        reset_client(connection);
    }
    free(segment);
}

static void arrive_end_at_server(void *arg)
{
    struct connection *connection = arg;

    if (connection->lost || is_stalled(connection, arrive_end_at_server, connection))
        return;
    connection->client_ended = true;
    if (connection->accepted)
        server_read_from(connection);
}

static void arrive_established(void *arg)
{
    struct connection *connection = arg;

    connection->connecting = false;
    connection->established = true;
}

static void arrive_refused(void *arg)
{
    struct connection *connection = arg;

    connection->connecting = false;
    connection->refused = true;
}

static void accept_connection(struct connection *connection)
{
    connection->accepted = true;
    server_accept(connection);
}

static void arrive_connect(void *arg)
{
    struct connection *connection = arg;
    bool up = server_is_up(connection->server);

    if (connection->lost)
        return;
    if (up && connection->open)
        accept_connection(connection);
    world_at(arrives_at(connection, &connection->last_to_client),
             up ? arrive_established : arrive_refused, connection);
}

/* -- a request that comes a second time -------------------------------------------------------- */

/* A proxy hands on what it has read from a client that has given up. */
static void arrive_twin(void *arg)
{
    struct segment *segment = arg;
    struct connection *before = segment->connection;

    if (server_is_up(before->server)) {
        struct connection *connection =
            connection_new(before->run, before->by_admin, before->server);
        accept_connection(connection);
        trace("a request of connection %d comes a second time", before->number);
        append(&connection->arrived, &connection->arrived_size, segment);
        server_read_from(connection);
        world_at(world.now + 300 * MS, arrive_end_at_server, connection);
    }
    free(segment);
}

static bool has_twin(const struct connection *connection)
{
    if (connection->by_admin)
        return false;
    if (network.first_has_twin)
        return life_is_first_request(connection->run) && one_in(2);
    return network.twins_of_1000 && chance_below(1000) < network.twins_of_1000;
}

/* The request's connection is reset. It may have been delivered, and the answer is lost. */
static void send_twin(struct connection *connection, const void *bytes, size_t size)
{
    bool delivered = one_in(2);
    int64_t late = chance_below(5 * SEC), from = world.now;

    trace("connection %d is reset%s; its request comes %.3f s later", connection->number,
          delivered ? " behind a request that is delivered" : "", (double)late / 1e9);
    network.twins++;
    world_at(world.now + choose_delay(connection), arrive_reset, connection);
    if (delivered) {
        from = arrives_at(connection, &connection->last_to_server);
        world_at(from, arrive_at_server, segment_new(connection, bytes, size));
    }
    world_at(from + late, arrive_twin, segment_new(connection, bytes, size));
    world_at(arrives_at(connection, &connection->last_to_server), arrive_end_at_server, connection);
}

/* -- the client -------------------------------------------------------------------------------- */

struct connection *network_connect(const struct sockaddr *to)
{
    uint32_t address = ntohl(((const struct sockaddr_in *)(const void *)to)->sin_addr.s_addr);
    struct connection *connection = connection_new(
        kernel.current->run, kernel.current->kind == ADMIN, (int)(address & 0xff) - 1);

    connection->open = connection->connecting = true;
    connection->lost = connection->server >= NOWHERE_SILENT;
    world_at(arrives_at(connection, &connection->last_to_server), arrive_connect, connection);
    return connection;
}

ssize_t network_send(struct connection *connection, const void *bytes, size_t size)
{
    if (!connection || connection->reset) {
        errno = EPIPE;
        return -1;
    }
    if (!connection->established) {
        errno = EAGAIN;
        return -1;
    }
    if (has_twin(connection))
        send_twin(connection, bytes, size);
    else
        world_at(arrives_at(connection, &connection->last_to_server), arrive_at_server,
                 segment_new(connection, bytes, size));
    if (!connection->by_admin && connection->run)
        life_on_request(connection->run);
    return (ssize_t)size;
}

ssize_t network_receive(struct connection *connection, void *bytes, size_t size)
{
    if (!connection || (connection->reset && !connection->received_size)) {
        errno = ECONNRESET;
        return -1;
    }
    if (connection->received_size)
        return take(connection->received, &connection->received_size, bytes, size);
    errno = EAGAIN;
    return connection->ended ? 0 : -1;
}

int network_events(const struct connection *connection)
{
    if (!connection)
        return POLLHUP;
    if (connection->refused)
        return POLLOUT | POLLERR | POLLHUP;
    if (connection->reset)
        return POLLOUT | POLLIN | POLLERR | POLLHUP;
    if (connection->connecting)
        return 0;
    return POLLOUT | (connection->received_size || connection->ended ? POLLIN : 0);
}

void network_close(struct connection *connection)
{
    connection->open = false;
    world_at(arrives_at(connection, &connection->last_to_server), arrive_end_at_server, connection);
}

/* -- the server -------------------------------------------------------------------------------- */

void network_answer(struct connection *connection, const void *bytes, size_t size)
{
    world_at(arrives_at(connection, &connection->last_to_client), arrive_at_client,
             segment_new(connection, bytes, size));
}

ssize_t network_take(struct connection *connection, void *bytes, size_t size)
{
    if (connection->arrived_size)
        return take(connection->arrived, &connection->arrived_size, bytes, size);
    errno = EAGAIN;
    return connection->client_ended ? 0 : -1;
}

void network_hang_up(struct connection *connection)
{
    connection->accepted = false;
    world_at(arrives_at(connection, &connection->last_to_client), arrive_end_at_client, connection);
}

void network_each(void (*each)(struct connection *connection))
{
    for (struct connection *connection = connections; connection; connection = connection->next)
        if (connection->accepted)
            each(connection);
}

/* -- faults ------------------------------------------------------------------------------------ */

static void cut(struct connection *connection)
{
    connection->client_ended = true;
    reset_client(connection);
    server_read_from(connection);
}

static void cut_every_other(struct connection *connection)
{
    if (one_in(2))
        cut(connection);
}

void network_cut(bool all)
{
    network_each(all ? cut : cut_every_other);
}

void network_reset_clients(int server)
{
    for (struct connection *connection = connections; connection; connection = connection->next)
        if (connection->accepted && connection->server == server)
            reset_client(connection);
}

static void lose(struct connection *connection)
{
    connection->lost = true;
}

void network_lose(void)
{
    network_each(lose);
}

/* Bytes that are sent from now on come behind those that the stall holds up. */
void network_stall(int64_t until)
{
    for (struct connection *connection = connections; connection; connection = connection->next)
        if (connection->open && connection->stalled_until < until) {
            connection->stalled_until = until;
            if (connection->last_to_server <= until)
                connection->last_to_server = until + 1;
        }
}
