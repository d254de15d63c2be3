/* The connection, and requests over it. */
#include "host/my_session.h"

#include <mysqld_error.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

/* For a second connection. */
#define CONNECT_SECONDS 2

/* MySQL's own: wait_timeout is over. */
#define MYSQL_IDLE_END 4031

struct my_session my_session;

/* -- connecting -------------------------------------------------------------------------------- */

static void keep_target(const struct driver_target *given)
{
    struct driver_target *target = &my_session.target;
    const char **const texts[] = {&target->host,     &target->port,        &target->user,
                                  &target->password, &target->database,    &target->ca,
                                  &target->key,      &target->certificate, &target->client};

    *target = *given;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        *texts[i] = mem_strdup(*texts[i]);
    target->seconds = CONNECT_SECONDS;
}

bool my_session_open(const struct host_target *given, struct host_fault *fault)
{
    if (my_session.connection)
        mysql_close(my_session.connection);
    *fault = (struct host_fault){.broken = false};
    my_session.in_transaction = false;
    my_session.connection = my_connect(&given->at, CLIENT_MULTI_STATEMENTS, &fault->why);
    if (!my_session.connection)
        return false;
    keep_target(&given->at);
    snprintf(my_session.table, sizeof my_session.table, "%s",
             *given->table ? given->table : "rlock");
    return true;
}

/* -- statements -------------------------------------------------------------------------------- */

struct my_sql my_sql(void)
{
    return (struct my_sql){.text = {.dialect = &sql_mysql, .table = my_session.table}};
}

void my_sql_next(struct my_sql *sql)
{
    strbuf_putc(&sql->text.out, ';');
    sql->count++;
}

void my_sql_say(struct my_sql *sql, const char *statement)
{
    strbuf_puts(&sql->text.out, statement);
    my_sql_next(sql);
}

void my_sql_bytes(struct my_sql *sql, struct piece bytes)
{
    strbuf_puts(&sql->text.out, "x'");
    sql_add_digits(&sql->text, bytes.at, bytes.size);
    strbuf_putc(&sql->text.out, '\'');
}

void my_sql_text(struct my_sql *sql, const char *text)
{
    size_t size = strlen(text);

    strbuf_putc(&sql->text.out, '\'');
    char *to = strbuf_room(&sql->text.out, 2 * size + 1);
    strbuf_grew(&sql->text.out, mysql_real_escape_string(my_session.connection, to, text, size));
    strbuf_putc(&sql->text.out, '\'');
}

/* -- requests ---------------------------------------------------------------------------------- */

/* False: the statement has failed. */
static bool take_result(const struct my_taker *taker)
{
    MYSQL_RES *result = mysql_store_result(my_session.connection);
    MYSQL_ROW row;

    if (!result)
        return mysql_field_count(my_session.connection) == 0;
    while ((row = mysql_fetch_row(result)))
        if (taker)
            taker->take(taker->arg, row, mysql_fetch_lengths(result));
    mysql_free_result(result);
    return true;
}

/* The last statement ends with a semicolon, behind which there is no other. */
unsigned my_send(const struct my_sql *sql, const struct my_taker *taker)
{
    unsigned done = 0;
    bool more =
        mysql_real_query(my_session.connection, sql->text.out.text, sql->text.out.size - 1) == 0;

    while (more && take_result(taker)) {
        done++;
        more = mysql_next_result(my_session.connection) == 0;
    }
    return done;
}

/* The server undoes what it refuses in front of the COMMIT with all else. Where it is told between
 * two statements to end what runs, it ends the request behind the first one without an error. */
enum host_outcome my_failed(const struct my_sql *sql, unsigned done, struct host_fault *fault)
{
    unsigned number = mysql_errno(my_session.connection);
    bool unheard = my_is_of_client(number);
    bool commits = sql->commits && (unheard || (number && done + 1 == sql->commits));

    *fault = (struct host_fault){.broken = false};
    my_fail(my_session.connection, &fault->why);
    if (number == MYSQL_IDLE_END)
        fault->why.error = WIRE_ENDED;
    if (number == ER_LOCK_WAIT_TIMEOUT)
        fault->why.error = WIRE_BUSY;
    fault->broken = wire_error_breaks(fault->why.error);
    if (number == 0 || number == ER_LOCK_DEADLOCK)
        return HOST_AGAIN;
    fault->maybe_done = commits;
    return !commits && (number == ER_BAD_NULL_ERROR || number == ER_CHECKREAD ||
                        number == ER_DUP_ENTRY || number == ER_QUERY_INTERRUPTED)
               ? HOST_AGAIN
               : HOST_FAILED;
}
