#include "store/hosted/dialect.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

/* COLLATE "C" compares the names of records by their bytes. An index in the order of a locale would
 * miss rows where another C library orders them otherwise, as on a standby of another distribution.
 *
 * The views show people who holds a lock and who waits for it. They split a record into its lines
 * (host/record.h), and the line of a holder or waiter into words (rules/lua/lock.lua). IF: only the
 * user who has made a view may replace it. */
static const char *const postgresql_schema[] = {
    "CREATE TABLE IF NOT EXISTS @record (\n"
    "    name text COLLATE \"C\" PRIMARY KEY,\n"
    "    version bigint NOT NULL,\n"
    "    expires bigint NOT NULL,\n"
    "    state text NOT NULL)",
    "DO $do$ BEGIN SET LOCAL standard_conforming_strings = on;\n"
    "IF to_regclass('@locks') IS NULL THEN CREATE VIEW @locks AS\n"
    "SELECT replace(substring(name, '\\{(.*)\\}$'), '\\x', '%') AS key, role,\n"
    "    CASE lower(w[4]) WHEN 'x' THEN 'exclusive' WHEN 's' THEN 'shared' ELSE 'semaphore' END\n"
    "        AS mode,\n"
    "    to_timestamp(CAST(w[3] AS bigint) / 1000.0) AS since,\n"
    "    to_timestamp(CAST(w[1] AS bigint) / 1000.0) AS until,\n"
    "    w[5] AS host, w[6] AS username, w[7] AS pid, w[8] AS command, w[9] AS label,\n"
    "    w[2] AS owner\n"
    "FROM (SELECT name, 'waiter' AS role, regexp_match(line,\n"
    "        '^q:\\S* (\\d+) (\\S+) (\\d+) ([xslXSL]) (\\S+) (\\S+) (\\S+) (\\S+) (\\S+)')\n"
    "        AS w\n"
    "    FROM @record, regexp_split_to_table(replace(state, '\\x', '%'), '\\n') AS line\n"
    "    UNION ALL SELECT name, 'holder', regexp_match(entry, '^(\\d+) \\d+ \\d+ (\\S+) (\\d+) '\n"
    "        '([xsl]) \\d+ (\\S+) (\\S+) (\\S+) (\\S+) (\\S+)')\n"
    "    FROM @record, regexp_split_to_table(replace(state, '\\x', '%'), '\\n') AS line,\n"
    "        regexp_split_to_table(substring(line, '^h:\\S+ (.*)'), '\\\\n') AS entry) AS lines\n"
    "WHERE CAST(w[1] AS bigint) / 1000.0 > extract(epoch FROM clock_timestamp())\n"
    "ORDER BY key, role, since; END IF; END $do$",
    NULL};

static const char *const postgresql_tables[] = {"record", NULL};

#define PG_NOW "CAST(extract(epoch FROM clock_timestamp()) * 1000000 AS bigint)"

/* A row that another client is writing is left to the next one. */
static const char *const postgresql_purge[] = {"DELETE FROM @record WHERE name IN (SELECT name "
                                               "FROM @record WHERE expires BETWEEN 1 AND " PG_NOW
                                               " / 1000 LIMIT 100 FOR UPDATE SKIP LOCKED)",
                                               NULL};

const struct sql_dialect sql_postgresql = {
    .port = 5432,
    .socket = "host",
    .schema = postgresql_schema,
    .tables = postgresql_tables,
    .probe = "SELECT count(*) FROM @record WHERE version = 0 AND expires = 0 AND state = ''",
    .grantee = "\"",
    .quote = '"',
    .server = "concat_ws(' ', inet_server_addr(), inet_server_port(), pg_postmaster_start_time())",
    .now = PG_NOW,
    .now_ms = PG_NOW " / 1000",
    .overwrite = "ON CONFLICT (name) DO UPDATE SET version = excluded.version, expires = "
                 "excluded.expires, state = CASE WHEN @record.version + 1 = excluded.version THEN "
                 "excluded.state END",
    .purge = postgresql_purge,
    .text = {"convert_from(decode('", "', 'hex'), 'UTF8')"},
    .utc_left = "CAST(extract(epoch FROM lock_until - timezone('utc', clock_timestamp())) * "
                "1000000 AS bigint)"};

/* When the statement arrived. */
#define MYSQL_NOW "TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))"

/* A host locks this in place of a record, which may not exist: host/mysql.c. */
#define GATES                                                                                      \
    "INSERT IGNORE INTO @gate (name)\n"                                                            \
    "    WITH digit (n) AS (SELECT 0 UNION ALL SELECT 1 UNION ALL SELECT 2 UNION ALL SELECT 3\n"   \
    "        UNION ALL SELECT 4 UNION ALL SELECT 5 UNION ALL SELECT 6 UNION ALL SELECT 7\n"        \
    "        UNION ALL SELECT 8 UNION ALL SELECT 9)\n"                                             \
    "    SELECT a.n + 10 * b.n + 100 * c.n FROM digit a, digit b, digit c"

static const char *const mysql_schema[] = {
    "CREATE TABLE IF NOT EXISTS @record (\n"
    "    name VARBINARY(3000) PRIMARY KEY,\n"
    "    version BIGINT NOT NULL,\n"
    "    expires BIGINT NOT NULL,\n"
    "    state LONGTEXT CHARACTER SET ascii COLLATE ascii_bin NOT NULL,\n"
    "    INDEX (expires)) ENGINE=InnoDB ROW_FORMAT=DYNAMIC",
    "CREATE TABLE IF NOT EXISTS @gate (name SMALLINT PRIMARY KEY) ENGINE=InnoDB", GATES,
    "CREATE TABLE IF NOT EXISTS @message (\n"
    "    id BIGINT UNSIGNED AUTO_INCREMENT PRIMARY KEY,\n"
    "    name BIGINT NOT NULL,\n"
    "    expires BIGINT NOT NULL,\n"
    "    text LONGBLOB NOT NULL,\n"
    "    INDEX (name, id),\n"
    "    INDEX (expires)) ENGINE=InnoDB",
    NULL};

/* The line of a holder has two more words in front of its owner than that of a waiter, and one more
 * behind its mode. The owners that nest in it follow it in the same value. */
static const char mysql_view[] =
    "CREATE VIEW @locks AS\n"
    "SELECT SUBSTRING(name, LOCATE('{', name) + 1, CHAR_LENGTH(name) - LOCATE('{', name) - 1)\n"
    "        AS `key`,\n"
    "    IF(line LIKE 'q:%', 'waiter', 'holder') AS role,\n"
    "    CASE LOWER(SUBSTRING_INDEX(SUBSTRING_INDEX(line, ' ', 5 + x), ' ', -1))\n"
    "        WHEN 'x' THEN 'exclusive' WHEN 's' THEN 'shared' ELSE 'semaphore' END AS mode,\n"
    "    FROM_UNIXTIME(CAST(SUBSTRING_INDEX(SUBSTRING_INDEX(line, ' ', 4 + x), ' ', -1) AS\n"
    "        UNSIGNED) / 1000) AS since,\n"
    "    FROM_UNIXTIME(CAST(SUBSTRING_INDEX(SUBSTRING_INDEX(line, ' ', 2), ' ', -1) AS\n"
    "        UNSIGNED) / 1000) AS until,\n"
    "    SUBSTRING_INDEX(SUBSTRING_INDEX(line, ' ', 6 + y), ' ', -1) AS host,\n"
    "    SUBSTRING_INDEX(SUBSTRING_INDEX(line, ' ', 7 + y), ' ', -1) AS username,\n"
    "    SUBSTRING_INDEX(SUBSTRING_INDEX(line, ' ', 8 + y), ' ', -1) AS pid,\n"
    "    SUBSTRING_INDEX(SUBSTRING_INDEX(line, ' ', 9 + y), ' ', -1) AS command,\n"
    "    SUBSTRING_INDEX(SUBSTRING_INDEX(line, ' ', 10 + y), ' ', -1) AS label,\n"
    "    SUBSTRING_INDEX(SUBSTRING_INDEX(line, ' ', 3 + x), ' ', -1) AS owner\n"
    "FROM (SELECT CONVERT(name USING utf8mb4) AS name, line, IF(line LIKE 'q:%', 0, 2) AS x,\n"
    "        IF(line LIKE 'q:%', 0, 3) AS y\n"
    "    FROM @record, JSON_TABLE(CONCAT('[\"', REPLACE(REPLACE(REPLACE(REPLACE(REPLACE(state,\n"
    "        '\\\\x', '%'), '\\\\n', '\\nh: '), '\\\\', '\\\\\\\\'), '\"', '\\\\\"'), '\\n', "
    "'\",\"'), '\"]'),\n"
    "        '$[*]' COLUMNS (line LONGTEXT PATH '$')) AS split\n"
    "    WHERE line LIKE 'q:%' OR line LIKE 'h:%') AS party\n"
    "WHERE SUBSTRING_INDEX(SUBSTRING_INDEX(line, ' ', 2), ' ', -1) / 1000 > "
    "UNIX_TIMESTAMP(NOW(6))\n"
    "ORDER BY `key`, role, since";

static const char *const mysql_tables[] = {"record", "gate", "message", NULL};

static const char *const mysql_purge[] = {
    "DELETE FROM @message WHERE expires < " MYSQL_NOW " DIV 1000 LIMIT 1000",
    "DELETE FROM @record WHERE expires BETWEEN 1 AND " MYSQL_NOW " DIV 1000 LIMIT 100", NULL};

const struct sql_dialect sql_mysql = {
    .port = 3306,
    .socket = "socket",
    .schema = mysql_schema,
    .view = mysql_view,
    .tables = mysql_tables,
    .probe = "SELECT (SELECT count(*) FROM @record WHERE version = 0 AND expires = 0 AND state = "
             "'') + (SELECT count(*) FROM @gate WHERE name = 0) + "
             "(SELECT count(*) FROM @message WHERE name = 0 AND expires = 0)",
    .grantee = "'",
    .is_mysql = true,
    .quote = '`',
    .server = "CONCAT_WS(' ', @@hostname, @@port, @@server_id)",
    .now = MYSQL_NOW,
    .now_ms = MYSQL_NOW " DIV 1000",
    /* Columns are set from left to right. */
    .overwrite = "ON DUPLICATE KEY UPDATE state=IF(version+1=VALUES(version),VALUES(state),NULL),"
                 "expires=VALUES(expires),version=VALUES(version)",
    .purge = mysql_purge,
    .text = {"_utf8mb4 x'", "'"},
    .utc_left = "TIMESTAMPDIFF(MICROSECOND, UTC_TIMESTAMP(6), lock_until)"};

/* -- statements -------------------------------------------------------------------------------- */

#define LOWER      "abcdefghijklmnopqrstuvwxyz_"
#define ANY_NUMBER "0123456789"

void sql_add(struct sql_text *text, const char *format, ...)
{
    size_t from = text->out.size;
    va_list values;

    va_start(values, format);
    strbuf_vprintf(&text->out, format, values);
    va_end(values);
    /* Replaces "@WORD" in what was added: no value has an '@', as texts are digits. */
    if (!memchr(text->out.text + from, '@', text->out.size - from))
        return;
    char *added = mem_strdup(text->out.text + from), *rest = added;
    strbuf_cut(&text->out, from);
    while (*rest) {
        size_t before = strcspn(rest, "@"), word = 0;
        strbuf_add(&text->out, rest, before);
        rest += before;
        if (*rest == '@') {
            word = strspn(++rest, LOWER);
            /* Quotes only a name that needs it: PostgreSQL distinguishes upper case only within
             * quotes. */
            const char *table = text->table ? text->table : "rlock";
            bool plain = strchr(LOWER, *table) && table[strspn(table, LOWER ANY_NUMBER)] == '\0';
            char quote[2] = "";
            if (!plain)
                quote[0] = text->dialect->quote;
            sql_add(text, "%s%s_%.*s%s", quote, table, (int)word, rest, quote);
        }
        rest += word;
    }
    free(added);
}

void sql_end(struct sql_text *text)
{
    strbuf_putc(&text->out, ';');
    text->count++;
}

void sql_add_digits(struct sql_text *text, const void *bytes, size_t size)
{
    static const char digits[] = "0123456789abcdef";

    for (const unsigned char *byte = bytes; size-- > 0; byte++) {
        strbuf_putc(&text->out, digits[*byte >> 4]);
        strbuf_putc(&text->out, digits[*byte & 15]);
    }
}

/* Adds a user's or a host's name in quotation marks: those within it are doubled, and so are
 * backslashes, which MySQL reads as escapes. */
static void add_quoted(struct sql_text *text, const char *word, size_t length)
{
    const char *quote = text->dialect->grantee;

    strbuf_add(&text->out, quote, 1);
    for (size_t i = 0; i < length; i++) {
        if (word[i] == *quote || (word[i] == '\\' && text->dialect->is_mysql))
            strbuf_add(&text->out, word + i, 1);
        strbuf_add(&text->out, word + i, 1);
    }
    strbuf_add(&text->out, quote, 1);
}

/* Adds the statement that lets a user use the ith table. */
static void add_grant(struct sql_text *text, const char *user, size_t i)
{
    sql_add(text, "GRANT SELECT, INSERT, UPDATE, DELETE ON @%s TO ", text->dialect->tables[i]);
    /* In MySQL a user belongs to a host, USER@HOST; without one, to any. */
    const char *at = text->dialect->is_mysql ? strrchr(user, '@') : NULL;
    const char *host = at ? at + 1 : "%";
    add_quoted(text, user, at ? (size_t)(at - user) : strlen(user));
    if (!text->dialect->is_mysql)
        return;
    strbuf_add(&text->out, "@", 1);
    add_quoted(text, host, strlen(host));
}

void sql_add_grants(struct sql_text *text, const char *user)
{
    for (size_t i = 0; text->dialect->tables[i]; i++) {
        sql_add(text, "%s", i > 0 ? "; " : "");
        add_grant(text, user, i);
    }
}

bool sql_add_schema(struct sql_text *text, const char *user, size_t i)
{
    const struct sql_dialect *dialect = text->dialect;
    size_t statements = 0, grants = 0;

    while (dialect->schema[statements])
        statements++;
    while (user && dialect->tables[grants])
        grants++;
    if (i < statements)
        sql_add(text, "%s", dialect->schema[i]);
    else if (i < statements + grants)
        add_grant(text, user, i - statements);
    else if (i == statements + grants && dialect->view)
        sql_add(text, "%s", dialect->view);
    else
        return false;
    return true;
}
