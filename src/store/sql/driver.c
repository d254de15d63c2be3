/* The driver's other end. */
#include "store/sql/driver.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "base/mem.h"
#include "net/loop.h"
#include "os/helper_process.h"
#include "os/program.h"
#include "os/secret.h"

enum phase { PHASE_DOWN, PHASE_CONNECTING, PHASE_IDLE, PHASE_ASKED, PHASE_TOLD };

struct sql_driver {
    struct loop *loop;
    struct store_address address;
    const char *program;
    void (*called)(void *);
    void *called_arg;

    enum phase phase;
    struct helper_process *process; /* NULL: PHASE_DOWN */
    struct loop_io io;
    struct wire_out out;
    struct wire_in in;
    unsigned connection;
    char version[48];

    /* What is to be asked, or is under way. */
    struct loop_timer timer; /* its time limit */
    struct loop_timer turn;  /* a failure is told when the loop turns */
    char *sql;               /* until it is sent */
    struct moment until, sent;
    bool aged;
    sql_done *done;
    void *arg;
    struct sql_reply failure;
    char said[300], user[100];
    bool reading; /* what has come */
    bool doomed;  /* it was freed meanwhile */
};

static void send_some(struct sql_driver *driver);

/* -- failures ---------------------------------------------------------------------------------- */

static void disconnect(struct sql_driver *driver)
{
    if (!driver->process)
        return;
    loop_remove(driver->loop, &driver->io);
    helper_process_stop(driver->process);
    driver->process = NULL;
    driver->phase = PHASE_DOWN;
    explicit_bzero(driver->out.bytes, driver->out.size);
    driver->out.size = 0;
    driver->in.size = driver->in.taken = 0;
}

static void finish(struct sql_driver *driver, const struct sql_reply *reply)
{
    sql_done *done = driver->done;

    loop_disarm(driver->loop, &driver->timer);
    free(driver->sql);
    driver->sql = NULL;
    driver->done = NULL;
    done(driver->arg, reply);
}

static void tell_failure(struct loop_timer *timer)
{
    struct sql_driver *driver = timer->owner;
    struct sql_reply failure = driver->failure;

    finish(driver, &failure);
}

/* Ends the connection, and what is under way, if anything is. */
static void break_off(struct sql_driver *driver, enum wire_error error, const char *said)
{
    bool sent = driver->phase == PHASE_ASKED;

    loop_disarm(driver->loop, &driver->timer);
    snprintf(driver->said, sizeof driver->said, "%s", said);
    driver->failure = (struct sql_reply){.failed = true,
                                         .error = error,
                                         .said = driver->said,
                                         .user = driver->user,
                                         .maybe_done = sent,
                                         .aged = driver->aged && sent,
                                         .sent = driver->sent};
    disconnect(driver);
    if (driver->done)
        loop_arm(driver->loop, &driver->turn, loop_now(driver->loop));
}

static void time_is_up(struct loop_timer *timer)
{
    struct sql_driver *driver = timer->owner;

    break_off(driver, WIRE_UNREACHABLE,
              driver->phase == PHASE_CONNECTING ? "no connection in time" : "no answer in time");
    driver->failure.aged = false;
}

/* What it was told last is done by a driver that ends by itself. */
static void leave(struct sql_driver *driver)
{
    if (driver->phase == PHASE_TOLD) {
        helper_process_leave(driver->process);
        driver->process = NULL;
        driver->phase = PHASE_DOWN;
        driver->out.size = 0;
        driver->in.size = driver->in.taken = 0;
    }
}

static void destroy(struct sql_driver *driver)
{
    leave(driver);
    disconnect(driver);
    free(driver->sql);
    free(driver->out.bytes);
    free(driver->in.bytes);
    free(driver);
}

/* -- what it says ------------------------------------------------------------------------------ */

static int64_t left_ms(struct moment until)
{
    int64_t ms = moment_until(moment_now(), until) / NS_PER_MS;

    return ms > 1 ? ms : 1;
}

static void send_statement(struct sql_driver *driver)
{
    wire_begin(&driver->out, WIRE_STATEMENT);
    wire_number(&driver->out, left_ms(driver->until));
    wire_text(&driver->out, driver->sql);
    if (!wire_end(&driver->out)) {
        break_off(driver, WIRE_UNFIT, "the statement is too long");
        return;
    }
    loop_arm(driver->loop, &driver->timer, driver->until);
    driver->phase = PHASE_ASKED;
    driver->sent = moment_now();
    send_some(driver);
}

static bool hear_connected(struct sql_driver *driver, struct wire_frame *frame)
{
    const char *version;

    if (driver->phase != PHASE_CONNECTING || !wire_take(frame, &version))
        return false;
    snprintf(driver->version, sizeof driver->version, "%s", version);
    driver->connection++;
    driver->phase = PHASE_IDLE;
    send_statement(driver);
    return true;
}

static bool hear_rows(struct sql_driver *driver, struct wire_frame *frame)
{
    struct sql_reply reply = {.sent = driver->sent};
    int64_t columns;
    size_t count = 0;

    if (driver->phase != PHASE_ASKED || !wire_take_number(frame, &columns) || columns > 100)
        return false;
    /* A value takes five bytes at least. */
    const char **values =
        mem_zeroed((size_t)(frame->end - frame->at + 1) * sizeof *values / 5 + sizeof *values);
    while (frame->at < frame->end && wire_take(frame, &values[count]))
        count++;
    bool sound = frame->at == frame->end && (columns > 0 ? count % (size_t)columns : count) == 0;
    if (sound) {
        reply.columns = (size_t)columns;
        reply.rows = columns > 0 ? count / (size_t)columns : 0;
        reply.values = values;
        driver->phase = PHASE_IDLE;
        finish(driver, &reply);
    }
    free(values);
    return sound;
}

static bool hear_error(struct sql_driver *driver, struct wire_frame *frame)
{
    const char *error, *said, *user;

    if ((driver->phase != PHASE_ASKED && driver->phase != PHASE_CONNECTING) ||
        !wire_take(frame, &error) || !wire_take(frame, &said) || !wire_take(frame, &user))
        return false;
    snprintf(driver->user, sizeof driver->user, "%s", user);
    if (wire_error_breaks((enum wire_error) * error) || driver->phase == PHASE_CONNECTING) {
        break_off(driver, (enum wire_error) * error, said);
        return true;
    }
    driver->phase = PHASE_IDLE;
    finish(driver, &(struct sql_reply){.failed = true,
                                       .error = (enum wire_error) * error,
                                       .said = said,
                                       .user = driver->user,
                                       .maybe_done = *error == WIRE_UNFIT,
                                       .sent = driver->sent});
    return true;
}

static bool obey(struct sql_driver *driver, struct wire_frame *frame)
{
    switch (frame->type) {
    case WIRE_CONNECTED: return hear_connected(driver, frame);
    case WIRE_ROWS: return hear_rows(driver, frame);
    case WIRE_ERROR: return hear_error(driver, frame);
    case WIRE_CALLED: driver->called(driver->called_arg); return true;
    default: return false;
    }
}

/* A program that has not even begun says so in words, in place of frames. */
static void hear_nonsense(struct sql_driver *driver)
{
    static const char linker[] = "error while loading shared libraries: ";
    char text[sizeof driver->said - 64], said[sizeof driver->said];
    const char *words = text;

    if (driver->phase != PHASE_CONNECTING) {
        break_off(driver, WIRE_UNFIT, "the driver is of another version");
        return;
    }
    snprintf(text, sizeof text, "%.*s", (int)(driver->in.size - driver->in.taken),
             driver->in.bytes + driver->in.taken);
    text[strcspn(text, "\n")] = '\0';
    if (strstr(words, linker))
        words = strstr(words, linker) + strlen(linker);
    snprintf(said, sizeof said, "the program %s cannot be started: %s", driver->program, words);
    break_off(driver, WIRE_NO_START, said);
}

/* What is called from here may ask the next question, or free the driver. */
static void hear(struct sql_driver *driver)
{
    struct wire_frame frame;
    enum wire_state state;
    size_t room;
    char *to = wire_room(&driver->in, &room);
    ssize_t got = recv(driver->io.fd, to, room, 0);

    if (got < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (got <= 0) {
        break_off(driver, WIRE_UNREACHABLE, "the connection broke");
        return;
    }
    wire_received(&driver->in, (size_t)got);
    driver->reading = true;
    while ((state = wire_next(&driver->in, &frame)) == WIRE_FRAME && obey(driver, &frame))
        if (driver->doomed || !driver->process)
            break;
    driver->reading = false;
    if (driver->doomed) {
        destroy(driver);
        return;
    }
    if (driver->process && state != WIRE_MORE)
        hear_nonsense(driver);
}

static void send_some(struct sql_driver *driver)
{
    ssize_t sent = send(driver->io.fd, driver->out.bytes, driver->out.size, MSG_NOSIGNAL);

    if (sent > 0)
        wire_sent(&driver->out, (size_t)sent);
    driver->io.events = LOOP_READ | (driver->out.size > 0 ? LOOP_WRITE : 0);
}

static void ready(struct loop_io *io, int events)
{
    struct sql_driver *driver = io->owner;

    if (events & LOOP_WRITE)
        send_some(driver);
    if (events & (LOOP_READ | LOOP_GONE))
        hear(driver);
}

/* -- the way there ----------------------------------------------------------------------------- */

static const char *text_or_none(const char *text)
{
    return text ? text : "";
}

static void send_target(struct sql_driver *driver, const char *password)
{
    const struct store_address *address = &driver->address;
    const struct url *url = address->urls;
    struct wire_out *out = &driver->out;

    wire_begin(out, WIRE_CONNECT);
    wire_number(out, WIRE_VERSION);
    wire_number(out, left_ms(driver->timer.due));
    wire_text(out, url->path ? url->path : url->hosts[0].name);
    wire_number(out, url->hosts[0].port);
    wire_text(out, text_or_none(url->user));
    wire_text(out, password);
    wire_text(out, url->database);
    wire_number(out, url->tls);
    wire_text(out, text_or_none(address->tls.ca.path));
    wire_text(out, text_or_none(address->tls.cert.path));
    wire_text(out,
              text_or_none(address->tls.key.path ? address->tls.key.path : address->tls.cert.path));
    wire_text(out, *address->client ? address->client : "rlock");
    wire_end(out);
    send_some(driver);
}

/* A password in a file may be another one by now. */
static void greet(struct sql_driver *driver)
{
    const struct store_address *address = &driver->address;
    const char *given = store_address_password(address);
    char *fresh = !address->urls->password && address->password_file
                      ? secret_read_again(address->password_file)
                      : NULL;

    send_target(driver, text_or_none(fresh ? fresh : given));
    if (fresh)
        explicit_bzero(fresh, strlen(fresh));
    free(fresh);
}

static void connect_first(struct sql_driver *driver)
{
    char path[4096], said[sizeof driver->said];
    int socket;

    if (!program_find(driver->program, path, sizeof path)) {
        snprintf(said, sizeof said, "the program %s is not installed", driver->program);
        break_off(driver, WIRE_NO_DRIVER, said);
        return;
    }
    driver->process = helper_process_execute(driver->loop, path, &socket);
    if (!driver->process) {
        snprintf(said, sizeof said, "%s: %s", driver->program, strerror(errno));
        break_off(driver, WIRE_UNREACHABLE, said);
        return;
    }
    driver->phase = PHASE_CONNECTING;
    driver->io =
        (struct loop_io){.fd = socket, .events = LOOP_READ, .ready = ready, .owner = driver};
    loop_add(driver->loop, &driver->io);
    struct moment limit = moment_plus(moment_now(), driver->address.connect_timeout);
    loop_arm(driver->loop, &driver->timer, moment_min(limit, driver->until));
    greet(driver);
}

void sql_driver_ask(struct sql_driver *driver, const char *sql, struct moment until, sql_done *done,
                    void *arg)
{
    leave(driver);
    driver->sql = mem_strdup(sql);
    driver->until = until;
    driver->done = done;
    driver->arg = arg;
    driver->aged = driver->phase == PHASE_IDLE;
    if (driver->phase == PHASE_IDLE)
        send_statement(driver);
    else
        connect_first(driver);
}

/* Nobody waits for what is under way any more. */
static void forget(struct sql_driver *driver)
{
    loop_disarm(driver->loop, &driver->timer);
    loop_disarm(driver->loop, &driver->turn);
    free(driver->sql);
    driver->sql = NULL;
    driver->done = NULL;
}

void sql_driver_give_up(struct sql_driver *driver)
{
    forget(driver);
    if (driver->phase == PHASE_CONNECTING || driver->phase == PHASE_ASKED)
        disconnect(driver);
}

bool sql_driver_tell(struct sql_driver *driver, const char *sql, struct moment until)
{
    if (driver->phase == PHASE_CONNECTING)
        sql_driver_give_up(driver);
    forget(driver);
    if (driver->phase == PHASE_DOWN)
        return false;
    loop_remove(driver->loop, &driver->io);
    wire_begin(&driver->out, WIRE_STATEMENT);
    wire_number(&driver->out, left_ms(until));
    wire_text(&driver->out, sql);
    bool sent = wire_end(&driver->out);
    if (sent)
        send_some(driver);
    driver->phase = PHASE_TOLD;
    return sent && driver->out.size == 0;
}

struct sql_driver *sql_driver_new(struct loop *loop, const struct store_address *address,
                                  const char *program, void (*called)(void *arg), void *arg)
{
    struct sql_driver *driver = mem_zeroed(sizeof *driver);

    *driver = (struct sql_driver){
        .loop = loop, .address = *address, .program = program, .called = called, .called_arg = arg};
    driver->timer = (struct loop_timer){.fire = time_is_up, .owner = driver};
    driver->turn = (struct loop_timer){.fire = tell_failure, .owner = driver};
    return driver;
}

void sql_driver_free(struct sql_driver *driver)
{
    loop_disarm(driver->loop, &driver->timer);
    loop_disarm(driver->loop, &driver->turn);
    if (driver->process)
        loop_remove(driver->loop, &driver->io);
    driver->done = NULL;
    if (driver->reading)
        driver->doomed = true;
    else
        destroy(driver);
}

unsigned sql_driver_connection(const struct sql_driver *driver)
{
    bool connected = driver->phase == PHASE_IDLE || driver->phase == PHASE_ASKED;

    return connected ? driver->connection : 0;
}

const char *sql_driver_version(const struct sql_driver *driver)
{
    return driver->version;
}
