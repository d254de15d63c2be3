/* Records in MySQL and MariaDB. A unit is one transaction of two requests, each of several
 * statements: the first locks its keys and reads, the second writes and commits.
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
#include "host/store.h"

#include <errno.h>
#include <inttypes.h>
#include <mysqld_error.h>
#include <stdio.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "base/mem.h"
#include "drivers/my.h"
#include "host/shedlock.h"

/* How many rows the table of gates has (store/hosted/dialect.c). */
#define GATES 1000
/* How long a unit waits for its locks, and how long the server lets a client stand still between
 * its two requests, s. For the latter, MySQL has no limit of its own: it is that of a connection
 * that does nothing at all. */
#define LOCK_TIMEOUT "3"
#define IDLE_TIMEOUT "2"
/* One commit of so many clears rows away that have expired. */
#define PURGE_EVERY 64
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

/* Several statements that are being put together; "@record" is the name of that table in what
 * sql_add() adds. The first value of each row says what the row is about. */
struct my_sql {
    struct sql_text text;
    unsigned count;
    unsigned commits; /* so many are done once the request is committed; 0: nothing is */
};

/* Takes the rows that come back. */
struct my_taker {
    void (*take)(void *arg, MYSQL_ROW row, const unsigned long *lengths);
    void *arg;
};

struct channel {
    struct piece name;
    int64_t number;
    uint64_t heard; /* the latest message that need not be told any more */
    bool is_new;    /* "heard" must be asked for */
};

/* One process serves one connection. */
static MYSQL *connection;
static struct driver_target target; /* for a second connection */
static char table_prefix[64];
static bool in_transaction;

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
    const char **const texts[] = {&target.host,     &target.port,        &target.user,
                                  &target.password, &target.database,    &target.ca,
                                  &target.key,      &target.certificate, &target.client};

    target = *given;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        *texts[i] = mem_strdup(*texts[i]);
    target.seconds = CONNECT_SECONDS;
}

static bool my_open(const struct host_target *given, struct host_fault *fault)
{
    if (connection)
        mysql_close(connection);
    *fault = (struct host_fault){.broken = false};
    in_transaction = asleep = false;
    connection = my_connect(&given->at, CLIENT_MULTI_STATEMENTS, &fault->why);
    if (!connection)
        return false;
    keep_target(&given->at);
    snprintf(table_prefix, sizeof table_prefix, "%s", given->table);
    return true;
}

/* -- statements -------------------------------------------------------------------------------- */

static struct my_sql my_sql(void)
{
    return (struct my_sql){.text = {.dialect = &sql_mysql, .table = table_prefix}};
}

/* Ends a statement. */
static void my_sql_next(struct my_sql *sql)
{
    strbuf_putc(&sql->text.out, ';');
    sql->count++;
}

/* Adds a whole statement. */
static void my_sql_say(struct my_sql *sql, const char *statement)
{
    strbuf_puts(&sql->text.out, statement);
    my_sql_next(sql);
}

/* These add a literal. */
static void my_sql_bytes(struct my_sql *sql, struct piece bytes)
{
    strbuf_puts(&sql->text.out, "x'");
    sql_add_digits(&sql->text, bytes.at, bytes.size);
    strbuf_putc(&sql->text.out, '\'');
}

static void my_sql_text(struct my_sql *sql, const char *text)
{
    size_t size = strlen(text);

    strbuf_putc(&sql->text.out, '\'');
    char *to = strbuf_room(&sql->text.out, 2 * size + 1);
    strbuf_grew(&sql->text.out, mysql_real_escape_string(connection, to, text, size));
    strbuf_putc(&sql->text.out, '\'');
}

/* -- requests ---------------------------------------------------------------------------------- */

/* False: the statement has failed. */
static bool take_result(const struct my_taker *taker)
{
    MYSQL_RES *result = mysql_store_result(connection);
    MYSQL_ROW row;

    if (!result)
        return mysql_field_count(connection) == 0;
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
    bool more = mysql_real_query(connection, sql->text.out.text, sql->text.out.size - 1) == 0;

    while (more && take_result(taker)) {
        done++;
        more = mysql_next_result(connection) == 0;
    }
    return done;
}

/* Returns the outcome of a failed request, "done" of whose statements were done. The server undoes
 * what it refuses in front of the COMMIT with all else. Where it is told between two statements to
 * end what runs, it ends the request behind the first one without an error. */
static enum host_outcome outcome_of(const struct my_sql *sql, unsigned done,
                                    struct host_fault *fault)
{
    unsigned number = mysql_errno(connection);
    bool unheard = my_is_of_client(number);
    bool commits = sql->commits && (unheard || (number && done + 1 == sql->commits));

    *fault = (struct host_fault){.broken = false};
    my_fail(connection, &fault->why);
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
    return (int64_t)host_number(table_prefix, name);
}

static void my_listen(struct piece name)
{
    for (size_t i = 0; i < channel_count; i++)
        if (piece_equal(channels[i].name, name))
            return;
    *MEM_APPEND(channels, channel_count) = (struct channel){
        .name = piece_duplicate(name), .number = channel_number(name), .is_new = true};
}

static void my_unlisten(struct piece name)
{
    for (size_t i = 0; i < channel_count; i++)
        if (piece_equal(channels[i].name, name)) {
            piece_drop(&channels[i].name);
            channels[i--] = channels[--channel_count];
        }
}

/* Adds a question for the latest message of each channel that is new; my_take_position() takes its
 * rows. Messages behind it are heard, once the request has succeeded: my_note_listening(). */
static void my_add_positions(struct my_sql *sql)
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

static void my_take_position(MYSQL_ROW row)
{
    int64_t number = strtoll(row[1], NULL, 10);

    for (size_t i = 0; i < channel_count; i++)
        if (channels[i].is_new && channels[i].number == number)
            channels[i].heard = strtoull(row[2], NULL, 10);
}

static void my_note_listening(void)
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

    return recv(mysql_get_socket(connection), &byte, 1, MSG_PEEK | MSG_DONTWAIT) >= 0 ||
           (errno != EAGAIN && errno != EINTR);
}

/* A client that tells a message looks for a statement that begins so: add_sleepers(). */
static void fall_asleep(struct moment now)
{
    struct my_sql sql = my_sql();

    sql_add(&sql.text, "SELECT IF(EXISTS(SELECT 1 FROM @message WHERE ");
    add_unheard(&sql);
    sql_add(&sql.text, "),2,SLEEP(%d))", (int)(SLEEP_NS / NS_PER_SEC));
    mysql_send_query(connection, sql.text.out.text, sql.text.out.size);
    strbuf_free(&sql.text.out);
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
    struct driver_fault fault;
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

/* Sends what was put together, and frees it. A sleep is ended first: the request may meet an end
 * that was meant for one that was over already. */
static enum host_outcome my_ask(struct my_sql *sql, const struct my_taker *taker,
                                struct host_fault *fault)
{
    enum host_outcome outcome = HOST_DONE;

    awake();
    unsigned done = send_all(sql, taker);
    if (done == 0 && mysql_errno(connection) == ER_QUERY_INTERRUPTED)
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

static int my_rest(enum host_ears ears, int *ms)
{
    struct moment now = moment_now(), due = MOMENT_NEVER;

    *ms = -1;
    hearing = connection ? ears : HOST_DEAF;
    if (!connection)
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
    return mysql_get_socket(connection);
}

/* Where nothing was asked, anything that can be read is the end of the connection. */
static bool my_hear(void (*tell)(void *arg, struct piece channel, struct piece text), void *arg)
{
    struct telling telling = {tell, arg};
    struct moment now = moment_now();

    if (!connection)
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

static void my_add_messages(struct my_sql *sql, const struct unit *unit)
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

/* Adds what wakes the first sleeper that waits for a message of the unit, and reports the others
 * in rows for my_take_sleeper(). Without sleepers the request ends there. */
static void my_add_waking(struct my_sql *sql, const struct unit *unit)
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

/* Those that sleep for a message, by the number of their connection. */
struct my_sleepers {
    uint64_t *at;
    size_t count;
};

static void my_take_sleeper(void *arg, MYSQL_ROW row, const unsigned long *lengths)
{
    struct my_sleepers *sleepers = arg;

    (void)lengths;
    *MEM_APPEND(sleepers->at, sleepers->count) = strtoull(row[1], NULL, 10);
}

/* Wakes them, and frees the list. A sleeper that has gone ends the request: the next request wakes
 * those behind it. */
static void my_wake(struct my_sleepers *sleepers)
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

/* The result of these does not matter. */
static void try_to(struct my_sql *sql)
{
    struct host_fault fault;

    my_ask(sql, NULL, &fault);
}

/* -- locking and reading ----------------------------------------------------------------------- */

struct loading {
    struct unit *unit;
    size_t gates; /* that are locked */
    bool damaged;
};

static void take_record(struct loading *loading, MYSQL_ROW row, const unsigned long *lengths)
{
    const struct piece name = {row[1], lengths[1]};

    for (size_t i = 0; i < loading->unit->count; i++) {
        struct unit_key *key = &loading->unit->keys[i];
        if (!piece_equal(key->name, name))
            continue;
        key->record.version = strtoll(row[2], NULL, 10);
        loading->damaged |= !record_read(&key->record, row[3], lengths[3]);
    }
}

static void take_loaded(void *arg, MYSQL_ROW row, const unsigned long *lengths)
{
    struct loading *loading = arg;
    struct record *record;

    switch (*row[0]) {
    case 'g': loading->gates++; break;
    case 'm': my_take_position(row); break;
    case 'r': take_record(loading, row, lengths); break;
    case 's':
        record = &loading->unit->keys[strtoul(row[1], NULL, 10)].record;
        loading->damaged |= !shedlock_take(record, strtoll(row[2], NULL, 10), row[3], row[4]);
        break;
    case 't': loading->unit->now_us = strtoll(row[1], NULL, 10); break;
    default: break; /* a lock */
    }
}

/* The isolation is named because a transaction that keeps its first snapshot would read what was
 * there before it had its locks. */
static void add_begin(struct my_sql *sql, const struct unit *unit)
{
    if (in_transaction)
        my_sql_say(sql, "ROLLBACK");
    if (unit->reads_only)
        return;
    my_sql_say(sql,
               "SET SESSION wait_timeout = " IDLE_TIMEOUT
               ", innodb_lock_wait_timeout = " LOCK_TIMEOUT ", lock_wait_timeout = " LOCK_TIMEOUT);
    my_sql_say(sql, "SET TRANSACTION ISOLATION LEVEL READ COMMITTED");
    my_sql_say(sql, "START TRANSACTION READ WRITE");
    in_transaction = true;
    struct host_lock *locks = host_locks(unit, table_prefix, GATES);
    for (size_t i = 0; i < unit->count; i++) {
        sql_add(&sql->text, "SELECT 'g' FROM @gate WHERE name=%" PRIu64 " %s", locks[i].number,
                locks[i].writes ? "FOR UPDATE" : "LOCK IN SHARE MODE");
        my_sql_next(sql);
    }
    free(locks);
    sql->count += shedlock_add_locks(&sql->text, unit);
}

/* The clock is read by a statement of its own, behind all others. */
static void add_select(struct my_sql *sql, const struct unit *unit)
{
    for (size_t i = 0; i < unit->count; i++) {
        sql_add(&sql->text, "%s",
                i > 0 ? "," : "SELECT 'r', name, version, state FROM @record WHERE name IN (");
        my_sql_bytes(sql, unit->keys[i].name);
    }
    if (unit->count > 0)
        my_sql_say(sql, ")");
    for (size_t i = 0; i < unit->count; i++) {
        if (!shedlock_has(unit->keys[i].name))
            continue;
        sql_add(&sql->text, "SELECT 's', %zu, %s, ", i, sql_mysql.now);
        shedlock_add_values(&sql->text, &unit->keys[i]);
        my_sql_next(sql);
    }
    sql_add(&sql->text, "SELECT 't', %s", sql_mysql.now);
    my_sql_next(sql);
}

static void my_abandon(void)
{
    struct my_sql sql = my_sql();

    if (!in_transaction)
        return;
    in_transaction = false;
    my_sql_say(&sql, "ROLLBACK");
    my_sql_say(&sql, "SET SESSION wait_timeout = DEFAULT");
    try_to(&sql);
}

static bool is_damaged(const struct loading *loading, struct host_fault *fault)
{
    bool gates = loading->unit->reads_only || loading->gates == loading->unit->count;

    *fault = (struct host_fault){.broken = false};
    if (!gates)
        driver_fail(&fault->why, WIRE_NO_TABLES, "rlock's table of gates lacks rows");
    else if (loading->damaged)
        driver_fail(&fault->why, WIRE_UNFIT, "the database's tables hold other data");
    return !gates || loading->damaged;
}

static enum host_outcome my_load(struct unit *unit, struct host_fault *fault)
{
    struct loading loading = {.unit = unit};
    const struct my_taker taker = {take_loaded, &loading};
    struct my_sql sql = my_sql();

    add_begin(&sql, unit);
    my_add_positions(&sql);
    add_select(&sql, unit);
    enum host_outcome outcome = my_ask(&sql, &taker, fault);
    if (outcome == HOST_DONE && is_damaged(&loading, fault))
        outcome = HOST_FAILED;
    if (outcome == HOST_DONE)
        my_note_listening();
    else
        my_abandon();
    return outcome;
}

/* -- writing ----------------------------------------------------------------------------------- */

/* A row that is new has the time as its version, so that none that was there before it had a later
 * one. */
static void add_record(struct my_sql *sql, const struct unit *unit, const struct unit_key *key)
{
    const struct record *record = &key->record;
    int64_t expires = record->type == RECORD_NONE ? 1 : record->expires;
    char *state = record_print(record);

    strbuf_putc(&sql->text.out, '(');
    my_sql_bytes(sql, key->name);
    sql_add(&sql->text, ",%" PRId64 ",%" PRId64 ",",
            record->version ? record->version + 1 : unit->now_us, expires);
    my_sql_text(sql, state);
    strbuf_putc(&sql->text.out, ')');
    free(state);
}

/* The version is looked at although the key is locked: another node of a cluster knows nothing of
 * that. Another one would make the state NULL, which the table refuses. Columns are set from left
 * to right. */
static void add_records(struct my_sql *sql, const struct unit *unit)
{
    bool any = false;

    for (size_t i = 0; i < unit->count; i++) {
        if (!unit->keys[i].record.changed || shedlock_has(unit->keys[i].name))
            continue;
        sql_add(&sql->text, "%s",
                any ? "," : "INSERT INTO @record (name,version,expires,state) VALUES ");
        add_record(sql, unit, &unit->keys[i]);
        any = true;
    }
    if (any)
        my_sql_say(sql, " ON DUPLICATE KEY UPDATE state=IF(version+1=VALUES(version),VALUES(state),"
                        "NULL),expires=VALUES(expires),version=VALUES(version)");
}

static void purge(void)
{
    struct my_sql sql = my_sql();

    sql_add(&sql.text, "DELETE FROM @message WHERE expires < %s DIV 1000 LIMIT 1000",
            sql_mysql.now);
    my_sql_next(&sql);
    sql_add(&sql.text, "DELETE FROM @record WHERE expires BETWEEN 1 AND %s DIV 1000 LIMIT 100",
            sql_mysql.now);
    my_sql_next(&sql);
    try_to(&sql);
}

static enum host_outcome my_commit(struct unit *unit, struct host_fault *fault)
{
    struct my_sleepers sleepers = {0};
    const struct my_taker taker = {my_take_sleeper, &sleepers};
    struct my_sql sql = my_sql();

    my_sql_say(&sql, in_transaction ? "SET SESSION wait_timeout = DEFAULT" : "START TRANSACTION");
    add_records(&sql, unit);
    sql.count += shedlock_add_changes(&sql.text, unit);
    my_add_messages(&sql, unit);
    my_sql_say(&sql, "COMMIT");
    sql.commits = sql.count;
    my_add_waking(&sql, unit);
    in_transaction = true;
    enum host_outcome outcome = my_ask(&sql, &taker, fault);
    my_wake(&sleepers);
    if (outcome == HOST_DONE) {
        in_transaction = false;
        if (random() % PURGE_EVERY == 0)
            purge();
    } else {
        my_abandon();
    }
    return outcome;
}

/* -- listing ----------------------------------------------------------------------------------- */

struct names {
    void (*each)(void *arg, struct piece name);
    void *arg;
};

static void take_name(void *arg, MYSQL_ROW row, const unsigned long *lengths)
{
    const struct names *names = arg;

    names->each(names->arg, (struct piece){row[0], lengths[0]});
}

static bool my_list(struct piece prefix, void (*each)(void *arg, struct piece name), void *arg,
                    struct host_fault *fault)
{
    struct names names = {each, arg};
    const struct my_taker taker = {take_name, &names};
    struct my_sql sql = my_sql();

    sql_add(&sql.text,
            "SELECT name FROM @record WHERE (expires = 0 OR expires > %s DIV 1000) AND name >= ",
            sql_mysql.now);
    my_sql_bytes(&sql, prefix);
    sql_add(&sql.text, " AND LEFT(name, %zu) = ", prefix.size);
    my_sql_bytes(&sql, prefix);
    my_sql_next(&sql);
    return my_ask(&sql, &taker, fault) == HOST_DONE;
}

/* -- questions --------------------------------------------------------------------------------- */

struct answering {
    struct strbuf *out;
    size_t told; /* rows; the first one counts */
};

static void take_answer(void *arg, MYSQL_ROW row, const unsigned long *lengths)
{
    struct answering *answering = arg;

    if (answering->told++)
        return;
    unsigned columns = mysql_field_count(connection);
    resp_array(answering->out, columns);
    for (unsigned i = 0; i < columns; i++)
        resp_bulk(answering->out, (struct piece){row[i] ? row[i] : "", lengths[i]});
}

static bool my_answer(const char *query, struct strbuf *out, struct host_fault *fault)
{
    struct answering answering = {.out = out};
    const struct my_taker taker = {take_answer, &answering};
    struct my_sql sql = my_sql();

    my_sql_say(&sql, query);
    bool done = my_ask(&sql, &taker, fault) == HOST_DONE;
    if (done && answering.told == 0)
        resp_array(out, 0);
    return done;
}

/* -- tables ------------------------------------------------------------------------------------ */

/* The view, which is the last statement, may fail: it may be there, the user may lack the right,
 * and an older server the words. */
static bool my_make(const char *user, struct host_fault *fault)
{
    struct my_sql sql = my_sql();

    while (sql_add_schema(&sql.text, user, sql.count))
        my_sql_next(&sql);
    sql.commits = sql.count - 1;
    return my_ask(&sql, NULL, fault) == HOST_DONE;
}

const struct host_store host_mysql = {my_open, my_load,   my_commit,   my_abandon,
                                      my_list, my_listen, my_unlisten, my_rest,
                                      my_hear, my_answer, my_make};
