/* To rlock, a host is a Redis server that is started when it is needed. */
#include "store/hosted/store_record.h"

#include <stdio.h>

#include "store/hosted/address.h"
#include "store/hosted/checkup.h"
#include "store/redis/store.h"
#include "store/hosted/dialect.h"
#include "store/store.h"
#include "store/url.h"

/* All that a single Redis can do, but for what is about several servers, or about one that may
 * forget. */
#define ABILITIES                                                                                  \
    (STORE_READERS | STORE_SEMAPHORES | STORE_SEVERAL_KEYS | STORE_QUEUE | STORE_AT_LEAST |        \
     STORE_MARK | STORE_FORCE | STORE_LATCHES | STORE_DETACHED | STORE_GROUPS | STORE_LIMITS |     \
     STORE_MEMORY | STORE_TOGETHER | STORE_PRIORITIES | STORE_PAUSES | STORE_ANY | STORE_ASK |     \
     STORE_REPLACE | STORE_GLOB_PAUSES | STORE_MINIMUM | STORE_MIRROR)

static const char *const mirrors[] = {"shedlock", NULL};

static struct store *open_hosted(struct loop *loop, const struct store_address *address,
                                 char *fault, size_t size)
{
    if (address->urls->tls &&
        (address->tls.server_name || (address->tls.ca.path && !address->tls.ca.text))) {
        snprintf(fault, size,
                 "the libraries of databases take neither another server's name nor a "
                 "directory of certificates");
        return NULL;
    }
    return store_redis_open(loop, address, fault, size);
}

static char *schema(const struct sql_dialect *dialect, const struct store_address *address,
                    const char *user, size_t i)
{
    struct sql_text text = {.dialect = dialect, .table = address->urls->table};

    return sql_add_schema(&text, user, i) ? strbuf_detach(&text.out) : NULL;
}

static char *schema_postgresql(const struct store_address *address, const char *user, size_t i)
{
    return schema(&sql_postgresql, address, user, i);
}

static char *schema_mysql(const struct store_address *address, const char *user, size_t i)
{
    return schema(&sql_mysql, address, user, i);
}

const struct store_record postgresql_record = {.scheme = "postgresql",
                                               .alias = "postgres",
                                               .secure = "postgresqls",
                                               .name = "postgresql://",
                                               .abilities = ABILITIES,
                                               .mirrors = mirrors,
                                               .program = "rlock-postgresql",
                                               .parse = hosted_parse_postgresql,
                                               .print = hosted_print_postgresql,
                                               .schema = schema_postgresql,
                                               .grants = true,
                                               .open = open_hosted,
                                               .check = hosted_check_postgresql};

const struct store_record mysql_record = {.scheme = "mysql",
                                          .secure = "mysqls",
                                          .name = "mysql://",
                                          .abilities = ABILITIES,
                                          .mirrors = mirrors,
                                          .program = "rlock-mysql",
                                          .parse = hosted_parse_mysql,
                                          .print = hosted_print_mysql,
                                          .schema = schema_mysql,
                                          .grants = true,
                                          .open = open_hosted,
                                          .check = hosted_check_mysql};

const struct store_record mariadb_record = {.scheme = "mariadb",
                                            .secure = "mariadbs",
                                            .name = "mariadb://",
                                            .abilities = ABILITIES,
                                            .mirrors = mirrors,
                                            .program = "rlock-mysql",
                                            .parse = hosted_parse_mysql,
                                            .print = hosted_print_mysql,
                                            .schema = schema_mysql,
                                            .grants = true,
                                            .open = open_hosted,
                                            .check = hosted_check_mysql};
