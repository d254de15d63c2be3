/* Records in MySQL and MariaDB. A unit is one transaction of two requests, each of several
 * statements: the first locks its keys and reads, the second writes and commits.
 *
 * A key is locked by a row of the table "gate", whose number is made of the key's name. All of its
 * rows are there from the start, so that a key without a record is locked as any other is, and no
 * gap between rows is ever locked, on which two that write new records would wait for each other.
 *
 * A message is a row that is committed together with the records. Whoever waits for one sleeps in
 * the server, by a statement that looks for it and, if there is none, goes to sleep. Who has
 * committed a message finds that statement in the list of processes, and ends it: either it has
 * begun by then, or it will see the row. Where this fails, it ends by itself soon. */
#include "host/mysql.h"

#include <errno.h>
#include <inttypes.h>
#include <mysqld_error.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "base/mem.h"
#include "drivers/my.h"
#include "host/locks.h"
#include "host/shedlock.h"
#include "store/hosted/dialect.h"

/* How many rows the table of gates has (store/hosted/dialect.c). */
#define GATES 1000
/* How long a unit waits for its locks, and how long the server lets a client stand still between
 * its two requests, s. For the latter, MySQL has no limit of its own: it is that of a connection
 * that does nothing at all. */
#define LOCK_TIMEOUT "3"
#define IDLE_TIMEOUT "2"
/* How long a message is kept, ms. */
#define MESSAGE_MS 60000
/* One commit of so many clears rows away that have expired. */
#define PURGE_EVERY 64
/* For how long one sleeps in the server at a time. Longer by OVERDUE, and it does not answer. */
#define SLEEP_NS   (2 * NS_PER_SEC)
#define OVERDUE_NS (5 * NS_PER_SEC)
/* A sleep that came to its end too early, without a message, is followed by another one after so
 * long only: the server may let nobody sleep. */
#define RESTLESS_NS (200 * NS_PER_MS)
/* Whoever does not sleep looks so often. */
#define LOOK_NS NS_PER_SEC
/* For another connection that ends one's own sleep. */
#define CONNECT_SECONDS 2

/* MySQL's own: wait_timeout is over. */
#define MYSQL_IDLE_END 4031

struct channel {
    struct piece name;
    int64_t number;
    uint64_t heard; /* the latest message that need not be told any more */
    bool is_new;    /* that is to be asked */
};

/* One process serves one connection. */
static MYSQL *connection;
static struct driver_target target;
static char record_table[80], gate_table[80], message_table[80]; /* as SQL has them, in quotes */
static char table_prefix[64];
static bool in_transaction;
static struct channel *channels;
static size_t channel_count;

static bool asleep;
static struct moment asleep_since;
static bool is_called;           /* a message may have come */
static struct moment look_at;    /* for those who are not asleep */
static struct moment sleep_from; /* not before */
static enum host_ears hearing;

/* -- statements -------------------------------------------------------------------------------- */

/* Several, that are being put together. The first value of each row says what it is about. */
struct sql {
    FILE *file;
    char *text;
    size_t size;
    unsigned count;
    unsigned commits; /* so many are done once it is committed; 0: nothing is */
};

/* What comes back. */
struct taker {
    void (*take)(void *arg, MYSQL_ROW row, const unsigned long *lengths);
    void *arg;
};

static void sql_begin(struct sql *sql)
{
    *sql = (struct sql){.count = 0};
    sql->file = mem_checked(open_memstream(&sql->text, &sql->size));
}

/* Behind each statement. */
static void sql_next(struct sql *sql)
{
    fputc(';', sql->file);
    sql->count++;
}

static void sql_say(struct sql *sql, const char *statement)
{
    fputs(statement, sql->file);
    sql_next(sql);
}

static void sql_bytes(struct sql *sql, struct piece bytes)
{
    fputs("x'", sql->file);
    for (size_t i = 0; i < bytes.size; i++)
        fprintf(sql->file, "%02x", (unsigned char)bytes.at[i]);
    fputc('\'', sql->file);
}

static void sql_text(struct sql *sql, const char *text)
{
    size_t size = strlen(text);
    char *quoted = mem_checked(malloc(2 * size + 1));

    mysql_real_escape_string(connection, quoted, text, size);
    fprintf(sql->file, "'%s'", quoted);
    free(quoted);
}

/* What is about another program's table is put together elsewhere. Frees it. */
static void sql_take(struct sql *sql, struct sql_text *text)
{
    sql_say(sql, text->bytes);
    sql_text_end(text);
}

/* What a failed request comes to; so many of its statements were done. What the server refuses in
 * front of the COMMIT is undone with all else. A server that is told to end what runs, between two
 * statements, ends the request behind the first one without an error. */
static enum host_outcome fail(const struct sql *sql, unsigned done, struct host_fault *fault)
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

/* False: the statement has failed. */
static bool take_result(const struct taker *taker)
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

/* Sends what was put together, and returns how many of the statements were done. */
static unsigned send_statements(const struct sql *sql, const struct taker *taker)
{
    unsigned done = 0;

    /* The last of them ends with a semicolon, behind which there is no other. */
    bool more = mysql_real_query(connection, sql->text, sql->size - 1) == 0;
    while (more && take_result(taker)) {
        done++;
        more = mysql_next_result(connection) == 0;
    }
    return done;
}

static void awake(void);

/* Sends what was put together, and frees it. */
static enum host_outcome ask(struct sql *sql, const struct taker *taker, struct host_fault *fault)
{
    enum host_outcome outcome = HOST_DONE;

    fclose(sql->file);
    awake();
    unsigned done = send_statements(sql, taker);
    /* The end was meant for a sleep that was over already. */
    if (done == 0 && mysql_errno(connection) == ER_QUERY_INTERRUPTED)
        done = send_statements(sql, taker);
    if (done < (sql->commits ? sql->commits : sql->count))
        outcome = fail(sql, done, fault);
    free(sql->text);
    return outcome;
}

/* What becomes of it does not matter. */
static void try_to(struct sql *sql)
{
    struct host_fault fault;

    ask(sql, NULL, &fault);
}

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

static void name_table(const char *word, char *out, size_t size)
{
    struct sql_text name = {.dialect = &sql_mysql, .table = table_prefix};

    sql_add(&name, "@%s", word);
    snprintf(out, size, "%s", name.bytes);
    sql_text_end(&name);
}

static bool my_open(const struct host_target *given, struct host_fault *fault)
{
    if (connection)
        mysql_close(connection);
    *fault = (struct host_fault){.broken = false};
    asleep = in_transaction = false;
    connection = my_connect(&given->at, CLIENT_MULTI_STATEMENTS, &fault->why);
    if (!connection)
        return false;
    keep_target(&given->at);
    snprintf(table_prefix, sizeof table_prefix, "%s", *given->table ? given->table : "rlock");
    name_table("record", record_table, sizeof record_table);
    name_table("gate", gate_table, sizeof gate_table);
    name_table("message", message_table, sizeof message_table);
    return true;
}

/* -- sleeping ---------------------------------------------------------------------------------- */

/* Something has come, or the end of the connection. */
static bool is_readable(void)
{
    char byte;

    return recv(mysql_get_socket(connection), &byte, 1, MSG_PEEK | MSG_DONTWAIT) >= 0 ||
           (errno != EAGAIN && errno != EINTR);
}

/* The messages that have yet to be told. */
static void add_unheard(struct sql *sql)
{
    for (size_t i = 0; i < channel_count; i++)
        fprintf(sql->file, "%s(name=%" PRId64 " AND id>%" PRIu64 ")", i > 0 ? " OR " : "",
                channels[i].number, channels[i].heard);
}

/* Whoever tells a message looks for a statement that begins so: add_sleepers(). */
static void fall_asleep(struct moment now)
{
    struct sql sql;

    sql_begin(&sql);
    fprintf(sql.file, "SELECT IF(EXISTS(SELECT 1 FROM %s WHERE ", message_table);
    add_unheard(&sql);
    fprintf(sql.file, "),2,SLEEP(%d))", (int)(SLEEP_NS / NS_PER_SEC));
    fclose(sql.file);
    mysql_send_query(connection, sql.text, sql.size);
    free(sql.text);
    asleep = true;
    asleep_since = now;
}

/* The statement has ended, or is about to. One that ended by itself has seen no message. */
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

/* Ends one's own sleep, by way of another connection. If there is none to be had, it ends by itself
 * soon. */
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

static void take_theirs(struct loading *loading, MYSQL_ROW row)
{
    struct record *record = &loading->unit->keys[strtoul(row[1], NULL, 10)].record;

    loading->damaged |= !shedlock_take(record, strtoll(row[2], NULL, 10), row[3], row[4]);
}

static void take_position(MYSQL_ROW row)
{
    int64_t number = strtoll(row[1], NULL, 10);

    for (size_t i = 0; i < channel_count; i++)
        if (channels[i].is_new && channels[i].number == number)
            channels[i].heard = strtoull(row[2], NULL, 10);
}

static void take_loaded(void *arg, MYSQL_ROW row, const unsigned long *lengths)
{
    struct loading *loading = arg;

    switch (*row[0]) {
    case 'g': loading->gates++; break;
    case 'm': take_position(row); break;
    case 'r': take_record(loading, row, lengths); break;
    case 's': take_theirs(loading, row); break;
    case 't': loading->unit->now_us = strtoll(row[1], NULL, 10); break;
    default: break; /* a lock */
    }
}

/* The isolation is named because a transaction that keeps its first snapshot would read what was
 * there before it had its locks. */
static void add_begin(struct sql *sql, const struct unit *unit)
{
    if (in_transaction)
        sql_say(sql, "ROLLBACK");
    if (unit->reads_only)
        return;
    sql_say(sql,
            "SET SESSION wait_timeout = " IDLE_TIMEOUT ", innodb_lock_wait_timeout = " LOCK_TIMEOUT
            ", lock_wait_timeout = " LOCK_TIMEOUT);
    sql_say(sql, "SET TRANSACTION ISOLATION LEVEL READ COMMITTED");
    sql_say(sql, "START TRANSACTION READ WRITE");
    in_transaction = true;
    struct host_lock *locks = host_locks(unit, table_prefix, GATES);
    for (size_t i = 0; i < unit->count; i++) {
        fprintf(sql->file, "SELECT 'g' FROM %s WHERE name=%" PRIu64 " %s", gate_table,
                locks[i].number, locks[i].writes ? "FOR UPDATE" : "LOCK IN SHARE MODE");
        sql_next(sql);
    }
    free(locks);
    for (size_t i = 0; i < unit->count; i++) {
        struct sql_text text = {.dialect = &sql_mysql};
        if (!shedlock_has(unit->keys[i].name))
            continue;
        shedlock_add_lock(&text, &unit->keys[i]);
        sql_take(sql, &text);
    }
}

/* Behind the locks: what is told from there on is news. */
static void add_positions(struct sql *sql)
{
    bool any = false;

    for (size_t i = 0; i < channel_count; i++) {
        if (!channels[i].is_new)
            continue;
        if (!any)
            fprintf(sql->file, "SELECT 'm', name, MAX(id) FROM %s WHERE name IN (", message_table);
        fprintf(sql->file, "%s%" PRId64, any ? "," : "", channels[i].number);
        any = true;
    }
    if (any)
        sql_say(sql, ") GROUP BY name");
}

/* The clock is read by a statement of its own, behind all others. */
static void add_select(struct sql *sql, const struct unit *unit)
{
    for (size_t i = 0; i < unit->count; i++) {
        if (i == 0)
            fprintf(sql->file, "SELECT 'r', name, version, state FROM %s WHERE name IN (",
                    record_table);
        else
            fputc(',', sql->file);
        sql_bytes(sql, unit->keys[i].name);
    }
    if (unit->count > 0)
        sql_say(sql, ")");
    for (size_t i = 0; i < unit->count; i++) {
        struct sql_text text = {.dialect = &sql_mysql};
        if (!shedlock_has(unit->keys[i].name))
            continue;
        sql_add(&text, "SELECT 's', %zu, %s, ", i, text.dialect->now);
        shedlock_add_values(&text, &unit->keys[i]);
        sql_take(sql, &text);
    }
    fputs("SELECT 't', ", sql->file);
    sql_say(sql, sql_mysql.now);
}

static void end_transaction(void)
{
    struct sql sql;

    if (!in_transaction)
        return;
    in_transaction = false;
    sql_begin(&sql);
    sql_say(&sql, "ROLLBACK");
    sql_say(&sql, "SET SESSION wait_timeout = DEFAULT");
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
    const struct taker taker = {take_loaded, &loading};
    struct sql sql;

    sql_begin(&sql);
    add_begin(&sql, unit);
    add_positions(&sql);
    add_select(&sql, unit);
    enum host_outcome outcome = ask(&sql, &taker, fault);
    if (outcome == HOST_DONE && is_damaged(&loading, fault))
        outcome = HOST_FAILED;
    for (size_t i = 0; outcome == HOST_DONE && i < channel_count; i++)
        channels[i].is_new = false;
    if (outcome != HOST_DONE)
        end_transaction();
    return outcome;
}

/* -- writing ----------------------------------------------------------------------------------- */

/* A row that is new has the time as its version, so that none that was there before it had a later
 * one. */
static void add_record(struct sql *sql, const struct unit *unit, const struct unit_key *key)
{
    const struct record *record = &key->record;
    int64_t expires = record->type == RECORD_NONE ? 1 : record->expires;
    char *state = record_print(record);

    fputc('(', sql->file);
    sql_bytes(sql, key->name);
    fprintf(sql->file, ",%" PRId64 ",%" PRId64 ",",
            record->version ? record->version + 1 : unit->now_us, expires);
    sql_text(sql, state);
    fputc(')', sql->file);
    free(state);
}

/* The version is looked at although the key is locked: another node of a cluster knows nothing of
 * that. Another one would make the state NULL, which the table refuses. Columns are set from left
 * to right. */
static void add_records(struct sql *sql, const struct unit *unit)
{
    bool any = false;

    for (size_t i = 0; i < unit->count; i++) {
        if (!unit->keys[i].record.changed || shedlock_has(unit->keys[i].name))
            continue;
        if (any)
            fputc(',', sql->file);
        else
            fprintf(sql->file, "INSERT INTO %s (name,version,expires,state) VALUES ", record_table);
        add_record(sql, unit, &unit->keys[i]);
        any = true;
    }
    if (any)
        sql_say(sql, " ON DUPLICATE KEY UPDATE state=IF(version+1=VALUES(version),VALUES(state),"
                     "NULL),expires=VALUES(expires),version=VALUES(version)");
}

/* The rows of another program's table. */
static void add_theirs(struct sql *sql, const struct unit *unit)
{
    for (size_t i = 0; i < unit->count; i++) {
        struct sql_text text = {.dialect = &sql_mysql};
        if (!shedlock_changes(&unit->keys[i]))
            continue;
        shedlock_add_change(&text, unit, i);
        sql_take(sql, &text);
    }
}

static int64_t channel_number(struct piece name)
{
    return (int64_t)host_number(table_prefix, name);
}

static void add_messages(struct sql *sql, const struct unit *unit)
{
    for (size_t i = 0; i < unit->message_count; i++) {
        if (i == 0)
            fprintf(sql->file, "INSERT INTO %s (name,expires,text) VALUES ", message_table);
        else
            fputc(',', sql->file);
        fprintf(sql->file, "(%" PRId64 ",%" PRId64 ",", channel_number(unit->messages[i].channel),
                unit->now_us / 1000 + MESSAGE_MS);
        sql_bytes(sql, unit->messages[i].text);
        fputc(')', sql->file);
    }
    if (unit->message_count > 0)
        sql_next(sql);
}

/* Who sleeps for a message of the unit: fall_asleep(). A user sees its own connections, and may end
 * their statements. */
static void add_sleepers(struct sql *sql, const struct unit *unit)
{
    for (size_t i = 0; i < unit->message_count; i++)
        fprintf(sql->file, "%s info LIKE 'SELECT IF(EXISTS(%%(name=%" PRId64 " AND %%'%s",
                i == 0 ? " FROM information_schema.processlist WHERE (" : " OR",
                channel_number(unit->messages[i].channel), i + 1 == unit->message_count ? ")" : "");
}

/* The first one is woken in the same request, and the others are told. If there is none, that is
 * the end of the request. */
static void add_waking(struct sql *sql, const struct unit *unit)
{
    if (unit->message_count == 0)
        return;
    fputs("SELECT MIN(id) INTO @rlock_sleeper", sql->file);
    add_sleepers(sql, unit);
    sql_next(sql);
    sql_say(sql, "KILL QUERY @rlock_sleeper");
    fputs("SELECT 's', id", sql->file);
    add_sleepers(sql, unit);
    sql_say(sql, " AND id > @rlock_sleeper");
}

struct sleepers {
    uint64_t *at;
    size_t count;
};

static void take_sleeper(void *arg, MYSQL_ROW row, const unsigned long *lengths)
{
    struct sleepers *sleepers = arg;

    (void)lengths;
    sleepers->at = mem_checked(realloc(sleepers->at, (sleepers->count + 1) * sizeof(uint64_t)));
    sleepers->at[sleepers->count++] = strtoull(row[1], NULL, 10);
}

/* One that is gone by now ends the request: the others are woken by the next one. */
static void wake(const struct sleepers *sleepers)
{
    size_t next = 0;

    while (next < sleepers->count) {
        struct sql sql;
        sql_begin(&sql);
        for (size_t i = next; i < sleepers->count; i++) {
            fprintf(sql.file, "KILL QUERY %" PRIu64, sleepers->at[i]);
            sql_next(&sql);
        }
        fclose(sql.file);
        next += send_statements(&sql, NULL) + 1;
        free(sql.text);
    }
}

static void purge(void)
{
    struct sql sql;

    sql_begin(&sql);
    fprintf(sql.file, "DELETE FROM %s WHERE expires < %s DIV 1000 LIMIT 1000", message_table,
            sql_mysql.now);
    sql_next(&sql);
    fprintf(sql.file, "DELETE FROM %s WHERE expires BETWEEN 1 AND %s DIV 1000 LIMIT 100",
            record_table, sql_mysql.now);
    sql_next(&sql);
    try_to(&sql);
}

static enum host_outcome my_commit(struct unit *unit, struct host_fault *fault)
{
    struct sleepers sleepers = {0};
    const struct taker taker = {take_sleeper, &sleepers};
    struct sql sql;

    sql_begin(&sql);
    sql_say(&sql, in_transaction ? "SET SESSION wait_timeout = DEFAULT" : "START TRANSACTION");
    add_records(&sql, unit);
    add_theirs(&sql, unit);
    add_messages(&sql, unit);
    sql_say(&sql, "COMMIT");
    sql.commits = sql.count;
    add_waking(&sql, unit);
    in_transaction = true;
    enum host_outcome outcome = ask(&sql, &taker, fault);
    if (outcome == HOST_DONE) {
        in_transaction = false;
        wake(&sleepers);
        if (random() % PURGE_EVERY == 0)
            purge();
    } else {
        end_transaction();
    }
    free(sleepers.at);
    return outcome;
}

static void my_abandon(void)
{
    end_transaction();
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
    const struct taker taker = {take_name, &names};
    struct sql sql;

    sql_begin(&sql);
    fprintf(sql.file,
            "SELECT name FROM %s WHERE (expires = 0 OR expires > %s DIV 1000) AND name >= ",
            record_table, sql_mysql.now);
    sql_bytes(&sql, prefix);
    fprintf(sql.file, " AND LEFT(name, %zu) = ", prefix.size);
    sql_bytes(&sql, prefix);
    sql_next(&sql);
    return ask(&sql, &taker, fault) == HOST_DONE;
}

/* -- messages ---------------------------------------------------------------------------------- */

static void my_listen(struct piece name)
{
    for (size_t i = 0; i < channel_count; i++)
        if (piece_equal(channels[i].name, name))
            return;
    channels = mem_checked(realloc(channels, (channel_count + 1) * sizeof *channels));
    channels[channel_count++] = (struct channel){
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
    const struct taker taker = {take_message, telling};
    struct host_fault fault;
    struct sql sql;

    is_called = false;
    look_at = moment_plus(moment_now(), LOOK_NS);
    if (channel_count == 0)
        return true;
    sql_begin(&sql);
    fprintf(sql.file, "SELECT name, id, text FROM %s WHERE ", message_table);
    add_unheard(&sql);
    fputs(" ORDER BY id", sql.file);
    sql_next(&sql);
    return ask(&sql, &taker, &fault) == HOST_DONE || !fault.broken;
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

/* What can be read of a connection that was asked nothing is its end. */
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

/* -- questions --------------------------------------------------------------------------------- */

struct answering {
    struct resp_out *out;
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

static bool my_ask(const char *query, struct resp_out *out, struct host_fault *fault)
{
    struct answering answering = {.out = out};
    const struct taker taker = {take_answer, &answering};
    struct sql sql;

    sql_begin(&sql);
    sql_say(&sql, query);
    bool done = ask(&sql, &taker, fault) == HOST_DONE;
    if (done && answering.told == 0)
        resp_array(out, 0);
    return done;
}

/* -- tables ------------------------------------------------------------------------------------ */

/* The view, which is the last statement, may fail: it may be there, the user may lack the right, and
 * an older server the words. */
static bool my_make(const char *user, struct host_fault *fault)
{
    struct sql_text text = {.dialect = &sql_mysql, .table = table_prefix};
    struct sql sql;

    sql_begin(&sql);
    for (size_t i = 0; sql_add_schema(&text, user, i); i++) {
        sql_say(&sql, text.bytes);
        sql_text_end(&text);
        text = (struct sql_text){.dialect = &sql_mysql, .table = table_prefix};
    }
    sql.commits = sql.count - 1;
    return ask(&sql, NULL, fault) == HOST_DONE;
}

const struct host_store host_mysql = {my_open, my_load,   my_commit,   my_abandon,
                                      my_list, my_listen, my_unlisten, my_rest,
                                      my_hear, my_ask,    my_make};
