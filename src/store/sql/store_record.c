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

#define SQL_ABILITIES                                                                              \
    (STORE_READERS | STORE_SEMAPHORES | STORE_SEVERAL_KEYS | STORE_QUEUE | STORE_AT_LEAST |        \
     STORE_MARK | STORE_FORCE | STORE_DETACHED | STORE_MIRROR)

static const char *const mirrors[] = {"shedlock", NULL};

static const char *parse(struct url *url, char *rest, int port)
{
    char *database;
    const char *fault = url_take_authority(url, &rest, &database);

    if (fault || (fault = url_take_host(url, rest, port)))
        return fault;
    if (!database || *database == '\0' || strchr(database, '/'))
        return "has no database's name (write SCHEME://HOST:PORT/DATABASE)";
    url->database = database;
    return url_decode(database, database + strlen(database));
}

static const char *parse_postgresql(struct url *url, char *rest)
{
    return parse(url, rest, POSTGRESQL_PORT);
}

static const char *parse_mysql(struct url *url, char *rest)
{
    return parse(url, rest, MYSQL_PORT);
}

static void print(const struct url *url, char *out, size_t size)
{
    url_append_hosts(url, out, size);
    text_append(out, size, "/");
    url_append_encoded(url->database, "/?#", out, size);
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
                                               .secure = "postgresqls",
                                               .name = "postgresql://",
                                               .abilities = SQL_ABILITIES,
                                               .mirrors = mirrors,
                                               .parse = parse_postgresql,
                                               .print = print,
                                               .schema = sql_postgresql_schema,
                                               .open = open_postgresql,
                                               .check = sql_check_postgresql};

const struct store_record mysql_record = {.scheme = "mysql",
                                          .secure = "mysqls",
                                          .name = "mysql://",
                                          .abilities = SQL_ABILITIES,
                                          .mirrors = mirrors,
                                          .parse = parse_mysql,
                                          .print = print,
                                          .schema = sql_mysql_schema,
                                          .open = open_mysql,
                                          .check = sql_check_mysql};

const struct store_record mariadb_record = {.scheme = "mariadb",
                                            .secure = "mariadbs",
                                            .name = "mariadb://",
                                            .abilities = SQL_ABILITIES,
                                            .mirrors = mirrors,
                                            .parse = parse_mysql,
                                            .print = print,
                                            .schema = sql_mysql_schema,
                                            .open = open_mysql,
                                            .check = sql_check_mysql};
