/* mysql:// and mariadb://. */
#include "store/sql/store_record.h"

#include "store/hosted/address.h"
#include "store/sql/checkup.h"
#include "store/sql/dialect.h"
#include "store/sql/store.h"

#define SQL_ABILITIES                                                                              \
    (STORE_READERS | STORE_SEMAPHORES | STORE_SEVERAL_KEYS | STORE_QUEUE | STORE_AT_LEAST |        \
     STORE_MARK | STORE_FORCE | STORE_LATCHES | STORE_DETACHED | STORE_MIRROR)

static const char *const mirrors[] = {"shedlock", NULL};

static char *schema(const struct sql_dialect *dialect, const struct store_address *address,
                    const char *user, size_t i)
{
    struct sql_text text = {.dialect = dialect, .table = address->urls->table};

    return sql_add_schema(&text, user, i) ? text.bytes : NULL;
}

static char *schema_mysql(const struct store_address *address, const char *user, size_t i)
{
    return schema(&sql_mysql, address, user, i);
}

static struct store *open_mysql(struct loop *loop, const struct store_address *address, char *fault,
                                size_t size)
{
    return sql_store_open(loop, address, &sql_mysql, fault, size);
}

const struct store_record mysql_record = {.scheme = "mysql",
                                          .secure = "mysqls",
                                          .name = "mysql://",
                                          .abilities = SQL_ABILITIES,
                                          .mirrors = mirrors,
                                          .parse = hosted_parse_mysql,
                                          .print = hosted_print_mysql,
                                          .schema = schema_mysql,
                                          .grants = true,
                                          .open = open_mysql,
                                          .check = sql_check_mysql};

const struct store_record mariadb_record = {.scheme = "mariadb",
                                            .secure = "mariadbs",
                                            .name = "mariadb://",
                                            .abilities = SQL_ABILITIES,
                                            .mirrors = mirrors,
                                            .parse = hosted_parse_mysql,
                                            .print = hosted_print_mysql,
                                            .schema = schema_mysql,
                                            .grants = true,
                                            .open = open_mysql,
                                            .check = sql_check_mysql};
