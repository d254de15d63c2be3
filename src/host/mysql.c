/* Records in MySQL and MariaDB. A unit is one transaction of two requests, each of several
 * statements: the first locks its keys and reads, the second writes and commits.
 *
 * A key is locked by a row of the table "gate", whose number is made of the key's name. All of
 * its rows are there from the start, so that a key without a record is locked as any other is,
 * and no gap between rows is ever locked, on which two that write new records would wait for
 * each other. */
#include "host/my_session.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

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
    if (my_session.in_transaction)
        my_sql_say(sql, "ROLLBACK");
    if (unit->reads_only)
        return;
    my_sql_say(sql,
               "SET SESSION wait_timeout = " IDLE_TIMEOUT
               ", innodb_lock_wait_timeout = " LOCK_TIMEOUT ", lock_wait_timeout = " LOCK_TIMEOUT);
    my_sql_say(sql, "SET TRANSACTION ISOLATION LEVEL READ COMMITTED");
    my_sql_say(sql, "START TRANSACTION READ WRITE");
    my_session.in_transaction = true;
    struct host_lock *locks = host_locks(unit, my_session.table, GATES);
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

    if (!my_session.in_transaction)
        return;
    my_session.in_transaction = false;
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

    my_sql_say(&sql, my_session.in_transaction ? "SET SESSION wait_timeout = DEFAULT"
                                               : "START TRANSACTION");
    add_records(&sql, unit);
    sql.count += shedlock_add_changes(&sql.text, unit);
    my_add_messages(&sql, unit);
    my_sql_say(&sql, "COMMIT");
    sql.commits = sql.count;
    my_add_waking(&sql, unit);
    my_session.in_transaction = true;
    enum host_outcome outcome = my_ask(&sql, &taker, fault);
    my_wake(&sleepers);
    if (outcome == HOST_DONE) {
        my_session.in_transaction = false;
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
    unsigned columns = mysql_field_count(my_session.connection);
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

const struct host_store host_mysql = {my_session_open, my_load,   my_commit,   my_abandon,
                                      my_list,         my_listen, my_unlisten, my_rest,
                                      my_hear,         my_answer, my_make};
