/* rlock-postgresql: the driver for PostgreSQL, over libpq. */
#include "drivers/driver.h"

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

/* By SQLSTATE: https://www.postgresql.org/docs/current/errcodes-appendix.html */
static enum wire_error error_of(const char *state)
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
        {"57P0", WIRE_UNREACHABLE}, /* shut down, crashed */
        {"57P03", WIRE_NOT_READY},  /* starting up */
        {"53300", WIRE_NOT_READY},  /* too many connections */
        {"08", WIRE_UNREACHABLE},   /* connection */
    };
    enum wire_error error = WIRE_UNFIT;

    for (size_t i = 0; state && i < sizeof known / sizeof *known; i++)
        if (strncmp(state, known[i].prefix, strlen(known[i].prefix)) == 0)
            error = known[i].error;
    return error;
}

/* libpq tells the SQLSTATE of a failed connection to nobody. */
static enum wire_error error_of_connection(const char *said)
{
    static const struct {
        const char *words;
        enum wire_error error;
    } known[] = {
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

/* Passes over what libpq says in front of it: where it was connecting to is known. */
static const char *said_of(const char *message)
{
    const char *fatal = strstr(message, "FATAL:  "), *failed = strstr(message, " failed: ");

    return fatal ? fatal + strlen("FATAL:  ") : failed ? failed + strlen(" failed: ") : message;
}

static bool pq_connect(const struct driver_target *target, const char **version,
                       struct driver_fault *fault)
{
    char seconds[16];
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
                                 "connect_timeout",
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
                                  seconds,
                                  "UTF8",
                                  target->client,
                                  NULL};

    snprintf(seconds, sizeof seconds, "%d", target->seconds);
    PQfinish(connection);
    connection = PQconnectdbParams(names, values, 0);
    if (PQstatus(connection) != CONNECTION_OK) {
        const char *said = said_of(PQerrorMessage(connection));
        driver_fail(fault, error_of_connection(said), said);
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
    enum wire_error error = error_of(PQresultErrorField(result, PG_DIAG_SQLSTATE));

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
