/* Records in PostgreSQL. A key is locked whether it has a row or not, by an advisory lock, which
 * ends with the transaction, also behind a pooler. A message is a NOTIFY. */
#include <ctype.h>
#include <inttypes.h>
#include <libpq-fe.h>
#include <stdio.h>

#include "base/ca_bundle.h"
#include "base/mem.h"
#include "host/database.h"
#include "host/primary.h"

/* How long a unit waits for its locks, and how long the server lets a client stand still between
 * its two requests: the locks of one that is stopped there are in the way of all others. */
#define LOCK_TIMEOUT_MS "3000"
#define IDLE_TIMEOUT_MS "2000"
/* pg_notify() takes a byte less than 8000. */
#define PAYLOAD_MAX 7999

/* -- the words of errors ---------------------------------------------------------------------- */

/* A row of a table of errors, whose last row is for all others. */
struct meaning {
    const char *beginning; /* NULL: it is the last row */
    enum wire_error error;
};

/* By SQLSTATE: https://www.postgresql.org/docs/current/errcodes-appendix.html. */
static const struct meaning states[] = {
    {"08", WIRE_UNREACHABLE},    /* connection */
    {"22003", WIRE_NOT_KEPT},    /* a number is too large: SQL_ONE */
    {"23502", WIRE_CONFLICT},    /* the state became NULL: another version is there */
    {"23505", WIRE_CONFLICT},    /* another client has made the row meanwhile */
    {"25006", WIRE_READ_ONLY},   /* a standby */
    {"28", WIRE_KEPT_OUT},       /* pg_hba.conf, no such user */
    {"28P01", WIRE_PASSWORD},    /* wrong password */
    {"3D000", WIRE_NO_DATABASE}, /* no such database */
    {"40", WIRE_CONFLICT},       /* serialisation failure, deadlock */
    {"40003", WIRE_UNREACHABLE}, /* statement completion unknown */
    {"42501", WIRE_DENIED},      /* no right */
    {"42P01", WIRE_NO_TABLES},   /* no such table */
    {"53100", WIRE_NO_SPACE},    /* disk full */
    {"53200", WIRE_NO_MEMORY},   /* out of memory */
    {"53300", WIRE_FULL},        /* too many connections */
    {"55P03", WIRE_BUSY},        /* lock_timeout: another client has locked the whole table */
    {"57014", WIRE_BUSY},        /* statement_timeout */
    {"57P0", WIRE_ENDED},        /* shut down, crashed */
    {"57P03", WIRE_NOT_READY},   /* starting up */
    {NULL, WIRE_UNFIT},
};

/* A message of libpq itself has no SQLSTATE, and a pooler has one of class 08 for all that it
 * refuses. Their own words come first; the names of hosts, users and databases come behind them. */
static const struct meaning words[] = {
    {"expected authentication request", WIRE_STRANGER},
    {"received invalid response to SSL", WIRE_STRANGER},
    {"server does not support SSL", WIRE_NO_TLS},
    {"SSL error: certificate verify failed", WIRE_NO_TLS},
    {"server certificate for", WIRE_NO_TLS},
    {"root certificate file", WIRE_NO_TLS},
    {"could not read root certificate", WIRE_NO_TLS},
    {"could not read certificate", WIRE_NO_TLS},
    {"certificate present, but", WIRE_NO_TLS},
    {"could not load private key", WIRE_NO_TLS},
    {"private key file", WIRE_NO_TLS},
    {"password authentication failed", WIRE_PASSWORD},
    {"SASL authentication failed", WIRE_PASSWORD},
    {"no such user", WIRE_PASSWORD},
    {"no such database", WIRE_NO_DATABASE},
    {"no more connections allowed", WIRE_FULL},
    {"transaction blocks not allowed", WIRE_NO_TRANSACTIONS},
    {"client_login_timeout", WIRE_NOT_READY},
    {"session is read-only", WIRE_READ_ONLY},
    {NULL, WIRE_UNREACHABLE},
};

/* Returns the meaning of a text (NULL: there is none) by a table: that of the row with whose
 * beginning it begins. Of several, a later one says more. */
static enum wire_error error_of(const struct meaning *row, const char *text)
{
    const struct meaning *found = NULL;

    for (; row->beginning; row++)
        if (text && strncmp(text, row->beginning, strlen(row->beginning)) == 0)
            found = row;
    return found ? found->error : row->error;
}

/* Returns where the SQLSTATE begins in a message about a failed connection; NULL: the message is of
 * libpq itself, and has none. libpq tells it nowhere but in the text of the most verbose messages,
 * "FATAL:  28P01: password authentication failed". All but the SQLSTATE depends on the server's
 * language. */
static const char *state_in(const char *message)
{
    const char *at = message;

    while ((at = strstr(at, ":  "))) {
        size_t length = 0;
        at += strlen(":  ");
        while (isupper((unsigned char)at[length]) || isdigit((unsigned char)at[length]))
            length++;
        if (length == 5 && strncmp(at + length, ": ", 2) == 0)
            return at;
    }
    return NULL;
}

/* Returns the words of a message without what libpq puts in front: where it was connecting to is
 * known. state: where its SQLSTATE begins; NULL: it has none. */
static const char *said_of(const char *message, const char *state)
{
    const char *failed = strstr(message, " failed: ");

    return state ? state + strlen("28P01: ") : failed ? failed + strlen(" failed: ") : message;
}

/* -- the connection of this process ------------------------------------------------------------ */

static PGconn *connection;
/* The server's warning since the latest request was sent that a commit may be lost; "": none. */
static char warning[256];

/* Whether a notice or an error was written by that function of the server's source: its words are
 * in any language, and many have one SQLSTATE. */
static bool is_from(const PGresult *result, const char *function)
{
    const char *source = PQresultErrorField(result, PG_DIAG_SOURCE_FUNCTION);

    return source && strcmp(source, function) == 0;
}

/* For libpq: takes a notice of the server. The one that counts comes beside the success of a
 * commit: the wait for the synchronous standby was cancelled. There are many others, such as near
 * the end of the transaction numbers. */
static void on_notice(void *arg, const PGresult *notice)
{
    const char *said = PQresultErrorField(notice, PG_DIAG_MESSAGE_PRIMARY);

    (void)arg;
    if (is_from(notice, "SyncRepWaitForLSN"))
        snprintf(warning, sizeof warning, "%s", said ? said : "a warning");
}

const bool database_connects_by_name = false;

struct database_attempt {
    PGconn *made;
    struct host_target target;
    bool is_begun;
};

/* Fills the fault with why connecting failed, by the SQLSTATE in the message, if there is one, or
 * by its words. */
static void explain_failure(const struct database_attempt *attempt, struct host_error *fault)
{
    /* The path of a socket may hold any words, so it is passed over. The name of a host holds
     * neither a space nor a ':'. */
    const char *whole = PQerrorMessage(attempt->made), *host = attempt->target.host;
    const char *path = *host == '/' ? strstr(whole, host) : NULL;
    const char *message = path ? path + strlen(host) : whole;
    const char *state = state_in(message), *said = said_of(message, state);
    enum wire_error error = error_of(states, state);

    /* There is no SQLSTATE, or one that says little, as a pooler's does: the words may say more. */
    if (error == WIRE_UNFIT || error == WIRE_UNREACHABLE)
        error = error_of(words, said);
    if (state && error == WIRE_UNREACHABLE) /* the server has answered, so it can be reached */
        error = WIRE_TROUBLE;
    if (PQconnectionNeedsPassword(attempt->made))
        error = WIRE_PASSWORD;
    host_error_set(fault, error, said);
}

struct database_attempt *database_begin(const struct host_target *target, bool asks)
{
    const char *bundle = ca_bundle_find();
    /* Without any, libpq would take what is in a home directory. */
    const char *trusted = *target->ca ? target->ca : bundle ? bundle : "/nonexistent";
    const char *const options[][2] = {{"host", target->host},
                                      {"hostaddr", target->address},
                                      {"port", target->port},
                                      {"user", target->user},
                                      {"password", target->password},
                                      {"dbname", target->database},
                                      {"sslmode", target->tls ? "verify-full" : "disable"},
                                      {"sslrootcert", trusted},
                                      {"sslcert", target->certificate},
                                      {"sslkey", target->key},
                                      {"gssencmode", "disable"},
                                      {"client_encoding", "UTF8"},
                                      {"tcp_user_timeout", "10000"},
                                      {"target_session_attrs", asks ? "read-write" : "any"},
                                      {"fallback_application_name", target->client},
                                      {NULL, NULL}};
    const char *names[sizeof options / sizeof *options], *values[sizeof names / sizeof *names];
    struct database_attempt *attempt = mem_zeroed(sizeof *attempt);

    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        names[i] = options[i][0];
        values[i] = options[i][1];
    }
    attempt->target = *target;
    attempt->made = PQconnectStartParams(names, values, 0);
    PQsetErrorVerbosity(attempt->made, PQERRORS_VERBOSE);
    PQsetNoticeReceiver(attempt->made, on_notice, NULL);
    return attempt;
}

enum database_wait database_continue(struct database_attempt *attempt, struct host_error *why)
{
    PostgresPollingStatusType next = PGRES_POLLING_WRITING;

    if (attempt->is_begun || PQstatus(attempt->made) == CONNECTION_BAD)
        next = PQconnectPoll(attempt->made);
    attempt->is_begun = true;
    if (next == PGRES_POLLING_FAILED) {
        explain_failure(attempt, why);
        database_drop(attempt);
    }
    return next == PGRES_POLLING_OK        ? DATABASE_UP
           : next == PGRES_POLLING_FAILED  ? DATABASE_DOWN
           : next == PGRES_POLLING_READING ? DATABASE_READS
                                           : DATABASE_WRITES;
}

int database_attempt_fd(const struct database_attempt *attempt)
{
    return PQsocket(attempt->made);
}

/* A promotion begins another timeline, whose number the name of a file of its log begins with. */
uint64_t database_promotions(struct database_attempt *attempt)
{
    PGresult *result = PQexec(attempt->made, "SELECT pg_walfile_name(pg_current_wal_lsn())");
    char timeline[9] = "";

    if (PQntuples(result) == 1)
        snprintf(timeline, sizeof timeline, "%s", PQgetvalue(result, 0, 0));
    PQclear(result);
    return strtoull(timeline, NULL, 16);
}

void database_drop(struct database_attempt *attempt)
{
    PQfinish(attempt->made);
    free(attempt);
}

void database_take(struct database_attempt *attempt, const struct host_target *target)
{
    (void)target;
    connection = attempt->made;
    free(attempt);
}

/* -- requests ---------------------------------------------------------------------------------- */

/* Returns the outcome of a failed request, HOST_AGAIN or HOST_FAILED, and fills the fault. result:
 * NULL: the connection broke before there was one. commits: the request has a COMMIT. */
static enum host_outcome fail_request(const PGresult *result, bool commits,
                                      struct host_fault *fault)
{
    const char *state = PQresultErrorField(result, PG_DIAG_SQLSTATE);
    const char *said = PQresultErrorField(result, PG_DIAG_MESSAGE_PRIMARY);
    const char *message = PQerrorMessage(connection);
    enum wire_error error = error_of(states, state);
    /* A standby refuses READ WRITE in a BEGIN as what it does not support (0A000). */
    if (state && strcmp(state, "0A000") == 0 && is_from(result, "call_bool_check_hook"))
        error = WIRE_READ_ONLY;
    /* The server ended the session between two requests of a transaction (25P03), so nothing was
     * done. */
    bool idle_end = state && strcmp(state, "25P03") == 0;

    *fault = (struct host_fault){.broken = PQstatus(connection) != CONNECTION_OK};
    said = said ? said : said_of(message, state_in(message));
    if (fault->broken && !wire_error_breaks(error))
        error = WIRE_UNREACHABLE;
    if (error == WIRE_UNREACHABLE)
        error = error_of(words, said);
    host_error_set(&fault->why, error, said);
    fault->why.maybe_done =
        commits && !idle_end && (fault->broken || error == WIRE_UNFIT || wire_error_breaks(error));
    fault->broken |= wire_error_leaves(error);
    return error == WIRE_CONFLICT && !fault->broken ? HOST_AGAIN : HOST_FAILED;
}

enum host_outcome database_ask(struct sql_text *request, const struct database_taker *taker,
                               struct host_fault *fault)
{
    PGresult *last = NULL, *next;
    enum host_outcome outcome = HOST_DONE;

    *warning = '\0';
    PQsendQuery(connection, request->out.text);
    /* Each statement has a result; behind an error there is none but that of a connection that
     * breaks. So the last one tells whether all was done. */
    while (PQstatus(connection) == CONNECTION_OK && (next = PQgetResult(connection))) {
        PQclear(last);
        last = next;
        if (taker) {
            struct slice values[DATABASE_COLUMNS];
            int columns = PQnfields(last) < DATABASE_COLUMNS ? PQnfields(last) : DATABASE_COLUMNS;
            for (int row = 0; row < PQntuples(last); row++) {
                for (int i = 0; i < columns; i++)
                    values[i] =
                        (struct slice){PQgetvalue(last, row, i), (size_t)PQgetlength(last, row, i)};
                taker->take(taker->arg, values, (size_t)columns);
            }
        }
    }
    ExecStatusType status = PQresultStatus(last);
    strbuf_free(&request->out);
    if (status != PGRES_TUPLES_OK && status != PGRES_COMMAND_OK)
        outcome = fail_request(last, request->commits, fault);
    PQclear(last);
    return outcome;
}

/* -- messages ---------------------------------------------------------------------------------- */

void database_add_text(struct sql_text *request, const char *text)
{
    char *quoted = mem_checked(PQescapeLiteral(connection, text, strlen(text)));

    strbuf_puts(&request->out, quoted);
    PQfreemem(quoted);
}

/* Adds the name that a channel has in the server, by its number. */
static void add_channel(struct sql_text *request, struct slice name)
{
    sql_add(request, "rlock_%016" PRIx64, database_number(name));
}

/* Tells clients the notifications that have come. Each is for the channels of a number, which the
 * name of the server's channel ends with. */
bool database_read_messages(void)
{
    PGnotify *notify;

    if (!PQconsumeInput(connection))
        return false;
    while ((notify = PQnotifies(connection))) {
        uint64_t number = strtoull(notify->relname + strlen("rlock_"), NULL, 16);
        if (strchr(notify->extra, ' ')) { /* "CHANNEL TEXT", encoded */
            char *text = strchr(notify->extra, ' ');
            struct slice slice = {text + 1, strlen(text + 1)};
            *text = '\0';
            size_t size = strlen(notify->extra);
            if (record_read_name(notify->extra, &size) && record_read_name(text + 1, &slice.size))
                host_tell((struct slice){notify->extra, size}, slice);
        } else { /* nothing, as that was too long: it is for all channels of the number */
            for (size_t i = 0; i < host_channels.count; i++)
                if (database_number(host_channels.at[i].name) == number)
                    host_tell(host_channels.at[i].name, slice_of("1"));
        }
        PQfreemem(notify);
    }
    return true;
}

int database_poll_fd(enum host_ears ears, int *ms)
{
    (void)ears;
    *ms = -1;
    return PQsocket(connection);
}

/* -- statements -------------------------------------------------------------------------------- */

void database_add_listening(struct sql_text *request, struct slice channel)
{
    sql_add(request, "LISTEN ");
    add_channel(request, channel);
}

void database_add_commit(struct sql_text *request, const struct unit *unit)
{
    for (size_t i = 0; i < unit->message_count; i++) {
        char *name = record_print_name(unit->messages[i].channel);
        char *text = record_print_name(unit->messages[i].text);
        char *both = strbuf_print("%s %s", name, text);
        sql_add(request, "SELECT pg_notify('");
        add_channel(request, unit->messages[i].channel);
        sql_add(request, "', ");
        database_add_text(request, strlen(both) <= PAYLOAD_MAX ? both : "");
        database_say(request, ")");
        free(name);
        free(text);
        free(both);
    }
    database_say(request, "COMMIT");
    request->commits = request->count;
}

/* An administrator may have set these for all sessions, for a database or a user, to what a unit
 * cannot work with. Each lasts for the transaction: behind a pooler the next one may be in another
 * session. Settings that are not here do not matter, or are meant for rlock: search_path says where
 * its tables are, default_transaction_read_only that nothing is written, idle_session_timeout that
 * an idle session ends, and what else synchronous_commit may say, how far a commit gets at the
 * standby. */
static const struct {
    const char *name, *value;
    const char *where; /* it has another value now: a condition; NULL: it may have */
} settings[] = {
    {"lock_timeout", LOCK_TIMEOUT_MS, NULL},
    {"idle_in_transaction_session_timeout", IDLE_TIMEOUT_MS, NULL},
    /* These would end a wait for a lock or for the standby. The latter is not in each version. */
    {"statement_timeout", "0", NULL},
    {"transaction_timeout", "0", "<> '0'"},
    /* Otherwise on_notice() would hear nothing. */
    {"client_min_messages", "warning", NULL},
    /* A crash, or a failover to the synchronous standby, would lose what is acknowledged. */
    {"synchronous_commit", "on", "IN ('off', 'local')"},
    /* A unit that has to be done again would end the session. */
    {"exit_on_error", "off", NULL},
};

void database_add_settings(struct sql_text *request)
{
    sql_add(request, "SELECT 'o', current_setting('default_transaction_read_only')");
    for (size_t i = 0; i < sizeof settings / sizeof *settings; i++) {
        sql_add(request, ", ");
        if (settings[i].where)
            sql_add(request, "CASE WHEN current_setting('%s', true) %s THEN ", settings[i].name,
                    settings[i].where);
        sql_add(request, "set_config('%s', '%s', true)%s", settings[i].name, settings[i].value,
                settings[i].where ? " END" : "");
    }
    sql_end(request);
}

static const char *const begin[] = {"BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE", NULL};

#define LOCK "SELECT 'g', pg_advisory_xact_lock"

const struct database database = {.dialect = &sql_postgresql,
                                  .begin = begin,
                                  .purge_every = 256,
                                  .unlisten = "UNLISTEN *",
                                  .lock = {{LOCK "_shared(", ")"}, {LOCK "(", ")"}},
                                  .warning = warning};
