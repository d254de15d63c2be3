/* A database server and its drivers. */
#include "sql_simulation.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

#include "base/mem.h"
#include "chance.h"
#include "driver_wraps.h"
#include "os/helper_process.h"
#include "os/program.h"
#include "store/sql/wire.h"

#define FD 1000000

/* What becomes of a statement where the network is bad. A lost one is executed or not; whoever
 * waits hears nothing, or that the connection broke, before or after it is executed; or the driver
 * ends. */
enum fate {
    LOST,
    ANSWER_LOST,
    CUT,
    CUT_AFTER,
    CUT_BEFORE,
    DIES,
    DIES_BEFORE,
    SLOW,
    BUSY,
    CONFLICT,
    FATES
};
static const char *const fates[] = {"lost", "answer lost", "cut",  "cut after it", "executed late",
                                    "ends", "ends first",  "slow", "busy",         "conflict"};

struct statement {
    struct loop_timer timer;
    struct world_connection *connection;
    char *sql; /* NULL: the connecting itself */
    enum fate fate;
    enum { ARRIVES, RUNS, SLEEPS, IS_ANSWERED } stage;
    char bell[SIM_BELL]; /* SLEEPS: until that one is free */
    int64_t clock;       /* us, when it arrived */
    bool executed;
    struct wire_out answer;
    struct statement *next;            /* in the queue of its connection */
    struct statement *before, *behind; /* of all there are */
};

struct world_connection {
    struct world *world;
    struct loop *loop;
    int fd;
    bool open;  /* rlock has its end */
    bool ended; /* the driver is gone */
    bool stuck; /* nothing gets through any more */
    bool cut;   /* the server does not notice that the driver is gone */
    unsigned life;
    char channel[SIM_CHANNEL];
    struct wire_in told;
    struct wire_out saying;
    struct loop_timer readable;
    struct loop_timer limit; /* the driver's own, of the latest statement */
    struct statement *queue, *active;
};

/* A user-level lock that somebody has. */
struct world_bell {
    char name[SIM_BELL];
    struct world_connection *of;
};

static struct world *current;

/* -- chance, time ---------------------------------------------------------------------------- */

unsigned world_chance(struct world *world, unsigned limit)
{
    return chance(&world->seed, limit);
}

int64_t world_some_time(struct world *world, unsigned most_ms)
{
    unsigned limit = world_chance(world, 4) ? 1 + most_ms / 50 : most_ms;

    return (int64_t)world_chance(world, limit) * NS_PER_MS +
           (int64_t)world_chance(world, 1000) * 1000;
}

int __wrap_clock_gettime(clockid_t clock, struct timespec *time)
{
    if (clock != CLOCK_BOOTTIME || !current)
        return __real_clock_gettime(clock, time);
    *time = (struct timespec){current->now.ns / NS_PER_SEC, current->now.ns % NS_PER_SEC};
    return 0;
}

void world_accuse(struct world *world, const char *fault)
{
    if (!world->fault)
        world->fault = fault;
}

void world_log(struct world *world, const char *format, ...)
{
    size_t used = strlen(world->log);
    va_list values;

    if (used > sizeof world->log / 2) {
        memmove(world->log, world->log + used / 2, used - used / 2 + 1);
        used -= used / 2;
    }
    used += (size_t)snprintf(world->log + used, sizeof world->log - used, "%.3f ",
                             (double)world->now.ns / 1e9 - 1000);
    va_start(values, format);
    vsnprintf(world->log + used, sizeof world->log - used - 2, format, values);
    va_end(values);
    strcat(world->log, ", ");
}

int64_t world_clock(const struct world *world)
{
    int64_t us = (world->now.ns - 1000 * NS_PER_SEC) / 1000;

    return world->clock + us + us * world->rate / 10000;
}

struct moment world_moment(const struct world *world, int64_t us)
{
    int64_t from_now = us - world_clock(world);

    return moment_plus(world->now, from_now * 10000 / (10000 + world->rate) * 1000);
}

void world_set_back(struct world *world, int64_t us)
{
    world_log(world, "clock back by %lld s", (long long)us / 1000000);
    world->clock -= us;
}

/* -- the driver ------------------------------------------------------------------------------ */

static void move(struct loop_timer *timer);

static void arm(struct statement *statement, int64_t ns)
{
    struct world *world = statement->connection->world;

    loop_arm(world->outside, &statement->timer, moment_plus(world->now, ns));
}

static struct loop_io *io_of(const struct world_connection *connection)
{
    struct loop_io *io = fake_ios(connection->loop);

    while (io && io->fd != connection->fd)
        io = io->next;
    return io;
}

/* In the process, as long as there is something to read. */
static void readable(struct loop_timer *timer)
{
    struct world_connection *connection = timer->owner;
    struct loop_io *io = io_of(connection);

    if (connection->open && io)
        io->ready(io, LOOP_READ);
    if (connection->open && (connection->saying.size > 0 || connection->ended))
        loop_arm(connection->loop, timer, connection->world->now);
}

static void tell(struct world_connection *connection)
{
    if (connection->open)
        loop_arm(connection->loop, &connection->readable, connection->world->now);
}

static void hang_up(struct world_connection *connection);

static void end_driver(struct world_connection *connection)
{
    connection->ended = true;
    hang_up(connection);
    tell(connection);
}

static void say(struct world_connection *connection, const struct wire_out *frames)
{
    struct wire_out *out = &connection->saying;

    out->bytes = realloc(out->bytes, out->size + frames->size + 1);
    if (!out->bytes)
        abort();
    memcpy(out->bytes + out->size, frames->bytes, frames->size);
    out->size += frames->size;
    out->room = out->size + 1;
    tell(connection);
}

static void answer_error(struct wire_out *answer, enum wire_error error, const char *words)
{
    answer->size = 0;
    wire_begin(answer, WIRE_ERROR);
    wire_text(answer, (char[]){(char)error, '\0'});
    wire_text(answer, words);
    wire_text(answer, "locker");
    wire_end(answer);
}

/* One statement after the other. */
static void go_on(struct world_connection *connection)
{
    struct statement *statement = connection->queue;
    struct world *world = connection->world;

    if (!statement || connection->active || connection->ended || connection->stuck)
        return;
    connection->queue = statement->next;
    connection->active = statement;
    bool bad = world_chance(world, 16) < world->failing;
    statement->fate = bad ? world_chance(world, FATES) : FATES;
    if (bad)
        world_log(world, "%zu: %s", world_process_of(world, connection->loop),
                  fates[statement->fate]);
    world->under_way++;
    arm(statement, world_some_time(world, statement->fate == SLOW ? 20000 : 100));
}

static void free_statement(struct statement *statement)
{
    struct world *world = statement->connection->world;

    if (statement->before)
        statement->before->behind = statement->behind;
    else
        world->all = statement->behind;
    if (statement->behind)
        statement->behind->before = statement->before;
    free(statement->answer.bytes);
    free(statement->sql);
    free(statement);
}

static void wake(struct world *world, const char *name)
{
    for (struct statement *at = world->all; at; at = at->behind) {
        if (at->stage != SLEEPS || strcmp(at->bell, name) != 0)
            continue;
        *at->bell = '\0';
        world->woken++;
        arm(at, world_some_time(world, 20));
    }
}

static void free_bell(struct world *world, size_t i)
{
    struct world_bell bell = world->bells[i];

    world->bells[i] = world->bells[--world->bell_count];
    wake(world, bell.name);
}

/* The server ends the session of a driver that is gone, if it notices. */
static void hang_up(struct world_connection *connection)
{
    struct world *world = connection->world;

    if ((connection->open && !connection->ended) || connection->active || connection->queue ||
        connection->cut)
        return;
    for (size_t i = world->bell_count; i-- > 0;)
        if (world->bells[i].of == connection)
            free_bell(world, i);
}

static void drop(struct statement *statement)
{
    struct world_connection *connection = statement->connection;

    if (connection->active == statement)
        connection->active = NULL;
    connection->world->under_way--;
    free_statement(statement);
    hang_up(connection);
}

/* -- the server ------------------------------------------------------------------------------ */

static void notify(void *arg, const char *channel)
{
    struct world *world = arg;
    struct wire_out frame = {0};

    wire_begin(&frame, WIRE_CALLED);
    wire_end(&frame);
    for (size_t i = 0; i < world->connection_count; i++) {
        struct world_connection *connection = world->connections[i];
        if (connection->life == world->lives && !connection->ended &&
            strcmp(connection->channel, channel) == 0 && world_chance(world, 16) >= world->failing)
            say(connection, &frame);
    }
    free(frame.bytes);
}

static bool ask_bell(void *arg, const char *name, bool take)
{
    struct world *world = arg;
    size_t i = 0;

    while (i < world->bell_count && strcmp(world->bells[i].name, name) != 0)
        i++;
    bool free_now = i == world->bell_count;
    bool own = !free_now && world->bells[i].of == world->writing;
    if (take && own)
        world_accuse(world, "a bell is taken twice");
    if (!take && own)
        free_bell(world, i);
    if (!take || !free_now)
        return own;
    world->bells = realloc(world->bells, (i + 1) * sizeof *world->bells);
    if (!world->bells)
        abort();
    world->bells[world->bell_count++] = (struct world_bell){.of = world->writing};
    snprintf(world->bells[i].name, SIM_BELL, "%s", name);
    return true;
}

static void answer_number(struct wire_out *answer, int64_t number)
{
    answer->size = 0;
    wire_begin(answer, WIRE_ROWS);
    wire_number(answer, 1);
    wire_number(answer, number);
    wire_end(answer);
}

/* Whether it sleeps, and is not answered yet. */
static bool fall_asleep(struct statement *statement)
{
    struct world *world = statement->connection->world;
    int64_t ns;

    if (!sim_database_sleeps(&world->database, statement->sql, statement->bell, &ns))
        return false;
    statement->executed = true;
    if (statement->fate == LOST) /* a sleep changes nothing */
        return true;
    for (size_t i = 0; i < world->bell_count; i++) {
        if (strcmp(world->bells[i].name, statement->bell) != 0)
            continue;
        statement->stage = SLEEPS;
        arm(statement, ns);
        return true;
    }
    answer_number(&statement->answer, 1);
    return true;
}

static void run(struct statement *statement)
{
    struct world_connection *connection = statement->connection;
    struct world *world = connection->world;

    statement->executed = true;
    statement->answer.size = 0;
    if (!statement->sql) {
        wire_begin(&statement->answer, WIRE_CONNECTED);
        wire_text(&statement->answer, "15.0");
        wire_end(&statement->answer);
        connection->life = world->lives;
        return;
    }
    if (world->bells_refused && strstr(statement->sql, "GET_LOCK")) {
        answer_error(&statement->answer, WIRE_UNFIT, "not supported in a cluster");
        return;
    }
    if (fall_asleep(statement))
        return;
    world->statements++;
    world->late += connection->ended || !connection->open || connection->active != statement;
    world->database.now = statement->clock;
    world->writing = connection;
    if (!sim_database_execute(&world->database, statement->sql, connection->channel,
                              &statement->answer)) {
        world_log(world, "%s", statement->sql);
        world_accuse(world, "a statement that the server does not understand");
    }
    world->writing = NULL;
}

/* The driver hears that it is over before the server does, which executes it later. */
static void break_before(struct statement *statement)
{
    struct world_connection *connection = statement->connection;
    struct wire_out error = {0};

    answer_error(&error, WIRE_UNREACHABLE, "broken pipe");
    connection->active = NULL;
    connection->ended = statement->fate == DIES_BEFORE;
    if (connection->ended)
        tell(connection);
    else
        say(connection, &error);
    free(error.bytes);
    connection->stuck = true;
    statement->fate = LOST; /* whatever comes of it, nobody hears of it */
    statement->stage = RUNS;
    arm(statement, world_some_time(connection->world, 20000));
}

static void refuse(struct statement *statement, enum wire_error error, const char *words)
{
    answer_error(&statement->answer, error, words);
    statement->stage = IS_ANSWERED;
    statement->fate = FATES;
    arm(statement, world_some_time(statement->connection->world, 100));
}

static void arrive(struct statement *statement)
{
    struct world_connection *connection = statement->connection;
    struct world *world = connection->world;
    bool early = world_chance(world, 2);

    if (early)
        statement->clock = world_clock(world);
    if (!statement->sql && !moment_reached(world->down, world->now)) {
        refuse(statement, world_chance(world, 2) ? WIRE_NOT_READY : WIRE_UNREACHABLE, "starting");
        return;
    }
    if (statement->sql && connection->life != world->lives) {
        refuse(statement, WIRE_UNREACHABLE, "server closed the connection");
        return;
    }
    switch (statement->fate) {
    case LOST:
        connection->stuck = true;
        drop(statement);
        return;
    case CUT: refuse(statement, WIRE_UNREACHABLE, "broken pipe"); return;
    case BUSY: refuse(statement, WIRE_NOT_READY, "busy"); return;
    case CONFLICT:
        refuse(statement, statement->sql ? WIRE_CONFLICT : WIRE_NOT_READY, "deadlock");
        return;
    case CUT_BEFORE:
    case DIES_BEFORE:
        if (!statement->clock)
            statement->clock = world_clock(world);
        break_before(statement);
        return;
    default: break;
    }
    statement->stage = RUNS;
    loop_arm(world->outside, &statement->timer, moment_max(world->now, world->still));
}

static void is_answered(struct statement *statement)
{
    struct world_connection *connection = statement->connection;
    enum fate fate = statement->fate;

    if (fate == CUT_AFTER || (connection->life != connection->world->lives && statement->executed))
        answer_error(&statement->answer, WIRE_UNREACHABLE, "broken pipe");
    if (fate == DIES)
        end_driver(connection);
    else if (fate != ANSWER_LOST)
        say(connection, &statement->answer);
    connection->stuck = fate == ANSWER_LOST;
    drop(statement);
    go_on(connection);
}

/* The time is over, or the bell is free, or the server has been restarted. */
static void wake_up(struct statement *statement)
{
    struct world *world = statement->connection->world;

    if (statement->connection->life != world->lives) {
        refuse(statement, WIRE_UNREACHABLE, "server closed the connection");
        return;
    }
    answer_number(&statement->answer, !*statement->bell);
    statement->stage = IS_ANSWERED;
    arm(statement, world_some_time(world, 100));
}

static void move(struct loop_timer *timer)
{
    struct statement *statement = timer->owner;
    struct world *world = statement->connection->world;
    unsigned slowest = statement->fate == SLOW ? 20000 : 100;

    switch (statement->stage) {
    case ARRIVES: arrive(statement); break;
    case RUNS:
        if (statement->sql && statement->connection->life != world->lives) {
            refuse(statement, WIRE_UNREACHABLE, "server closed the connection");
            break;
        }
        if (!statement->clock)
            statement->clock = world_clock(world);
        run(statement);
        if (statement->stage == SLEEPS)
            break;
        statement->stage = IS_ANSWERED;
        if (statement->fate == LOST)
            drop(statement);
        else
            arm(statement, world_some_time(world, slowest));
        break;
    case SLEEPS: wake_up(statement); break;
    case IS_ANSWERED: is_answered(statement); break;
    }
}

void world_restart_server(struct world *world, int64_t ns)
{
    world_log(world, "RESTART");
    world->lives++;
    world->down = moment_plus(world->now, ns);
    while (world->bell_count > 0)
        free_bell(world, 0);
    for (size_t i = 0; i < world->connection_count; i++) {
        struct world_connection *connection = world->connections[i];
        if (connection->open && !connection->active && world_chance(world, 2))
            end_driver(connection);
    }
}

/* -- instead of libc, and of processes ------------------------------------------------------- */

static struct world_connection *connection_of(int fd)
{
    if (fd < FD || (size_t)(fd - FD) >= current->connection_count)
        abort();
    return current->connections[fd - FD];
}

/* A driver that is not answered ends itself, less than a millisecond before the store gives it up:
 * where the machine is busy, the store hears of both at the same time. */
static void limit_is_reached(struct loop_timer *timer)
{
    struct world_connection *connection = timer->owner;
    struct world *world = connection->world;

    if (connection->ended || !connection->open ||
        (!connection->active && !connection->queue && !connection->stuck))
        return;
    end_driver(connection);
    if (world_chance(world, 2))
        world_stop_process(world, connection->loop, NS_PER_MS);
}

static void enqueue(struct world_connection *connection, struct wire_frame *frame)
{
    struct statement *statement = calloc(1, sizeof *statement);
    struct statement **end = &connection->queue;
    const char *text = NULL;
    int64_t limit;

    if (!statement)
        abort();
    *statement = (struct statement){.connection = connection, .behind = connection->world->all};
    if (statement->behind)
        statement->behind->before = statement;
    connection->world->all = statement;
    statement->timer = (struct loop_timer){.fire = move, .owner = statement};
    if (frame->type == WIRE_STATEMENT) {
        if (!wire_take_number(frame, &limit) || !wire_take(frame, &text))
            abort();
        statement->sql = mem_strdup(text);
        loop_arm(current->outside, &connection->limit,
                 moment_plus(current->now, limit * NS_PER_MS));
    }
    while (*end)
        end = &(*end)->next;
    *end = statement;
    go_on(connection);
}

/* A process that stops before it sends sends it when it goes on. */
static int64_t stop_some(struct world_connection *connection)
{
    struct world *world = connection->world;
    int64_t ns = 0;

    if (world->stopping > 0 && world_chance(world, 1000) < world->stopping) {
        ns = world_some_time(world, 20000);
        world_stop_process(world, connection->loop, ns);
    }
    return ns;
}

ssize_t __wrap_send(int fd, const void *bytes, size_t size, int flags)
{
    struct world_connection *connection = connection_of(fd);
    struct wire_frame frame;
    size_t room = 0;

    (void)flags;
    if (!connection->open)
        world_accuse(current, "something is sent over a connection that is closed");
    for (size_t sent = 0; sent < size; sent += room) {
        char *to = wire_room(&connection->told, &room);
        room = room < size - sent ? room : size - sent;
        memcpy(to, (const char *)bytes + sent, room);
        wire_received(&connection->told, room);
    }
    int64_t stopped = stop_some(connection);
    while (wire_next(&connection->told, &frame) == WIRE_FRAME) {
        enqueue(connection, &frame);
        if (stopped > 0 && connection->active && connection->active->stage == ARRIVES)
            arm(connection->active, stopped + world_some_time(current, 100));
    }
    return (ssize_t)size;
}

ssize_t __wrap_recv(int fd, void *bytes, size_t size, int flags)
{
    struct world_connection *connection = connection_of(fd);
    struct wire_out *out = &connection->saying;

    (void)flags;
    if (out->size == 0 && connection->ended)
        return 0;
    if (out->size == 0) {
        errno = EAGAIN;
        return -1;
    }
    size = size < out->size ? size : out->size;
    memcpy(bytes, out->bytes, size);
    memmove(out->bytes, out->bytes + size, out->size - size);
    out->size -= size;
    return (ssize_t)size;
}

bool __wrap_program_find(const char *name, char *path, size_t size)
{
    snprintf(path, size, "/nowhere/%s", name);
    return true;
}

struct helper_process *__wrap_helper_process_execute(struct loop *loop, const char *path,
                                                     int *socket)
{
    struct world *world = current;
    struct world_connection *connection = calloc(1, sizeof *connection);

    (void)path;
    world->connections =
        realloc(world->connections, (world->connection_count + 1) * sizeof *world->connections);
    if (!connection || !world->connections)
        abort();
    connection->world = world;
    connection->loop = loop;
    connection->fd = *socket = FD + (int)world->connection_count;
    connection->open = true;
    connection->readable = (struct loop_timer){.fire = readable, .owner = connection};
    connection->limit = (struct loop_timer){.fire = limit_is_reached, .owner = connection};
    world->connections[world->connection_count++] = connection;
    return (struct helper_process *)(void *)connection;
}

/* What it was told is done, and nobody hears of it. */
void __wrap_helper_process_leave(struct helper_process *process)
{
    struct world_connection *connection = (struct world_connection *)(void *)process;

    connection->open = false;
    loop_disarm(connection->loop, &connection->readable);
    hang_up(connection);
}

static void free_queue(struct world_connection *connection)
{
    struct statement *next;

    for (struct statement *at = connection->queue; at; at = next) {
        next = at->next;
        free_statement(at);
    }
    connection->queue = NULL;
}

/* What has been sent to the server is on its way. */
void __wrap_helper_process_stop(struct helper_process *process)
{
    struct world_connection *connection = (struct world_connection *)(void *)process;

    connection->cut |= connection->stuck && world_chance(connection->world, 2);
    connection->ended = true;
    free_queue(connection);
    __wrap_helper_process_leave(process);
}

/* -- the world ------------------------------------------------------------------------------- */

void world_begin(struct world *world, unsigned seed, bool mysql)
{
    current = world;
    world->seed = seed;
    chance_for_system(&world->seed);
    world->outside = loop_new();
    world->now = world->still = world->down = loop_now(world->outside);
    world->clock = INT64_C(1700000000000000);
    world->rate = (int64_t)world_chance(world, 201) - 100;
    world->database.mysql = mysql;
    world->database.notify = notify;
    world->database.bell = ask_bell;
    world->bells_refused = mysql && world_chance(world, 8) == 0;
}

void world_end(struct world *world)
{
    for (size_t i = 0; i < world->process_count; i++)
        loop_free(world->processes[i]);
    loop_free(world->outside);
    while (world->all)
        free_statement(world->all);
    for (size_t i = 0; i < world->connection_count; i++) {
        struct world_connection *connection = world->connections[i];
        free(connection->told.bytes);
        free(connection->saying.bytes);
        free(connection);
    }
    free(world->connections);
    free(world->bells);
    sim_database_free(&world->database);
    current = NULL;
    chance_for_system(NULL);
}

struct loop *world_process(struct world *world)
{
    struct loop *loop = loop_new();

    if (world->process_count == WORLD_PROCESSES)
        abort();
    fake_descriptor(loop, readable);
    world->processes[world->process_count++] = loop;
    return loop;
}

size_t world_process_of(const struct world *world, const struct loop *loop)
{
    size_t i = 0;

    while (i < world->process_count && world->processes[i] != loop)
        i++;
    return i;
}

void world_stop_process(struct world *world, const struct loop *loop, int64_t ns)
{
    size_t i = world_process_of(world, loop);

    world_log(world, "%zu: STOPPED for %lld ms", i, (long long)(ns / NS_PER_MS));
    world->stopped[i] = moment_max(world->stopped[i], moment_plus(world->now, ns));
}

bool world_turn(struct world *world, struct moment until)
{
    struct loop *next = world->outside;
    struct moment due = fake_due(next);

    for (size_t i = 0; i < world->process_count; i++) {
        struct moment its = fake_due(world->processes[i]);
        if (its.ns != MOMENT_NEVER.ns)
            its = moment_max(its, world->stopped[i]);
        if (its.ns >= due.ns)
            continue;
        due = its;
        next = world->processes[i];
    }
    if (due.ns == MOMENT_NEVER.ns || due.ns > until.ns)
        return false;
    world->now = moment_max(world->now, due);
    fake_turn_at(next, world->now);
    return true;
}

const struct loop *world_writer(const struct world *world)
{
    return world->writing ? world->writing->loop : NULL;
}
