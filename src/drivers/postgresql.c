/* rlock-postgresql: the driver for PostgreSQL, over libpq. */
#include "drivers/pq.h"

#include <string.h>

static PGconn *connection;

static bool connect_to(const struct driver_target *target, const char **version,
                       struct driver_fault *fault)
{
    PQfinish(connection);
    connection = pq_connect(target, fault);
    if (connection)
        *version = PQparameterStatus(connection, "server_version");
    return connection;
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

/* Whether what it has written may be lost. A SELECT writes nothing. */
static bool is_in_doubt(const char *sql)
{
    return *pq_warning() && strncmp(sql, "SELECT ", strlen("SELECT ")) != 0;
}

static bool execute(const char *sql, struct wire_out *rows, struct driver_fault *fault)
{
    if (!connection)
        return driver_fail(fault, WIRE_UNREACHABLE, "not connected");
    PGresult *result = pq_execute(connection, sql);
    ExecStatusType status = PQresultStatus(result);
    bool done = status == PGRES_TUPLES_OK || status == PGRES_COMMAND_OK;
    if (done && is_in_doubt(sql))
        done = driver_fail(fault, WIRE_UNREACHABLE, pq_warning());
    else if (status == PGRES_TUPLES_OK)
        put_rows(result, rows);
    else if (done)
        put_count(result, rows);
    else
        pq_fail(connection, result, fault);
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
    static const struct driver_ops ops = {.connect = connect_to,
                                          .execute = execute,
                                          .descriptor = pq_descriptor,
                                          .is_called = pq_is_called};
    int status = driver_serve(&ops);

    PQfinish(connection);
    return status;
}
