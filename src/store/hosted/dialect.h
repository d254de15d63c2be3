/* The SQL of each kind of database server. Pure.
 *
 * The table "record", or of another name that the URL says, has a row for what would be a key in
 * Redis (host/record.h), with a version that each change adds 1 to. MySQL has two tables besides,
 * to lock keys and to tell messages (host/mysql.c).
 *
 * Text for other programs is sent in hexadecimal digits: nothing needs quotes. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/strbuf.h"

struct sql_dialect {
    int port;
    /* The name that other programs of that database use for the path of its Unix socket, or of the
     * directory of it. */
    const char *socket;
    const char *const *schema; /* statements that make the tables, ended by NULL, for sql_add() */
    const char *view; /* makes a view for people, where it may fail; NULL: the schema does */
    const char *const *tables; /* their names, ended by NULL */
    const char *probe;         /* a query that touches all of their columns that matter */
    const char *grantee;       /* around a user's name */
    bool is_mysql;             /* a user is one of a host, and names are bytes */
    char quote;                /* around a name that must be quoted */
    const char *server;    /* an expression, a text that differs from server to server, of functions
                         * that a proxy takes for reads */
    const char *now;       /* an expression, us since 1970: when the statement arrived, or later */
    const char *now_ms;    /* the same in ms */
    const char *overwrite; /* the end of an INSERT of records some of which are there */
    const char *const *purge; /* statements that delete what has expired, ended by NULL */
    /* For another program's table (host/shedlock.h): around the digits of a literal; and us until
     * lock_until. */
    const char *text[2], *utc_left;
};

extern const struct sql_dialect sql_postgresql, sql_mysql;

/* An expression of MySQL's and MariaDB's: whether the server is a replica, or was demoted, also for
 * a user who may write there. A later MariaDB may say a word for read_only (OFF, ON, NO_LOCK). */
#define MY_READ_ONLY "CONCAT(@@GLOBAL.read_only) NOT IN ('0', 'OFF') OR @@GLOBAL.innodb_read_only"

/* The beginning of a query that is an error, WIRE_NOT_KEPT, where it finds nothing: the sum is too
 * large for its type. It continues with a table and a condition that one row can meet. */
#define SQL_ONE "SELECT 9223372036854775807 + (1 - count(*)) FROM "

/* Statements in the making. */
struct sql_text {
    const struct sql_dialect *dialect;
    const char *table; /* the beginning of the tables' names; NULL: "rlock" */
    struct strbuf out; /* freed by the caller */
    unsigned count;    /* of statements that have been ended */
    unsigned commits;  /* so many are done once they are committed; 0: nothing is (src/host) */
};

/* Adds text as of printf(), in which "@record" becomes the name of that table, "rlock_record";
 * likewise any other word behind an '@'. */
void sql_add(struct sql_text *text, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Ends a statement. */
void sql_end(struct sql_text *text);
/* Adds hexadecimal digits. */
void sql_add_digits(struct sql_text *text, const void *bytes, size_t size);

/* Adds statement number i of those that make the tables, give the user its rights (NULL: none), and
 * make the view. False: there is no such statement. */
bool sql_add_schema(struct sql_text *text, const char *user, size_t i);

/* Adds all statements that give the user its rights, with "; " between them. */
void sql_add_grants(struct sql_text *text, const char *user);
