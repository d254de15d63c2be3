/* Reads and writes the records of a unit by the SQL of the program's one database. It changes the
 * tables and this process's one transaction. A function add_…() adds statements to a request; the
 * rows that answer begin with a letter that says what a row is (take_loaded()).
 *
 * To add a kind of database, write a file like postgresql.c with the functions of database.h, and a
 * dialect (store/hosted/dialect.c). */
#include "host/database.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/hash.h"
#include "base/mem.h"
#include "host/primary.h"
#include "host/shedlock.h"

static char table_prefix[64];
static bool in_transaction; /* which the server ends if this process stands still in it */

uint64_t database_number(struct slice name)
{
    uint64_t table = hash_add(HASH_START, table_prefix, strlen(table_prefix));

    return hash_add(table, name.at, name.size);
}

/* -- statements -------------------------------------------------------------------------------- */

struct sql_text database_request(void)
{
    return (struct sql_text){.dialect = database.dialect, .table = table_prefix};
}

void database_say(struct sql_text *request, const char *statement)
{
    strbuf_puts(&request->out, statement);
    sql_end(request);
}

void database_add_bytes(struct sql_text *request, struct slice bytes)
{
    strbuf_puts(&request->out, "x'");
    sql_add_digits(request, bytes.at, bytes.size);
    strbuf_putc(&request->out, '\'');
}

/* Adds the name of a record as SQL: MySQL has it as bytes, PostgreSQL as escaped text. */
static void add_name(struct sql_text *request, struct slice name)
{
    if (database.dialect->is_mysql) {
        database_add_bytes(request, name);
    } else {
        char *text = record_print_name(name);
        database_add_text(request, text);
        free(text);
    }
}

/* -- channels ---------------------------------------------------------------------------------- */

/* Notes that the server tells this process of the messages for all its channels, as it does from a
 * commit on. */
static void note_listening(void)
{
    for (size_t i = 0; i < host_channels.count; i++)
        host_channels.at[i].is_new = false;
}

/* Takes a row 'm': the number of a channel, and that of its latest message. Only messages behind
 * that are told to the clients that have begun to listen. */
static void take_position(const struct slice *values)
{
    uint64_t number = (uint64_t)strtoll(values[1].at, NULL, 10);

    for (size_t i = 0; i < host_channels.count; i++) {
        struct host_channel *channel = &host_channels.at[i];
        if (channel->is_new && database_number(channel->name) == number) {
            channel->heard = strtoull(values[2].at, NULL, 10);
            channel->is_new = false;
        }
    }
}

/* -- locking and reading ----------------------------------------------------------------------- */

/* The database's lock of a key, not one of rlock's. */
struct lock {
    uint64_t number; /* of the key */
    bool writes;     /* no other transaction may read the key; otherwise none may write it */
};

/* For qsort(): by number, so that all transactions take locks in one order; of one number, first
 * the one for writing. */
static int compare_locks(const void *a, const void *b)
{
    const struct lock *left = a, *right = b;

    return left->number != right->number ? (left->number < right->number ? -1 : 1)
                                         : (int)right->writes - (int)left->writes;
}

/* Adds the statement by which the transaction takes a lock. */
static void add_lock(struct sql_text *request, const struct lock *lock)
{
    const char *const *statement = database.lock[lock->writes];

    sql_add(request, "%s%" PRId64 "%s", statement[0], (int64_t)lock->number, statement[1]);
    sql_end(request);
}

/* Adds the statements that lock the keys of a unit: in an order that is the same for all units, so
 * that no two wait for each other. Of several keys with one number, the first lock is enough. */
static void add_locks(struct sql_text *request, const struct unit *unit)
{
    struct lock *locks = mem_zeroed((unit->count + 1) * sizeof *locks);

    for (size_t i = 0; i < unit->count; i++) {
        uint64_t number = database_number(unit->keys[i].name);
        locks[i] =
            (struct lock){database.gates ? number % database.gates : number, unit->keys[i].writes};
    }
    qsort(locks, unit->count, sizeof *locks, compare_locks);
    for (size_t i = 0; i < unit->count; i++)
        add_lock(request, &locks[i]);
    free(locks);
    shedlock_add_locks(request, unit);
}

/* Adds the statements that have the server tell of messages for new channels, if there are any. A
 * database that ends the listening to all channels first listens to all anew. */
static void add_listening(struct sql_text *request)
{
    bool any_new = false;

    for (size_t i = 0; i < host_channels.count; i++)
        any_new |= host_channels.at[i].is_new;
    if (any_new && database.unlisten)
        database_say(request, database.unlisten);
    for (size_t i = 0; any_new && i < host_channels.count; i++) {
        if (!host_channels.at[i].is_new && !database.unlisten)
            continue;
        database_add_listening(request, host_channels.at[i].name);
        sql_end(request);
    }
}

/* Adds the statements that read the unit's records, and the clock: rows 'r', of ShedLock 's', and
 * 't'. The second value of a record's row is the number of its key in the unit. The clock is read
 * by a statement of its own, behind all others, so that it is read behind the locks. */
static void add_select(struct sql_text *request, const struct unit *unit)
{
    bool any = false;

    for (size_t i = 0; i < unit->count; i++) {
        if (shedlock_has(unit->keys[i].name))
            continue;
        sql_add(request, "%sSELECT 'r', %zu, version, state FROM @record WHERE name = ",
                any ? " UNION ALL " : "", i);
        add_name(request, unit->keys[i].name);
        any = true;
    }
    if (any)
        sql_end(request);
    for (size_t i = 0; i < unit->count; i++) {
        if (!shedlock_has(unit->keys[i].name))
            continue;
        sql_add(request, "SELECT 's', %zu, %s, ", i, database.dialect->now);
        shedlock_add_values(request, &unit->keys[i]);
        sql_end(request);
    }
    sql_add(request, "SELECT 't', %s", database.dialect->now);
    sql_end(request);
}

struct loading {
    struct unit *unit;
    size_t locked;  /* keys that were locked */
    bool read_only; /* an administrator wants nothing to be written */
    bool damaged;   /* a record cannot be read */
};

/* For database_ask(): takes a row of the answer to the first request of a unit, by its letter. */
static void take_loaded(void *arg, const struct slice *values, size_t count)
{
    struct loading *loading = arg;
    int64_t number = count > 1 ? strtoll(values[1].at, NULL, 10) : 0;
    struct record *record;

    switch (*values[0].at) {
    case 'g': loading->locked++; break;     /* "got": a key is locked */
    case 'm': take_position(values); break; /* the latest message of a channel */
    case 'o':                               /* an option: new transactions are read-only */
        loading->read_only = number == 1 || strcmp(values[1].at, "on") == 0;
        break;
    case 'r': /* a record: its key's number, version, state */
        record = &loading->unit->keys[number].record;
        record->version = strtoll(values[2].at, NULL, 10);
        loading->damaged |= !record_read(record, values[3].at, values[3].size);
        break;
    case 's': /* a row of ShedLock: its key's number, the server's time, locked_by, us left */
        record = &loading->unit->keys[number].record;
        shedlock_take(record, strtoll(values[2].at, NULL, 10), values[3], values[4].at);
        break;
    case 't': loading->unit->now_us = number; break; /* the server's time */
    default: break; /* a row of ShedLock that was locked, which has no letter */
    }
}

/* Whether what was loaded shows that the unit cannot be done; then fills the fault with why. */
static bool is_unfit(const struct loading *loading, struct host_fault *fault)
{
    bool reads_only = loading->unit->reads_only;
    bool may_not_write = loading->read_only && !reads_only;
    bool lacks_locks = !reads_only && loading->locked != loading->unit->count;

    if (may_not_write)
        *fault = (struct host_fault){
            .why = {.error = WIRE_READ_ONLY, .said = "new transactions are read-only by default"},
            .broken = true};
    else if (lacks_locks)
        *fault = (struct host_fault){
            .why = {.error = WIRE_NO_TABLES, .said = "rlock's table of gates lacks rows"}};
    else if (loading->damaged)
        *fault = (struct host_fault){
            .why = {.error = WIRE_UNFIT, .said = "the database's tables hold other data"}};
    return may_not_write || lacks_locks || loading->damaged;
}

/* Ends the transaction. how: COMMIT or ROLLBACK. Takes back its limit of time, if the session has
 * that. A failure is not reported: the next request meets what broke. */
static enum host_outcome end_transaction(const char *how)
{
    struct sql_text request = database_request();
    struct host_fault fault;

    in_transaction = false;
    database_say(&request, how);
    if (database.unlimit)
        database_say(&request, database.unlimit);
    return database_ask(&request, NULL, &fault);
}

/* Sends one of the two requests of a unit, and frees it. taker: takes the rows; may be NULL. The
 * outcome and the fault are those of the unit. */
static enum host_outcome ask_for_unit(struct sql_text *request, const struct database_taker *taker,
                                      struct host_fault *fault)
{
    enum host_outcome outcome = database_ask(request, taker, fault);

    /* A session that lacks a right or the tables is left: it may have rights, a role and a
     * search_path of when it began, and another one may fare better. */
    if (outcome == HOST_FAILED)
        fault->broken |= fault->why.error == WIRE_DENIED || fault->why.error == WIRE_NO_TABLES;
    return outcome;
}

/* Ends a unit that has written nothing. By COMMIT, as a LISTEN in it holds only from then on. */
static void abandon_unit(void)
{
    if (in_transaction && end_transaction("COMMIT") == HOST_DONE)
        note_listening();
}

/* Reads the records of a unit in one request. One that may write locks their keys first, by the
 * transaction that commit_unit() or an error ends; one that only reads has none. */
static enum host_outcome load_unit(struct unit *unit, struct host_fault *fault)
{
    struct loading loading = {.unit = unit};
    const struct database_taker taker = {take_loaded, &loading};
    struct sql_text request = database_request();

    if (in_transaction)
        database_say(&request, "ROLLBACK");
    in_transaction = !unit->reads_only;
    for (size_t i = 0; in_transaction && database.begin[i]; i++)
        database_say(&request, database.begin[i]);
    database_add_settings(&request);
    if (in_transaction)
        add_locks(&request, unit);
    if (in_transaction || database.listens_always)
        add_listening(&request);
    add_select(&request, unit);
    enum host_outcome outcome = ask_for_unit(&request, &taker, fault);
    if (outcome == HOST_DONE && is_unfit(&loading, fault))
        outcome = HOST_FAILED;
    if (outcome != HOST_DONE && in_transaction)
        end_transaction("ROLLBACK");
    return outcome;
}

/* -- writing ----------------------------------------------------------------------------------- */

/* The version that the record has when it is written. A row that is new has the time as its
 * version, so that none that was there before it had a later one. */
static int64_t next_version(const struct unit *unit, const struct record *record)
{
    return record->version ? record->version + 1 : unit->now_us;
}

/* When the record's row may be removed, in ms since 1970; 0: never; 1: at once, as it is empty. */
static int64_t expiry_of(const struct record *record)
{
    return record->type == RECORD_NONE ? 1 : record->expires;
}

/* Adds statements that check what was written, as a trigger, a rule or a policy may drop or change
 * it without an error. A record that is not there as it was written makes the sum of SQL_ONE too
 * large for its type: nothing is committed. states: the texts of the records that are written; NULL
 * for a key that is not. */
static void add_checks(struct sql_text *request, const struct unit *unit, char *const *states)
{
    for (size_t i = 0; i < unit->count; i++) {
        const struct record *record = &unit->keys[i].record;
        if (!states[i])
            continue;
        sql_add(request, SQL_ONE "@record WHERE name = ");
        add_name(request, unit->keys[i].name);
        sql_add(request, " AND version = %" PRId64 " AND expires = %" PRId64 " AND state = ",
                next_version(unit, record), expiry_of(record));
        database_add_text(request, states[i]);
        sql_end(request);
    }
}

/* Adds statements that write the changed records, and check that they are there. */
static void add_records(struct sql_text *request, const struct unit *unit)
{
    char *states[UNIT_KEYS_MAX] = {NULL};
    bool any = false;

    for (size_t i = 0; i < unit->count; i++) {
        const struct record *record = &unit->keys[i].record;
        if (!record->changed || shedlock_has(unit->keys[i].name))
            continue;
        states[i] = record_print(record);
        sql_add(request, "%s",
                any ? "), (" : "INSERT INTO @record (name, version, expires, state) VALUES (");
        add_name(request, unit->keys[i].name);
        sql_add(request, ", %" PRId64 ", %" PRId64 ", ", next_version(unit, record),
                expiry_of(record));
        database_add_text(request, states[i]);
        any = true;
    }
    /* The version is a condition although the key is locked, as another node of a cluster knows
     * nothing of that lock: where it is another one, the state becomes NULL, which the table
     * refuses. */
    if (any) {
        sql_add(request, ") %s", database.dialect->overwrite);
        sql_end(request);
    }
    add_checks(request, unit, states);
    for (size_t i = 0; i < unit->count; i++)
        free(states[i]);
}

/* Removes records whose time is over. A failure is not reported: the next purge removes them. */
static void purge_records(void)
{
    struct sql_text request = database_request();
    struct host_fault fault;

    const char *const *statements = database.dialect->purge;
    for (; *statements; statements++) {
        sql_add(&request, "%s", *statements);
        sql_end(&request);
    }
    database_ask(&request, NULL, &fault);
}

/* Writes the changed records, tells the messages and commits, in one request. The transaction is
 * open, but for a unit that was to read only. */
static enum host_outcome commit_unit(struct unit *unit, struct host_fault *fault)
{
    struct sql_text request = database_request();
    bool listens = in_transaction; /* load_unit() has put that into the transaction */

    if (!in_transaction)
        database_say(&request, "START TRANSACTION");
    else if (database.unlimit)
        database_say(&request, database.unlimit);
    add_records(&request, unit);
    shedlock_add_changes(&request, unit);
    database_add_commit(&request, unit);
    enum host_outcome outcome = ask_for_unit(&request, NULL, fault);
    if (outcome != HOST_DONE) {
        end_transaction("ROLLBACK");
        return outcome;
    }
    in_transaction = false;
    if (listens)
        note_listening();
    if (database.warning && *database.warning) { /* a failover may lose the commit */
        *fault = (struct host_fault){.broken = false};
        host_error_set(&fault->why, WIRE_UNREACHABLE, database.warning);
        fault->why.maybe_done = true;
        return HOST_FAILED;
    }
    if (random() % database.purge_every == 0)
        purge_records();
    return HOST_DONE;
}

/* -- connecting, and tables -------------------------------------------------------------------- */

/* Connects to that host of the URL which takes writes. False: why there is none is in the fault. */
static bool open_database(const struct host_target *target, const char *table,
                          struct host_fault *fault)
{
    *fault = (struct host_fault){.broken = false};
    snprintf(table_prefix, sizeof table_prefix, "%s", table);
    return primary_connect(target, &fault->why);
}

/* Makes the tables and the view, where they are not there yet, and gives "user" rights to them,
 * unless that is NULL. False, with the fault: it failed. */
static bool make_tables(const char *user, struct host_fault *fault)
{
    struct sql_text request = database_request();

    /* Without gates, this request is one transaction: it takes a lock of its own, as two that make
     * the tables at once would see each other fail. */
    if (!database.gates)
        add_lock(&request, &(struct lock){database_number(slice_of("")), true});
    for (size_t i = 0; sql_add_schema(&request, user, i); i++)
        sql_end(&request);
    /* The view, which is the last statement, may fail: it may be there, the user may lack the
     * right, and an older server the words. So all before it has to be done. */
    request.commits = request.count - (database.dialect->view != NULL);
    return database_ask(&request, NULL, fault) == HOST_DONE;
}

/* -- listing, and questions -------------------------------------------------------------------- */

struct names {
    void (*each)(void *arg, struct slice name);
    void *arg;
};

/* For database_ask(): tells the name of a record, which is a row's only value. PostgreSQL has it
 * encoded, as its text has no NUL. */
static void take_name(void *arg, const struct slice *values, size_t count)
{
    const struct names *names = arg;

    if (count > 1) /* the settings */
        return;
    struct slice name = slice_duplicate(values[0]);
    if (database.dialect->is_mysql || record_read_name((char *)(uintptr_t)name.at, &name.size))
        names->each(names->arg, name);
    slice_free(&name);
}

/* Calls "each" for the name of each record that begins with the prefix and has not expired. False,
 * with the fault: it failed. */
static bool list_records(struct slice prefix, void (*each)(void *arg, struct slice name), void *arg,
                         struct host_fault *fault)
{
    struct names names = {each, arg};
    const struct database_taker taker = {take_name, &names};
    struct sql_text request = database_request();

    database_add_settings(&request);
    sql_add(&request,
            "SELECT name FROM @record WHERE (expires = 0 OR expires > %s) AND LEFT(name, "
            "CHAR_LENGTH(",
            database.dialect->now_ms);
    add_name(&request, prefix);
    sql_add(&request, ")) = ");
    add_name(&request, prefix);
    /* So MySQL finds the first one by its index. PostgreSQL compares names by a locale. */
    if (database.dialect->is_mysql) {
        sql_add(&request, " AND name >= ");
        add_name(&request, prefix);
    }
    sql_end(&request);
    return database_ask(&request, &taker, fault) == HOST_DONE;
}

struct answering {
    struct strbuf *out;
    bool is_done; /* a row has come */
};

/* For database_ask(): replies with the first row, and skips the others. */
static void take_answer(void *arg, const struct slice *values, size_t count)
{
    struct answering *answering = arg;

    if (answering->is_done)
        return;
    answering->is_done = true;
    resp_array(answering->out, count);
    for (size_t i = 0; i < count; i++)
        resp_bulk(answering->out, values[i]);
}

/* Replies to the doctor with the first row of a query; without any, with an empty array. False,
 * with the fault, and nothing replied: it failed. */
static bool answer_doctor(const char *query, struct strbuf *out, struct host_fault *fault)
{
    struct answering answering = {.out = out};
    const struct database_taker taker = {take_answer, &answering};
    struct sql_text request = database_request();

    database_say(&request, query);
    bool done = database_ask(&request, &taker, fault) == HOST_DONE;
    if (done && !answering.is_done)
        resp_array(out, 0);
    return done;
}

const struct host_store host_database = {.open = open_database,
                                         .load = load_unit,
                                         .commit = commit_unit,
                                         .abandon = abandon_unit,
                                         .list = list_records,
                                         .poll_fd = database_poll_fd,
                                         .read_messages = database_read_messages,
                                         .ask = answer_doctor,
                                         .make = make_tables,
                                         .takes_own = true};
