#include "host/my_session.h"

#include <errno.h>
#include <inttypes.h>
#include <mysqld_error.h>
#include <stdio.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "base/mem.h"

/* For a second connection. */
#define CONNECT_SECONDS 2

/* MySQL's own: wait_timeout is over. */
#define MYSQL_IDLE_END 4031

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

struct my_session my_session;

struct channel {
    struct piece name;
    int64_t number;
    uint64_t heard; /* the latest message that need not be told any more */
    bool is_new;    /* "heard" must be asked for */
};

static struct channel *channels;
static size_t channel_count;

static bool asleep;
static struct moment asleep_since;
static bool is_called;           /* a message may have come */
static struct moment look_at;    /* when to look next without a sleep */
static struct moment sleep_from; /* not before */
static enum host_ears hearing;

/* -- connecting -------------------------------------------------------------------------------- */

static void keep_target(const struct driver_target *given)
{
    struct driver_target *target = &my_session.target;
    const char **const texts[] = {&target->host,     &target->port,        &target->user,
                                  &target->password, &target->database,    &target->ca,
                                  &target->key,      &target->certificate, &target->client};

    *target = *given;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        *texts[i] = mem_strdup(*texts[i]);
    target->seconds = CONNECT_SECONDS;
}

bool my_session_open(const struct host_target *given, struct host_fault *fault)
{
    if (my_session.connection)
        mysql_close(my_session.connection);
    *fault = (struct host_fault){.broken = false};
    my_session.in_transaction = asleep = false;
    my_session.connection = my_connect(&given->at, CLIENT_MULTI_STATEMENTS, &fault->why);
    if (!my_session.connection)
        return false;
    keep_target(&given->at);
    snprintf(my_session.table, sizeof my_session.table, "%s", given->table);
    return true;
}

/* -- statements -------------------------------------------------------------------------------- */

struct my_sql my_sql(void)
{
    return (struct my_sql){.text = {.dialect = &sql_mysql, .table = my_session.table}};
}

void my_sql_next(struct my_sql *sql)
{
    strbuf_putc(&sql->text.out, ';');
    sql->count++;
}

void my_sql_say(struct my_sql *sql, const char *statement)
{
    strbuf_puts(&sql->text.out, statement);
    my_sql_next(sql);
}

void my_sql_bytes(struct my_sql *sql, struct piece bytes)
{
    strbuf_puts(&sql->text.out, "x'");
    sql_add_digits(&sql->text, bytes.at, bytes.size);
    strbuf_putc(&sql->text.out, '\'');
}

void my_sql_text(struct my_sql *sql, const char *text)
{
    size_t size = strlen(text);

    strbuf_putc(&sql->text.out, '\'');
    char *to = strbuf_room(&sql->text.out, 2 * size + 1);
    strbuf_grew(&sql->text.out, mysql_real_escape_string(my_session.connection, to, text, size));
    strbuf_putc(&sql->text.out, '\'');
}

/* -- requests ---------------------------------------------------------------------------------- */

/* False: the statement has failed. */
static bool take_result(const struct my_taker *taker)
{
    MYSQL_RES *result = mysql_store_result(my_session.connection);
    MYSQL_ROW row;

    if (!result)
        return mysql_field_count(my_session.connection) == 0;
    while ((row = mysql_fetch_row(result)))
        if (taker)
            taker->take(taker->arg, row, mysql_fetch_lengths(result));
    mysql_free_result(result);
    return true;
}

/* Sends the statements, and returns how many of them were done. The last one ends with a semicolon,
 * behind which there is no other. */
static unsigned send_all(const struct my_sql *sql, const struct my_taker *taker)
{
    unsigned done = 0;
    bool more =
        mysql_real_query(my_session.connection, sql->text.out.text, sql->text.out.size - 1) == 0;

    while (more && take_result(taker)) {
        done++;
        more = mysql_next_result(my_session.connection) == 0;
    }
    return done;
}

/* Returns the outcome of a failed request, "done" of whose statements were done. The server undoes
 * what it refuses in front of the COMMIT with all else. Where it is told between two statements to
 * end what runs, it ends the request behind the first one without an error. */
static enum host_outcome outcome_of(const struct my_sql *sql, unsigned done,
                                    struct host_fault *fault)
{
    unsigned number = mysql_errno(my_session.connection);
    bool unheard = my_is_of_client(number);
    bool commits = sql->commits && (unheard || (number && done + 1 == sql->commits));

    *fault = (struct host_fault){.broken = false};
    my_fail(my_session.connection, &fault->why);
    if (number == MYSQL_IDLE_END)
        fault->why.error = WIRE_ENDED;
    if (number == ER_LOCK_WAIT_TIMEOUT)
        fault->why.error = WIRE_BUSY;
    fault->broken = wire_error_breaks(fault->why.error);
    if (number == 0 || number == ER_LOCK_DEADLOCK)
        return HOST_AGAIN;
    fault->maybe_done = commits;
    return !commits && (number == ER_BAD_NULL_ERROR || number == ER_CHECKREAD ||
                        number == ER_DUP_ENTRY || number == ER_QUERY_INTERRUPTED)
               ? HOST_AGAIN
               : HOST_FAILED;
}

/* -- channels ---------------------------------------------------------------------------------- */

static int64_t channel_number(struct piece name)
{
    return (int64_t)host_number(my_session.table, name);
}

void my_listen(struct piece name)
{
    for (size_t i = 0; i < channel_count; i++)
        if (piece_equal(channels[i].name, name))
            return;
    *MEM_APPEND(channels, channel_count) = (struct channel){
        .name = piece_duplicate(name), .number = channel_number(name), .is_new = true};
}

void my_unlisten(struct piece name)
{
    for (size_t i = 0; i < channel_count; i++)
        if (piece_equal(channels[i].name, name)) {
            piece_drop(&channels[i].name);
            channels[i--] = channels[--channel_count];
        }
}

void my_add_positions(struct my_sql *sql)
{
    bool any = false;

    for (size_t i = 0; i < channel_count; i++) {
        if (!channels[i].is_new)
            continue;
        if (!any)
            sql_add(&sql->text, "SELECT 'm', name, MAX(id) FROM @message WHERE name IN (");
        sql_add(&sql->text, "%s%" PRId64, any ? "," : "", channels[i].number);
        any = true;
    }
    if (any)
        my_sql_say(sql, ") GROUP BY name");
}

void my_take_position(MYSQL_ROW row)
{
    int64_t number = strtoll(row[1], NULL, 10);

    for (size_t i = 0; i < channel_count; i++)
        if (channels[i].is_new && channels[i].number == number)
            channels[i].heard = strtoull(row[2], NULL, 10);
}

void my_note_listening(void)
{
    for (size_t i = 0; i < channel_count; i++)
        channels[i].is_new = false;
}

/* A condition: the messages that have not been told. */
static void add_unheard(struct my_sql *sql)
{
    for (size_t i = 0; i < channel_count; i++)
        sql_add(&sql->text, "%s(name=%" PRId64 " AND id>%" PRIu64 ")", i > 0 ? " OR " : "",
                channels[i].number, channels[i].heard);
}

/* -- sleeping ---------------------------------------------------------------------------------- */

/* Whether something has come, or the end of the connection. */
static bool is_readable(void)
{
    char byte;

    return recv(mysql_get_socket(my_session.connection), &byte, 1, MSG_PEEK | MSG_DONTWAIT) >= 0 ||
           (errno != EAGAIN && errno != EINTR);
}

/* A client that tells a message looks for a statement that begins so: add_sleepers(). */
static void fall_asleep(struct moment now)
{
    struct my_sql sql = my_sql();

    sql_add(&sql.text, "SELECT IF(EXISTS(SELECT 1 FROM @message WHERE ");
    add_unheard(&sql);
    sql_add(&sql.text, "),2,SLEEP(%d))", (int)(SLEEP_NS / NS_PER_SEC));
    mysql_send_query(my_session.connection, sql.text.out.text, sql.text.out.size);
    strbuf_free(&sql.text.out);
    asleep = true;
    asleep_since = now;
}

/* The statement has ended, or is about to. If it ended by itself, it has seen no message. */
static void end_sleep(void)
{
    MYSQL *connection = my_session.connection;
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
    struct driver_fault fault;
    char sql[40];

    if (!asleep)
        return;
    MYSQL *other = is_readable() ? NULL : my_connect(&my_session.target, 0, &fault);
    snprintf(sql, sizeof sql, "KILL QUERY %lu", mysql_thread_id(my_session.connection));
    bool ended = other && mysql_query(other, sql) == 0;
    if (other)
        mysql_close(other);
    end_sleep();
    if (ended)
        sleep_from = (struct moment){0};
}

/* A request may meet an end that was meant for a sleep that was over already. */
enum host_outcome my_ask(struct my_sql *sql, const struct my_taker *taker, struct host_fault *fault)
{
    enum host_outcome outcome = HOST_DONE;

    awake();
    unsigned done = send_all(sql, taker);
    if (done == 0 && mysql_errno(my_session.connection) == ER_QUERY_INTERRUPTED)
        done = send_all(sql, taker);
    if (done < (sql->commits ? sql->commits : sql->count))
        outcome = outcome_of(sql, done, fault);
    strbuf_free(&sql->text.out);
    return outcome;
}

/* -- hearing ----------------------------------------------------------------------------------- */

struct telling {
    void (*tell)(void *arg, struct piece channel, struct piece text);
    void *arg;
};

static void take_message(void *arg, MYSQL_ROW row, const unsigned long *lengths)
{
    const struct telling *telling = arg;
    int64_t number = strtoll(row[0], NULL, 10);

    for (size_t i = 0; i < channel_count; i++)
        if (channels[i].number == number) {
            channels[i].heard = strtoull(row[1], NULL, 10);
            sleep_from = (struct moment){0};
            telling->tell(telling->arg, channels[i].name, (struct piece){row[2], lengths[2]});
        }
}

/* False: the connection broke. */
static bool look(struct telling *telling)
{
    const struct my_taker taker = {take_message, telling};
    struct my_sql sql = my_sql();
    struct host_fault fault;

    is_called = false;
    look_at = moment_plus(moment_now(), LOOK_NS);
    if (channel_count == 0)
        return true;
    sql_add(&sql.text, "SELECT name, id, text FROM @message WHERE ");
    add_unheard(&sql);
    my_sql_say(&sql, " ORDER BY id");
    return my_ask(&sql, &taker, &fault) == HOST_DONE || !fault.broken;
}

int my_rest(enum host_ears ears, int *ms)
{
    struct moment now = moment_now(), due = MOMENT_NEVER;

    *ms = -1;
    hearing = my_session.connection ? ears : HOST_DEAF;
    if (!my_session.connection)
        return -1;
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
    return mysql_get_socket(my_session.connection);
}

/* Where nothing was asked, anything that can be read is the end of the connection. */
bool my_hear(void (*tell)(void *arg, struct piece channel, struct piece text), void *arg)
{
    struct telling telling = {tell, arg};
    struct moment now = moment_now();

    if (!my_session.connection)
        return true;
    if (is_readable()) {
        if (!asleep)
            return false;
        end_sleep();
    } else if (asleep) {
        return !moment_reached(moment_plus(asleep_since, SLEEP_NS + OVERDUE_NS), now);
    }
    return (!is_called && (hearing != HOST_PATIENT || !moment_reached(look_at, now))) ||
           look(&telling);
}

/* -- telling ----------------------------------------------------------------------------------- */

void my_add_messages(struct my_sql *sql, const struct unit *unit)
{
    for (size_t i = 0; i < unit->message_count; i++) {
        sql_add(&sql->text, "%s(%" PRId64 ",%" PRId64 ",",
                i == 0 ? "INSERT INTO @message (name,expires,text) VALUES " : ",",
                channel_number(unit->messages[i].channel), unit->now_us / 1000 + MESSAGE_MS);
        my_sql_bytes(sql, unit->messages[i].text);
        strbuf_putc(&sql->text.out, ')');
    }
    if (unit->message_count > 0)
        my_sql_next(sql);
}

/* Those that sleep for a message of the unit: fall_asleep(). A user sees its own connections, and
 * may end their statements. */
static void add_sleepers(struct my_sql *sql, const struct unit *unit)
{
    for (size_t i = 0; i < unit->message_count; i++)
        sql_add(&sql->text, "%s info LIKE 'SELECT IF(EXISTS(%%(name=%" PRId64 " AND %%'%s",
                i == 0 ? " FROM information_schema.processlist WHERE (" : " OR",
                channel_number(unit->messages[i].channel), i + 1 == unit->message_count ? ")" : "");
}

void my_add_waking(struct my_sql *sql, const struct unit *unit)
{
    if (unit->message_count == 0)
        return;
    strbuf_puts(&sql->text.out, "SELECT MIN(id) INTO @rlock_sleeper");
    add_sleepers(sql, unit);
    my_sql_next(sql);
    my_sql_say(sql, "KILL QUERY @rlock_sleeper");
    strbuf_puts(&sql->text.out, "SELECT 's', id");
    add_sleepers(sql, unit);
    my_sql_say(sql, " AND id > @rlock_sleeper");
}

void my_take_sleeper(void *arg, MYSQL_ROW row, const unsigned long *lengths)
{
    struct my_sleepers *sleepers = arg;

    (void)lengths;
    *MEM_APPEND(sleepers->at, sleepers->count) = strtoull(row[1], NULL, 10);
}

/* A sleeper that has gone ends the request: the next request wakes those behind it. */
void my_wake(struct my_sleepers *sleepers)
{
    size_t next = 0;

    while (next < sleepers->count) {
        struct my_sql sql = my_sql();
        for (size_t i = next; i < sleepers->count; i++) {
            sql_add(&sql.text, "KILL QUERY %" PRIu64, sleepers->at[i]);
            my_sql_next(&sql);
        }
        next += send_all(&sql, NULL) + 1;
        strbuf_free(&sql.text.out);
    }
    free(sleepers->at);
}
