/* postgresql://, mysql:// and mariadb://. */
#include "store/sql/store_record.h"

#include <string.h>

#include "base/text.h"
#include "store/sql/checkup.h"
#include "store/sql/dialect.h"
#include "store/sql/store.h"
#include "store/url_parts.h"

#define POSTGRESQL_PORT 5432
#define MYSQL_PORT      3306

/* sun_path without its NUL, see unix(7), and what PostgreSQL calls its socket. */
#define SOCKET_PATH_MAX (107 - 16)

#define SQL_ABILITIES                                                                              \
    (STORE_READERS | STORE_SEMAPHORES | STORE_SEVERAL_KEYS | STORE_QUEUE | STORE_AT_LEAST |        \
     STORE_MARK | STORE_FORCE | STORE_LATCHES | STORE_DETACHED | STORE_MIRROR)

static const char *const mirrors[] = {"shedlock", NULL};

/* Letters, digits and _: each table's name is made of it. */
static const char *take_table(struct url *url, char *value)
{
    size_t length =
        strspn(value, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_");

    if (length == 0 || value[length])
        return "has a ?table= that is not of letters, digits and '_'";
    if (length > SQL_TABLE_MAX)
        return "has a ?table= longer than 53 characters";
    url->table = value;
    return NULL;
}

/* It fits into the address of a Unix socket. */
static const char *take_socket(struct url *url, char *value)
{
    const char *fault = url_decode(value, value + strlen(value));

    if (!fault && *value != '/')
        fault = "has a path of a Unix socket that does not start with '/'";
    if (!fault && strlen(value) > SOCKET_PATH_MAX)
        fault = "has a path of a Unix socket that is too long";
    url->path = value;
    return fault;
}

/* socket: what the other programs of that database call the path of its Unix socket, or of the
 * directory that it is in. */
static const char *take_query(struct url *url, char *query, const char *socket)
{
    const char *fault = NULL;

    while (query && !fault) {
        char *value = query, *next = strchr(query, '&');
        if (next)
            *next++ = '\0';
        const char *name = strsep(&value, "=");
        if (value && strcmp(name, "table") == 0)
            fault = take_table(url, value);
        else if (value && strcmp(name, socket) == 0)
            fault = take_socket(url, value);
        else if (value && url->path && strcmp(name, "port") == 0 && strcmp(socket, "host") == 0)
            fault = url_take_number(value, 1, 65535, &url->hosts[0].port,
                                    "has a ?port= that is not a number from 1 to 65535");
        else
            fault = "has a query that it does not take (write ?table=NAME)";
        query = next;
    }
    return fault;
}

static const char *parse(struct url *url, char *rest, int port, const char *socket)
{
    char *database, *query;
    const char *fault = url_take_userinfo(url, &rest);

    if (fault)
        return fault;
    if ((query = strchr(rest, '?')))
        *query++ = '\0';
    url->hosts[0].port = port;
    if ((fault = take_query(url, query, socket)) ||
        (fault = url_take_authority(url, &rest, &database)))
        return fault;
    if (url->path && *rest)
        return "has a host, and the path of a Unix socket as well";
    if (url->path && url->tls)
        return "has a Unix socket, which takes no TLS";
    if (!url->path && (fault = url_take_host(url, rest, port)))
        return fault;
    if (!database || *database == '\0' || strchr(database, '/'))
        return "has no database's name (write SCHEME://HOST:PORT/DATABASE)";
    url->database = database;
    return url_decode(database, database + strlen(database));
}

static const char *parse_postgresql(struct url *url, char *rest)
{
    return parse(url, rest, POSTGRESQL_PORT, "host");
}

static const char *parse_mysql(struct url *url, char *rest)
{
    return parse(url, rest, MYSQL_PORT, "socket");
}

static void print(const struct url *url, const char *socket, int port, char *out, size_t size)
{
    const char *between = "?";

    url_append_hosts(url, out, size);
    text_append(out, size, "/");
    url_append_encoded(url->database, "/?#", out, size);
    if (url->path) {
        text_append(out, size, "?%s=", socket);
        url_append_encoded(url->path, "?#&", out, size);
        between = "&";
    }
    if (url->path && url->hosts[0].port != port)
        text_append(out, size, "&port=%d", url->hosts[0].port);
    if (url->table)
        text_append(out, size, "%stable=%s", between, url->table);
}

static void print_postgresql(const struct url *url, char *out, size_t size)
{
    print(url, "host", POSTGRESQL_PORT, out, size);
}

static void print_mysql(const struct url *url, char *out, size_t size)
{
    print(url, "socket", MYSQL_PORT, out, size);
}

static char *schema(const struct sql_dialect *dialect, const struct store_address *address,
                    const char *user, size_t i)
{
    struct sql_text text = {.dialect = dialect, .table = address->urls->table};

    return sql_add_schema(&text, user, i) ? text.bytes : NULL;
}

static char *schema_postgresql(const struct store_address *address, const char *user, size_t i)
{
    return schema(&sql_postgresql, address, user, i);
}

static char *schema_mysql(const struct store_address *address, const char *user, size_t i)
{
    return schema(&sql_mysql, address, user, i);
}

static struct store *open_postgresql(struct loop *loop, const struct store_address *address,
                                     char *fault, size_t size)
{
    return sql_store_open(loop, address, &sql_postgresql, fault, size);
}

static struct store *open_mysql(struct loop *loop, const struct store_address *address, char *fault,
                                size_t size)
{
    return sql_store_open(loop, address, &sql_mysql, fault, size);
}

const struct store_record postgresql_record = {.scheme = "postgresql",
                                               .alias = "postgres",
                                               .secure = "postgresqls",
                                               .name = "postgresql://",
                                               .abilities = SQL_ABILITIES,
                                               .mirrors = mirrors,
                                               .parse = parse_postgresql,
                                               .print = print_postgresql,
                                               .schema = schema_postgresql,
                                               .grants = true,
                                               .open = open_postgresql,
                                               .check = sql_check_postgresql};

const struct store_record mysql_record = {.scheme = "mysql",
                                          .secure = "mysqls",
                                          .name = "mysql://",
                                          .abilities = SQL_ABILITIES,
                                          .mirrors = mirrors,
                                          .parse = parse_mysql,
                                          .print = print_mysql,
                                          .schema = schema_mysql,
                                          .grants = true,
                                          .open = open_mysql,
                                          .check = sql_check_mysql};

const struct store_record mariadb_record = {.scheme = "mariadb",
                                            .secure = "mariadbs",
                                            .name = "mariadb://",
                                            .abilities = SQL_ABILITIES,
                                            .mirrors = mirrors,
                                            .parse = parse_mysql,
                                            .print = print_mysql,
                                            .schema = schema_mysql,
                                            .grants = true,
                                            .open = open_mysql,
                                            .check = sql_check_mysql};
