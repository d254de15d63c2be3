/* The servers of a simulated ensemble, and the connections to them, in place of net/stream.c. */
#include "zk_world.h"

#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "chance.h"
#include "net/resolve.h"
#include "net/stream.h"

#define FLAG_EPHEMERAL  1
#define FLAG_SEQUENTIAL 2

static struct moment now_of(const struct zk_world *world)
{
    return loop_now(world->loop);
}

static struct moment soon(struct zk_world *world, unsigned most_ms)
{
    return moment_plus(now_of(world), zk_some_time(world, world->calm ? 5 : most_ms));
}

/* Troubles last. */
static struct moment later(struct zk_world *world, unsigned most_ms)
{
    return moment_plus(now_of(world), zk_any_time(world, world->calm ? 1000 : most_ms));
}

static bool is_frozen(const struct zk_world *world, int server)
{
    return !moment_reached(world->servers[server].frozen_until, now_of(world));
}

/* -- chance ------------------------------------------------------------------------------------ */

int64_t zk_some_time(struct zk_world *world, unsigned most_ms)
{
    unsigned limit = chance(&world->seed, 4) ? 1 + most_ms / 20 : most_ms;

    return (int64_t)chance(&world->seed, limit) * NS_PER_MS + chance(&world->seed, 1000) * 1000;
}

int64_t zk_any_time(struct zk_world *world, unsigned most_ms)
{
    return (int64_t)chance(&world->seed, most_ms) * NS_PER_MS;
}

static void zk_server_hear(struct zk_conn *conn, enum zk_chunk_kind kind, const char *bytes,
                           size_t size);
static void zk_server_leave(struct zk_conn *conn);

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
enum fate { LOST, ANSWER_LOST, HALF, SILENT, SLOW, LAST_WORDS, FATES };

static struct zk_world *current;

/* -- lanes ------------------------------------------------------------------------------------- */

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
    while (lane->first)
        free(take(lane));
    loop_disarm(lane->loop, &lane->timer);
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
    static const char *const names[] = {"lost",    "answer lost", "half",
                                        "silence", "slow",        "last words"};
    struct zk_world *world = conn->world;
    bool bad = !world->calm && chance(&world->seed, 100) < world->failing;
    enum fate fate = bad ? chance(&world->seed, FATES) : FATES;
    if (world->deadly && !world->calm && chance(&world->seed, 16) == 0)
        fate = LAST_WORDS;
    struct moment due = moment_plus(now, zk_some_time(world, world->calm    ? 5
                                                             : fate == SLOW ? 20000
                                                                            : 100));

    if (conn->silent || lane->closed || world->ended)
        return;
    if (bad)
        note_at(&world->trial, now, "%s %s", lane == &conn->up ? "up" : "down", names[fate]);
    conn->silent = fate == SILENT;
    if (fate == LAST_WORDS && lane == &conn->up && kind == CHUNK_BYTES && conn->stream) {
        world->dying = conn->stream->loop;
        due = later(world, 8000);
    }
    if (fate != LOST && fate != SILENT)
        put(conn, lane, kind, bytes, fate == HALF ? size / 2 : size, due);
    if (fate == LOST || fate == ANSWER_LOST || fate == HALF)
        cut(conn, now);
}

static void zk_conn_say(struct zk_conn *conn, enum zk_chunk_kind kind, const char *bytes,
                        size_t size)
{
    carry(conn, &conn->down, kind, bytes, size, now_of(conn->world));
}

static void arrive_at_server(struct loop_timer *timer)
{
    struct zk_conn *conn = timer->owner;
    struct moment frozen = conn->world->servers[conn->server].frozen_until;

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

static void free_conn(struct zk_conn *conn)
{
    zk_server_leave(conn);
    empty(&conn->up);
    empty(&conn->down);
    free(conn);
}

/* Drops the connections that are over at both ends. */
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
        if (chance(&world->seed, 2) && !conn->up.closed)
            put(conn, &conn->up, CHUNK_END, NULL, 0, now_of(world));
        conn->silent = true;
        conn->stream->conn = NULL;
        conn->stream = NULL;
        empty(&conn->down);
    }
}

/* -- nodes ------------------------------------------------------------------------------------- */

static bool is_visible(const struct zk_node *node, int64_t zxid)
{
    return node->czxid <= zxid && (node->dzxid == 0 || node->dzxid > zxid);
}

/* As a server that has heard of so much sees it. */
static struct zk_node *find(const struct zk_world *world, struct jute_text path, int64_t zxid)
{
    for (size_t i = world->node_count; i-- > 0;) {
        struct zk_node *node = world->nodes[i];
        if (is_visible(node, zxid) && strncmp(node->path, path.bytes, path.size) == 0 &&
            !node->path[path.size])
            return node;
    }
    return NULL;
}

/* Frees those that no server has any more. */
static void sweep_up(struct zk_world *world)
{
    int64_t all_have = world->zxid;
    size_t kept = 0;

    for (int i = 0; i < world->server_count; i++)
        if (world->servers[i].applied < all_have)
            all_have = world->servers[i].applied;
    for (size_t i = 0; i < world->node_count; i++) {
        struct zk_node *node = world->nodes[i];
        if (node->dzxid && node->dzxid <= all_have) {
            free(node->path);
            free(node->data);
            free(node);
        } else {
            world->nodes[kept++] = node;
        }
    }
    world->node_count = kept;
}

static struct zk_node *add_node(struct zk_world *world, char *path, int64_t session)
{
    struct zk_node *node = mem_zeroed(sizeof *node);

    if (world->node_count == world->node_room) {
        world->node_room = world->node_room * 2 + 32;
        world->nodes = mem_checked(realloc(world->nodes, world->node_room * sizeof *world->nodes));
    }
    *node = (struct zk_node){.path = path,
                             .parent = (size_t)(strrchr(path, '/') - path),
                             .czxid = world->zxid,
                             .mzxid = world->zxid,
                             .session = session};
    world->nodes[world->node_count++] = node;
    return node;
}

static bool is_child(const struct zk_node *node, const char *parent)
{
    return strncmp(node->path, parent, node->parent) == 0 && !parent[node->parent];
}

static bool has_children(const struct zk_world *world, const struct zk_node *parent)
{
    for (size_t i = 0; i < world->node_count; i++)
        if (!world->nodes[i]->dzxid && is_child(world->nodes[i], parent->path))
            return true;
    return false;
}

size_t zk_count_nodes(const struct zk_world *world, const char *part)
{
    size_t count = 0;

    for (size_t i = 0; i < world->node_count; i++)
        count += !world->nodes[i]->dzxid && world->nodes[i]->session &&
                 strstr(world->nodes[i]->path, part);
    return count;
}

/* -- what servers tell ------------------------------------------------------------------------- */

static void put_head(struct strbuf *out, int32_t xid, int64_t zxid, int error)
{
    jute_put_int(out, xid);
    jute_put_long(out, zxid);
    jute_put_int(out, error);
}

static void put_stat(struct strbuf *out, const struct zk_node *node)
{
    jute_put_long(out, node->czxid);
    jute_put_long(out, node->mzxid);
    for (int i = 0; i < 2; i++)
        jute_put_long(out, 0);
    for (int i = 0; i < 3; i++)
        jute_put_int(out, 0);
    jute_put_long(out, node->session);
    for (int i = 0; i < 2; i++)
        jute_put_int(out, 0);
    jute_put_long(out, node->czxid);
}

static void say(struct zk_conn *conn, struct strbuf *out)
{
    zk_conn_say(conn, CHUNK_BYTES, out->text, out->size);
    strbuf_free(out);
}

static void zk_server_leave(struct zk_conn *conn)
{
    conn->open = false;
    conn->pending = CONN_FREE;
    loop_disarm(conn->world->loop, &conn->timer);
    if (conn->opens && conn->opens->conn == conn)
        conn->opens->conn = NULL;
    conn->row = conn->opens = NULL;
    while (conn->watches) {
        struct zk_watch *watch = conn->watches;
        conn->watches = watch->next;
        free(watch);
    }
    strbuf_free(&conn->in);
    strbuf_free(&conn->request);
    strbuf_free(&conn->reply);
}

static void hang_up(struct zk_conn *conn)
{
    if (!conn->open)
        return;
    zk_server_leave(conn);
    zk_conn_say(conn, CHUNK_END, NULL, 0);
}

static void tell_event(struct zk_conn *conn, const struct zk_watch *watch, int64_t zxid)
{
    struct strbuf out = {0};
    size_t frame = jute_begin(&out);

    put_head(&out, ZK_XID_EVENT, zxid, ZK_OK);
    jute_put_int(&out, watch->children ? 4 : 3);
    jute_put_int(&out, 3);
    jute_put_string(&out, watch->path);
    jute_end(&out, frame);
    say(conn, &out);
}

static bool is_between(int64_t zxid, int64_t from, int64_t to)
{
    return zxid > from && zxid <= to;
}

static bool has_changed(const struct zk_world *world, const struct zk_watch *watch, int64_t from,
                        int64_t to)
{
    for (size_t i = 0; i < world->node_count; i++) {
        const struct zk_node *node = world->nodes[i];
        bool came = is_between(node->czxid, from, to), went = is_between(node->dzxid, from, to);
        bool self = strcmp(node->path, watch->path) == 0;
        if (self && (went || (!watch->children && (came || is_between(node->mzxid, from, to)))))
            return true;
        if (watch->children && (came || went) && is_child(node, watch->path))
            return true;
    }
    return false;
}

/* The server has heard of all up to there: watches fire, and sessions that have ended lose their
 * connections. */
static void advance(struct zk_server *server, int64_t to)
{
    struct zk_world *world = server->world;
    int64_t from = server->applied;

    if (to <= from)
        return;
    server->applied = to;
    for (struct zk_conn *conn = world->conns; conn; conn = conn->next) {
        if (!conn->open || conn->server != server->number)
            continue;
        for (struct zk_watch **at = &conn->watches; *at;) {
            struct zk_watch *watch = *at;
            if (!has_changed(world, watch, from, to)) {
                at = &watch->next;
                continue;
            }
            tell_event(conn, watch, to);
            *at = watch->next;
            free(watch);
        }
        if (conn->row && is_between(conn->row->dead, from, to) && !conn->closes)
            hang_up(conn);
    }
}

static bool has_contact(const struct zk_world *world, int server)
{
    return world->leader >= 0 && world->servers[server].state == SERVER_UP;
}

static void caught_up(struct loop_timer *timer)
{
    struct zk_server *server = timer->owner;
    struct zk_world *world = server->world;

    if (is_frozen(world, server->number))
        loop_arm(world->loop, timer, server->frozen_until);
    else if (has_contact(world, server->number))
        advance(server, world->zxid);
}

/* -- what the leader decides ------------------------------------------------------------------- */

static bool has_majority(const struct zk_world *world)
{
    int count = 0;

    for (int i = 0; i < world->server_count; i++)
        count += world->servers[i].state == SERVER_UP && !is_frozen(world, i);
    return world->leader >= 0 && 2 * count > world->server_count;
}

/* All that have contact will hear of what was decided. */
static void commit(struct zk_world *world)
{
    for (int i = 0; i < world->server_count; i++) {
        struct zk_server *server = &world->servers[i];
        if (i == world->leader)
            advance(server, world->zxid);
        else if (!server->catch_up.armed)
            loop_arm(world->loop, &server->catch_up, soon(world, 600));
    }
    sweep_up(world);
}

static void remove_node(struct zk_world *world, struct zk_node *node, enum zk_end_of_node how)
{
    node->dzxid = world->zxid;
    if (node->session)
        world->judge->gone(world->judge_arg, node->path, how);
}

static void end_session(struct zk_world *world, struct zk_session_row *row, enum zk_end_of_node how)
{
    row->dead = ++world->zxid;
    for (size_t i = 0; i < world->node_count; i++)
        if (!world->nodes[i]->dzxid && world->nodes[i]->session == row->identity.id)
            remove_node(world, world->nodes[i], how);
}

static struct moment end_of(struct zk_world *world, const struct zk_session_row *row)
{
    int64_t early = row->timeout / 1000 * (int64_t)world->speed;

    return moment_plus(now_of(world), row->timeout - early);
}

static void plan_expiry(struct zk_world *world)
{
    struct moment first = MOMENT_NEVER;

    for (struct zk_session_row *row = world->rows; row; row = row->next)
        if (!row->dead)
            first = moment_min(first, row->expires);
    loop_arm(world->loop, &world->expiry, first);
}

static void touch(struct zk_world *world, struct zk_session_row *row)
{
    row->expires = moment_max(row->expires, end_of(world, row));
    plan_expiry(world);
}

/* A leader that has no majority, or does nothing, ends no session. */
static void expire(struct loop_timer *timer)
{
    struct zk_world *world = timer->owner;
    bool some = false;

    if (!has_majority(world) || is_frozen(world, world->leader)) {
        loop_arm(world->loop, timer, moment_plus(now_of(world), 50 * NS_PER_MS));
        return;
    }
    for (struct zk_session_row *row = world->rows; row; row = row->next) {
        if (row->dead || !moment_reached(row->expires, now_of(world)))
            continue;
        note_at(&world->trial, now_of(world), "session %lld expires", (long long)row->identity.id);
        end_session(world, row, NODE_EXPIRED);
        world->expired++;
        some = true;
    }
    if (some)
        commit(world);
    plan_expiry(world);
}

static struct zk_session_row *find_session(const struct zk_world *world, int64_t id)
{
    struct zk_session_row *row = world->rows;

    while (row && row->identity.id != id)
        row = row->next;
    return row;
}

/* A follower passes on, some time later, that it has heard of a session. */
static void heard_of(struct loop_timer *timer)
{
    struct zk_session_row *row = timer->owner;

    if (!row->dead && has_contact(row->world, row->heard_by))
        touch(row->world, row);
}

static void hear_of(struct zk_world *world, struct zk_session_row *row, int server)
{
    row->heard_by = server;
    if (!row->hear.armed)
        loop_arm(world->loop, &row->hear,
                 moment_plus(now_of(world), world->tick / 1000 * chance(&world->seed, 500)));
}

/* -- one operation of a transaction ------------------------------------------------------------ */

struct zk_change {
    int kind;
    struct jute_text path, data;
    int flags;
    struct zk_node *made;
    int error;
};

static struct jute_text text_of(const char *text)
{
    return (struct jute_text){text, strlen(text)};
}

static void take_create(struct jute_in *in, struct zk_change *operation)
{
    operation->path = jute_text(in);
    operation->data = jute_text(in);
    for (size_t left = jute_count(in, 4); left > 0; left--) {
        jute_int(in);
        jute_text(in);
        jute_text(in);
    }
    operation->flags = jute_int(in);
}

static int create(struct zk_world *world, struct zk_change *operation, int64_t session)
{
    char *path = mem_checked(strndup(operation->path.bytes, operation->path.size));
    size_t parent = (size_t)(strrchr(path, '/') - path);
    struct zk_node *above = find(world, (struct jute_text){path, parent}, world->zxid);

    if (parent > 0 && !above) {
        free(path);
        return ZK_NO_NODE;
    }
    if (operation->flags & FLAG_SEQUENTIAL) {
        size_t size = strlen(path) + 12;
        char *longer = mem_zeroed(size);
        snprintf(longer, size, "%s%010d", path, above ? above->creations : 0);
        free(path);
        path = longer;
    }
    if (find(world, text_of(path), world->zxid)) {
        free(path);
        return ZK_NODE_EXISTS;
    }
    if (above)
        above->creations++;
    bool ephemeral = operation->flags & FLAG_EPHEMERAL;
    operation->made = add_node(world, path, ephemeral ? session : 0);
    operation->made->data = mem_checked(strndup(operation->data.bytes, operation->data.size));
    return ZK_OK;
}

/* Changes nothing that cannot be taken back. */
static int try_operation(struct zk_world *world, struct zk_change *operation, int64_t session)
{
    if (operation->kind == OP_CREATE)
        return create(world, operation, session);
    if (operation->kind == OP_CHECK && operation->path.size == 1) /* the root */
        return ZK_OK;
    struct zk_node *node = find(world, operation->path, world->zxid);
    if (!node)
        return ZK_NO_NODE;
    if (operation->kind == OP_DELETE && has_children(world, node))
        return -111;
    if (operation->kind == OP_DELETE)
        node->dzxid = world->zxid;
    operation->made = node;
    return ZK_OK;
}

static void take_back(struct zk_world *world, struct zk_change *operation)
{
    struct zk_node *node = operation->made;

    if (node && operation->kind == OP_CREATE)
        node->czxid = node->dzxid = -1; /* no request ever sees it */
    else if (node && operation->kind == OP_DELETE && node->dzxid == world->zxid)
        node->dzxid = 0;
}

static void settle(struct zk_world *world, struct zk_change *operation, int64_t session)
{
    struct zk_node *node = operation->made;

    if (operation->kind == OP_CREATE && node->session)
        world->judge->made(world->judge_arg, node->path);
    if (operation->kind == OP_DELETE)
        remove_node(world, node, node->session == session ? NODE_GIVEN_BACK : NODE_TAKEN_AWAY);
    if (operation->kind == OP_SET_DATA) {
        free(node->data);
        node->data = mem_checked(strndup(operation->data.bytes, operation->data.size));
        node->mzxid = world->zxid;
    }
}

static void put_result(struct strbuf *out, const struct zk_change *operation, bool failed)
{
    jute_put_int(out, failed ? OP_ERROR : operation->kind);
    jute_put_bool(out, false);
    jute_put_int(out, failed ? operation->error : ZK_OK);
    if (failed)
        jute_put_int(out, operation->error);
    else if (operation->kind == OP_CREATE)
        jute_put_string(out, operation->made->path);
    else if (operation->kind == OP_SET_DATA)
        put_stat(out, operation->made);
}

#define OPERATIONS_MAX 64

/* All or none. */
static void transact(struct zk_world *world, struct jute_in *in, int64_t session,
                     struct strbuf *out)
{
    struct zk_change all[OPERATIONS_MAX] = {{0}};
    size_t count = 0;
    int error = ZK_OK;

    world->zxid++;
    for (;; count++) {
        struct zk_change *operation = &all[count];
        operation->kind = jute_int(in);
        bool last = jute_bool(in);
        jute_int(in);
        if (last || in->damaged || count + 1 == OPERATIONS_MAX)
            break;
        if (operation->kind == OP_CREATE)
            take_create(in, operation);
        else
            operation->path = jute_text(in);
        if (operation->kind == OP_SET_DATA)
            operation->data = jute_text(in);
        if (operation->kind != OP_CREATE)
            jute_int(in);
        operation->error =
            error == ZK_OK ? try_operation(world, operation, session) : ZK_RUNTIME_INCONSISTENCY;
        error = error ? error : operation->error;
    }
    if (in->damaged)
        accuse(&world->trial, "a request that makes no sense");
    for (size_t i = count; error && i-- > 0;)
        take_back(world, &all[i]);
    for (size_t i = 0; !error && i < count; i++)
        settle(world, &all[i], session);
    for (size_t i = 0; i < count; i++)
        put_result(out, &all[i], error != ZK_OK);
    jute_put_int(out, OP_ERROR);
    jute_put_bool(out, true);
    jute_put_int(out, -1);
}

static int create_container(struct zk_world *world, struct jute_in *in, struct strbuf *out)
{
    struct zk_change operation = {.kind = OP_CREATE};

    take_create(in, &operation);
    world->zxid++;
    int error = create(world, &operation, 0);
    if (!error)
        jute_put_string(out, operation.made->path);
    return error;
}

/* -- requests ---------------------------------------------------------------------------------- */

static void process(struct zk_conn *conn);

/* The reply goes out when it has come back from the leader. */
static void decide(struct zk_conn *conn)
{
    conn->pending = CONN_DECIDED;
    conn->decided = conn->world->zxid;
    loop_arm(conn->world->loop, &conn->timer, soon(conn->world, 60));
}

static void put_opened(struct strbuf *out, const struct zk_session_row *row)
{
    static const char none[ZK_PASSWORD_SIZE];
    size_t frame = jute_begin(out);

    jute_put_int(out, 0);
    jute_put_int(out, row ? (int32_t)(row->timeout / NS_PER_MS) : 0);
    jute_put_long(out, row ? row->identity.id : 0);
    jute_put_buffer(out, row ? row->identity.password : none, sizeof none);
    jute_put_bool(out, false);
    jute_end(out, frame);
}

static struct zk_session_row *begin_session(struct zk_world *world)
{
    struct zk_session_row *row = mem_zeroed(sizeof *row);

    *row = (struct zk_session_row){.next = world->rows,
                                   .identity.id = ++world->sessions,
                                   .born = ++world->zxid,
                                   .world = world,
                                   .hear = {.fire = heard_of, .owner = row}};
    for (size_t i = 0; i < ZK_PASSWORD_SIZE; i++)
        row->identity.password[i] = (char)chance(&world->seed, 256);
    world->rows = row;
    return row;
}

/* By the leader, or by one that was cut off and does not know. */
static void open_session(struct zk_conn *conn, struct jute_in in, bool old)
{
    struct zk_world *world = conn->world;
    struct zk_session_row *row;
    struct jute_text password;

    jute_int(&in);
    jute_long(&in);
    int64_t wish = jute_int(&in) * NS_PER_MS, id = jute_long(&in);
    password = jute_text(&in);
    if (id == 0 && old) {
        return; /* the others do not hear of it: it never gets an answer */
    } else if (id == 0) {
        row = begin_session(world);
        commit(world);
    } else {
        row = find_session(world, id);
        int64_t knows = old ? world->servers[conn->server].applied : world->zxid;
        if (row && (row->born > knows || (row->dead && row->dead <= knows) ||
                    password.size != ZK_PASSWORD_SIZE ||
                    memcmp(password.bytes, row->identity.password, ZK_PASSWORD_SIZE) != 0))
            row = NULL;
        world->denied += old && !row;
    }
    if (row && !old) {
        int64_t least = 2 * world->tick, most = 20 * world->tick;
        struct zk_conn *before = row->conn;
        row->timeout = wish < least ? least : wish > most ? most : wish;
        row->conn = conn;
        if (before && before != conn && before->server == conn->server)
            hang_up(before);
        touch(world, row);
    }
    note_at(&world->trial, now_of(world), "server %d%s %s session %lld", conn->server,
            old ? ", cut off," : "", row ? "opens" : "denies",
            (long long)(row ? row->identity.id : id));
    world->reopened_at_old += row && old;
    conn->opens = row;
    put_opened(&conn->reply, row);
    decide(conn);
}

/* A write, by the leader. */
static void write_down(struct zk_conn *conn, struct jute_in in)
{
    struct zk_world *world = conn->world;
    int32_t xid = jute_int(&in);
    int kind = jute_int(&in), error = ZK_OK;
    int64_t session = conn->row->identity.id;
    struct strbuf body = {0};

    if (conn->row->dead) {
        error = ZK_SESSION_EXPIRED;
    } else if (kind == OP_CLOSE) {
        note_at(&world->trial, now_of(world), "session %lld closes", (long long)session);
        end_session(world, conn->row, NODE_GIVEN_BACK);
        conn->closes = true;
    } else if (conn->row->conn != conn) {
        error = ZK_SESSION_MOVED;
        world->moved++;
    } else if (kind == OP_MULTI) {
        transact(world, &in, session, &body);
    } else if (kind == OP_CREATE_CONTAINER) {
        error = create_container(world, &in, &body);
    } else {
        accuse(&world->trial, "a request that is not known");
    }
    commit(world);
    if (!conn->open) {
        strbuf_free(&body);
        return;
    }
    size_t frame = jute_begin(&conn->reply);
    put_head(&conn->reply, xid, world->zxid, error);
    strbuf_add(&conn->reply, body.text, error ? 0 : body.size);
    jute_end(&conn->reply, frame);
    strbuf_free(&body);
    decide(conn);
}

/* The message comes to the leader, if there is one, and to one that has a majority. */
static void reach_leader(struct zk_conn *conn)
{
    struct zk_world *world = conn->world;
    struct jute_in in = {conn->request.text, conn->request.text + conn->request.size, false};
    bool first = !conn->row;

    if (conn->server == world->old && first) {
        open_session(conn, in, true);
    } else if (!has_contact(world, conn->server)) {
        return; /* it never gets an answer */
    } else if (is_frozen(world, world->leader) || !has_majority(world)) {
        loop_arm(world->loop, &conn->timer, moment_plus(now_of(world), 20 * NS_PER_MS));
    } else if (first) {
        open_session(conn, in, false);
    } else {
        write_down(conn, in);
    }
}

static void reply(struct zk_conn *conn)
{
    struct zk_world *world = conn->world;
    struct zk_server *server = &world->servers[conn->server];
    bool opens = !conn->row;

    if (conn->server != world->old) {
        if (!has_contact(world, conn->server))
            return;
        if (conn->decided > server->applied)
            advance(server, conn->decided);
    }
    if (!conn->open)
        return;
    conn->pending = CONN_FREE;
    conn->row = opens ? conn->opens : conn->row;
    bool ends = !conn->row || conn->closes;
    say(conn, &conn->reply);
    strbuf_free(&conn->request);
    if (ends)
        hang_up(conn);
    else
        process(conn);
}

static void conn_due(struct loop_timer *timer)
{
    struct zk_conn *conn = timer->owner;
    struct zk_world *world = conn->world;

    if (is_frozen(world, conn->server))
        loop_arm(world->loop, timer, world->servers[conn->server].frozen_until);
    else if (conn->pending == CONN_FORWARDED)
        reach_leader(conn);
    else if (conn->pending == CONN_DECIDED)
        reply(conn);
}

static void add_watch(struct zk_conn *conn, struct jute_text path, bool children)
{
    struct zk_watch *watch = mem_zeroed(sizeof *watch + path.size + 1);

    watch->next = conn->watches;
    watch->children = children;
    memcpy(watch->path, path.bytes, path.size);
    conn->watches = watch;
}

static void put_children(struct zk_conn *conn, struct strbuf *out, const struct zk_node *parent)
{
    const struct zk_world *world = conn->world;
    int64_t zxid = world->servers[conn->server].applied;
    int32_t count = 0;

    for (size_t i = 0; i < world->node_count; i++)
        count += is_visible(world->nodes[i], zxid) && is_child(world->nodes[i], parent->path);
    jute_put_int(out, count);
    for (size_t i = 0; i < world->node_count; i++)
        if (is_visible(world->nodes[i], zxid) && is_child(world->nodes[i], parent->path))
            jute_put_string(out, world->nodes[i]->path + world->nodes[i]->parent + 1);
}

/* By the server itself, as far as it has heard. */
static void read_out(struct zk_conn *conn, int32_t xid, int kind, struct jute_in *in)
{
    struct zk_world *world = conn->world;
    struct zk_server *server = &world->servers[conn->server];
    struct jute_text path = jute_text(in);
    bool watch = jute_bool(in);
    const struct zk_node *node = find(world, path, server->applied);
    struct strbuf out = {0};
    size_t frame = jute_begin(&out);

    if (watch && (node || kind == OP_EXISTS))
        add_watch(conn, path, kind == OP_GET_CHILDREN);
    world->stale_reads += server->applied < world->zxid;
    put_head(&out, xid, server->applied, node ? ZK_OK : ZK_NO_NODE);
    if (node && kind == OP_GET_CHILDREN)
        put_children(conn, &out, node);
    if (node && kind == OP_GET_DATA)
        jute_put_string(&out, node->data);
    if (node && kind != OP_GET_CHILDREN)
        put_stat(&out, node);
    jute_end(&out, frame);
    say(conn, &out);
    hear_of(world, conn->row, conn->server);
}

/* A frame as it came: the first words, or a request. */
static void take_frame(struct zk_conn *conn, const struct jute_in *frame)
{
    struct jute_in in = *frame;

    if (!conn->row) {
        jute_int(&in);
        if (jute_long(&in) > conn->world->servers[conn->server].applied) {
            hang_up(conn); /* the client has seen what this server has not heard of yet */
            return;
        }
    } else {
        int32_t xid = jute_int(&in);
        int kind = jute_int(&in);
        if (kind == OP_EXISTS || kind == OP_GET_DATA || kind == OP_GET_CHILDREN) {
            read_out(conn, xid, kind, &in);
            return;
        }
        hear_of(conn->world, conn->row, conn->server);
    }
    strbuf_free(&conn->request);
    strbuf_add(&conn->request, frame->at, (size_t)(frame->end - frame->at));
    conn->pending = CONN_FORWARDED;
    loop_arm(conn->world->loop, &conn->timer, soon(conn->world, 60));
}

/* One after the other: a write is answered before the request behind it is looked at. */
static void process(struct zk_conn *conn)
{
    struct jute_in frame;
    int64_t taken;

    while (conn->open && conn->pending == CONN_FREE &&
           (taken = jute_frame(conn->in.text, conn->in.size, &frame)) > 0) {
        struct strbuf rest = {0};
        strbuf_add(&rest, conn->in.text + taken, conn->in.size - (size_t)taken);
        struct strbuf now = conn->in;
        conn->in = rest;
        take_frame(conn, &frame);
        strbuf_free(&now);
    }
}

static void zk_server_hear(struct zk_conn *conn, enum zk_chunk_kind kind, const char *bytes,
                           size_t size)
{
    struct zk_server *server = &conn->world->servers[conn->server];

    if (kind == CHUNK_OPEN && server->state == SERVER_AWAY) {
        zk_conn_say(conn, CHUNK_END, NULL, 0);
    } else if (kind == CHUNK_OPEN) {
        conn->open = true;
        conn->timer = (struct loop_timer){.fire = conn_due, .owner = conn};
        zk_conn_say(conn, CHUNK_OPEN, NULL, 0);
    } else if (kind == CHUNK_END && conn->open) {
        zk_server_leave(conn);
    } else if (kind == CHUNK_BYTES && conn->open) {
        strbuf_add(&conn->in, bytes, size);
        process(conn);
    }
}

/* -- trouble ----------------------------------------------------------------------------------- */

static void drop_all(struct zk_server *server)
{
    for (struct zk_conn *conn = server->world->conns; conn; conn = conn->next)
        if (conn->server == server->number)
            hang_up(conn);
}

static void lose_leader(struct zk_world *world, unsigned most_ms)
{
    world->leader = -1;
    loop_arm(world->loop, &world->election, later(world, most_ms));
}

/* The servers that are there have a leader again, and their clients have to connect again. Sessions
 * count from now. */
static void elect(struct loop_timer *timer)
{
    struct zk_world *world = timer->owner;
    int first = (int)chance(&world->seed, (unsigned)world->server_count), up = 0;

    for (int i = 0; i < world->server_count; i++) {
        int server = (first + i) % world->server_count;
        if (world->servers[server].state != SERVER_UP || is_frozen(world, server))
            continue;
        up++;
        world->leader = world->leader < 0 ? server : world->leader;
    }
    if (2 * up <= world->server_count) {
        world->leader = -1;
        loop_arm(world->loop, timer, moment_plus(now_of(world), 100 * NS_PER_MS));
        return;
    }
    world->elections++;
    world->zxid = ++world->epoch << 32;
    note_at(&world->trial, now_of(world), "server %d leads", world->leader);
    for (int i = 0; i < world->server_count; i++) {
        struct zk_server *server = &world->servers[i];
        if (server->state != SERVER_UP)
            continue;
        drop_all(server);
        advance(server, world->zxid);
    }
    for (struct zk_session_row *row = world->rows; row; row = row->next)
        if (!row->dead)
            row->expires = end_of(world, row);
    plan_expiry(world);
}

/* One that was cut off notices; one that is away comes back. */
static void go_on(struct loop_timer *timer)
{
    struct zk_server *server = timer->owner;
    struct zk_world *world = server->world;

    if (server->state == SERVER_CUT) {
        note_at(&world->trial, now_of(world), "server %d notices", server->number);
        world->old = world->old == server->number ? -1 : world->old;
        server->state = SERVER_AWAY;
        drop_all(server);
        loop_arm(world->loop, timer, later(world, 10000));
    } else if (server->state == SERVER_AWAY) {
        note_at(&world->trial, now_of(world), "server %d is back", server->number);
        server->state = SERVER_UP;
        if (world->leader >= 0)
            advance(server, world->zxid);
    }
}

static void cut_off(struct zk_server *server, unsigned notices_ms)
{
    struct zk_world *world = server->world;

    server->state = SERVER_CUT;
    loop_arm(world->loop, &server->next, later(world, notices_ms));
    if (world->leader == server->number) {
        world->old = server->number;
        lose_leader(world, 6000);
    }
}

static void kill_server(struct zk_server *server)
{
    struct zk_world *world = server->world;

    server->state = SERVER_AWAY;
    drop_all(server);
    loop_arm(world->loop, &server->next, later(world, 10000));
    if (world->leader == server->number)
        lose_leader(world, 4000);
}

/* The others choose another leader, if it takes long; when it continues it does not know at
 * once. */
static void wake_leader(struct loop_timer *timer)
{
    struct zk_server *server = timer->owner;
    struct zk_world *world = server->world;

    if (world->leader == server->number && is_frozen(world, server->number)) {
        note_at(&world->trial, now_of(world), "server %d is given up", server->number);
        server->state = SERVER_CUT;
        world->old = server->number;
        lose_leader(world, 1000);
        loop_arm(world->loop, timer, moment_plus(server->frozen_until, zk_some_time(world, 1000)));
    }
    server->next.fire = go_on;
}

static void freeze(struct zk_server *server)
{
    struct zk_world *world = server->world;

    server->frozen_until = later(world, 15000);
    if (world->leader == server->number && world->server_count > 1) {
        server->next.fire = wake_leader;
        loop_arm(world->loop, &server->next, later(world, 8000));
    }
}

static bool is_troubled(const struct zk_world *world)
{
    for (int i = 0; i < world->server_count; i++)
        if (world->servers[i].state != SERVER_UP || is_frozen(world, i) ||
            world->servers[i].next.armed)
            return true;
    return world->leader < 0;
}

static void make_trouble(struct loop_timer *timer)
{
    static const char *const names[] = {"cut off", "killed", "stopped", "gives up"};
    struct zk_world *world = timer->owner;
    bool leads = world->leader >= 0 && chance(&world->seed, 2);
    int which = leads ? world->leader : (int)chance(&world->seed, (unsigned)world->server_count);
    struct zk_server *server = &world->servers[which];
    unsigned what = chance(&world->seed, 4);

    if (world->calm)
        return;
    loop_arm(world->loop, timer, later(world, 15000));
    if (is_troubled(world))
        return;
    what = what == 0 && world->server_count == 1 ? 1 : what;
    note_at(&world->trial, now_of(world), "server %d%s %s", which,
            which == world->leader ? ", leader," : "", names[what]);
    if (what == 0)
        cut_off(server, 10000);
    else if (what == 1)
        kill_server(server);
    else if (what == 2)
        freeze(server);
    else
        lose_leader(world, 2000);
}

/* Containers go some time after the last of their children. */
static void sweep(struct loop_timer *timer)
{
    struct zk_world *world = timer->owner;
    bool some = false;

    loop_arm(world->loop, timer, soon(world, 60000));
    if (!has_majority(world))
        return;
    for (size_t i = 0; i < world->node_count; i++) {
        struct zk_node *node = world->nodes[i];
        if (node->dzxid || node->session || !node->creations || has_children(world, node))
            continue;
        world->zxid++;
        remove_node(world, node, NODE_GIVEN_BACK);
        some = true;
    }
    if (some)
        commit(world);
}

/* -- from outside ------------------------------------------------------------------------------ */

void zk_world_begin(struct zk_world *world, unsigned seed, const struct zk_judge *judge, void *arg)
{
    *world = (struct zk_world){.loop = loop_new(),
                               .seed = seed * 2654435761u + 1,
                               .judge = judge,
                               .judge_arg = arg,
                               .old = -1,
                               .zxid = (int64_t)1 << 32,
                               .epoch = 1};
    struct moment now = now_of(world);
    current = world;
    chance_for_system(&world->seed);
    world->failing = chance(&world->seed, 4) ? chance(&world->seed, 12) : 0;
    world->deadly = chance(&world->seed, 4) == 0;
    world->server_count = chance(&world->seed, 4) ? ZK_SERVERS : 1;
    world->tick = (chance(&world->seed, 2) ? 500 : 2000) * NS_PER_MS;
    world->speed = chance(&world->seed, 10);
    for (int i = 0; i < world->server_count; i++) {
        struct zk_server *server = &world->servers[i];
        *server = (struct zk_server){.world = world,
                                     .number = i,
                                     .frozen_until = now,
                                     .applied = world->zxid,
                                     .next = {.fire = go_on, .owner = server},
                                     .catch_up = {.fire = caught_up, .owner = server}};
    }
    world->trouble = (struct loop_timer){.fire = make_trouble, .owner = world};
    world->election = (struct loop_timer){.fire = elect, .owner = world};
    world->expiry = (struct loop_timer){.fire = expire, .owner = world};
    world->sweep = (struct loop_timer){.fire = sweep, .owner = world};
    if (chance(&world->seed, 4))
        loop_arm(world->loop, &world->trouble, later(world, 15000));
    loop_arm(world->loop, &world->sweep, soon(world, 60000));
}

void zk_world_calm(struct zk_world *world)
{
    note_at(&world->trial, now_of(world), "CALM");
    world->calm = true;
}

void zk_world_end(struct zk_world *world)
{
    while (world->conns) {
        struct zk_conn *conn = world->conns;
        world->conns = conn->next;
        free_conn(conn);
    }
    while (world->rows) {
        struct zk_session_row *row = world->rows;
        world->rows = row->next;
        free(row);
    }
    for (size_t i = 0; i < world->node_count; i++) {
        free(world->nodes[i]->path);
        free(world->nodes[i]->data);
        free(world->nodes[i]);
    }
    free(world->nodes);
    loop_free(world->loop);
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
    if (size == 0)
        accuse(&current->trial, "waits for an answer to nothing");
    if (stream->conn && size > 0)
        carry(stream->conn, &stream->conn->up, CHUNK_BYTES, bytes, size, loop_now(stream->loop));
}

void stream_secure(struct stream *stream, struct tls *tls, const char *host)
{
    (void)tls;
    (void)host;
    stream_refuse(stream, "TLS is asked for");
}

void stream_trust(struct stream *stream)
{
    (void)stream;
}

void stream_refuse(struct stream *stream, const char *why)
{
    accuse(&current->trial, why);
    stream_close(stream);
    stream->events->broken(stream->arg, why);
}

void stream_expiry(const struct stream *stream, struct tls_expiry *expiry)
{
    (void)stream;
    (void)expiry;
}

bool stream_is_foreign(const struct stream *stream)
{
    (void)stream;
    return false;
}

enum stream_language stream_language(const struct stream *stream)
{
    (void)stream;
    return STREAM_OURS;
}

bool stream_was_reset(const struct stream *stream)
{
    (void)stream;
    return false;
}

const char *stream_overdue(const struct stream *stream)
{
    (void)stream;
    return "no answer in time";
}
