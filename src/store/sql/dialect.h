/* What one kind of database server wants to be told, in its words. Pure.
 *
 * Two tables, rlock_lock and rlock_wait, or of other names that the URL says. A row of rlock_lock
 * is a lock (store/sql/row.h) or a latch, with a version that each change adds 1 to; it is never
 * deleted, so that no version comes twice. A row of rlock_wait is a place in the queue of a lock:
 * who comes first is told by since_us, and then by the owner, for all keys alike, so two that want
 * the same keys do not wait for each other. "scope" is the ancestor in which a waiter nests, or
 * empty: each has a queue of its own. A place counts until deadline_us.
 *
 * Whatever is text is kept as bytes, and goes back and forth in hexadecimal digits: there is
 * nothing to quote, and no encoding. */
#ifndef RLOCK_STORE_SQL_DIALECT_H
#define RLOCK_STORE_SQL_DIALECT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct sql_dialect {
    const char *program;       /* the driver */
    const char *const *schema; /* statements that make the tables, ended by NULL, for sql_add() */
    const char *const *grants; /* the same, without the user at its end: all rights there that
                                  rlock needs */
    const char *const *tables; /* their names, ended by NULL */
    const char *probe;         /* a query that touches all of their columns that matter */
    const char *grantee;       /* what stands around a user's name */
    bool hosts;                /* a user is one of a host */
    char quote;                /* around a name that has to be quoted */
    /* Expressions, us since 1970. now: when the statement arrived, the same in all of it, and when
     * it is executed again by a replica. clock: when this is evaluated, behind the locks and the
     * snapshot where the statement is one that reads: no row that it sees is from later. */
    const char *now, *clock;
    const char *literal[2];    /* what stands around hexadecimal digits */
    const char *hex[2];        /* around bytes that become digits */
    const char *number[2];     /* around a number that becomes text */
    /* Of another program's table (store/sql/mirror.h): what stands around the digits of a literal,
     * and around a text that becomes digits; its time of now; and us until lock_until. */
    const char *text[2], *text_hex[2], *utc, *utc_left;
    /* Behind INSERT of rlock_lock: where a row is there, it is changed if its version is one less,
     * and otherwise nothing of the whole statement is done. */
    const char *swap;
    /* Behind INSERT of rlock_wait: who is there already keeps since_us. */
    const char *stay;
    /* Behind an INSERT of another program's table: who is there already stays. */
    const char *unless_there;
    bool joins;    /* one UPDATE changes rows of several tables; otherwise WITH does */
    bool notifies; /* a session can be told by another one, with LISTEN and NOTIFY */
    bool bells;    /* it cannot, but there are user-level locks (store/sql/bell.h) */
};

extern const struct sql_dialect sql_postgresql, sql_mysql;
/* The same servers with the tables of a host (src/host): "record", and what MySQL needs besides to
 * lock keys and to tell messages. */
extern const struct sql_dialect sql_hosted_postgresql, sql_hosted_mysql;

/* A statement in the making. */
struct sql_text {
    const struct sql_dialect *dialect;
    const char *table; /* what the names of the tables begin with; NULL: "rlock" */
    char *bytes;       /* freed by sql_text_end() */
    size_t size, room;
};

/* "@lock" becomes the name of that table, "rlock_lock"; likewise whatever else follows an '@'. */
void sql_add(struct sql_text *text, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* A text as a literal. */
void sql_add_literal(struct sql_text *text, const char *value);
/* Its hexadecimal digits. */
void sql_add_digits(struct sql_text *text, const char *value);
void sql_text_end(struct sql_text *text);

/* Adds statement number i of those that make the tables and, unless the user is NULL, give him his
 * rights. False: there are no more. */
bool sql_add_schema(struct sql_text *text, const char *user, size_t i);

/* Adds those that give him his rights, all of them. */
void sql_add_grants(struct sql_text *text, const char *user);

/* Hexadecimal digits as text; the caller frees. NULL if they are none, or hold a NUL. */
char *sql_unhex(const char *digits);

#endif
