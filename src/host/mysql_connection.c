/* Connects to MySQL and MariaDB: at once, or, where several servers are asked at the same time, by
 * an attempt in phases that does not wait: connecting, the settings of the session, that of Galera,
 * and a look whether the server takes writes. */
#include "host/mysql_connection.h"

#include <errmsg.h>
#include <errno.h>
#include <mysqld_error.h>
#include <netdb.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/mem.h"

/* Errors of MySQL's own: max_execution_time, wait_timeout, offline_mode, READ ONLY of a schema. */
#define MYSQL_QUERY_TIMEOUT    3024
#define MYSQL_IDLE_END         4031
#define MYSQL_OFFLINE          3032
#define MYSQL_READ_ONLY_SCHEMA 3989
/* Group Replication has undone a commit, as its member has left the group or is about to. */
#define MYSQL_HOOK_FAILED 3100
/* An error of ProxySQL's: while a failover lasts, it has no server to send a request to. */
#define PROXYSQL_NO_SERVER 9001

/* How long a unit waits for its locks, s. */
#define LOCK_TIMEOUT "3"

/* Returns the meaning of an error's number, of the server or of the library. said: its text, where
 * the number has two meanings. */
static enum wire_error error_of(unsigned number, const char *said)
{
    switch (number) {
    case ER_BAD_NULL_ERROR: /* the state became NULL: another version is there */
    case ER_CHECKREAD:
    case ER_DUP_ENTRY: return WIRE_CONFLICT;
    case ER_NO_SUCH_TABLE: return WIRE_NO_TABLES;
    case ER_DATA_OUT_OF_RANGE: return WIRE_NOT_KEPT; /* SQL_ONE */
    case ER_BAD_DB_ERROR: return WIRE_NO_DATABASE;
    case ER_ACCESS_DENIED_ERROR:
    case ER_ACCESS_DENIED_NO_PASSWORD_ERROR: return WIRE_PASSWORD;
    case ER_HOST_NOT_PRIVILEGED:
    case ER_HOST_IS_BLOCKED:
    case ER_ACCOUNT_HAS_BEEN_LOCKED:
    case ER_MUST_CHANGE_PASSWORD_LOGIN: return WIRE_KEPT_OUT;
    case ER_DBACCESS_DENIED_ERROR:
    case ER_TABLEACCESS_DENIED_ERROR:
    case ER_SPECIFIC_ACCESS_DENIED_ERROR:
    case ER_COLUMNACCESS_DENIED_ERROR: return WIRE_DENIED;
    case ER_CON_COUNT_ERROR:
    case ER_TOO_MANY_USER_CONNECTIONS:
    case ER_USER_LIMIT_REACHED: return WIRE_FULL;
    case MYSQL_OFFLINE:
    case MYSQL_HOOK_FAILED:
    case PROXYSQL_NO_SERVER:
    case ER_UNKNOWN_COM_ERROR: /* a node of Galera that has yet to join, or is cut off */
        return WIRE_NOT_READY;
    case ER_QUERY_INTERRUPTED: /* another client has ended it */
    case ER_STATEMENT_TIMEOUT: /* max_statement_time: another client has locked the whole table */
    case MYSQL_QUERY_TIMEOUT:
    case ER_LOCK_WAIT_TIMEOUT: return WIRE_BUSY;
    case ER_OPTION_PREVENTS_STATEMENT: /* an option that is named in any language */
        return strstr(said, "read-only") || strstr(said, "read_only") ? WIRE_READ_ONLY : WIRE_UNFIT;
    case ER_CANT_EXECUTE_IN_READ_ONLY_TRANSACTION:
    case ER_OPEN_AS_READONLY:
    case ER_READ_ONLY_MODE:
    case ER_INNODB_READ_ONLY:
    case MYSQL_READ_ONLY_SCHEMA: return WIRE_READ_ONLY;
    case ER_DISK_FULL:
    case ER_RECORD_FILE_FULL: return WIRE_NO_SPACE;
    case ER_OUTOFMEMORY:
    case ER_OUT_OF_RESOURCES: return WIRE_NO_MEMORY;
    case ER_CANT_CREATE_THREAD: return WIRE_TROUBLE; /* as many as it may have */
    case ER_SERVER_SHUTDOWN:
    case ER_CONNECTION_KILLED:
    case MYSQL_IDLE_END: return WIRE_ENDED;
    case ER_ERROR_DURING_COMMIT: /* a node of Galera was cut off meanwhile: it may be done */
    case CR_CONNECTION_ERROR:
    case CR_CONN_HOST_ERROR:
    case CR_UNKNOWN_HOST:
    case CR_SERVER_GONE_ERROR:
    case CR_SERVER_LOST: return WIRE_UNREACHABLE;
    default: return WIRE_UNFIT;
    }
}

bool my_is_of_client(unsigned number)
{
    /* CR_… of MySQL's library, and those that MariaDB's has added. */
    return (number >= 2000 && number < 3000) || (number >= 5000 && number < 6000);
}

bool my_is_undone(MYSQL *connection)
{
    return strncmp(mysql_sqlstate(connection), "40", 2) == 0; /* the class "rollback" */
}

bool my_fail(MYSQL *connection, struct host_error *fault)
{
    unsigned number = mysql_errno(connection);
    const char *said = mysql_error(connection);
    enum wire_error error = my_is_of_client(number)    ? WIRE_UNREACHABLE
                            : my_is_undone(connection) ? WIRE_CONFLICT
                                                       : error_of(number, said);

    return host_error_set(fault, error, said);
}

/* Tries a connection of its own, to learn why one failed. Returns the system's error, an errno; 0:
 * it succeeds now, or the name is not known. */
static int find_connect_error(const struct host_target *target)
{
    static const struct addrinfo hints = {.ai_socktype = SOCK_STREAM};
    struct addrinfo *list = NULL;
    int error = 0;

    if (getaddrinfo(target->host, target->port, &hints, &list) != 0)
        return 0;
    for (const struct addrinfo *one = list; one; one = one->ai_next) {
        int fd = socket(one->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
        error = fd >= 0 && connect(fd, one->ai_addr, one->ai_addrlen) == 0 ? 0 : errno;
        if (fd >= 0)
            close(fd);
    }
    freeaddrinfo(list);
    return error;
}

/* Whether a handshake of TLS failed for no other reason than that the connection broke, by what
 * OpenSSL and GnuTLS say then. */
static bool is_cut(const char *said)
{
    static const char *const known[] = {
        "TLS/SSL error: unexpected eof while reading",
        "TLS/SSL error: The TLS connection was non-properly terminated",
        "TLS/SSL error: Error in the p"}; /* pull function, push function */

    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (strncmp(said, known[i], strlen(known[i])) == 0)
            return true;
    return false;
}

/* Fills the fault with why connecting has failed. */
static void fail_to_connect(MYSQL *connection, const struct host_target *target,
                            struct host_error *fault)
{
    static const char unverified[] = "following error cannot be verified: ";
    const char *said = mysql_error(connection), *told = strstr(said, unverified);
    unsigned error = mysql_errno(connection);

    /* The server has refused the connection before TLS began: "…: 1040 - Too many connections". */
    if (told) {
        char *end;
        error = (unsigned)strtoul(told + strlen(unverified), &end, 10);
        said = end + strspn(end, " -");
    }
    const char *number = strrchr(said, '(');
    bool in_tls = error == CR_SSL_CONNECTION_ERROR;
    bool before_tls = error == CR_CONNECTION_ERROR || error == CR_CONN_HOST_ERROR;
    /* The library tells the system's error only as a number in brackets at the end. */
    long system = (before_tls || in_tls) && number ? strtol(number + 1, NULL, 10) : 0;

    if (in_tls && (system > 0 || is_cut(said)))
        error = CR_SERVER_LOST;
    if (system == EINPROGRESS) /* it has waited for the connection, whose error it does not tell */
        system = find_connect_error(target);
    if (before_tls)
        said = system > 0 ? strerror((int)system) : "no connection";
    host_error_set(fault, error_of(error, said), said);
}

/* Sets the options of a connection, before it is opened. */
static void set_options(MYSQL *connection, const struct host_target *target)
{
    unsigned seconds = (unsigned)target->seconds;
    unsigned no_files = 0; /* a server may otherwise ask for any file that can be read here */
    unsigned protocol = *target->host == '/' ? MYSQL_PROTOCOL_SOCKET : MYSQL_PROTOCOL_TCP;
    my_bool tls = target->tls ? 1 : 0;

    /* Without it "localhost" is the default socket, whatever the port is. */
    mysql_options(connection, MYSQL_OPT_PROTOCOL, &protocol);
    mysql_options(connection, MYSQL_OPT_LOCAL_INFILE, &no_files);
    mysql_options(connection, MYSQL_OPT_CONNECT_TIMEOUT, &seconds);
    mysql_options(connection, MYSQL_SET_CHARSET_NAME, "utf8mb4");
    mysql_optionsv(connection, MYSQL_OPT_CONNECT_ATTR_ADD, "program_name", target->client);
    /* The order counts: whatever names a file turns TLS on. */
    if (tls && *target->ca)
        mysql_options(connection, MYSQL_OPT_SSL_CA, target->ca);
    if (tls && *target->certificate)
        mysql_options(connection, MYSQL_OPT_SSL_CERT, target->certificate);
    if (tls && *target->key)
        mysql_options(connection, MYSQL_OPT_SSL_KEY, target->key);
    mysql_options(connection, MYSQL_OPT_SSL_ENFORCE, &tls);
    mysql_options(connection, MYSQL_OPT_SSL_VERIFY_SERVER_CERT, &tls);
}

/* An administrator may have set these for all sessions to what rlock cannot work with. MariaDB
 * executes a comment that begins with M!, and MySQL one with !50720. A setting that is not here
 * does not matter, or is meant for rlock: tx_read_only says that nothing is written, and time_zone
 * what the times in a table of ShedLock mean. */
static const char *const settings[] = {
    /* In a session that is not strict a NULL that is refused becomes an empty text. A GRANT must
     * not make a user without a password of a name that MariaDB does not know; MySQL makes none,
     * and refuses the mode. */
    "SET SESSION sql_mode = CONCAT('STRICT_ALL_TABLES' /*M!, ',NO_AUTO_CREATE_USER' */)",
    /* No transaction begins behind another one, and none ends the session. */
    ", autocommit = 1, completion_type = 0",
    /* Only the latest commit is read. */
    ", " MY_TRANSACTION("", "isolation") " = 'READ-COMMITTED' /*M!, query_cache_type = 0 */",
    /* There is no limit to what is read, and a change needs no key. */
    ", sql_big_selects = 1, sql_select_limit = 18446744073709551615, sql_safe_updates = 0",
    /* With neither, MariaDB locks all of an empty table. */
    ", unique_checks = 1, foreign_key_checks = 1",
    /* A unit waits for its locks, and no other limit ends a statement. */
    ", innodb_lock_wait_timeout = " LOCK_TIMEOUT ", lock_wait_timeout = " LOCK_TIMEOUT,
    "/*M!, max_statement_time = 0 */ /*!50720 , max_execution_time = 0 */",
    /* Time limits of MariaDB would count in place of wait_timeout in a transaction. */
    ", wait_timeout = " MY_REST_TIMEOUT ", net_read_timeout = 30, net_write_timeout = 60",
    "/*M!100300 , idle_transaction_timeout = 0, idle_readonly_transaction_timeout = 0,"
    " idle_write_transaction_timeout = 0 */",
    /* A server may not listen to what its client says of characters. */
    ", NAMES utf8mb4"};

/* A node of Galera may be seconds behind the others, or cut off: before it reads, it waits until it
 * has what they have committed, and fails where it cannot. So of several hosts such a one is not
 * used. A server that knows nothing of Galera refuses the statement. */
static const char keep_up[] = "SET SESSION wsrep_sync_wait = 1, wsrep_dirty_reads = 0";

/* Whether the latest statement failed as the server knows nothing of Galera. */
static bool is_without_galera(MYSQL *connection)
{
    return mysql_errno(connection) == ER_UNKNOWN_SYSTEM_VARIABLE;
}

/* Adds the statement that gives a session rlock's settings. */
static void add_settings(struct strbuf *text)
{
    for (size_t i = 0; i < sizeof settings / sizeof *settings; i++)
        strbuf_puts(text, settings[i]);
}

MYSQL *my_connect(const struct host_target *target, unsigned long flags, struct host_error *fault)
{
    /* A certificate is of a name, which the library takes for where to connect to. */
    bool by_address = *target->address && !target->tls;
    const char *host = by_address ? target->address : target->host;
    bool is_local = *target->host == '/', is_up;

    MYSQL *made = mysql_init(NULL);
    if (!made) {
        host_error_set(fault, WIRE_UNFIT, "no memory");
        return NULL;
    }
    set_options(made, target);
    is_up = mysql_real_connect(made, is_local ? NULL : host, target->user, target->password,
                               target->database, (unsigned)strtoul(target->port, NULL, 10),
                               is_local ? target->host : NULL, flags);
    if (!is_up) {
        fail_to_connect(made, target, fault);
    } else {
        struct strbuf text = {0};
        add_settings(&text);
        is_up = mysql_real_query(made, text.text, text.size) == 0 &&
                (mysql_query(made, keep_up) == 0 || is_without_galera(made));
        if (!is_up)
            my_fail(made, fault);
        strbuf_free(&text);
    }
    if (is_up)
        return made;
    mysql_close(made);
    return NULL;
}

/* -- attempts ---------------------------------------------------------------------------------- */

const bool database_connects_by_name = true;

struct database_attempt *database_begin(const struct host_target *target, bool asks)
{
    struct database_attempt *attempt = mem_zeroed(sizeof *attempt);

    attempt->target = *target;
    attempt->asks = asks;
    if (!asks) { /* it is the only one: so it may wait here */
        attempt->made = my_connect(target, CLIENT_MULTI_STATEMENTS, &attempt->why);
        return attempt;
    }
    attempt->made = mem_checked(mysql_init(NULL));
    mysql_options(attempt->made, MYSQL_OPT_NONBLOCK, NULL);
    set_options(attempt->made, target);
    return attempt;
}

/* Begins to connect, or continues, if it was waited for something (attempt->waits). Returns whether
 * that is over; *has_failed: and has failed. */
static bool continue_connect(struct database_attempt *attempt, bool *has_failed)
{
    const struct host_target *target = &attempt->target;
    MYSQL *made = attempt->made, *up;

    /* By the address, unless the server has to prove its name. */
    attempt->waits =
        attempt->waits
            ? mysql_real_connect_cont(&up, made, attempt->waits)
            : mysql_real_connect_start(&up, made, target->tls ? target->host : target->address,
                                       target->user, target->password, target->database,
                                       (unsigned)strtoul(target->port, NULL, 10), NULL,
                                       CLIENT_MULTI_STATEMENTS);
    *has_failed = !attempt->waits && !up;
    return !attempt->waits;
}

/* Begins the query attempt->text, or continues it, if it was waited for something. Returns whether
 * it is over; *has_failed: and has failed. */
static bool continue_query(struct database_attempt *attempt, bool *has_failed)
{
    const struct strbuf *text = &attempt->text;
    int failed;

    attempt->waits = attempt->waits
                         ? mysql_real_query_cont(&failed, attempt->made, attempt->waits)
                         : mysql_real_query_start(&failed, attempt->made, text->text, text->size);
    *has_failed = !attempt->waits && failed;
    return !attempt->waits;
}

/* For my_take_rows(): notes in *arg, a bool, whether the server takes no writes, by
 * MY_READ_ONLY. */
static void take_read_only(void *arg, const struct slice *values, size_t count)
{
    *(bool *)arg = count != 1 || strcmp(values[0].at, "0") != 0;
}

/* Takes the answer to the query MY_READ_ONLY. Returns whether the server takes writes; *why: why
 * not. */
static bool takes_writes(struct database_attempt *attempt, struct host_error *why)
{
    bool read_only = false; /* counts for a user who may write to a replica, too */
    const struct database_taker taker = {take_read_only, &read_only};

    if (!my_take_rows(attempt->made, &taker))
        return my_fail(attempt->made, why);
    return !read_only || host_error_set(why, WIRE_READ_ONLY, "read_only is on");
}

enum database_wait database_continue(struct database_attempt *attempt, struct host_error *why)
{
    bool has_failed = !attempt->made, is_over = true;

    *why = attempt->why;
    /* Each turn is a phase, and the last one where that has to wait. */
    while (!has_failed && is_over && attempt->asks) {
        bool connects = attempt->phase == ATTEMPT_CONNECTS;
        is_over = connects ? continue_connect(attempt, &has_failed)
                           : continue_query(attempt, &has_failed);
        if (attempt->phase == ATTEMPT_KEEPS_UP && is_over && is_without_galera(attempt->made))
            has_failed = false;
        if (has_failed && connects)
            fail_to_connect(attempt->made, &attempt->target, why);
        else if (has_failed)
            my_fail(attempt->made, why);
        if (has_failed || !is_over)
            break;
        if (attempt->phase == ATTEMPT_LOOKS) {
            has_failed = !takes_writes(attempt, why);
            break;
        }
        strbuf_cut(&attempt->text, 0);
        if (connects)
            add_settings(&attempt->text);
        else if (attempt->phase == ATTEMPT_SETS_UP)
            strbuf_puts(&attempt->text, keep_up);
        else
            strbuf_puts(&attempt->text, "SELECT " MY_READ_ONLY);
        attempt->phase++;
    }
    if (has_failed)
        database_drop(attempt);
    return has_failed                            ? DATABASE_DOWN
           : is_over                             ? DATABASE_UP
           : (attempt->waits & MYSQL_WAIT_WRITE) ? DATABASE_WRITES
                                                 : DATABASE_READS;
}

int database_attempt_fd(const struct database_attempt *attempt)
{
    return mysql_get_socket(attempt->made);
}

uint64_t database_promotions(struct database_attempt *attempt)
{
    (void)attempt;
    return 0;
}

void database_drop(struct database_attempt *attempt)
{
    if (attempt->made)
        mysql_close(attempt->made);
    strbuf_free(&attempt->text);
    free(attempt);
}

/* -- rows -------------------------------------------------------------------------------------- */

bool my_take_rows(MYSQL *connection, const struct database_taker *taker)
{
    MYSQL_RES *result = mysql_store_result(connection);
    MYSQL_ROW row;

    if (!result) /* as of a statement that has no rows, or failed */
        return mysql_field_count(connection) == 0;
    while ((row = mysql_fetch_row(result))) {
        if (taker) {
            const unsigned long *lengths = mysql_fetch_lengths(result);
            size_t columns = mysql_num_fields(result);
            struct slice values[DATABASE_COLUMNS];
            for (size_t i = 0; i < columns && i < DATABASE_COLUMNS; i++)
                values[i] = (struct slice){row[i] ? row[i] : "", lengths[i]};
            taker->take(taker->arg, values,
                        columns < DATABASE_COLUMNS ? columns : DATABASE_COLUMNS);
        }
    }
    mysql_free_result(result);
    return true;
}
