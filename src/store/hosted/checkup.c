/* Asks a database server, or the host of another store, one question after the other, and judges
 * the answers. */
#include "store/hosted/store_kind.h"

#include <hiredis/hiredis.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/decimal.h"
#include "base/duration.h"
#include "base/mem.h"
#include "base/text.h"
#include "net/loop.h"
#include "net/tls.h"
#include "rules/error.h"
#include "store/hosted/certificate.h"
#include "store/hosted/dialect.h"
#include "store/redis/session.h"
#include "store/url_parts.h"

#define PINGS     11
#define READS     5
#define ASK_NS    (5 * NS_PER_SEC)
#define TEST_NS   (55 * NS_PER_SEC) /* of a driver: less than a host gives itself */
#define AHEAD_MAX 1000              /* ms, of the server's clock */
/* A replica that a commit waits for as long as that has all that is acknowledged, whenever somebody
 * decides on a failover. */
#define SEMI_SYNC_LEAST_MS (24 * 60 * 60 * 1000)

/* The effect of a failover without synchronous replication, and its limit: a holder notices with
 * its next renewal. */
#define LOSES "loses the latest locks, and two commands run until the holder notices, within %s"

/* The cluster of Galera in which a server is. */
struct galera {
    char name[40]; /* empty: it is in none */
    int64_t nodes; /* how many of that the server sees, with itself */
};

/* The examination of one server. */
struct probe {
    const struct checkup_plan *plan;
    bool among_hosts; /* the URL has several, of which one takes the locks */
    bool takes_locks;
    struct galera galera;
    const struct sql_dialect *dialect; /* NULL: of another kind of store */
    struct loop *loop;
    struct redis_session *session, *other; /* each with a host; the second is rarely used */
    struct redis_session *asked;
    struct checked_server *server;

    /* The answer to the latest question: its first row. */
    bool failed;
    struct answer failure;
    char values[4][200];
};

/* -- asking ------------------------------------------------------------------------------------ */

/* Takes the row that a question has for an answer, as up to four texts, or why there is none, and
 * ends the wait for it (redis_session_events.done). */
static void take_replies(void *arg, redisReply *const *replies, size_t count,
                         const struct answer *failure)
{
    struct probe *probe = arg;
    const redisReply *row = count > 0 ? replies[0] : NULL;
    bool is_row = row && row->type == REDIS_REPLY_ARRAY;

    probe->failed = !is_row;
    memset(probe->values, 0, sizeof probe->values);
    if (failure) {
        probe->failure = *failure;
    } else if (!is_row) {
        if (row && row->type == REDIS_REPLY_ERROR)
            redis_error_answer(row->str, &probe->failure);
        else
            redis_error_senseless(&probe->failure);
        redis_session_annotate(probe->asked, &probe->failure);
    }
    for (size_t i = 0; is_row && i < row->elements && i < 4; i++) {
        const char *text = row->element[i]->str;
        snprintf(probe->values[i], sizeof probe->values[i], "%s", text ? text : "");
    }
    loop_stop(probe->loop);
}

/* Asks the host of that session for one row: the answer to an SQL statement, or to a test. Returns
 * whether it came in time (probe->values); false: why, in probe->failure. */
static bool ask_by(struct probe *probe, struct redis_session *session, const char *sql)
{
    int64_t most = probe->dialect ? ASK_NS : TEST_NS; /* a driver's test takes longer */

    probe->asked = session;
    REDIS_SESSION_ADD(session, "SQL", sql);
    redis_session_send(session, 1, 0, moment_plus(moment_now(), most));
    return answer_await(probe->loop, &probe->failure) && !probe->failed;
}

/* Asks the first host, as ask_by() does. */
static bool ask_sql(struct probe *probe, const char *sql)
{
    return ask_by(probe, probe->session, sql);
}

/* Returns an empty text for statements about this database's tables. The caller frees its "out". */
static struct sql_text text_of(const struct probe *probe)
{
    return (struct sql_text){.dialect = probe->dialect, .table = probe->plan->address->urls->table};
}

/* Whether the ith value of the latest answer is that. */
static bool value_is(const struct probe *probe, size_t i, const char *value)
{
    return strcmp(probe->values[i], value) == 0;
}

/* Adds a finding about this server; advice: "": there is none. */
static void add_finding(struct probe *probe, const char *check, enum level level, const char *text,
                        const char *advice)
{
    diagnosis_add(&probe->server->diagnosis, check, level, advice, "%s", text);
}

/* Adds a finding: that all is fine, as "good" says, or else a warning. */
static void judge_finding(struct probe *probe, const char *check, bool fine, const char *good,
                          const char *bad, const char *advice)
{
    add_finding(probe, check, fine ? LEVEL_FINE : LEVEL_WARNING, fine ? good : bad,
                fine ? "" : advice);
}

/* -- common to all ------------------------------------------------------------------ */

/* Measures how long the shortest question takes, some times, and adds a finding about it. */
static void check_ping(struct probe *probe)
{
    int64_t took[PINGS];

    for (size_t i = 0; i < PINGS; i++) {
        struct moment before = moment_now();
        if (!ask_sql(probe, probe->dialect ? "SELECT 1" : "ping"))
            return;
        took[i] = moment_until(before, moment_now());
    }
    diagnosis_sort_pings(took, PINGS, &probe->server->figures.ping_median_ns,
                         &probe->server->figures.ping_max_ns);
    diagnosis_add_latency(&probe->server->diagnosis, &probe->server->figures, UNTOLD,
                          probe->plan->lease);
}

/* Tells how the server's clock differs from this host's. Leases are counted only by the server's
 * clock, so a difference does no harm by itself. */
static void check_clock(struct probe *probe)
{
    char sql[200];
    int64_t us;

    snprintf(sql, sizeof sql, "SELECT %s", probe->dialect->now);
    int64_t before = clock_wall();
    if (!ask_sql(probe, sql) || !decimal_parse(probe->values[0], 0, INT64_MAX, &us))
        return;
    /* The server looked at its clock in the middle of the question, as far as is known. */
    int64_t ahead = us / 1000 - (before + (clock_wall() - before) / 2) / NS_PER_MS;
    probe->server->figures.ahead_ms = ahead;
    if (ahead > AHEAD_MAX || ahead < -AHEAD_MAX)
        add_finding(probe, "clock", LEVEL_NOTE,
                    "the server's clock and this host's differ by more than 1 s",
                    "leases count by the server's clock; it must not be set while locks are held");
    else
        add_finding(probe, "clock", LEVEL_FINE, "the server's clock agrees with this host's", "");
}

/* Tells whether reads and writes go to one server. A proxy that splits reads from writes may send
 * reads to another server. Requests for locks say at once that they write, and go to the one that
 * takes the writes. */
static void check_reads(struct probe *probe)
{
    char sql[200], writer[sizeof probe->values[0]];
    bool same = true;

    snprintf(sql, sizeof sql, "START TRANSACTION READ WRITE;SELECT %s", probe->dialect->server);
    bool asked = ask_sql(probe, sql);
    snprintf(writer, sizeof writer, "%s", probe->values[0]);
    asked = ask_sql(probe, "COMMIT") && asked;
    snprintf(sql, sizeof sql, "SELECT %s", probe->dialect->server);
    for (int i = 0; asked && same && i < READS; i++) {
        asked = ask_sql(probe, sql);
        same = value_is(probe, 0, writer);
    }
    if (asked)
        judge_finding(
            probe, "reads", same, "the server that takes the writes answers the reads, too",
            "a proxy has another server answer reads, whose clock differs, and which hears of a "
            "lock later",
            "connect by an address that leads to the server that takes the writes only");
}

/* Returns whether the server takes locks, and adds a finding if not. by_default: a query whose
 * answer is "on" or "1" where new transactions only read. */
static bool check_role(struct probe *probe, const char *by_default)
{
    bool writes = ask_sql(probe, "START TRANSACTION READ WRITE") && ask_sql(probe, "COMMIT");
    bool refuses = !writes && probe->failure.cause == CAUSE_NOT_READY;
    bool declines =
        ask_sql(probe, by_default) && (value_is(probe, 0, "on") || value_is(probe, 0, "1"));

    if (probe->among_hosts)
        add_finding(probe, "role", LEVEL_FINE,
                    refuses || declines ? "read-only: a standby, or demoted; it takes no locks now"
                                        : "it takes writes, and so the locks",
                    "");
    else if (refuses)
        add_finding(probe, "role", LEVEL_UNFIT, "it is read-only, and takes no locks",
                    "connect to the primary");
    else if (declines)
        add_finding(
            probe, "role", LEVEL_UNFIT,
            "transactions are read-only by default, so it takes no locks",
            "connect to the primary; or end that default for the user that rlock logs in as");
    probe->takes_locks = !refuses && !declines;
    return probe->takes_locks;
}

/* -- rights ------------------------------------------------------------------------------------ */

static const char *const verbs[] = {"SELECT", "INSERT", "UPDATE", "DELETE"};

/* Whether the user may do that with the table, by a statement that changes nothing: the server
 * looks at the rights first. */
static bool user_may(struct probe *probe, size_t verb, const char *table)
{
    static const char *const trials[] = {
        "SELECT name FROM %s WHERE 1 = 0", "INSERT INTO %s SELECT * FROM %s WHERE 1 = 0",
        "UPDATE %s SET name = name WHERE 1 = 0", "DELETE FROM %s WHERE 1 = 0"};
    struct sql_text text = text_of(probe);
    const char *trial = trials[verb], *at;

    while ((at = strstr(trial, "%s"))) {
        sql_add(&text, "%.*s@%s", (int)(at - trial), trial, table);
        trial = at + strlen("%s");
    }
    sql_add(&text, "%s", trial);
    bool done = ask_sql(probe, text.out.text);
    strbuf_free(&text.out);
    return done || probe->failure.cause != CAUSE_DENIED;
}

/* Adds the rights that the user lacks on a table, as "SELECT, DELETE on rlock_record"; nothing if
 * it lacks none. */
static void add_lacks(struct probe *probe, const char *table, struct sql_text *lacks)
{
    const char *between = lacks->out.size > 0 ? "; " : "";
    bool some = false;

    for (size_t verb = 0; verb < sizeof verbs / sizeof *verbs; verb++) {
        if (user_may(probe, verb, table))
            continue;
        sql_add(lacks, "%s%s", between, verbs[verb]);
        between = ", ";
        some = true;
    }
    if (some)
        sql_add(lacks, " on @%s", table);
}

/* Tells which rights the user lacks on the tables, with the statements that grant them as advice.
 * Returns whether it has all. */
static bool check_rights(struct probe *probe)
{
    struct sql_text lacks = text_of(probe), grants = text_of(probe);
    char user[sizeof *probe->values] = "the user";

    if (ask_sql(probe, "SELECT CURRENT_USER"))
        snprintf(user, sizeof user, "%s", probe->values[0]);
    for (const char *const *table = probe->dialect->tables; *table; table++)
        add_lacks(probe, *table, &lacks);
    sql_add_grants(&grants, user);
    bool fine = lacks.out.size == 0;
    if (fine)
        diagnosis_add(&probe->server->diagnosis, "rights", LEVEL_FINE, "",
                      "user %s may do all that rlock needs", user);
    else
        diagnosis_add(&probe->server->diagnosis, "rights", LEVEL_UNFIT, grants.out.text,
                      "user %s lacks %s", user, lacks.out.text);
    strbuf_free(&lacks.out);
    strbuf_free(&grants.out);
    return fine;
}

/* Tells whether the tables are there, and whether the user has its rights on them. Returns whether
 * both is so. */
static bool check_tables(struct probe *probe)
{
    struct sql_text trial = text_of(probe);

    sql_add(&trial, "%s", probe->dialect->probe);
    bool there = ask_sql(probe, trial.out.text);
    strbuf_free(&trial.out);
    /* A right is refused only on what is there. */
    if (there || probe->failure.cause == CAUSE_DENIED) {
        const char *const *table = probe->dialect->tables;
        struct sql_text text = text_of(probe);
        for (size_t i = 0; table[i]; i++)
            sql_add(&text, "%s@%s", i == 0 ? "" : table[i + 1] ? ", " : " and ", table[i]);
        sql_add(&text, " %s there", table[1] ? "are" : "is");
        add_finding(probe, "tables", LEVEL_FINE, text.out.text, "");
        strbuf_free(&text.out);
        return check_rights(probe);
    }
    diagnosis_add(&probe->server->diagnosis, "tables", LEVEL_UNFIT, "", "%s", probe->failure.text);
    diagnosis_hint(&probe->server->diagnosis, probe->failure.hint);
    return false;
}

/* -- connections ------------------------------------------------------------------------------- */

/* Tells whether there is room for more connections: how many are taken, how many there can be at
 * most, and how many this user may have, as decimal texts. A text that is not a number that counts
 * is not known; own: then there is no such limit. */
static void tell_connections(struct probe *probe, const char *taken, const char *most,
                             const char *own)
{
    int64_t used, limit, limit_of_user = 0;
    char of_user[60] = "";

    if (!decimal_parse(taken, 0, INT64_MAX, &used) || !decimal_parse(most, 1, INT64_MAX, &limit))
        return;
    if (decimal_parse(own, 1, INT64_MAX, &limit_of_user))
        snprintf(of_user, sizeof of_user, "; this user may have %" PRId64, limit_of_user);
    bool scarce = used > limit / 5 * 4; /* 80 % */
    diagnosis_add(&probe->server->diagnosis, "connections", scarce ? LEVEL_WARNING : LEVEL_FINE,
                  scarce ? "raise max_connections, or the threads of a pool: each holder and each "
                           "waiter takes one"
                         : "",
                  "%" PRId64 " of %" PRId64 " are taken%s", used, limit, of_user);
}

/* -- PostgreSQL -------------------------------------------------------------------------------- */

/* Tells of a PostgreSQL server's standbys: if none is synchronous, a failover may lose locks. */
static void check_pg_replicas(struct probe *probe)
{
    int64_t count = 0;

    if (!ask_sql(probe, "SELECT count(*), count(*) FILTER (WHERE sync_state IN ('sync', 'quorum')) "
                        "FROM pg_stat_replication") ||
        !decimal_parse(probe->values[0], 0, INT64_MAX, &count))
        return;
    probe->server->figures.replicas = count;
    if (count > 0 && value_is(probe, 1, "0"))
        diagnosis_add(&probe->server->diagnosis, "replicas", LEVEL_WARNING,
                      "synchronous_standby_names, if one of them may be promoted",
                      "its standbys are asynchronous: a failover to one of them " LOSES,
                      DURATION_TEXT(probe->plan->lease / 3));
    else
        add_finding(probe, "replicas", LEVEL_FINE,
                    count > 0 ? "a standby is synchronous" : "it has no standby that is connected",
                    "");
}

/* Tells what a PostgreSQL server may lose in a crash. A crash empties unlogged tables
 * (relpersistence 'u'), and a standby has none of their rows. */
static void check_pg_durability(struct probe *probe)
{
    struct sql_text text = text_of(probe);

    sql_add(&text, "SELECT current_setting('fsync'), current_setting('full_page_writes'), "
                   "(SELECT count(*) FROM pg_class WHERE oid = to_regclass('@record') "
                   "AND relpersistence = 'u')");
    bool answered = ask_sql(probe, text.out.text);
    strbuf_free(&text.out);
    if (answered && value_is(probe, 2, "1"))
        add_finding(probe, "durability", LEVEL_WARNING,
                    "the table of locks is unlogged: a crash, and a failover, forgets all locks",
                    "ALTER TABLE ... SET LOGGED");
    else if (answered)
        judge_finding(probe, "durability", !value_is(probe, 0, "off") && !value_is(probe, 1, "off"),
                      "what is acknowledged is on disk",
                      "fsync or full_page_writes is off: a crash loses locks", "turn both on");
}

/* Warns of names in the order of a locale, as tables of rlock 1.0 have them: another version of the
 * C library may have another order, by which the index misses rows. */
static void check_pg_order(struct probe *probe)
{
    struct sql_text text = text_of(probe);

    sql_add(&text,
            "SELECT CASE c.collname WHEN 'default' THEN d.datcollate ELSE c.collname END "
            "FROM pg_attribute a JOIN pg_collation c ON c.oid = a.attcollation, pg_database d "
            "WHERE a.attrelid = to_regclass('@record') AND a.attname = 'name' "
            "AND d.datname = current_database()");
    /* C, C.UTF-8 and POSIX order by bytes. */
    if (ask_sql(probe, text.out.text) && *probe->values[0] && *probe->values[0] != 'C' &&
        !value_is(probe, 0, "POSIX"))
        diagnosis_add(
            &probe->server->diagnosis, "tables", LEVEL_WARNING,
            "change it as rlock-stores(7) says, DATABASES",
            "the table's index has the order of %.60s: on a standby, or after an upgrade, "
            "with another C library it may miss locks that are held",
            probe->values[0]);
    strbuf_free(&text.out);
}

/* Tells whether the tables are in more than one schema. The search_path of a user decides which
 * schema's tables it finds. */
static void check_pg_schemas(struct probe *probe)
{
    struct sql_text text = text_of(probe);

    sql_add(&text, "SELECT o.relnamespace::regnamespace, "
                   "string_agg(c.relnamespace::regnamespace::text, ', ') "
                   "FROM pg_class o JOIN pg_class c ON c.relname = o.relname AND c.oid <> o.oid "
                   "AND c.relkind IN ('r', 'p') WHERE o.oid = to_regclass('@record') GROUP BY 1");
    if (ask_sql(probe, text.out.text) && !value_is(probe, 1, ""))
        diagnosis_add(&probe->server->diagnosis, "tables", LEVEL_WARNING,
                      "ALTER DATABASE ... SET search_path: one schema for all users",
                      "such tables are in schema %.60s, which this user finds, and in %.80s: who "
                      "finds those has locks of their own",
                      probe->values[0], probe->values[1]);
    strbuf_free(&text.out);
}

/* Tells whether a pooler is between this host and the server, which may give each statement to
 * another session: then two connections have one, or one has two. */
static void check_pg_pooler(struct probe *probe)
{
    static const char session[] = "SELECT pg_backend_pid()";
    char first[200], others[200];
    bool stays = true, asked = ask_sql(probe, session);

    snprintf(first, sizeof first, "%s", probe->values[0]);
    asked = asked && ask_by(probe, probe->other, session);
    snprintf(others, sizeof others, "%s", probe->values[0]);
    /* Twice: where two sessions take turns, every second statement has the same one. */
    for (int i = 0; i < 2; i++) {
        asked = asked && ask_sql(probe, session);
        stays = stays && value_is(probe, 0, first);
    }
    if (!asked)
        return;
    judge_finding(probe, "wake-up", strcmp(first, others) != 0 && stays,
                  "waiters are called by NOTIFY",
                  "a connection pooler is in between: waiters poll every 2.5 s",
                  "connect to the server itself, or pool sessions");
}

/* Checks a PostgreSQL server, one finding after the other. */
static void check_postgresql(struct probe *probe)
{
    if (!check_role(probe, "SELECT current_setting('default_transaction_read_only')") &&
        probe->among_hosts)
        return; /* another one of the hosts is to take the locks */
    check_pg_replicas(probe);
    check_pg_durability(probe);
    if (ask_sql(probe, "SELECT (SELECT count(*) FROM pg_stat_activity WHERE backend_type = "
                       "'client backend'), CAST(current_setting('max_connections') AS integer) - "
                       "CAST(current_setting('superuser_reserved_connections') AS integer), "
                       "(SELECT rolconnlimit FROM pg_roles WHERE rolname = current_user)"))
        tell_connections(probe, probe->values[0], probe->values[1], probe->values[2]);
    if (check_tables(probe))
        check_pg_pooler(probe);
    check_pg_schemas(probe);
    check_pg_order(probe);
}

/* -- MySQL and MariaDB ------------------------------------------------------------------------- */

/* Tells whether a MySQL session is strict, as rlock makes it: otherwise a value that is too long is
 * cut, not refused. takes_locks: the answer of check_role(), to warn of a server where only this
 * user can write. */
static void check_my_mode(struct probe *probe, bool takes_locks)
{
    if (!ask_sql(probe, "SELECT @@SESSION.sql_mode, " MY_READ_ONLY))
        return;
    if (strstr(probe->values[0], "STRICT_ALL_TABLES"))
        add_finding(probe, "strict", LEVEL_FINE, "the session is strict", "");
    else
        add_finding(probe, "strict", LEVEL_UNFIT,
                    "the session is not strict, though rlock has made it so: a connection pooler "
                    "is in between",
                    "connect to the server itself, or pool sessions");
    if (value_is(probe, 1, "1") && takes_locks)
        add_finding(probe, "role", LEVEL_WARNING,
                    "the server is read-only: only some users may write", "connect to the primary");
}

/* Returns a status or a variable of semi-synchronous replication, which has one name in MariaDB and
 * in older servers, and another one in MySQL from 8.0.26 on; "": it is not there. */
static const char *semi_sync(struct probe *probe, const char *kind, const char *name,
                             const char *other_name)
{
    char sql[200];

    snprintf(sql, sizeof sql,
             "SHOW GLOBAL %s WHERE Variable_name IN "
             "('rpl_semi_sync_master_%s', 'rpl_semi_sync_source_%s')",
             kind, name, other_name);
    return ask_sql(probe, sql) ? probe->values[1] : "";
}

/* Tells whether each commit waits for a replica: for as long as it takes, and before others see it.
 * Where it may do without one, it tells no client that it does. */
static void judge_my_replicas(struct probe *probe)
{
    struct diagnosis *diagnosis = &probe->server->diagnosis;
    const char *loss = DURATION_TEXT(probe->plan->lease / 3);
    int64_t ms;

    if (strcmp(semi_sync(probe, "STATUS", "status", "status"), "ON") != 0)
        diagnosis_add(
            diagnosis, "replicas", LEVEL_WARNING,
            "rpl_semi_sync, with a timeout that never comes, or Galera or Group Replication",
            "its replicas are asynchronous: a failover to one of them " LOSES, loss);
    else if (decimal_parse(semi_sync(probe, "VARIABLES", "timeout", "timeout"), 0,
                           SEMI_SYNC_LEAST_MS - 1, &ms))
        diagnosis_add(diagnosis, "replicas", LEVEL_WARNING,
                      "rpl_semi_sync_master_timeout (or source) = 4294967295: 49 days",
                      "a commit waits for a replica for %s at most: a failover after that " LOSES,
                      MS_TEXT(ms), loss);
    else if (strcmp(semi_sync(probe, "VARIABLES", "wait_no_slave", "wait_no_replica"), "OFF") == 0)
        diagnosis_add(diagnosis, "replicas", LEVEL_WARNING,
                      "rpl_semi_sync_master_wait_no_slave = ON",
                      "a commit waits for a replica only while there is one: a failover after "
                      "that " LOSES,
                      loss);
    else if (strcmp(semi_sync(probe, "VARIABLES", "wait_point", "wait_point"), "AFTER_COMMIT") == 0)
        diagnosis_add(diagnosis, "replicas", LEVEL_WARNING,
                      "rpl_semi_sync_master_wait_point (or source) = AFTER_SYNC",
                      "other clients see a commit before a replica has it: a failover " LOSES,
                      loss);
    else
        add_finding(probe, "replicas", LEVEL_FINE, "a replica is semi-synchronous", "");
}

/* Tells of a MySQL server's replicas: each has a thread that sends it the binary log. Without the
 * right to see these, there seem to be none. */
static void check_my_replicas(struct probe *probe)
{
    int64_t count;

    if (!ask_sql(probe, "SELECT count(*) FROM information_schema.processlist "
                        "WHERE command LIKE 'Binlog Dump%'") ||
        !decimal_parse(probe->values[0], 0, INT64_MAX, &count))
        return;
    probe->server->figures.replicas = count;
    if (count > 0)
        judge_my_replicas(probe);
    else
        add_finding(probe, "replicas", LEVEL_FINE, "none that this user can see", "");
}

/* Tells whether times in ShedLock's table are safe. A TIMESTAMP has no value for the hour that the
 * session's zone leaves out in spring. */
static void check_my_shedlock(struct probe *probe)
{
    if (!ask_sql(probe,
                 "SELECT data_type, "
                 "TIMESTAMPDIFF(SECOND, CONCAT(YEAR(NOW()), '-01-01'), "
                 "CONCAT(YEAR(NOW()), '-07-01')) - UNIX_TIMESTAMP(CONCAT(YEAR(NOW()), '-07-01')) "
                 "+ UNIX_TIMESTAMP(CONCAT(YEAR(NOW()), '-01-01')) FROM information_schema.columns "
                 "WHERE table_schema = DATABASE() AND table_name = 'shedlock' "
                 "AND column_name = 'lock_until'") ||
        value_is(probe, 0, ""))
        return;
    judge_finding(
        probe, "shedlock", !value_is(probe, 0, "timestamp") || value_is(probe, 1, "0"),
        "table shedlock is there, to be a mirror",
        "lock_until in table shedlock is a TIMESTAMP, and the zone has daylight saving: for an "
        "hour each spring neither rlock nor Java can lock there",
        "ALTER TABLE shedlock MODIFY lock_until DATETIME(3) NOT NULL, or the server in UTC");
}

/* Tells whether the user may wake waiters up. A host that publishes a message ends the sleep of the
 * waiter by another connection. */
static void check_my_wake_up(struct probe *probe)
{
    char sql[240] = "KILL QUERY ";

    if (!ask_sql(probe, "SELECT CONNECTION_ID()"))
        return;
    text_append(sql, sizeof sql, "%s", probe->values[0]);
    judge_finding(
        probe, "wake-up", ask_by(probe, probe->other, sql),
        "waiters sleep in the server, and KILL QUERY wakes them",
        "KILL QUERY fails, as by way of a pooler: waiters look every two seconds instead of "
        "being woken",
        "connect to the server itself, or pool sessions");
}

/* Tells what a MySQL server may lose in a crash. With a binary log (log_bin), what that lacks after
 * a crash is rolled back. */
static void check_my_durability(struct probe *probe)
{
    struct sql_text text = text_of(probe);

    sql_add(&text, "SELECT count(*) FROM information_schema.tables WHERE table_schema = DATABASE() "
                   "AND engine <> 'InnoDB' AND table_name IN "
                   "(REPLACE('@record', '`', ''), REPLACE('@gate', '`', ''))");
    bool is_other = ask_sql(probe, text.out.text) && !value_is(probe, 0, "0");
    strbuf_free(&text.out);
    if (is_other)
        add_finding(probe, "durability", LEVEL_WARNING,
                    "a table of locks is not in InnoDB: it has no transactions, and a crash loses "
                    "locks",
                    "ALTER TABLE ... ENGINE=InnoDB");
    else if (ask_sql(
                 probe,
                 "SELECT @@innodb_flush_log_at_trx_commit <> 1, @@log_bin AND @@sync_binlog <> 1"))
        judge_finding(probe, "durability", value_is(probe, 0, "0") && value_is(probe, 1, "0"),
                      "what is acknowledged is on disk",
                      value_is(probe, 0, "0")
                          ? "there is a binary log, and sync_binlog is not 1: a crash of the host "
                            "undoes the latest locks"
                          : "innodb_flush_log_at_trx_commit is not 1: a crash loses the latest "
                            "locks",
                      "set it to 1");
}

/* Notes of which cluster of Galera the server is a node, if of any, and how many nodes it sees.
 * Parts of a cluster that was started twice have one name, and do not see each other. */
static void note_cluster(struct probe *probe)
{
    if (ask_sql(probe, "SHOW GLOBAL STATUS LIKE 'wsrep_cluster_state_uuid'"))
        snprintf(probe->galera.name, sizeof probe->galera.name, "%.36s", probe->values[1]);
    if (ask_sql(probe, "SHOW GLOBAL STATUS LIKE 'wsrep_cluster_size'"))
        decimal_parse(probe->values[1], 0, INT64_MAX, &probe->galera.nodes);
}

/* Examines a MySQL or MariaDB: whether it takes locks, whether it keeps them, whether it has
 * connections for the waiters, and its tables. */
static void check_mysql(struct probe *probe)
{
#define BY_DEFAULT "SELECT /*M! @@tx_read_only */ /*!50720 @@transaction_read_only */"
    /* One of several hosts that is read-only is left, whoever may write there. */
    bool takes_locks =
        check_role(probe, probe->among_hosts ? BY_DEFAULT " OR " MY_READ_ONLY : BY_DEFAULT);
#undef BY_DEFAULT
    if (!takes_locks && probe->among_hosts)
        return;
    note_cluster(probe);
    check_my_durability(probe);
    check_my_mode(probe, takes_locks);
    check_my_replicas(probe);
    check_my_shedlock(probe);
    if (ask_sql(probe, "SHOW GLOBAL STATUS LIKE 'Threads_connected'")) {
        char taken[sizeof *probe->values];
        snprintf(taken, sizeof taken, "%s", probe->values[1]);
        /* A waiter sleeps in the server, so one of a pool's threads is taken as a connection is. */
        if (ask_sql(probe, "SELECT /*M! IF(@@thread_handling = 'pool-of-threads', "
                           "LEAST(@@thread_pool_max_threads, @@max_connections), */ "
                           "@@max_connections /*M! ) */, @@SESSION.max_user_connections"))
            tell_connections(probe, taken, probe->values[0], probe->values[1]);
    }
    if (check_tables(probe))
        check_my_wake_up(probe);
}

/* ---------------------------------------------------------------------------------------------- */

/* Adds the finding that the server could not be asked, and why (probe->failure). */
static void tell_unreached(struct probe *probe)
{
    struct checked_server *server = probe->server;

    server->cause = probe->failure.cause;
    snprintf(server->said, sizeof server->said, "%s", probe->failure.said);
    diagnosis_add(&server->diagnosis, "reach", LEVEL_UNFIT, "", "%s", probe->failure.text);
    diagnosis_hint(&server->diagnosis, probe->failure.hint);
}

/* Looks at the certificates of each host, and adds a finding about the one that ought to be renewed
 * first, or why no host shows any. */
static void check_certificates(struct probe *probe)
{
    const struct url *all = probe->plan->address->urls;
    struct store_address address = *probe->plan->address;
    struct url url = *all;
    struct tls_expiry first = {0}, one; /* whose NULL: none was seen yet */
    char fault[SAID_SIZE] = "";

    address.urls = &url;
    for (size_t i = 0; i < all->host_count; i++) {
        url.hosts[0] = all->hosts[i];
        if (certificate_look(&address, probe->dialect, &one, fault, sizeof fault) &&
            (!first.whose || one.spare_s < first.spare_s))
            first = one;
    }
    if (first.whose)
        diagnosis_add_expiry(&probe->server->diagnosis, "", &first);
    else if (*fault)
        diagnosis_add(&probe->server->diagnosis, "certificate", LEVEL_NOTE, "",
                      "cannot tell when it ends: %s", fault);
}

/* Tells whether what is sent is encrypted, and until when the server's certificate is good; over a
 * socket there is none. */
static void check_encryption(struct probe *probe)
{
    const struct store_address *address = probe->plan->address;
    const struct url *url = address->urls;

    diagnosis_add_encryption(&probe->server->diagnosis, url, url->password || address->password);
    if (url->tls && !url->path)
        check_certificates(probe);
}

/* Examines a database server: fills in probe->server. One that does not answer its first query has
 * the failure as its only finding. */
static void examine_server(struct probe *probe)
{
    struct checked_server *server = probe->server;
    bool is_mysql = probe->dialect->is_mysql;

    if (!ask_sql(probe,
                 is_mysql ? "SELECT VERSION()" : "SELECT current_setting('server_version')")) {
        tell_unreached(probe);
        return;
    }
    const char *version = probe->values[0];
    server->reached = true;
    snprintf(server->figures.software, sizeof server->figures.software, "%s",
             strstr(version, "MariaDB") ? "mariadb"
             : is_mysql                 ? "mysql"
                                        : "postgresql");
    snprintf(server->figures.version, sizeof server->figures.version, "%.*s",
             (int)strcspn(version, " -"), version);
    check_ping(probe);
    check_encryption(probe);
    check_clock(probe);
    check_reads(probe);
    if (is_mysql)
        check_mysql(probe);
    else
        check_postgresql(probe);
}

/* -- etcd, drivers ----------------------------------------------------------------------------- */

/* Returns the level that a host names so; one that is not known is the worst. */
static enum level level_of(const char *word)
{
    return strcmp(word, "fine") == 0      ? LEVEL_FINE
           : strcmp(word, "note") == 0    ? LEVEL_NOTE
           : strcmp(word, "warning") == 0 ? LEVEL_WARNING
                                          : LEVEL_UNFIT;
}

/* Has the host do these tests (host/driver_kit, host/etcd_doctor), and takes a finding from each:
 * its level, a text, and advice. After one that is unfit, the others would tell nothing. */
static void examine_by_host(struct probe *probe, const char *const *tests)
{
    const struct store_address *address = probe->plan->address;
    struct checked_server *server = probe->server;

    if (!ask_sql(probe, "ping")) {
        tell_unreached(probe);
        return;
    }
    server->reached = true;
    snprintf(server->figures.software, sizeof server->figures.software, "%s",
             address->urls->kind->is_driven ? address->urls->hosts[0].name
                                            : address->urls->kind->scheme);
    snprintf(server->figures.version, sizeof server->figures.version, "%.*s",
             (int)sizeof server->figures.version - 1, probe->values[1]);
    check_ping(probe);
    if (address->urls->kind->secure)
        check_encryption(probe);
    for (; *tests && server->diagnosis.worst != LEVEL_UNFIT; tests++) {
        if (ask_sql(probe, *tests))
            add_finding(probe, *tests, level_of(probe->values[0]), probe->values[1],
                        probe->values[2]);
        else
            add_finding(probe, *tests, LEVEL_UNFIT, probe->failure.text, "");
    }
}

/* ---------------------------------------------------------------------------------------------- */

/* Examines the server that the URL leads to; tests: those that its host does, or NULL. False with a
 * message in "fault": the examination could not be begun. */
static bool check_url(struct probe *probe, const struct url *url, const char *const *tests,
                      struct checkup *checkup, char *fault, size_t size)
{
    static const struct redis_session_events events = {.done = take_replies};
    struct store_address address = *probe->plan->address;
    /* The plan with this URL in place of the whole one. */
    const struct checkup_plan plan = {&address, probe->plan->lease}, *whole = probe->plan;

    address.urls = url;
    probe->plan = &plan;
    probe->loop = loop_new();
    probe->session = redis_session_new(probe->loop, &address, &events, probe, fault, size);
    probe->other = probe->session
                       ? redis_session_new(probe->loop, &address, &events, probe, fault, size)
                       : NULL;
    bool opened = probe->other != NULL;
    if (opened) {
        probe->server = checkup_add(checkup, url);
        probe->takes_locks = false;
        probe->galera = (struct galera){0};
        if (tests)
            examine_by_host(probe, tests);
        else
            examine_server(probe);
    }
    if (probe->session)
        redis_session_free(probe->session);
    if (probe->other)
        redis_session_free(probe->other);
    loop_free(probe->loop);
    probe->plan = whole;
    return opened;
}

/* The hosts of a URL: those that take locks, and what is wrong with them. */
struct hosts {
    size_t writers, unreached;
    char names[URL_TEXT_SIZE];
    struct galera galera; /* of each that takes locks; in none: they do not agree */
    enum level worst;
};

/* Tells of all hosts of a URL together: exactly one must take writes, or locks in one are not seen
 * in another, unless they are nodes of one cluster. */
static void judge_hosts(const struct url *url, const struct hosts *hosts, struct diagnosis *whole)
{
    if (hosts->writers == 0)
        diagnosis_add(whole, "hosts", LEVEL_UNFIT, "promote one of them",
                      "none of the %zu hosts takes writes", url->host_count);
    else if (hosts->writers > 1 && *hosts->galera.name &&
             (int64_t)hosts->writers <= hosts->galera.nodes)
        diagnosis_add(whole, "hosts", hosts->worst, hosts->worst > LEVEL_NOTE ? "see above" : "",
                      "%zu hosts take writes, as nodes of one Galera cluster: %s", hosts->writers,
                      hosts->names);
    else if (hosts->writers > 1)
        diagnosis_add(whole, "hosts", LEVEL_WARNING,
                      "stop the one that is not the primary, or make it read-only",
                      "%zu hosts take writes: %s; an rlock that reaches only one of them "
                      "does not see the locks of another",
                      hosts->writers, hosts->names);
    else
        diagnosis_add(whole, "hosts", hosts->worst, hosts->worst > LEVEL_NOTE ? "see above" : "",
                      "of %zu hosts, %s takes the locks", url->host_count, hosts->names);
    if (hosts->unreached > 0)
        diagnosis_add(whole, "reach", LEVEL_WARNING, "",
                      "%zu of the hosts cannot be reached, or not be used", hosts->unreached);
}

/* Checks each host of the URL by itself, and then all of them: whether there is one that takes
 * locks, and only one. False with a message in "fault": the check could not be begun. */
static bool check_hosts(struct probe *probe, const struct url *all, struct checkup *checkup,
                        char *fault, size_t size)
{
    struct hosts hosts = {0};

    probe->among_hosts = true;
    for (size_t i = 0; i < all->host_count; i++) {
        struct url url = *all;
        url.hosts[0] = all->hosts[i];
        url.host_count = 1;
        if (!check_url(probe, &url, NULL, checkup, fault, size))
            return false;
        const struct checked_server *server = &checkup->servers[i];
        hosts.unreached += !server->reached;
        if (!probe->takes_locks)
            continue;
        if (hosts.writers == 0) /* this is the first one that takes locks */
            hosts.galera = probe->galera;
        else if (strcmp(hosts.galera.name, probe->galera.name) != 0 ||
                 hosts.galera.nodes != probe->galera.nodes)
            hosts.galera = (struct galera){0};
        text_append(hosts.names, sizeof hosts.names, "%s", hosts.writers++ > 0 ? ", " : "");
        url_append_hosts(&url, hosts.names, sizeof hosts.names);
        if (server->diagnosis.worst > hosts.worst)
            hosts.worst = server->diagnosis.worst;
    }
    judge_hosts(all, &hosts, &checkup->whole);
    return true;
}

bool hosted_check(const struct checkup_plan *plan, const struct sql_dialect *dialect,
                  const char *const *tests, struct checkup *checkup, char *fault, size_t size)
{
    const struct url *url = plan->address->urls;
    struct probe probe = {.plan = plan, .dialect = dialect};

    return dialect && url->host_count > 1 ? check_hosts(&probe, url, checkup, fault, size)
                                          : check_url(&probe, url, tests, checkup, fault, size);
}
