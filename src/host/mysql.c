/* Records in MySQL and MariaDB.
 *
 * A key is locked by a row of the table "gate", whose number is made of the key's name. All of
 * its rows are there from the start, so that a key without a record is locked as any other is,
 * and no gap between rows is ever locked, on which two that write new records would wait for
 * each other.
 *
 * Messages are rows that are committed together with the records. A waiter sleeps in the server, by
 * a statement that looks for messages and, if there is none, goes to sleep. A client that has
 * committed a message finds that statement in the list of processes and ends it: either it has
 * begun by then, or it will see the row. Where this fails, it ends by itself soon. */
#include <errmsg.h>
#include <errno.h>
#include <inttypes.h>
#include <mysql.h>
#include <mysqld_error.h>
#include <netdb.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "host/database.h"

/* How many rows the table of gates has (store/hosted/dialect.c). */
#define GATES 1000
/* How long a unit waits for its locks, and how long the server lets a client stand still between
 * its two requests, s. For the latter, MySQL has no limit of its own: it is that of a connection
 * that does nothing at all. */
#define LOCK_TIMEOUT "3"
#define IDLE_TIMEOUT "2"
/* For a second connection. */
#define CONNECT_SECONDS 2
/* How long a message is kept, ms. */
#define MESSAGE_MS 60000
/* How long a statement sleeps in the server. If it does not answer within OVERDUE after that, the
 * connection is broken. */
#define SLEEP_NS   (2 * NS_PER_SEC)
#define OVERDUE_NS (5 * NS_PER_SEC)
/* The pause after a sleep that ended too early without a message: the server may not let it
 * sleep. */
#define RESTLESS_NS (200 * NS_PER_MS)
/* How often a client that does not sleep looks for messages. */
#define LOOK_NS NS_PER_SEC

/* Errors of MySQL's own: max_execution_time, and wait_timeout. */
#define MYSQL_QUERY_TIMEOUT 3024
#define MYSQL_IDLE_END      4031

/* -- connections over MariaDB's Connector/C ---------------------------------------------------- */

static enum wire_error error_of(unsigned number, const char *said)
{
    switch (number) {
    case ER_BAD_NULL_ERROR: /* the state became NULL: another version is there */
    case ER_CHECKREAD:
    case ER_DUP_ENTRY:
    case ER_LOCK_DEADLOCK: return WIRE_CONFLICT;
    case ER_NO_SUCH_TABLE: return WIRE_NO_TABLES;
    case ER_BAD_DB_ERROR: return WIRE_NO_DATABASE;
    case ER_ACCESS_DENIED_ERROR:
    case ER_ACCESS_DENIED_NO_PASSWORD_ERROR: return WIRE_PASSWORD;
    case ER_HOST_NOT_PRIVILEGED:
    case ER_HOST_IS_BLOCKED:
    case ER_ACCOUNT_HAS_BEEN_LOCKED:
    case ER_MUST_CHANGE_PASSWORD_LOGIN: return WIRE_KEPT_OUT;
    case ER_DBACCESS_DENIED_ERROR:
    case ER_TABLEACCESS_DENIED_ERROR:
    case ER_SPECIFIC_ACCESS_DENIED_ERROR:
    case ER_COLUMNACCESS_DENIED_ERROR: return WIRE_DENIED;
    case ER_CON_COUNT_ERROR:
    case ER_TOO_MANY_USER_CONNECTIONS:
    case ER_USER_LIMIT_REACHED: return WIRE_FULL;
    case ER_UNKNOWN_COM_ERROR: /* a node of Galera that has yet to join, or is cut off */
        return WIRE_NOT_READY;
    case ER_QUERY_INTERRUPTED: /* another client has ended it */
    case ER_STATEMENT_TIMEOUT: /* max_statement_time: another client has locked the whole table */
    case MYSQL_QUERY_TIMEOUT:
    case ER_LOCK_WAIT_TIMEOUT: return WIRE_BUSY;
    case ER_OPTION_PREVENTS_STATEMENT: /* an option that is named in any language */
        return strstr(said, "read-only") || strstr(said, "read_only") ? WIRE_READ_ONLY : WIRE_UNFIT;
    case ER_DISK_FULL:
    case ER_RECORD_FILE_FULL: return WIRE_NO_SPACE;
    case ER_OUTOFMEMORY:
    case ER_OUT_OF_RESOURCES: return WIRE_NO_MEMORY;
    case ER_SERVER_SHUTDOWN:
    case ER_CONNECTION_KILLED:
    case MYSQL_IDLE_END: return WIRE_ENDED;
    case CR_CONNECTION_ERROR:
    case CR_CONN_HOST_ERROR:
    case CR_UNKNOWN_HOST:
    case CR_SERVER_GONE_ERROR:
    case CR_SERVER_LOST: return WIRE_UNREACHABLE;
    default: return WIRE_UNFIT;
    }
}

/* Whether an error is the client library's own: the server's word on the statement was not heard,
 * or not understood. */
static bool my_is_of_client(unsigned number)
{
    return (number >= 2000 && number < 3000) || (number >= 5000 && number < 6000);
}

/* Puts down why a statement has failed. Returns false. */
static bool my_fail(MYSQL *connection, struct host_error *fault)
{
    unsigned number = mysql_errno(connection);
    const char *said = mysql_error(connection);

    return database_fail(fault, my_is_of_client(number) ? WIRE_UNREACHABLE : error_of(number, said),
                         said);
}

/* Returns the error that the system has for a connection there; 0: it has none now. */
static int try_to_connect(const struct host_target *target)
{
    static const struct addrinfo hints = {.ai_socktype = SOCK_STREAM};
    struct addrinfo *list = NULL;
    int error = 0;

    if (getaddrinfo(target->host, target->port, &hints, &list) != 0)
        return 0;
    for (const struct addrinfo *one = list; one; one = one->ai_next) {
        int fd = socket(one->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
        error = fd >= 0 && connect(fd, one->ai_addr, one->ai_addrlen) == 0 ? 0 : errno;
        if (fd >= 0)
            close(fd);
    }
    freeaddrinfo(list);
    return error;
}

/* Whether a handshake of TLS failed for no other reason than that the connection broke, by what
 * OpenSSL and GnuTLS say then. */
static bool is_cut(const char *said)
{
    static const char *const known[] = {
        "TLS/SSL error: unexpected eof while reading",
        "TLS/SSL error: The TLS connection was non-properly terminated",
        "TLS/SSL error: Error in the p"}; /* pull function, push function */

    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (strncmp(said, known[i], strlen(known[i])) == 0)
            return true;
    return false;
}

/* The library reports the system's error only as a number in brackets at the end; where it has
 * waited for the connection, that is not the error of the connection. */
static void fail_to_connect(MYSQL *connection, const struct host_target *target,
                            struct host_error *fault)
{
    const char *said = mysql_error(connection), *number = strrchr(said, '(');
    unsigned error = mysql_errno(connection);
    bool tls = error == CR_SSL_CONNECTION_ERROR;
    bool way = error == CR_CONNECTION_ERROR || error == CR_CONN_HOST_ERROR;
    long system = (way || tls) && number ? strtol(number + 1, NULL, 10) : 0;

    if (tls && (system > 0 || is_cut(said)))
        error = CR_SERVER_LOST;
    if (system == EINPROGRESS)
        system = try_to_connect(target);
    if (way)
        said = system > 0 ? strerror((int)system) : "no connection";
    database_fail(fault, error_of(error, said), said);
}

static void set_options(MYSQL *connection, const struct host_target *target)
{
    unsigned seconds = (unsigned)target->seconds;
    unsigned no_files = 0; /* a server may otherwise ask for any file that can be read here */
    unsigned protocol = *target->host == '/' ? MYSQL_PROTOCOL_SOCKET : MYSQL_PROTOCOL_TCP;
    my_bool tls = target->tls ? 1 : 0;

    /* Without it "localhost" is the default socket, whatever the port is. */
    mysql_options(connection, MYSQL_OPT_PROTOCOL, &protocol);
    mysql_options(connection, MYSQL_OPT_LOCAL_INFILE, &no_files);
    mysql_options(connection, MYSQL_OPT_CONNECT_TIMEOUT, &seconds);
    mysql_options(connection, MYSQL_SET_CHARSET_NAME, "utf8mb4");
    mysql_optionsv(connection, MYSQL_OPT_CONNECT_ATTR_ADD, "program_name", target->client);
    /* The order counts: whatever names a file turns TLS on. */
    if (tls && *target->ca)
        mysql_options(connection, MYSQL_OPT_SSL_CA, target->ca);
    if (tls && *target->certificate)
        mysql_options(connection, MYSQL_OPT_SSL_CERT, target->certificate);
    if (tls && *target->key)
        mysql_options(connection, MYSQL_OPT_SSL_KEY, target->key);
    mysql_options(connection, MYSQL_OPT_SSL_ENFORCE, &tls);
    mysql_options(connection, MYSQL_OPT_SSL_VERIFY_SERVER_CERT, &tls);
}

/* Nothing is written by a session that is not strict: there, a NULL that is refused becomes an
 * empty text. A GRANT must not make a user without a password of a name that MariaDB does not
 * know; MySQL makes none, and refuses the mode. The server may be told to cut what is read after
 * so many rows, to refuse to read many, and to begin a transaction behind each one or to end the
 * session there. */
static bool make_strict(MYSQL *connection, struct host_error *fault)
{
    static const char sql[] = "SET SESSION sql_mode = CONCAT('STRICT_ALL_TABLES' "
                              "/*M!, ',NO_AUTO_CREATE_USER' */), autocommit = 1, "
                              "completion_type = 0, sql_big_selects = 1, "
                              "sql_select_limit = 18446744073709551615";

    return mysql_query(connection, sql) == 0 || my_fail(connection, fault);
}

/* NULL with why in *fault. flags: those of mysql_real_connect(). */
static MYSQL *my_connect(const struct host_target *target, unsigned long flags,
                         struct host_error *fault)
{
    bool local = *target->host == '/', up;

    if (database_blames_name(target, fault)) /* the library asks on and on, and tells less */
        return NULL;
    MYSQL *made = mysql_init(NULL);
    if (!made) {
        database_fail(fault, WIRE_UNFIT, "no memory");
        return NULL;
    }
    set_options(made, target);
    up = mysql_real_connect(made, local ? NULL : target->host, target->user, target->password,
                            target->database, (unsigned)strtoul(target->port, NULL, 10),
                            local ? target->host : NULL, flags);
    if (!up)
        fail_to_connect(made, target, fault);
    if (up && make_strict(made, fault))
        return made;
    mysql_close(made);
    return NULL;
}

/* -- the connection of this process ------------------------------------------------------------ */

static MYSQL *connection;
static struct host_target target; /* for a second connection */

static bool asleep;
static struct moment asleep_since;
static bool is_called;           /* a message may have come */
static struct moment look_at;    /* when to look next without a sleep */
static struct moment sleep_from; /* not before */
static enum host_ears hearing;

/* -- requests ---------------------------------------------------------------------------------- */

static void take_row(const struct database_taker *taker, MYSQL_RES *result, MYSQL_ROW row)
{
    const unsigned long *lengths = mysql_fetch_lengths(result);
    size_t columns = mysql_num_fields(result);
    struct piece values[DATABASE_COLUMNS];

    for (size_t i = 0; i < columns && i < DATABASE_COLUMNS; i++)
        values[i] = (struct piece){row[i] ? row[i] : "", lengths[i]};
    taker->take(taker->arg, values, columns < DATABASE_COLUMNS ? columns : DATABASE_COLUMNS);
}

/* False: the statement has failed. */
static bool take_result(const struct database_taker *taker)
{
    MYSQL_RES *result = mysql_store_result(connection);
    MYSQL_ROW row;

    if (!result)
        return mysql_field_count(connection) == 0;
    while ((row = mysql_fetch_row(result)))
        if (taker)
            take_row(taker, result, row);
    mysql_free_result(result);
    return true;
}

/* Sends the statements, and returns how many of them were done. The last one ends with a semicolon,
 * behind which there is no other. behind: takes the rows that come behind the commit. */
static unsigned send_all(const struct sql_text *request, const struct database_taker *taker,
                         const struct database_taker *behind)
{
    const struct strbuf *text = &request->out;
    unsigned done = 0;
    bool more = mysql_real_query(connection, text->text, text->size - 1) == 0;

    while (more && take_result(request->commits && done >= request->commits ? behind : taker)) {
        done++;
        more = mysql_next_result(connection) == 0;
    }
    return done;
}

/* Returns the outcome of a failed request, "done" of whose statements were done. The server undoes
 * what it refuses in front of the COMMIT with all else. Where it is told between two statements to
 * end what runs, it ends the request behind the first one without an error. */
static enum host_outcome outcome_of(const struct sql_text *request, unsigned done,
                                    struct host_fault *fault)
{
    unsigned number = mysql_errno(connection);
    bool unheard = my_is_of_client(number);
    bool commits = request->commits && (unheard || (number && done + 1 == request->commits));

    *fault = (struct host_fault){.broken = false};
    my_fail(connection, &fault->why);
    fault->broken = wire_error_breaks(fault->why.error);
    if (number == 0 || number == ER_LOCK_DEADLOCK)
        return HOST_AGAIN;
    fault->why.maybe_done = commits;
    bool conflict = fault->why.error == WIRE_CONFLICT || number == ER_QUERY_INTERRUPTED;
    return conflict && !commits ? HOST_AGAIN : HOST_FAILED;
}

/* -- sleeping ---------------------------------------------------------------------------------- */

/* As the column has it. */
static int64_t channel_number(struct piece name)
{
    return (int64_t)database_number(name);
}

/* A condition: the messages that have not been told. */
static void add_unheard(struct sql_text *request)
{
    for (size_t i = 0; i < host_channels.count; i++)
        sql_add(request, "%s(name=%" PRId64 " AND id>%" PRIu64 ")", i > 0 ? " OR " : "",
                channel_number(host_channels.at[i].name), host_channels.at[i].heard);
}

/* Whether something has come, or the end of the connection. */
static bool is_readable(void)
{
    char byte;

    return recv(mysql_get_socket(connection), &byte, 1, MSG_PEEK | MSG_DONTWAIT) >= 0 ||
           (errno != EAGAIN && errno != EINTR);
}

/* A client that tells a message looks for a statement that begins so: add_sleepers(). */
static void fall_asleep(struct moment now)
{
    struct sql_text request = database_request();

    sql_add(&request, "SELECT IF(EXISTS(SELECT 1 FROM @message WHERE ");
    add_unheard(&request);
    sql_add(&request, "),2,SLEEP(%d))", (int)(SLEEP_NS / NS_PER_SEC));
    mysql_send_query(connection, request.out.text, request.out.size);
    strbuf_free(&request.out);
    asleep = true;
    asleep_since = now;
}

/* The statement has ended, or is about to. If it ended by itself, it has seen no message. */
static void end_sleep(void)
{
    struct moment now = moment_now();
    MYSQL_RES *result =
        mysql_read_query_result(connection) == 0 ? mysql_store_result(connection) : NULL;
    MYSQL_ROW row = result ? mysql_fetch_row(result) : NULL;

    asleep = false;
    is_called = !row || !row[0] || strcmp(row[0], "0") != 0;
    if (moment_until(asleep_since, now) < SLEEP_NS / 2)
        sleep_from = moment_plus(now, RESTLESS_NS);
    mysql_free_result(result);
}

/* Ends this client's own sleep, by way of another connection. If there is none to be had, it
 * ends by itself soon. */
static void awake(void)
{
    struct host_error fault;
    char sql[40];

    if (!asleep)
        return;
    MYSQL *other = is_readable() ? NULL : my_connect(&target, 0, &fault);
    snprintf(sql, sizeof sql, "KILL QUERY %lu", mysql_thread_id(connection));
    bool ended = other && mysql_query(other, sql) == 0;
    if (other)
        mysql_close(other);
    end_sleep();
    if (ended)
        sleep_from = (struct moment){0};
}

/* -- waking ------------------------------------------------------------------------------------ */

/* Those that sleep for a message, by the number of their connection. */
struct sleepers {
    uint64_t *at;
    size_t count;
};

static void take_sleeper(void *arg, const struct piece *values, size_t count)
{
    struct sleepers *sleepers = arg;

    (void)count;
    *MEM_APPEND(sleepers->at, sleepers->count) = strtoull(values[0].at, NULL, 10);
}

/* Wakes them, and frees the list. A sleeper that has gone ends the request: the next request wakes
 * those behind it. */
static void wake(struct sleepers *sleepers)
{
    size_t next = 0;

    while (next < sleepers->count) {
        struct sql_text request = database_request();
        for (size_t i = next; i < sleepers->count; i++) {
            sql_add(&request, "KILL QUERY %" PRIu64, sleepers->at[i]);
            sql_end(&request);
        }
        next += send_all(&request, NULL, NULL) + 1;
        strbuf_free(&request.out);
    }
    free(sleepers->at);
}

/* A sleep is ended first: the request may meet an end that was meant for one that was over already.
 * The rows behind a commit are those that sleep for its messages. */
enum host_outcome database_ask(struct sql_text *request, const struct database_taker *taker,
                               struct host_fault *fault)
{
    enum host_outcome outcome = HOST_DONE;
    struct sleepers sleepers = {0};
    const struct database_taker behind = {take_sleeper, &sleepers};

    awake();
    unsigned done = send_all(request, taker, &behind);
    if (done == 0 && mysql_errno(connection) == ER_QUERY_INTERRUPTED)
        done = send_all(request, taker, &behind);
    if (done < (request->commits ? request->commits : request->count))
        outcome = outcome_of(request, done, fault);
    strbuf_free(&request->out);
    wake(&sleepers);
    return outcome;
}

/* -- hearing ----------------------------------------------------------------------------------- */

static void take_message(void *arg, const struct piece *values, size_t count)
{
    int64_t number = strtoll(values[0].at, NULL, 10);
    struct piece name = {0};

    (void)arg;
    (void)count;
    for (size_t i = 0; i < host_channels.count; i++) {
        struct host_channel *channel = &host_channels.at[i];
        if (channel_number(channel->name) != number)
            continue;
        channel->heard = strtoull(values[1].at, NULL, 10);
        sleep_from = (struct moment){0};
        name = channel->name;
    }
    if (name.at)
        host_tell(name, values[2]);
}

/* False: the connection broke. */
static bool look(void)
{
    const struct database_taker taker = {take_message, NULL};
    struct sql_text request = database_request();
    struct host_fault fault;

    is_called = false;
    look_at = moment_plus(moment_now(), LOOK_NS);
    if (host_channels.count == 0)
        return true;
    sql_add(&request, "SELECT name, id, text FROM @message WHERE ");
    add_unheard(&request);
    database_say(&request, " ORDER BY id");
    return database_ask(&request, &taker, &fault) == HOST_DONE || !fault.broken;
}

int database_rest(enum host_ears ears, int *ms)
{
    struct moment now = moment_now(), due = MOMENT_NEVER;

    *ms = -1;
    hearing = ears;
    if (hearing == HOST_ALERT && !asleep && !is_called && moment_reached(sleep_from, now))
        fall_asleep(now);
    if (asleep)
        due = moment_plus(asleep_since, SLEEP_NS + OVERDUE_NS);
    else if (is_called)
        due = now;
    else if (hearing != HOST_DEAF)
        due = hearing == HOST_ALERT ? sleep_from : look_at;
    if (due.ns != MOMENT_NEVER.ns)
        *ms = moment_reached(due, now) ? 0 : (int)(moment_until(now, due) / NS_PER_MS + 1);
    return mysql_get_socket(connection);
}

/* Where nothing was asked, anything that can be read is the end of the connection. */
bool database_hear(void)
{
    struct moment now = moment_now();

    if (is_readable()) {
        if (!asleep)
            return false;
        end_sleep();
    } else if (asleep) {
        return !moment_reached(moment_plus(asleep_since, SLEEP_NS + OVERDUE_NS), now);
    }
    return (!is_called && (hearing != HOST_PATIENT || !moment_reached(look_at, now))) || look();
}

/* -- statements -------------------------------------------------------------------------------- */

void database_add_text(struct sql_text *request, const char *text)
{
    struct strbuf *out = &request->out;
    size_t size = strlen(text);

    strbuf_putc(out, '\'');
    char *to = strbuf_room(out, 2 * size + 1);
    strbuf_grew(out, mysql_real_escape_string(connection, to, text, size));
    strbuf_putc(out, '\'');
}

/* Asks for the latest message: a row 'm'. */
void database_add_listening(struct sql_text *request, struct piece channel)
{
    int64_t number = channel_number(channel);

    sql_add(request, "SELECT 'm', %" PRId64 ", MAX(id) FROM @message WHERE name = %" PRId64, number,
            number);
}

static void add_messages(struct sql_text *request, const struct unit *unit)
{
    for (size_t i = 0; i < unit->message_count; i++) {
        sql_add(request, "%s(%" PRId64 ",%" PRId64 ",",
                i == 0 ? "INSERT INTO @message (name,expires,text) VALUES " : ",",
                channel_number(unit->messages[i].channel), unit->now_us / 1000 + MESSAGE_MS);
        database_add_bytes(request, unit->messages[i].text);
        strbuf_putc(&request->out, ')');
    }
    if (unit->message_count > 0)
        sql_end(request);
}

/* Those that sleep for a message of the unit: fall_asleep(). A user sees its own connections, and
 * may end their statements. */
static void add_sleepers(struct sql_text *request, const struct unit *unit)
{
    for (size_t i = 0; i < unit->message_count; i++)
        sql_add(request, "%s info LIKE 'SELECT IF(EXISTS(%%(name=%" PRId64 " AND %%'%s",
                i == 0 ? " FROM information_schema.processlist WHERE (" : " OR",
                channel_number(unit->messages[i].channel), i + 1 == unit->message_count ? ")" : "");
}

/* Behind the commit, the first sleeper that waits for a message of the unit is woken, and the
 * others are reported: database_ask(). Without sleepers the request ends there. */
void database_add_commit(struct sql_text *request, const struct unit *unit)
{
    struct strbuf *out = &request->out;

    add_messages(request, unit);
    database_say(request, "COMMIT");
    request->commits = request->count;
    if (unit->message_count == 0)
        return;
    strbuf_puts(out, "SELECT MIN(id) INTO @rlock_sleeper");
    add_sleepers(request, unit);
    sql_end(request);
    database_say(request, "KILL QUERY @rlock_sleeper");
    strbuf_puts(out, "SELECT id");
    add_sleepers(request, unit);
    database_say(request, " AND id > @rlock_sleeper");
}

static const char *const begin[] = {
    "SET SESSION wait_timeout = " IDLE_TIMEOUT ", innodb_lock_wait_timeout = " LOCK_TIMEOUT
    ", lock_wait_timeout = " LOCK_TIMEOUT,
    "SET TRANSACTION ISOLATION LEVEL READ COMMITTED", "START TRANSACTION READ WRITE", NULL};

#define GATE "SELECT 'g' FROM @gate WHERE name="

const struct database database = {.dialect = &sql_mysql,
                                  .locks = GATES,
                                  .begin = begin,
                                  .end = "SET SESSION wait_timeout = DEFAULT",
                                  .purge_every = 64,
                                  .lock = {{GATE, " LOCK IN SHARE MODE"}, {GATE, " FOR UPDATE"}},
                                  .listens_always = true};

/* -- connecting -------------------------------------------------------------------------------- */

bool database_connect(const struct host_target *given, struct host_error *fault)
{
    connection = my_connect(given, CLIENT_MULTI_STATEMENTS, fault);
    target = *given;
    target.seconds = CONNECT_SECONDS;
    return connection;
}
