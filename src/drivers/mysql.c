/* rlock-mysql: the driver for MySQL and MariaDB, over MariaDB's Connector/C. */
#include "drivers/my.h"

static MYSQL *connection;

static bool connect_to(const struct driver_target *target, const char **version,
                       struct driver_fault *fault)
{
    if (connection)
        mysql_close(connection);
    connection = my_connect(target, 0, fault);
    if (connection)
        *version = mysql_get_server_info(connection);
    return connection;
}

static bool put_rows(struct wire_out *rows, struct driver_fault *fault)
{
    MYSQL_RES *result = mysql_store_result(connection);
    MYSQL_ROW row;

    if (!result && mysql_field_count(connection) > 0)
        return my_fail(connection, fault);
    unsigned columns = result ? mysql_num_fields(result) : 1;
    wire_number(rows, columns);
    if (!result)
        wire_number(rows, (int64_t)mysql_affected_rows(connection));
    while (result && (row = mysql_fetch_row(result)))
        for (unsigned i = 0; i < columns; i++)
            wire_text(rows, row[i] ? row[i] : "");
    if (result)
        mysql_free_result(result);
    return true;
}

static bool execute(const char *sql, struct wire_out *rows, struct driver_fault *fault)
{
    if (!connection)
        return driver_fail(fault, WIRE_UNREACHABLE, "not connected");
    return mysql_query(connection, sql) == 0 ? put_rows(rows, fault) : my_fail(connection, fault);
}

int main(void)
{
    static const struct driver_ops ops = {.connect = connect_to, .execute = execute};
    int status = driver_serve(&ops);

    if (connection)
        mysql_close(connection);
    return status;
}
