/* Addresses of databases. */
#include "store/hosted/address.h"

#include <string.h>

#include "base/text.h"
#include "store/url_parts.h"

#define POSTGRESQL_PORT 5432
#define MYSQL_PORT      3306

/* sun_path without its NUL, see unix(7), and what PostgreSQL calls its socket. */
#define SOCKET_PATH_MAX (107 - 16)

/* Letters, digits and _: each table's name is made of it. */
static const char *take_table(struct url *url, char *value)
{
    size_t length =
        strspn(value, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_");

    if (length == 0 || value[length])
        return "has a ?table= that is not of letters, digits and '_'";
    if (length > HOSTED_TABLE_MAX)
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

/* socket: the name that other programs of that database use for the path of its Unix socket, or of
 * the directory of it. */
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

const char *hosted_parse_postgresql(struct url *url, char *rest)
{
    return parse(url, rest, POSTGRESQL_PORT, "host");
}

const char *hosted_parse_mysql(struct url *url, char *rest)
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

void hosted_print_postgresql(const struct url *url, char *out, size_t size)
{
    print(url, "host", POSTGRESQL_PORT, out, size);
}

void hosted_print_mysql(const struct url *url, char *out, size_t size)
{
    print(url, "socket", MYSQL_PORT, out, size);
}
