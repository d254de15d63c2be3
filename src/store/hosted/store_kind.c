/* To rlock, a host is a Redis server that is started when it is needed. Functions that take parts
 * of a URL return what is wrong with it, words that follow it in a message, or NULL. */
#include "store/hosted/store_kind.h"

#include <stdio.h>
#include <string.h>

#include "base/duration.h"
#include "base/text.h"
#include "store/hosted/dialect.h"
#include "store/redis/store.h"
#include "store/url_parts.h"

/* Returns the dialect of the database that the URL, of one of these kinds, leads to. */
static const struct sql_dialect *dialect_of(const struct url *url)
{
    return url->kind == &postgresql_kind ? &sql_postgresql : &sql_mysql;
}

/* -- addresses --------------------------------------------------------------------------------- */

/* The longest ?table=NAME: names of tables are a little longer, and databases take up to 63
 * characters. */
#define TABLE_MAX 53

/* sun_path without its NUL, see unix(7), and what PostgreSQL calls its socket. */
#define SOCKET_PATH_MAX (107 - 16)

/* Takes ?table=, from which each table's name is made. */
static const char *take_table(struct url *url, char *value)
{
    size_t length =
        strspn(value, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_");

    if (length == 0 || value[length])
        return "has a ?table= that is not of letters, digits and '_'";
    if (length > TABLE_MAX)
        return "has a ?table= longer than 53 characters";
    url->table = value;
    return NULL;
}

/* Takes the path of a Unix socket from a URL, and decodes it in place. */
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

/* Returns what is wrong with a query of that name, which rlock does not take: what to write in
 * place of one that other programs take. */
static const char *refuse_query(const char *name, bool is_mysql)
{
    static const struct {
        const char *part; /* of its name */
        const char *fault;
    } others[] = {
        {"timeout", "has a query about a time limit (there is the setting connect-timeout)"},
        {"target", "has a query about the kind of server (it must be one that takes writes)"},
        {"password", "has a query with a password (write USER:PASSWORD@ in front of HOST)"},
        {"user", "has a query with a user (write USER@ in front of HOST)"},
    };

    /* sslmode, ssl-mode, sslrootcert, useSSL and the like. */
    if (strcasestr(name, "ssl") || strcasestr(name, "tls"))
        return is_mysql
                   ? "has a query about TLS (mysqls:// is with TLS, mysql:// without)"
                   : "has a query about TLS (postgresqls:// is with TLS, postgresql:// without)";
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (strcasestr(name, others[i].part))
            return others[i].fault;
    return is_mysql ? "has a query other than ?table=NAME or, without HOST, ?socket=PATH"
                    : "has a query other than ?table=NAME or, without HOST, ?host=DIR&port=PORT";
}

/* Takes ?NAME=VALUE&... of a URL, in place; NULL: there is none. */
static const char *take_query(struct url *url, char *query)
{
    const char *socket = dialect_of(url)->socket, *fault = NULL;

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
            fault = refuse_query(name, dialect_of(url)->is_mysql);
        query = next;
    }
    return fault;
}

/* Refuses a host that is there twice, which would be asked twice. */
static const char *refuse_twins(const struct url *url)
{
    for (size_t i = 0; i < url->host_count; i++)
        for (size_t j = 0; j < i; j++)
            if (url->hosts[i].port == url->hosts[j].port &&
                strcasecmp(url->hosts[i].name, url->hosts[j].name) == 0)
                return "has a host twice";
    return NULL;
}

/* Takes the user and the password from the front of *rest, and what is behind a '?' from its end:
 * *query is NULL if there is none. */
static const char *take_ends(struct url *url, char **rest, char **query)
{
    const char *fault = url_take_userinfo(url, rest);

    *query = fault ? NULL : strchr(*rest, '?');
    if (*query)
        *(*query)++ = '\0';
    return fault;
}

/* Parses [USER[:PASSWORD]@]HOST[:PORT][,HOST[:PORT]…]/DATABASE[?QUERY], or the same without a host
 * and with a socket's path in the QUERY. */
static const char *parse_url(struct url *url, char *rest)
{
    int port = dialect_of(url)->port;
    char *database, *query;
    const char *fault = take_ends(url, &rest, &query);

    if (fault)
        return fault;
    url->hosts[0].port = port;
    if ((fault = take_query(url, query)) || (fault = url_take_authority(url, &rest, &database)))
        return fault;
    if (url->path && *rest)
        return "has a host, and the path of a Unix socket as well";
    if (url->path && url->tls)
        return "has a Unix socket, which takes no TLS";
    if (!url->path && ((fault = url_take_hosts(url, rest, port)) || (fault = refuse_twins(url))))
        return fault;
    if (!database || *database == '\0' || strchr(database, '/'))
        return "has no database's name (write SCHEME://HOST:PORT/DATABASE)";
    url->database = database;
    return url_decode(database, database + strlen(database));
}

/* The inverse of parse_url(), without the password:
 * HOSTS/DATABASE[?socket=PATH][&port=N][&table=NAME]. */
static void print_url(const struct url *url, char *out, size_t size)
{
    const struct sql_dialect *dialect = dialect_of(url);
    const char *between = "?";

    url_append_hosts(url, out, size);
    text_append(out, size, "/");
    url_append_encoded(url->database, "/?#", out, size);
    if (url->path) {
        text_append(out, size, "?%s=", dialect->socket);
        url_append_encoded(url->path, "?#&", out, size);
        between = "&";
    }
    if (url->path && url->hosts[0].port != dialect->port)
        text_append(out, size, "&port=%d", url->hosts[0].port);
    if (url->table)
        text_append(out, size, "%stable=%s", between, url->table);
}

/* -- addresses of drivers ---------------------------------------------------------------------- */

/* The longest name of a driver's program, without its directory. */
#define DRIVER_NAME_MAX 200

/* Checks a driver's argument, a part of the URL. It must not have a password, as every user of the
 * host sees it. */
static const char *check_argument(const char *text)
{
    const char *mark = strstr(text, "://"), *host = mark ? mark + 3 : text;
    const char *at = memchr(host, '@', strcspn(host, "/"));

    for (const char *byte = text; *byte; byte++)
        if ((unsigned char)*byte <= ' ' || *byte == 0x7f)
            return "has a space or a control character";
    if (mark && at && memchr(host, ':', (size_t)(at - host)))
        return "has a password, which a driver has to get in another way";
    return NULL;
}

/* Parses exec:NAME[/REST]. The NAME has no '/', so that it cannot lead out of the directories of
 * drivers. */
static const char *parse_exec(struct url *url, char *rest)
{
    size_t length =
        strspn(rest, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-");

    if (length == 0 || length > DRIVER_NAME_MAX || (rest[length] && rest[length] != '/'))
        return "has no name of a program (write exec:NAME/REST)";
    url->hosts[0].name = rest;
    url->database = rest[length] ? rest + length + 1 : rest + length;
    rest[length] = '\0';
    return check_argument(url->database);
}

/* The inverse of parse_exec(). */
static void print_exec(const struct url *url, char *out, size_t size)
{
    text_append(out, size, "%s%s%s", url->hosts[0].name, *url->database ? "/" : "", url->database);
}

/* Parses git+file://…, git+ssh://… and git+https://…: the driver's argument is what follows
 * the '+', as git takes it. */
static const char *parse_git(struct url *url, char *rest)
{
    rest[-(int)strlen("://")] = ':'; /* where the scheme was cut off */
    url->hosts[0].name = "git";
    url->database = strchr(url->text, '+') + 1;
    return *rest ? check_argument(url->database) : "has no repository";
}

/* Prints what is behind "://", which url_print() has printed. */
static void print_git(const struct url *url, char *out, size_t size)
{
    text_append(out, size, "%s", strstr(url->database, "://") + strlen("://"));
}

/* -- addresses of etcd ------------------------------------------------------------------------- */

#define ETCD_PORT 2379

/* Takes ?margin= of an etcd URL. */
static const char *take_margin(struct url *url, char *query)
{
    char *value = query;
    int64_t ns;

    if (strcmp(strsep(&value, "="), "margin") != 0 || !value)
        return "has a query other than ?margin=DURATION or ?margin=never";
    url->margin = value;
    return strcmp(value, "never") == 0 || duration_parse(value, &ns)
               ? NULL
               : "has a ?margin= that is neither a duration nor \"never\"";
}

/* Parses [USER[:PASSWORD]@]HOST[:PORT][,HOST[:PORT]…][/PREFIX][?margin=…]: the names of keys begin
 * with PREFIX/. */
static const char *parse_etcd(struct url *url, char *rest)
{
    char *prefix, *query;
    const char *fault = take_ends(url, &rest, &query);

    if (fault)
        return fault;
    if ((query && (fault = take_margin(url, query))) ||
        (fault = url_take_authority(url, &rest, &prefix)) ||
        (fault = url_take_hosts(url, rest, ETCD_PORT)))
        return fault;
    url->database = prefix ? prefix : rest + strlen(rest); /* "" */
    return prefix ? url_decode(prefix, prefix + strlen(prefix)) : NULL;
}

/* The inverse of parse_etcd(), without the password. */
static void print_etcd(const struct url *url, char *out, size_t size)
{
    url_append_hosts(url, out, size);
    if (*url->database)
        text_append(out, size, "/");
    url_append_encoded(url->database, "?#", out, size);
    if (url->margin)
        text_append(out, size, "?margin=%s", url->margin);
}

/* -- the kinds of store ------------------------------------------------------------------------ */

/* Opens a store whose host's library does TLS itself, and takes not all settings of rlock's. NULL
 * with a message in "fault". */
static struct store *open_hosted(struct loop *loop, const struct store_address *address,
                                 char *fault, size_t size)
{
    if (address->urls->tls &&
        (address->tls.server_name || (address->tls.ca.path && !address->tls.ca.text))) {
        snprintf(fault, size,
                 "the libraries of databases and of etcd take neither another server's name nor "
                 "a directory of certificates");
        return NULL;
    }
    return store_redis_open(loop, address, fault, size);
}

/* Returns the ith statement that makes the tables, with rights for that user (NULL: none), which
 * the caller frees; NULL: there are no more. */
static char *schema_statement(const struct store_address *address, const char *user, size_t i)
{
    const struct url *url = address->urls;
    struct sql_text text = {.dialect = dialect_of(url), .table = url->table};

    return sql_add_schema(&text, user, i) ? strbuf_detach(&text.out) : NULL;
}

static const char *const mirrors[] = {"shedlock", NULL};

/* The next three are the "check" of these kinds: see hosted_check(). */
static bool check_database(const struct checkup_plan *plan, struct checkup *checkup, char *fault,
                           size_t size)
{
    return hosted_check(plan, dialect_of(plan->address->urls), NULL, checkup, fault, size);
}

/* Hosted stores can do all that a single Redis can, but for what is about several servers, or about
 * one that may forget. etcd has no mirrors besides. */
#define MOST_ABILITIES                                                                             \
    (STORE_READERS | STORE_SEMAPHORES | STORE_SEVERAL_KEYS | STORE_QUEUE | STORE_AT_LEAST |        \
     STORE_MARK | STORE_FORCE | STORE_LATCHES | STORE_DETACHED | STORE_GROUPS | STORE_LIMITS |     \
     STORE_MEMORY | STORE_TOGETHER | STORE_PRIORITIES | STORE_PAUSES | STORE_ANY | STORE_ASK |     \
     STORE_REPLACE | STORE_GLOB_PAUSES | STORE_MINIMUM)

/* The members that are the same for each database. */
#define COMMON                                                                                     \
    .abilities = MOST_ABILITIES | STORE_MIRROR, .mirrors = mirrors, .parse = parse_url,            \
    .print = print_url, .schema = schema_statement, .grants = true, .open = open_hosted,           \
    .check = check_database

const struct store_kind postgresql_kind = {.scheme = "postgresql",
                                           .alias = "postgres",
                                           .secure = "postgresqls",
                                           .name = "postgresql://",
                                           .program = "rlock-postgresql",
                                           COMMON};

const struct store_kind mysql_kind = {
    .scheme = "mysql", .secure = "mysqls", .name = "mysql://", .program = "rlock-mysql", COMMON};

const struct store_kind mariadb_kind = {.scheme = "mariadb",
                                        .secure = "mariadbs",
                                        .name = "mariadb://",
                                        .program = "rlock-mysql",
                                        COMMON};

static bool check_driver(const struct checkup_plan *plan, struct checkup *checkup, char *fault,
                         size_t size)
{
    static const char *const tests[] = {"bytes", "create", "race", "versions", "reads",
                                        "lost",  "count",  "list", "date",     NULL};

    return hosted_check(plan, NULL, tests, checkup, fault, size);
}

/* A store whose records a driver moves compares and sets one key at once, and calls nobody: it has
 * no feature that decides about two keys in one step, and nothing that makes it ready. */
#define DRIVEN                                                                                     \
    .program = "rlock-external", .is_driven = true, .is_conditional = true, .no_password = true,   \
    .abilities = STORE_READERS | STORE_SEMAPHORES | STORE_QUEUE | STORE_AT_LEAST | STORE_FORCE |   \
                 STORE_LATCHES | STORE_DETACHED | STORE_GROUPS | STORE_LIMITS | STORE_MEMORY |     \
                 STORE_PRIORITIES | STORE_PAUSES | STORE_ASK | STORE_REPLACE,                      \
    .open = store_redis_open, .check = check_driver

const struct store_kind exec_kind = {.scheme = "exec",
                                     .name = "exec:",
                                     .is_bare = true,
                                     .parse = parse_exec,
                                     .print = print_exec,
                                     DRIVEN};

#define GIT .parse = parse_git, .print = print_git, DRIVEN

const struct store_kind git_file_kind = {.scheme = "git+file", .name = "git+file://", GIT};
const struct store_kind git_ssh_kind = {.scheme = "git+ssh", .name = "git+ssh://", GIT};
const struct store_kind git_https_kind = {.scheme = "git+https", .name = "git+https://", GIT};

static bool check_etcd(const struct checkup_plan *plan, struct checkup *checkup, char *fault,
                       size_t size)
{
    static const char *const tests[] = {"members", "space", "alarms", "compaction", NULL};

    return hosted_check(plan, NULL, tests, checkup, fault, size);
}

const struct store_kind etcd_kind = {.scheme = "etcd",
                                     .secure = "etcds",
                                     .name = "etcd://",
                                     .program = "rlock-etcd",
                                     .is_conditional = true,
                                     .abilities = MOST_ABILITIES,
                                     .parse = parse_etcd,
                                     .print = print_etcd,
                                     .open = open_hosted,
                                     .check = check_etcd};
