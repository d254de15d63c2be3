/* Connections over libpq. */
#include "drivers/pq.h"

#include <ctype.h>
#include <string.h>

#include "base/ca_bundle.h"

struct meaning {
    const char *beginning;
    enum wire_error error;
};

/* By SQLSTATE: https://www.postgresql.org/docs/current/errcodes-appendix.html. */
static const struct meaning states[] = {
    {"08", WIRE_UNREACHABLE},    /* connection */
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
    {NULL, WIRE_UNREACHABLE},
};

/* Returns the meaning of the last row that the text begins with, or of the end of the table. */
static enum wire_error error_of(const struct meaning *row, const char *text)
{
    const struct meaning *found = NULL;

    for (; row->beginning; row++)
        if (text && strncmp(text, row->beginning, strlen(row->beginning)) == 0)
            found = row;
    return found ? found->error : row->error;
}

/* Passes over the path of a socket, which may hold any words. The name of a host holds neither a
 * space nor a ':'. */
static const char *behind_path(const char *message, const char *host)
{
    const char *path = *host == '/' ? strstr(message, host) : NULL;

    return path ? path + strlen(host) : message;
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

/* Passes over what libpq says in front of it: where it was connecting to is known. */
static const char *said_of(const char *message, const char *state)
{
    const char *failed = strstr(message, " failed: ");

    return state ? state + strlen("28P01: ") : failed ? failed + strlen(" failed: ") : message;
}

/* Whether there has been a socket. */
static bool await_connection(PGconn *connection)
{
    PostgresPollingStatusType next = PGRES_POLLING_WRITING;
    bool was_open = false;

    while (next == PGRES_POLLING_READING || next == PGRES_POLLING_WRITING) {
        was_open = true;
        driver_await(PQsocket(connection), next == PGRES_POLLING_WRITING);
        next = PQconnectPoll(connection);
    }
    return was_open;
}

/* "was_open": there has been a socket, so the name was found. */
static void tell_failure(PGconn *connection, const struct driver_target *target, bool was_open,
                         struct host_error *fault)
{
    const char *message = behind_path(PQerrorMessage(connection), target->host);
    const char *state = state_in(message), *said = said_of(message, state);
    enum wire_error error = error_of(states, state);

    if (error == WIRE_UNFIT || error == WIRE_UNREACHABLE)
        error = error_of(words, said);
    if (state && error == WIRE_UNREACHABLE)
        error = WIRE_TROUBLE;
    if (PQconnectionNeedsPassword(connection))
        error = WIRE_PASSWORD;
    if (was_open || !driver_blames_name(target, fault))
        driver_fail(fault, error, said);
}

PGconn *pq_connect(const struct driver_target *target, struct host_error *fault)
{
    const char *bundle = ca_bundle_find();
    /* Without any, libpq would take what is in a home directory. */
    const char *trusted = *target->ca ? target->ca : bundle ? bundle : "/nonexistent";
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
                                 "tcp_user_timeout",
                                 "fallback_application_name",
                                 NULL};
    const char *const values[] = {target->host,     target->port,
                                  target->user,     target->password,
                                  target->database, target->tls ? "verify-full" : "disable",
                                  trusted,          target->certificate,
                                  target->key,      "disable",
                                  "UTF8",           "10000",
                                  target->client,   NULL};

    PGconn *connection = PQconnectStartParams(names, values, 0);
    PQsetErrorVerbosity(connection, PQERRORS_VERBOSE);
    bool was_open = PQstatus(connection) != CONNECTION_BAD && await_connection(connection);
    if (PQstatus(connection) != CONNECTION_OK) {
        tell_failure(connection, target, was_open, fault);
        PQfinish(connection);
        return NULL;
    }
    return connection;
}

bool pq_fail(const PGconn *connection, const PGresult *result, struct host_error *fault)
{
    const char *message = PQerrorMessage(connection);
    const char *said = PQresultErrorField(result, PG_DIAG_MESSAGE_PRIMARY);
    enum wire_error error = error_of(states, PQresultErrorField(result, PG_DIAG_SQLSTATE));

    said = said ? said : said_of(message, state_in(message));
    if (PQstatus(connection) != CONNECTION_OK && !wire_error_breaks(error))
        error = WIRE_UNREACHABLE;
    if (error == WIRE_UNREACHABLE)
        error = error_of(words, said);
    return driver_fail(fault, error, said);
}
