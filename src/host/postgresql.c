/* Records in PostgreSQL. A key is locked whether it has a row or not, by an advisory lock, which
 * ends with the transaction, also behind a pooler. A message is a NOTIFY. */
#include <inttypes.h>
#include <stdio.h>

#include "base/mem.h"
#include "drivers/pq.h"
#include "host/database.h"

/* How long a unit waits for its locks, and how long the server lets a client stand still between
 * its two requests: the locks of one that is stopped there are in the way of all others. */
#define LOCK_TIMEOUT_MS "3000"
#define IDLE_TIMEOUT_MS "2000"
/* pg_notify() takes a byte less than 8000. */
#define PAYLOAD_MAX 7999

static PGconn *connection;
/* The server's warning since the latest request was sent. A cancelled wait for the synchronous
 * standby is a warning beside a success. */
static char warning[256];

/* -- requests ---------------------------------------------------------------------------------- */

static void heed(void *arg, const PGresult *notice)
{
    const char *severity = PQresultErrorField(notice, PG_DIAG_SEVERITY_NONLOCALIZED);
    const char *said = PQresultErrorField(notice, PG_DIAG_MESSAGE_PRIMARY);

    (void)arg;
    if (severity && strcmp(severity, "WARNING") == 0)
        snprintf(warning, sizeof warning, "%s", said ? said : "a warning");
}

/* Returns the outcome of a failed request. commits: it may have been the one that commits. */
static enum host_outcome fail(const PGresult *result, bool commits, struct host_fault *fault)
{
    const char *state = PQresultErrorField(result, PG_DIAG_SQLSTATE);
    /* The server ended the session between two requests of a transaction, which is undone. */
    bool idle_end = state && strcmp(state, "25P03") == 0;

    *fault = (struct host_fault){.broken = PQstatus(connection) != CONNECTION_OK};
    pq_fail(connection, result, &fault->why);
    fault->why.maybe_done =
        commits && !idle_end &&
        (fault->broken || fault->why.error == WIRE_UNFIT || wire_error_breaks(fault->why.error));
    return fault->why.error == WIRE_CONFLICT && !fault->broken ? HOST_AGAIN : HOST_FAILED;
}

static void take_rows(const PGresult *result, const struct database_taker *taker)
{
    struct piece values[DATABASE_COLUMNS];
    int columns = PQnfields(result) < DATABASE_COLUMNS ? PQnfields(result) : DATABASE_COLUMNS;

    for (int row = 0; row < PQntuples(result); row++) {
        for (int i = 0; i < columns; i++)
            values[i] =
                (struct piece){PQgetvalue(result, row, i), (size_t)PQgetlength(result, row, i)};
        taker->take(taker->arg, values, (size_t)columns);
    }
}

/* Behind an error there is no further result but that of a connection that breaks. */
static enum host_outcome pq_ask(struct database_request *request,
                                const struct database_taker *taker, struct host_fault *fault)
{
    PGresult *last = NULL, *next;
    enum host_outcome outcome = HOST_DONE;

    *warning = '\0';
    PQsendQuery(connection, request->text.out.text);
    while (PQstatus(connection) == CONNECTION_OK && (next = PQgetResult(connection))) {
        PQclear(last);
        last = next;
        if (taker)
            take_rows(last, taker);
    }
    ExecStatusType status = PQresultStatus(last);
    strbuf_free(&request->text.out);
    if (status != PGRES_TUPLES_OK && status != PGRES_COMMAND_OK)
        outcome = fail(last, request->commits, fault);
    PQclear(last);
    return outcome;
}

/* -- messages ---------------------------------------------------------------------------------- */

static void add_text(struct database_request *request, const char *text)
{
    char *quoted = mem_checked(PQescapeLiteral(connection, text, strlen(text)));

    strbuf_puts(&request->text.out, quoted);
    PQfreemem(quoted);
}

static void add_channel(struct database_request *request, struct piece name)
{
    sql_add(&request->text, "rlock_%016" PRIx64, database_number(name));
}

/* "CHANNEL TEXT". One that is too long is sent without a text: a client that hears it looks
 * then. */
static void add_message(struct database_request *request, const struct unit_message *message)
{
    char *name = record_print_name(message->channel);
    char *text = record_print_name(message->text);
    char *both = strbuf_print("%s %s", name, text);

    sql_add(&request->text, "SELECT pg_notify('");
    add_channel(request, message->channel);
    sql_add(&request->text, "', ");
    add_text(request, strlen(both) <= PAYLOAD_MAX ? both : "");
    database_say(request, ")");
    free(name);
    free(text);
    free(both);
}

static void tell_payload(char *payload)
{
    char *text = strchr(payload, ' ');
    struct piece piece = {text + 1, strlen(text + 1)};

    *text = '\0';
    size_t size = strlen(payload);
    if (record_read_name(payload, &size) && record_read_name(text + 1, &piece.size))
        host_tell((struct piece){payload, size}, piece);
}

static bool pq_hear(void)
{
    PGnotify *notify;

    if (!PQconsumeInput(connection))
        return false;
    while ((notify = PQnotifies(connection))) {
        uint64_t number = strtoull(notify->relname + strlen("rlock_"), NULL, 16);
        if (strchr(notify->extra, ' '))
            tell_payload(notify->extra);
        else
            for (size_t i = 0; i < host_channels.count; i++)
                if (database_number(host_channels.at[i].name) == number)
                    host_tell(host_channels.at[i].name, piece_of("1"));
        PQfreemem(notify);
    }
    return true;
}

static int pq_rest(enum host_ears ears, int *ms)
{
    (void)ears;
    *ms = -1;
    return PQsocket(connection);
}

/* -- statements -------------------------------------------------------------------------------- */

static void add_lock(struct database_request *request, uint64_t number, bool writes)
{
    sql_add(&request->text, "SELECT 'g', pg_advisory_xact_lock%s(%" PRId64 ")",
            writes ? "" : "_shared", (int64_t)number);
}

/* They are heard from the end of a transaction on. */
static void add_listening(struct database_request *request, const struct unit *unit)
{
    for (size_t i = 0; i < host_channels.count && !unit->reads_only; i++) {
        if (!host_channels.at[i].is_new)
            continue;
        sql_add(&request->text, "LISTEN ");
        add_channel(request, host_channels.at[i].name);
        database_next(request);
    }
}

static void add_commit(struct database_request *request, const struct unit *unit)
{
    for (size_t i = 0; i < unit->message_count; i++)
        add_message(request, &unit->messages[i]);
    database_say(request, "COMMIT");
    request->commits = request->count;
}

/* The isolation is named because a transaction that keeps its first snapshot would read what was
 * there before it had its locks. */
static const char *const begin[] = {
    "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE", "SET LOCAL lock_timeout = " LOCK_TIMEOUT_MS,
    "SET LOCAL idle_in_transaction_session_timeout = " IDLE_TIMEOUT_MS, NULL};

static const struct database postgresql = {.dialect = &sql_postgresql,
                                           .begin = begin,
                                           .purge_every = 256,
                                           .add_text = add_text,
                                           .add_lock = add_lock,
                                           .add_listening = add_listening,
                                           .add_commit = add_commit,
                                           .ask = pq_ask,
                                           .warning = warning};

/* -- connecting, and tables -------------------------------------------------------------------- */

static bool pq_open(const struct driver_target *target, const char *table, struct host_fault *fault)
{
    *fault = (struct host_fault){.broken = false};
    database_use(&postgresql, table);
    connection = pq_connect(target, &fault->why);
    if (connection)
        PQsetNoticeReceiver(connection, heed, NULL);
    return connection;
}

/* A request is a transaction. Two that make the tables at once would see each other fail. */
static bool pq_make(const char *user, struct host_fault *fault)
{
    struct database_request request = database_request();

    add_lock(&request, database_number(piece_of("")), true);
    database_next(&request);
    database_add_schema(&request, user);
    request.commits = request.count;
    return pq_ask(&request, NULL, fault) == HOST_DONE;
}

const struct host_store host_postgresql = {pq_open,          database_load, database_commit,
                                           database_abandon, database_list, pq_rest,
                                           pq_hear,          database_ask,  pq_make};
