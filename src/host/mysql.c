/* Records in MySQL and MariaDB.
 *
 * A key is locked by a row of the table "gate", whose number is made of the key's name. All of
 * its rows are there from the start, so that a key without a record is locked as any other is,
 * and no gap between rows is ever locked, on which two that write new records would wait for
 * each other.
 *
 * Messages are rows that are committed together with the records. A waiter sleeps in the server, by
 * a statement that looks for messages and, if there is none, goes to sleep. A client that has
 * committed a message finds that statement in the list of processes and ends it: either it has
 * begun by then, or it will see the row. Where this fails, it ends by itself soon. */
#include <errno.h>
#include <inttypes.h>
#include <mysqld_error.h>
#include <stdio.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "base/mem.h"
#include "host/database.h"
#include "host/mysql_connection.h"

/* How many rows the table of gates has (store/hosted/dialect.c). */
#define GATES 1000
/* For a second connection. */
#define CONNECT_SECONDS 2
/* How long a message is kept, ms. */
#define MESSAGE_MS 60000
/* How long a statement sleeps in the server. If it does not answer within OVERDUE after that, the
 * connection is broken. */
#define SLEEP_NS   (2 * NS_PER_SEC)
#define OVERDUE_NS (5 * NS_PER_SEC)
/* The pause after a sleep that ended too early without a message: the server may not let it
 * sleep. */
#define RESTLESS_NS (200 * NS_PER_MS)
/* How often a client that does not sleep looks for messages. */
#define LOOK_NS NS_PER_SEC

/* -- the connection of this process ------------------------------------------------------------ */

static MYSQL *connection;
static struct host_target target; /* for a second connection */
static bool has_several_hosts;    /* another one is found if this one is demoted */

static bool asleep; /* the statement that waits for messages is under way; nothing else can be */
static struct moment asleep_since;
static bool is_called;           /* a message may have come: look for it */
static struct moment look_at;    /* when to look next without a sleep */
static struct moment sleep_from; /* no sleep begins before this moment */
static enum host_ears hearing;   /* how soon messages must be heard */

/* -- requests ---------------------------------------------------------------------------------- */

/* Sends the statements, and returns how many of them were done. taker: takes the rows that come up
 * to the commit; behind: those that come behind it. */
static unsigned send_all(const struct sql_text *request, const struct database_taker *taker,
                         const struct database_taker *behind)
{
    const struct strbuf *text = &request->out;
    unsigned done = 0;
    /* Without the last semicolon: behind that there is no statement. */
    bool more = mysql_real_query(connection, text->text, text->size - 1) == 0;

    while (more && my_take_rows(connection,
                                request->commits && done >= request->commits ? behind : taker)) {
        done++;
        more = mysql_next_result(connection) == 0;
    }
    return done;
}

/* Returns the outcome of a failed request, HOST_AGAIN or HOST_FAILED, and fills the fault. done:
 * how many of its statements were done. */
static enum host_outcome outcome_of(const struct sql_text *request, unsigned done,
                                    struct host_fault *fault)
{
    unsigned number = mysql_errno(connection);
    bool unheard = my_is_of_client(number);
    /* The COMMIT may have been done: the server's word is lost, or it is the COMMIT that failed.
     * The server undoes what it refuses in front of that with all else. */
    bool commits = request->commits && (unheard || (number && done + 1 == request->commits));

    *fault = (struct host_fault){.broken = false};
    my_fail(connection, &fault->why);
    fault->broken = wire_error_breaks(fault->why.error) || wire_error_leaves(fault->why.error);
    /* Without an error: the server was told between two statements to end what runs, and has ended
     * the request behind the first one. */
    if (number == 0 || my_is_undone(connection))
        return HOST_AGAIN;
    /* A server that cannot serve undoes a COMMIT that it refuses. */
    commits &= !wire_error_leaves(fault->why.error);
    fault->why.maybe_done = commits;
    bool conflict = fault->why.error == WIRE_CONFLICT || number == ER_QUERY_INTERRUPTED;
    return conflict && !commits ? HOST_AGAIN : HOST_FAILED;
}

/* -- sleeping ---------------------------------------------------------------------------------- */

/* The number of a channel as the column stores it. */
static int64_t channel_number(struct slice name)
{
    return (int64_t)database_number(name);
}

/* Adds a condition: the messages of the clients' channels that have not been told. */
static void add_unheard(struct sql_text *request)
{
    for (size_t i = 0; i < host_channels.count; i++)
        sql_add(request, "%s(name=%" PRId64 " AND id>%" PRIu64 ")", i > 0 ? " OR " : "",
                channel_number(host_channels.at[i].name), host_channels.at[i].heard);
}

/* Whether something has come, or the end of the connection. */
static bool is_readable(void)
{
    char byte;

    return recv(mysql_get_socket(connection), &byte, 1, MSG_PEEK | MSG_DONTWAIT) >= 0 ||
           (errno != EAGAIN && errno != EINTR);
}

/* Takes the result of the statement that waits for messages, which has ended, or is about to:
 * is_called says whether to look for messages. */
static void end_sleep(void)
{
    struct moment now = moment_now();
    MYSQL_RES *result =
        mysql_read_query_result(connection) == 0 ? mysql_store_result(connection) : NULL;
    MYSQL_ROW row = result ? mysql_fetch_row(result) : NULL;

    asleep = false;
    is_called = !row || !row[0] || strcmp(row[0], "0") != 0; /* "0": it slept to its end */
    if (moment_until(asleep_since, now) < SLEEP_NS / 2)      /* the server may not let it sleep */
        sleep_from = moment_plus(now, RESTLESS_NS);
    mysql_free_result(result);
}

/* Ends this client's own sleep, if it sleeps, so that it can ask: by way of another connection. If
 * that cannot be made, the sleep ends by itself soon, and this waits for that. */
static void end_own_sleep(void)
{
    struct host_error fault;
    char sql[40];

    if (!asleep)
        return;
    MYSQL *other = is_readable() ? NULL : my_connect(&target, 0, &fault);
    snprintf(sql, sizeof sql, "KILL QUERY %lu", mysql_thread_id(connection));
    bool ended = other && mysql_query(other, sql) == 0;
    if (other)
        mysql_close(other);
    end_sleep();
    if (ended) /* so it was not short for want of permission */
        sleep_from = (struct moment){0};
}

/* -- waking ------------------------------------------------------------------------------------ */

/* Clients that sleep for a message, by the number of their connection. */
struct sleepers {
    uint64_t *at;
    size_t count;
};

/* For my_take_rows(): notes a client that sleeps for a message. */
static void take_sleeper(void *arg, const struct slice *values, size_t count)
{
    struct sleepers *sleepers = arg;

    (void)count;
    *MEM_APPEND(sleepers->at, sleepers->count) = strtoull(values[0].at, NULL, 10);
}

/* Wakes the sleepers, and frees their list. A failure is not reported: a sleep ends by itself
 * soon. */
static void wake_sleepers(struct sleepers *sleepers)
{
    size_t next = 0;

    while (next < sleepers->count) {
        struct sql_text request = database_request();
        for (size_t i = next; i < sleepers->count; i++) {
            sql_add(&request, "KILL QUERY %" PRIu64, sleepers->at[i]);
            sql_end(&request);
        }
        /* A sleeper that has gone ends the request: the next request wakes those behind it. */
        next += send_all(&request, NULL, NULL) + 1;
        strbuf_free(&request.out);
    }
    free(sleepers->at);
}

enum host_outcome database_ask(struct sql_text *request, const struct database_taker *taker,
                               struct host_fault *fault)
{
    enum host_outcome outcome = HOST_DONE;
    struct sleepers sleepers = {0};
    /* The rows behind a commit are the clients that sleep for its messages. */
    const struct database_taker behind = {take_sleeper, &sleepers};

    end_own_sleep();
    unsigned done = send_all(request, taker, &behind);
    /* The request may have met an end that was meant for a sleep that was over already. */
    if (done == 0 && mysql_errno(connection) == ER_QUERY_INTERRUPTED)
        done = send_all(request, taker, &behind);
    if (done < (request->commits ? request->commits : request->count))
        outcome = outcome_of(request, done, fault);
    strbuf_free(&request->out);
    wake_sleepers(&sleepers);
    return outcome;
}

/* -- hearing ----------------------------------------------------------------------------------- */

/* For database_ask(): tells a message to its channel. A row has the channel's number, the message's
 * own, and the text. */
static void take_message(void *arg, const struct slice *values, size_t count)
{
    int64_t number = strtoll(values[0].at, NULL, 10);
    struct slice name = {0};

    (void)arg;
    (void)count;
    for (size_t i = 0; i < host_channels.count; i++) {
        struct host_channel *channel = &host_channels.at[i];
        if (channel_number(channel->name) != number)
            continue;
        channel->heard = strtoull(values[1].at, NULL, 10);
        sleep_from = (struct moment){0}; /* the sleep was short for a good reason */
        name = channel->name;
    }
    if (name.at)
        host_tell(name, values[2]);
}

/* Reads the messages that have come for the channels which clients listen to, and notes when to
 * look next, as MySQL does not tell of new ones. Returns false if the connection broke. */
static bool look_for_messages(void)
{
    const struct database_taker taker = {take_message, NULL};
    struct sql_text request = database_request();
    struct host_fault fault;

    is_called = false;
    look_at = moment_plus(moment_now(), LOOK_NS);
    if (host_channels.count == 0)
        return true;
    sql_add(&request, "SELECT name, id, text FROM @message WHERE ");
    add_unheard(&request);
    database_say(&request, " ORDER BY id");
    return database_ask(&request, &taker, &fault) == HOST_DONE || !fault.broken;
}

int database_poll_fd(enum host_ears ears, int *ms)
{
    struct moment now = moment_now(), due = MOMENT_NEVER;

    *ms = -1;
    hearing = ears;
    if (hearing == HOST_ALERT && !asleep && !is_called && moment_reached(sleep_from, now)) {
        /* A client that tells a message looks for a statement that begins so: add_sleepers(). */
        struct sql_text request = database_request();
        sql_add(&request, "SELECT IF(EXISTS(SELECT 1 FROM @message WHERE ");
        add_unheard(&request);
        sql_add(&request, "),2,SLEEP(%d))", (int)(SLEEP_NS / NS_PER_SEC));
        mysql_send_query(connection, request.out.text, request.out.size);
        strbuf_free(&request.out);
        asleep = true;
        asleep_since = now;
    }
    if (asleep)
        due = moment_plus(asleep_since, SLEEP_NS + OVERDUE_NS);
    else if (is_called)
        due = now;
    else if (hearing != HOST_NO_LISTENER)
        due = hearing == HOST_ALERT ? sleep_from : look_at;
    if (due.ns != MOMENT_NEVER.ns)
        *ms = moment_reached(due, now) ? 0 : (int)(moment_until(now, due) / NS_PER_MS + 1);
    return mysql_get_socket(connection);
}

bool database_read_messages(void)
{
    struct moment now = moment_now();

    if (is_readable()) {
        if (!asleep) /* nothing was asked, so it is the end of the connection */
            return false;
        end_sleep();
    } else if (asleep) { /* overdue: the connection is broken */
        return !moment_reached(moment_plus(asleep_since, SLEEP_NS + OVERDUE_NS), now);
    }
    bool is_to_look = is_called || (hearing == HOST_PATIENT && moment_reached(look_at, now));
    return !is_to_look || look_for_messages();
}

/* -- statements -------------------------------------------------------------------------------- */

void database_add_text(struct sql_text *request, const char *text)
{
    struct strbuf *out = &request->out;
    size_t size = strlen(text);

    strbuf_putc(out, '\'');
    char *to = strbuf_room(out, 2 * size + 1);
    strbuf_grew(out, mysql_real_escape_string(connection, to, text, size));
    strbuf_putc(out, '\'');
}

/* Adds no statement that listens, as MySQL has none, but one that tells the channel's latest
 * message, a row 'm': those behind that are looked for. */
void database_add_listening(struct sql_text *request, struct slice channel)
{
    int64_t number = channel_number(channel);

    sql_add(request, "SELECT 'm', %" PRId64 ", MAX(id) FROM @message WHERE name = %" PRId64, number,
            number);
}

/* Adds FROM and WHERE of a query for the clients that sleep for a message of the unit, by the
 * statement that database_poll_fd() has them sleep in. A user sees its own connections, and may end
 * their statements. */
static void add_sleepers(struct sql_text *request, const struct unit *unit)
{
    for (size_t i = 0; i < unit->message_count; i++)
        sql_add(request, "%s info LIKE 'SELECT IF(EXISTS(%%(name=%" PRId64 " AND %%'%s",
                i == 0 ? " FROM information_schema.processlist WHERE (" : " OR",
                channel_number(unit->messages[i].channel), i + 1 == unit->message_count ? ")" : "");
}

void database_add_commit(struct sql_text *request, const struct unit *unit)
{
    struct strbuf *out = &request->out;

    for (size_t i = 0; i < unit->message_count; i++) {
        sql_add(request, "%s(%" PRId64 ",%" PRId64 ",",
                i == 0 ? "INSERT INTO @message (name,expires,text) VALUES " : ",",
                channel_number(unit->messages[i].channel), unit->now_us / 1000 + MESSAGE_MS);
        database_add_bytes(request, unit->messages[i].text);
        strbuf_putc(&request->out, ')');
    }
    if (unit->message_count > 0)
        sql_end(request);
    database_say(request, "COMMIT");
    request->commits = request->count;
    if (unit->message_count == 0)
        return;
    /* The first sleeper that waits for one of the messages is woken at once; database_ask() gets
     * the others as rows, and wakes them. Without a sleeper the request ends at the KILL. */
    strbuf_puts(out, "SELECT MIN(id) INTO @rlock_sleeper");
    add_sleepers(request, unit);
    sql_end(request);
    database_say(request, "KILL QUERY @rlock_sleeper");
    strbuf_puts(out, "SELECT id");
    add_sleepers(request, unit);
    database_say(request, " AND id > @rlock_sleeper");
}

/* MySQL has no limit of its own for how long a client stands still between two requests of a
 * transaction: wait_timeout is that of a connection that does nothing at all. The isolation is
 * named here although the session has it: without it two would hold one lock. */
static const char *const begin[] = {"SET SESSION wait_timeout = " MY_IDLE_TIMEOUT,
                                    "SET TRANSACTION ISOLATION LEVEL READ COMMITTED",
                                    "START TRANSACTION READ WRITE", NULL};

/* Adds only the question whether transactions are read-only: the session has all settings. */
void database_add_settings(struct sql_text *request)
{
    strbuf_puts(&request->out, "SELECT 'o', " MY_TRANSACTION("@@", "read_only"));
    if (has_several_hosts)
        strbuf_puts(&request->out, " OR " MY_READ_ONLY);
    sql_end(request);
}

#define GATE "SELECT 'g' FROM @gate WHERE name="

const struct database database = {.dialect = &sql_mysql,
                                  .gates = GATES,
                                  .begin = begin,
                                  .unlimit = "SET SESSION wait_timeout = " MY_REST_TIMEOUT,
                                  .purge_every = 64,
                                  .lock = {{GATE, " LOCK IN SHARE MODE"}, {GATE, " FOR UPDATE"}},
                                  .listens_always = true};

/* -- connecting -------------------------------------------------------------------------------- */

void database_take(struct database_attempt *attempt, const struct host_target *given)
{
    connection = attempt->made;
    target = *given;
    target.seconds = CONNECT_SECONDS;
    has_several_hosts = attempt->asks;
    strbuf_free(&attempt->text);
    free(attempt);
}
