/* rlock-postgresql: the driver for PostgreSQL, over libpq. */
#include "drivers/driver.h"

#include <ctype.h>
#include <libpq-fe.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What the system trusts, where the user names no certificates. libpq has no such default. */
#define SYSTEM_CA "/etc/ssl/certs/ca-certificates.crt"

static PGconn *connection;

static void ignore(void *arg, const char *message)
{
    (void)arg;
    (void)message;
}

/* By SQLSTATE: https://www.postgresql.org/docs/current/errcodes-appendix.html. False: it is none of
 * these. */
static bool is_known(const char *state, enum wire_error *error)
{
    static const struct {
        const char *prefix;
        enum wire_error error;
    } known[] = {
        {"23502", WIRE_CONFLICT},   /* the state became NULL: another version is there */
        {"40", WIRE_CONFLICT},      /* serialisation failure, deadlock */
        {"42P01", WIRE_NO_TABLES},  /* no such table */
        {"42501", WIRE_DENIED},     /* no right */
        {"28", WIRE_DENIED},        /* no such user, wrong password, pg_hba.conf */
        {"3D000", WIRE_UNFIT},      /* no such database */
        {"57P0", WIRE_UNREACHABLE}, /* shut down, crashed */
        {"57P03", WIRE_NOT_READY},  /* starting up */
        {"53300", WIRE_NOT_READY},  /* too many connections */
        {"55P03", WIRE_NOT_READY},  /* lock_timeout: somebody has locked the whole table */
        {"57014", WIRE_NOT_READY},  /* statement_timeout */
        {"08", WIRE_UNREACHABLE},   /* connection */
    };
    bool found = false;

    for (size_t i = 0; state && i < sizeof known / sizeof *known; i++)
        if (strncmp(state, known[i].prefix, strlen(known[i].prefix)) == 0) {
            *error = known[i].error;
            found = true;
        }
    return found;
}

static enum wire_error error_of_words(const char *said)
{
    static const struct {
        const char *words;
        enum wire_error error;
    } known[] = {
        {"expected authentication request", WIRE_UNFIT}, /* no PostgreSQL */
        {"password", WIRE_DENIED},
        {"authentication", WIRE_DENIED},
        {"pg_hba.conf", WIRE_DENIED},
        {"role \"", WIRE_DENIED},
        {"permission denied for", WIRE_DENIED},
        {"certificate", WIRE_UNFIT},
        {"does not support SSL", WIRE_UNFIT},
        {"database \"", WIRE_UNFIT},
        {"starting up", WIRE_NOT_READY},
        {"not yet accepting", WIRE_NOT_READY},
        {"too many clients", WIRE_NOT_READY},
        {"remaining connection slots", WIRE_NOT_READY},
    };

    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (strstr(said, known[i].words))
            return known[i].error;
    return WIRE_UNREACHABLE;
}

/* libpq tells the SQLSTATE of a failed connection nowhere but in the text of the most verbose
 * messages, "FATAL:  28P01: password authentication failed". All but the SQLSTATE depends on the
 * server's language. NULL where it is libpq that says so. */
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

/* A pooler has the same state of class 08 for all that it refuses. */
static enum wire_error error_of_connection(const char *state, const char *said)
{
    enum wire_error error;

    return is_known(state, &error) && error != WIRE_UNREACHABLE ? error : error_of_words(said);
}

/* Passes over what libpq says in front of it: where it was connecting to is known. */
static const char *said_of(const char *message, const char *state)
{
    const char *failed = strstr(message, " failed: ");

    return state ? state + strlen("28P01: ") : failed ? failed + strlen(" failed: ") : message;
}

static void await_connection(void)
{
    PostgresPollingStatusType next = PGRES_POLLING_WRITING;

    while (next == PGRES_POLLING_READING || next == PGRES_POLLING_WRITING) {
        driver_await(PQsocket(connection), next == PGRES_POLLING_WRITING);
        next = PQconnectPoll(connection);
    }
}

static void tell_failure(struct driver_fault *fault)
{
    const char *message = PQerrorMessage(connection), *state = state_in(message);
    const char *said = said_of(message, state);

    driver_fail(fault, error_of_connection(state, said), said);
}

static bool pq_connect(const struct driver_target *target, const char **version,
                       struct driver_fault *fault)
{
    const char *const names[] = {"host",
                                 "port",
                                 "user",
                                 "password",
                                 "dbname",
                                 "sslmode",
                                 "sslrootcert",
                                 "sslcert",
                                 "sslkey",
                                 "gssencmode",
                                 "client_encoding",
                                 "fallback_application_name",
                                 NULL};
    const char *const values[] = {target->host,
                                  target->port,
                                  target->user,
                                  target->password,
                                  target->database,
                                  target->tls ? "verify-full" : "disable",
                                  *target->ca ? target->ca : SYSTEM_CA,
                                  target->certificate,
                                  target->key,
                                  "disable",
                                  "UTF8",
                                  target->client,
                                  NULL};

    PQfinish(connection);
    connection = PQconnectStartParams(names, values, 0);
    PQsetErrorVerbosity(connection, PQERRORS_VERBOSE);
    if (PQstatus(connection) != CONNECTION_BAD)
        await_connection();
    if (PQstatus(connection) != CONNECTION_OK) {
        tell_failure(fault);
        PQfinish(connection);
        connection = NULL;
        return false;
    }
    PQsetNoticeProcessor(connection, ignore, NULL);
    *version = PQparameterStatus(connection, "server_version");
    return true;
}

static bool fail(const PGresult *result, struct driver_fault *fault)
{
    const char *said = PQresultErrorField(result, PG_DIAG_MESSAGE_PRIMARY);
    enum wire_error error = WIRE_UNFIT;

    is_known(PQresultErrorField(result, PG_DIAG_SQLSTATE), &error);
    if (PQstatus(connection) != CONNECTION_OK)
        error = WIRE_UNREACHABLE;
    return driver_fail(fault, error, said ? said : PQerrorMessage(connection));
}

/* "" is what libpq says of a statement that changes no rows. */
static void put_count(PGresult *result, struct wire_out *rows)
{
    const char *count = PQcmdTuples(result);

    wire_number(rows, 1);
    wire_text(rows, *count ? count : "0");
}

static void put_rows(const PGresult *result, struct wire_out *rows)
{
    int columns = PQnfields(result);

    wire_number(rows, columns);
    for (int row = 0; row < PQntuples(result); row++)
        for (int column = 0; column < columns; column++)
            wire_text(rows, PQgetvalue(result, row, column));
}

static bool pq_execute(const char *sql, struct wire_out *rows, struct driver_fault *fault)
{
    if (!connection)
        return driver_fail(fault, WIRE_UNREACHABLE, "not connected");
    PGresult *result = PQexec(connection, sql);
    ExecStatusType status = PQresultStatus(result);
    bool done = status == PGRES_TUPLES_OK || status == PGRES_COMMAND_OK;
    if (status == PGRES_TUPLES_OK)
        put_rows(result, rows);
    else if (done)
        put_count(result, rows);
    else
        fail(result, fault);
    PQclear(result);
    return done;
}

static int pq_descriptor(void)
{
    return connection ? PQsocket(connection) : -1;
}

static bool pq_is_called(bool *broken)
{
    *broken = !PQconsumeInput(connection);
    PGnotify *notify = PQnotifies(connection);
    if (!notify)
        return false;
    PQfreemem(notify);
    return true;
}

int main(void)
{
    static const struct driver_ops ops = {.connect = pq_connect,
                                          .execute = pq_execute,
                                          .descriptor = pq_descriptor,
                                          .is_called = pq_is_called};
    int status = driver_serve(&ops);

    PQfinish(connection);
    return status;
}
