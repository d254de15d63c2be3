/* Connections to simulated servers, in place of net/stream.c. */
#include "zk_world.h"

#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "chance.h"
#include "net/resolve.h"
#include "net/stream.h"

struct stream {
    struct loop *loop;
    const struct stream_events *events;
    void *arg;
    struct zk_conn *conn;
};

struct zk_chunk {
    struct zk_chunk *next;
    enum zk_chunk_kind kind;
    struct moment due;
    size_t size;
    char bytes[];
};

/* The fate of a chunk where the network is bad. */
enum fate { LOST, ANSWER_LOST, HALF, SILENT, SLOW, FATES };

static struct zk_world *current;

/* -- lanes ------------------------------------------------------------------------------------- */

static struct moment now_of(const struct zk_world *world)
{
    return loop_now(world->loop);
}

static void put(struct zk_conn *conn, struct zk_lane *lane, enum zk_chunk_kind kind,
                const char *bytes, size_t size, struct moment due)
{
    struct zk_chunk *chunk, **at = &lane->first;

    if (lane == &conn->down && !conn->stream)
        return;
    chunk = mem_zeroed(sizeof *chunk + size + 1);
    chunk->kind = kind;
    chunk->due = lane->latest = moment_max(due, lane->latest);
    chunk->size = size;
    if (size > 0)
        memcpy(chunk->bytes, bytes, size);
    while (*at)
        at = &(*at)->next;
    *at = chunk;
    lane->closed |= kind == CHUNK_END;
    if (lane->first == chunk)
        loop_arm(lane->loop, &lane->timer, chunk->due);
}

static struct zk_chunk *take(struct zk_lane *lane)
{
    struct zk_chunk *chunk = lane->first;

    lane->first = chunk->next;
    if (lane->first)
        loop_arm(lane->loop, &lane->timer, lane->first->due);
    return chunk;
}

static void empty(struct zk_lane *lane)
{
    loop_disarm(lane->loop, &lane->timer);
    while (lane->first) {
        struct zk_chunk *chunk = lane->first;
        lane->first = chunk->next;
        free(chunk);
    }
}

/* Both ends will hear that it is over, sooner or later. */
static void cut(struct zk_conn *conn, struct moment now)
{
    struct zk_lane *lanes[] = {&conn->up, &conn->down};

    for (int i = 0; i < 2; i++)
        if (!lanes[i]->closed)
            put(conn, lanes[i], CHUNK_END, NULL, 0,
                moment_plus(now, zk_some_time(conn->world, 2000)));
}

static void carry(struct zk_conn *conn, struct zk_lane *lane, enum zk_chunk_kind kind,
                  const char *bytes, size_t size, struct moment now)
{
    static const char *const names[] = {"lost", "answer lost", "half", "silence", "slow"};
    struct zk_world *world = conn->world;
    bool bad = !world->calm && zk_chance(world, 100) < world->failing;
    enum fate fate = bad ? zk_chance(world, FATES) : FATES;
    struct moment due = moment_plus(now, zk_some_time(world, world->calm    ? 5
                                                             : fate == SLOW ? 20000
                                                                            : 100));

    if (conn->silent || lane->closed || world->ended)
        return;
    if (bad)
        zk_log(world, now, "%s %s", lane == &conn->up ? "up" : "down", names[fate]);
    conn->silent = fate == SILENT;
    if (fate != LOST && fate != SILENT)
        put(conn, lane, kind, bytes, fate == HALF ? size / 2 : size, due);
    if (fate == LOST || fate == ANSWER_LOST || fate == HALF)
        cut(conn, now);
}

void zk_conn_say(struct zk_conn *conn, enum zk_chunk_kind kind, const char *bytes, size_t size)
{
    carry(conn, &conn->down, kind, bytes, size, now_of(conn->world));
}

static void arrive_at_server(struct loop_timer *timer)
{
    struct zk_conn *conn = timer->owner;
    struct moment frozen = zk_server_frozen(conn);

    if (!moment_reached(frozen, now_of(conn->world))) {
        loop_arm(conn->up.loop, timer, frozen);
        return;
    }
    struct zk_chunk *chunk = take(&conn->up);
    zk_server_hear(conn, chunk->kind, chunk->bytes, chunk->size);
    free(chunk);
}

static void arrive_at_client(struct loop_timer *timer)
{
    struct zk_conn *conn = timer->owner;
    struct zk_chunk *chunk = take(&conn->down);
    struct stream *stream = conn->stream;

    if (stream && chunk->kind == CHUNK_OPEN)
        stream->events->connected(stream->arg);
    else if (stream && chunk->kind == CHUNK_BYTES)
        stream->events->received(stream->arg, chunk->bytes, chunk->size);
    else if (stream) {
        stream_close(stream);
        stream->events->broken(stream->arg, "the connection was cut");
    }
    free(chunk);
}

void zk_network_use(struct zk_world *world)
{
    current = world;
    chance_for_system(&world->seed);
}

static void free_conn(struct zk_conn *conn)
{
    zk_server_leave(conn);
    empty(&conn->up);
    empty(&conn->down);
    free(conn);
}

void zk_network_free(struct zk_world *world)
{
    while (world->conns) {
        struct zk_conn *conn = world->conns;
        world->conns = conn->next;
        free_conn(conn);
    }
}

/* Those that are over at both ends. */
static void drop_dead(struct zk_world *world)
{
    struct zk_conn **at = &world->conns;

    while (*at) {
        struct zk_conn *conn = *at;
        if (conn->open || conn->stream || conn->up.first) {
            at = &conn->next;
            continue;
        }
        *at = conn->next;
        free_conn(conn);
    }
}

void zk_network_kill(struct zk_world *world, const struct loop *loop)
{
    for (struct zk_conn *conn = world->conns; conn; conn = conn->next) {
        if (!conn->stream || conn->stream->loop != loop)
            continue;
        if (zk_chance(world, 2) && !conn->up.closed)
            put(conn, &conn->up, CHUNK_END, NULL, 0, now_of(world));
        conn->silent = true;
        conn->stream->conn = NULL;
        conn->stream = NULL;
        empty(&conn->down);
    }
}

/* -- net/stream.h ------------------------------------------------------------------------------ */

struct stream *stream_new(struct loop *loop, const struct stream_events *events, void *arg)
{
    struct stream *stream = mem_zeroed(sizeof *stream);

    *stream = (struct stream){.loop = loop, .events = events, .arg = arg};
    fake_descriptor(loop, arrive_at_client);
    return stream;
}

void stream_free(struct stream *stream)
{
    stream_close(stream);
    free(stream);
}

int stream_open(struct stream *stream, const struct endpoint *to, struct tls *tls, const char *host)
{
    struct sockaddr_in address;
    struct zk_world *world = current;
    struct zk_conn *conn = mem_zeroed(sizeof *conn);

    (void)tls, (void)host;
    drop_dead(world);
    memcpy(&address, &to->address, sizeof address);
    *conn = (struct zk_conn){.world = world,
                             .stream = stream,
                             .server = ntohs(address.sin_port) - ZK_PORT,
                             .next = world->conns};
    conn->up =
        (struct zk_lane){.loop = world->loop, .timer = {.fire = arrive_at_server, .owner = conn}};
    conn->down =
        (struct zk_lane){.loop = stream->loop, .timer = {.fire = arrive_at_client, .owner = conn}};
    world->conns = conn;
    stream->conn = conn;
    carry(conn, &conn->up, CHUNK_OPEN, NULL, 0, loop_now(stream->loop));
    return 0;
}

/* Earlier chunks continue. */
void stream_close(struct stream *stream)
{
    struct zk_conn *conn = stream->conn;

    if (!conn)
        return;
    stream->conn = NULL;
    conn->stream = NULL;
    empty(&conn->down);
    if (!conn->up.closed && !conn->silent && !conn->world->ended)
        put(conn, &conn->up, CHUNK_END, NULL, 0, moment_plus(loop_now(stream->loop), NS_PER_MS));
}

int stream_adopt(struct stream *stream, int fd)
{
    (void)stream;
    (void)fd;
    return -1;
}

void stream_send(struct stream *stream, const char *bytes, size_t size)
{
    if (stream->conn && size > 0)
        carry(stream->conn, &stream->conn->up, CHUNK_BYTES, bytes, size, loop_now(stream->loop));
}

void stream_trust(struct stream *stream)
{
    (void)stream;
}

void stream_refuse(struct stream *stream, const char *why)
{
    zk_accuse(current, why);
    stream_close(stream);
    stream->events->broken(stream->arg, why);
}

bool stream_is_foreign(const struct stream *stream)
{
    (void)stream;
    return false;
}

const char *stream_overdue(const struct stream *stream)
{
    (void)stream;
    return "no answer in time";
}
