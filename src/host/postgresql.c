/* Records in PostgreSQL. A unit is one transaction of two requests: the first locks its keys and
 * reads, the second writes, notifies and commits. A key is locked whether it has a row or not, by
 * an advisory lock, which ends with the transaction, also behind a pooler. */
#include "host/store.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/mem.h"
#include "drivers/pq.h"
#include "host/shedlock.h"

/* How long a unit waits for its locks, and how long the server lets a client stand still between
 * its two requests: the locks of one that is stopped there are in the way of all others. */
#define LOCK_TIMEOUT_MS "3000"
#define IDLE_TIMEOUT_MS "2000"
/* pg_notify() takes a byte less than 8000. */
#define PAYLOAD_MAX 7999
/* One commit of so many clears rows away that have expired. */
#define PURGE_EVERY 256

#define NOW_US "CAST(extract(epoch FROM clock_timestamp()) * 1000000 AS bigint)"

struct channel {
    struct piece name;
    char listened[24]; /* its name in PostgreSQL */
    bool is_new;       /* the server has not been told, or has not committed it */
};

/* One process serves one connection. */
static PGconn *connection;
static char table_prefix[64];
static bool in_transaction;
static struct channel *channels;
static size_t channel_count;

/* Text that is being put together; "@record" is the name of the table in what sql_add() adds. */
static struct sql_text begin_sql(void)
{
    return (struct sql_text){.dialect = &sql_postgresql, .table = table_prefix};
}

static void sql_literal(struct sql_text *sql, const char *text)
{
    char *quoted = mem_checked(PQescapeLiteral(connection, text, strlen(text)));

    strbuf_puts(&sql->out, quoted);
    PQfreemem(quoted);
}

static void sql_name(struct sql_text *sql, struct piece name)
{
    char *text = record_print_name(name);

    sql_literal(sql, text);
    free(text);
}

/* -- failures ---------------------------------------------------------------------------------- */

/* Whether two units were in each other's way, and the server has undone this one. */
static bool is_conflict(const char *state)
{
    return state && strcmp(state, "40003") != 0 &&
           (strncmp(state, "40", 2) == 0 || strcmp(state, "23502") == 0 ||
            strcmp(state, "23505") == 0);
}

/* Returns the outcome of a failed request. commits: it may have been the one that commits. */
static enum host_outcome fail(const PGresult *result, bool commits, struct host_fault *fault)
{
    const char *state = PQresultErrorField(result, PG_DIAG_SQLSTATE);
    /* The server ended the session between two requests of a transaction, which is undone. */
    bool idle_end = state && strcmp(state, "25P03") == 0;

    *fault = (struct host_fault){.broken = PQstatus(connection) != CONNECTION_OK};
    pq_fail(connection, result, &fault->why);
    fault->maybe_done =
        commits && !idle_end &&
        (fault->broken || fault->why.error == WIRE_UNFIT || wire_error_breaks(fault->why.error));
    return is_conflict(state) && !fault->broken ? HOST_AGAIN : HOST_FAILED;
}

/* Sends what was put together, and frees it. NULL with the outcome where it failed. */
static PGresult *ask(struct sql_text *sql, bool commits, enum host_outcome *outcome,
                     struct host_fault *fault)
{
    PGresult *result = connection ? pq_execute(connection, sql->out.text) : NULL;
    ExecStatusType status = PQresultStatus(result);
    strbuf_free(&sql->out);
    *outcome = HOST_DONE;
    if (status == PGRES_TUPLES_OK || status == PGRES_COMMAND_OK)
        return result;
    *outcome = fail(result, commits, fault);
    PQclear(result);
    return NULL;
}

/* -- connecting -------------------------------------------------------------------------------- */

static bool pq_open(const struct host_target *target, struct host_fault *fault)
{
    PQfinish(connection);
    *fault = (struct host_fault){.broken = false};
    connection = pq_connect(&target->at, &fault->why);
    if (!connection)
        return false;
    snprintf(table_prefix, sizeof table_prefix, "%s", target->table);
    return true;
}

/* -- locking and reading ----------------------------------------------------------------------- */

static void add_locks(struct sql_text *sql, const struct unit *unit)
{
    struct host_lock *locks = host_locks(unit, table_prefix, 0);

    for (size_t i = 0; i < unit->count; i++)
        sql_add(sql, "SELECT pg_advisory_xact_lock%s(%" PRId64 ");",
                locks[i].writes ? "" : "_shared", (int64_t)locks[i].number);
    free(locks);
    shedlock_add_locks(sql, unit);
}

/* The isolation is named because a transaction that keeps its first snapshot would read what was
 * there before it had its locks. */
static void add_begin(struct sql_text *sql, const struct unit *unit)
{
    if (in_transaction)
        sql_add(sql, "ROLLBACK;");
    in_transaction = false;
    if (unit->reads_only)
        return;
    sql_add(sql, "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE;"
                 "SET LOCAL lock_timeout = " LOCK_TIMEOUT_MS ";"
                 "SET LOCAL idle_in_transaction_session_timeout = " IDLE_TIMEOUT_MS ";");
    for (size_t i = 0; i < channel_count; i++)
        if (channels[i].is_new)
            sql_add(sql, "LISTEN %s;", channels[i].listened);
    add_locks(sql, unit);
    in_transaction = true;
}

/* Row 0 has the clock only. A clock that is read in the same statement as the rows, behind the
 * locks, is not behind any that wrote them. */
static void add_select(struct sql_text *sql, const struct unit *unit)
{
    if (unit->count == 0) {
        sql_add(sql, "SELECT " NOW_US ", 0, NULL, NULL");
        return;
    }
    sql_add(sql, "SELECT " NOW_US ", k.i, r.version, r.state, CAST(NULL AS bigint) FROM "
                 "(VALUES (0, '')");
    for (size_t i = 0; i < unit->count; i++) {
        sql_add(sql, ", (%zu, ", i + 1);
        sql_name(sql, unit->keys[i].name);
        sql_add(sql, ")");
    }
    sql_add(sql, ") k (i, name) LEFT JOIN @record r ON r.name = k.name");
    for (size_t i = 0; i < unit->count; i++) {
        if (!shedlock_has(unit->keys[i].name))
            continue;
        sql_add(sql, " UNION ALL SELECT " NOW_US ", %zu, 1, ", i + 1);
        shedlock_add_values(sql, &unit->keys[i]);
    }
}

static bool take_row(struct unit *unit, const PGresult *result, int row)
{
    int64_t now = strtoll(PQgetvalue(result, row, 0), NULL, 10);
    size_t i = strtoul(PQgetvalue(result, row, 1), NULL, 10);

    if (now > unit->now_us)
        unit->now_us = now;
    if (i == 0 || i > unit->count || PQgetisnull(result, row, 2))
        return true;
    struct record *record = &unit->keys[i - 1].record;
    if (!PQgetisnull(result, row, 4))
        return shedlock_take(record, now, PQgetvalue(result, row, 3), PQgetvalue(result, row, 4));
    record->version = strtoll(PQgetvalue(result, row, 2), NULL, 10);
    return record_read(record, PQgetvalue(result, row, 3), (size_t)PQgetlength(result, row, 3));
}

static void roll_back(void)
{
    if (in_transaction && PQstatus(connection) == CONNECTION_OK)
        PQclear(PQexec(connection, "ROLLBACK"));
    in_transaction = false;
}

static enum host_outcome pq_load(struct unit *unit, struct host_fault *fault)
{
    enum host_outcome outcome;
    struct sql_text sql = begin_sql();

    add_begin(&sql, unit);
    add_select(&sql, unit);
    PGresult *result = ask(&sql, false, &outcome, fault);
    for (int row = 0; result && outcome == HOST_DONE && row < PQntuples(result); row++)
        if (!take_row(unit, result, row)) {
            *fault = (struct host_fault){.broken = false};
            driver_fail(&fault->why, WIRE_UNFIT, "the database's tables hold other data");
            outcome = HOST_FAILED;
        }
    PQclear(result);
    if (outcome != HOST_DONE)
        roll_back();
    return outcome;
}

/* -- writing ----------------------------------------------------------------------------------- */

/* A row that is new has the time as its version, so that none that was there before it had a later
 * one. The version is looked at although the key is locked: another one would make the state NULL,
 * which the table refuses. */
static void add_record(struct sql_text *sql, const struct unit *unit, const struct unit_key *key)
{
    const struct record *record = &key->record;
    int64_t expires = record->type == RECORD_NONE ? 1 : record->expires;
    char *state = record_print(record);

    sql_add(sql, "(");
    sql_name(sql, key->name);
    sql_add(sql, ", %" PRId64 ", %" PRId64 ", ",
            record->version ? record->version + 1 : unit->now_us, expires);
    sql_literal(sql, state);
    sql_add(sql, ")");
    free(state);
}

static void add_records(struct sql_text *sql, const struct unit *unit)
{
    bool any = false;

    for (size_t i = 0; i < unit->count; i++) {
        if (!unit->keys[i].record.changed || shedlock_has(unit->keys[i].name))
            continue;
        sql_add(sql, "%s",
                any ? "," : "INSERT INTO @record AS c (name, version, expires, state) VALUES ");
        add_record(sql, unit, &unit->keys[i]);
        any = true;
    }
    if (any)
        sql_add(sql, " ON CONFLICT (name) DO UPDATE SET version = excluded.version, expires = "
                     "excluded.expires, state = CASE WHEN c.version + 1 = excluded.version THEN "
                     "excluded.state END;");
}

static void print_channel(struct piece name, char *out, size_t size)
{
    snprintf(out, size, "rlock_%016" PRIx64, host_number(table_prefix, name));
}

/* "CHANNEL TEXT". One that is too long is sent without a text: a client that hears it looks
 * then. */
static void add_message(struct sql_text *sql, const struct unit_message *message)
{
    char channel[24], *name = record_print_name(message->channel);
    char *text = record_print_name(message->text);
    char *both = strbuf_print("%s %s", name, text);

    print_channel(message->channel, channel, sizeof channel);
    sql_add(sql, "SELECT pg_notify('%s', ", channel);
    sql_literal(sql, strlen(both) <= PAYLOAD_MAX ? both : "");
    sql_add(sql, ");");
    free(name);
    free(text);
    free(both);
}

/* A row that another client is writing is left to the next one. */
#define PURGE                                                                                      \
    "DELETE FROM @record WHERE name IN (SELECT name FROM @record WHERE expires BETWEEN 1 "         \
    "AND " NOW_US " / 1000 LIMIT 100 FOR UPDATE SKIP LOCKED);"

static void note_listening(void)
{
    for (size_t i = 0; i < channel_count; i++)
        channels[i].is_new = false;
}

static enum host_outcome pq_commit(struct unit *unit, struct host_fault *fault)
{
    enum host_outcome outcome;
    struct sql_text sql = begin_sql();

    if (!in_transaction)
        sql_add(&sql, "BEGIN;");
    add_records(&sql, unit);
    shedlock_add_changes(&sql, unit);
    for (size_t i = 0; i < unit->message_count; i++)
        add_message(&sql, &unit->messages[i]);
    if (random() % PURGE_EVERY == 0)
        sql_add(&sql, PURGE);
    sql_add(&sql, "COMMIT");
    bool listens = in_transaction;
    in_transaction = true;
    PGresult *result = ask(&sql, true, &outcome, fault);
    PQclear(result);
    if (outcome == HOST_DONE && *pq_warning()) {
        in_transaction = false;
        *fault = (struct host_fault){.maybe_done = true};
        driver_fail(&fault->why, WIRE_UNREACHABLE, pq_warning());
        return HOST_FAILED;
    }
    if (outcome == HOST_DONE) {
        in_transaction = false;
        if (listens)
            note_listening();
    } else {
        roll_back();
    }
    return outcome;
}

static void pq_abandon(void)
{
    if (!in_transaction)
        return;
    PGresult *result = PQexec(connection, "COMMIT");
    if (PQresultStatus(result) == PGRES_COMMAND_OK)
        note_listening();
    PQclear(result);
    in_transaction = false;
}

/* -- listing ----------------------------------------------------------------------------------- */

static bool pq_list(struct piece prefix, void (*each)(void *arg, struct piece name), void *arg,
                    struct host_fault *fault)
{
    char *start = record_print_name(prefix);
    enum host_outcome outcome;
    struct sql_text sql = begin_sql();

    sql_add(&sql,
            "SELECT name FROM @record WHERE (expires = 0 OR expires > " NOW_US
            " / 1000) AND left(name, %zu) = ",
            strlen(start));
    sql_literal(&sql, start);
    free(start);
    PGresult *result = ask(&sql, false, &outcome, fault);
    for (int row = 0; result && row < PQntuples(result); row++) {
        char *name = mem_strdup(PQgetvalue(result, row, 0));
        size_t size = strlen(name);
        if (record_read_name(name, &size))
            each(arg, (struct piece){name, size});
        free(name);
    }
    PQclear(result);
    return outcome == HOST_DONE;
}

/* -- messages ---------------------------------------------------------------------------------- */

static void pq_listen(struct piece name)
{
    for (size_t i = 0; i < channel_count; i++)
        if (piece_equal(channels[i].name, name))
            return;
    struct channel *channel = MEM_APPEND(channels, channel_count);
    *channel = (struct channel){.name = piece_duplicate(name), .is_new = true};
    print_channel(name, channel->listened, sizeof channel->listened);
}

/* It is listened to for as long as the connection lives: a waiter comes back to it. */
static void pq_unlisten(struct piece name)
{
    (void)name;
}

static void tell_payload(char *payload, void (*tell)(void *arg, struct piece, struct piece),
                         void *arg)
{
    char *text = strchr(payload, ' ');
    struct piece piece = {text + 1, strlen(text + 1)};

    *text = '\0';
    size_t size = strlen(payload);
    if (record_read_name(payload, &size) && record_read_name(text + 1, &piece.size))
        tell(arg, (struct piece){payload, size}, piece);
}

static bool pq_hear(void (*tell)(void *arg, struct piece channel, struct piece text), void *arg)
{
    PGnotify *notify;

    if (!connection)
        return true;
    if (!PQconsumeInput(connection))
        return false;
    while ((notify = PQnotifies(connection))) {
        char *payload = mem_strdup(notify->extra);
        if (strchr(payload, ' '))
            tell_payload(payload, tell, arg);
        else
            for (size_t i = 0; i < channel_count; i++)
                if (strcmp(channels[i].listened, notify->relname) == 0)
                    tell(arg, channels[i].name, piece_of("1"));
        free(payload);
        PQfreemem(notify);
    }
    return true;
}

static int pq_rest(enum host_ears ears, int *ms)
{
    (void)ears;
    *ms = -1;
    return connection ? PQsocket(connection) : -1;
}

/* -- questions --------------------------------------------------------------------------------- */

static bool pq_ask(const char *query, struct strbuf *out, struct host_fault *fault)
{
    enum host_outcome outcome;
    struct sql_text sql = begin_sql();

    strbuf_puts(&sql.out, query);
    PGresult *result = ask(&sql, false, &outcome, fault);
    int columns = PQntuples(result) > 0 ? PQnfields(result) : 0;
    if (result)
        resp_array(out, (size_t)columns);
    for (int i = 0; i < columns; i++)
        resp_bulk(out, piece_of(PQgetvalue(result, 0, i)));
    PQclear(result);
    return outcome == HOST_DONE;
}

/* -- tables ------------------------------------------------------------------------------------ */

static bool pq_make(const char *user, struct host_fault *fault)
{
    enum host_outcome outcome;
    struct sql_text sql = begin_sql();

    /* Two that make them at once would see each other fail. */
    sql_add(&sql, "BEGIN;SELECT pg_advisory_xact_lock(%" PRId64 ");",
            (int64_t)host_number(table_prefix, piece_of("")));
    for (size_t i = 0; sql_add_schema(&sql, user, i); i++)
        sql_add(&sql, ";");
    sql_add(&sql, "COMMIT");
    in_transaction = true;
    PQclear(ask(&sql, true, &outcome, fault));
    if (outcome != HOST_DONE)
        roll_back();
    in_transaction = false;
    return outcome == HOST_DONE;
}

const struct host_store host_postgresql = {pq_open, pq_load,   pq_commit,   pq_abandon,
                                           pq_list, pq_listen, pq_unlisten, pq_rest,
                                           pq_hear, pq_ask,    pq_make};
