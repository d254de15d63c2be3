#include "store/redis/greeting.h"
#include "net/conn.h"
#include "base/decimal.h"
#include "rules/error.h"
#include "rules/reply.h"
#include "rules/wire_error.h"
#include "store/url_parts.h"

#include <hiredis/hiredis.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* No server has more. */
#define REPLICAS_MAX 65536

/* In this order. ASKING has no effect here, but only the nodes of a Cluster understand it. */
enum step {
    STEP_AUTH,
    STEP_NAME,
    STEP_SELECT,
    STEP_ASKING,
    STEP_ROLE,
    STEP_TIME,
    STEP_INFO,
    STEP_END
};

/* Returns the step behind "after" that this server and user need; STEP_END: there is none. */
static int next_step(const struct redis_greeting *greeting, int after)
{
    int step = after + 1;

    while ((step == STEP_NAME && !greeting->named) || (step == STEP_SELECT && greeting->db == 0) ||
           (step == STEP_ASKING && !greeting->cluster) ||
           (step == STEP_INFO && !greeting->identity))
        step++;
    return step;
}

int redis_greeting_left(const struct redis_greeting *greeting)
{
    int left = 0;

    for (int step = greeting->step; (step = next_step(greeting, step)) < STEP_END;)
        left++;
    return left;
}

void redis_greeting_begin(struct redis_greeting *greeting, const struct url *url,
                          const char *password, const char *client, enum redis_identity identity,
                          struct strbuf *bytes)
{
    char db[16];
    const char *user = url->user;
    const char *commands[STEP_END][3] = {
        [STEP_AUTH] = {"AUTH", user ? user : password, user ? password : NULL},
        [STEP_NAME] = {"CLIENT", "SETNAME", client},
        [STEP_SELECT] = {"SELECT", db},
        [STEP_ASKING] = {"ASKING"},
        [STEP_ROLE] = {"ROLE"},
        [STEP_TIME] = {"TIME"},
        [STEP_INFO] = {"INFO", "server"},
    };

    *greeting = (struct redis_greeting){.db = url->db,
                                        .named = *client,
                                        .cluster = url->kind->is_sharded,
                                        .identity = identity,
                                        .replicas = -1};
    greeting->step = password ? STEP_AUTH : next_step(greeting, STEP_AUTH);
    snprintf(db, sizeof db, "%d", url->db);
    for (int step = greeting->step; step < STEP_END; step = next_step(greeting, step)) {
        int argc = 1;
        while (argc < 3 && commands[step][argc])
            argc++;
        conn_encode(bytes, argc, commands[step]);
    }
}

/* Appends OPEN with its words, as do_open() of host/serve.c takes them. */
static void add_open(const struct redis_greeting *greeting, const struct store_address *address,
                     const char *password, int64_t ms, struct strbuf *bytes)
{
    const struct url *url = address->urls;
    const char *key = address->tls.key.path ? address->tls.key.path : address->tls.cert.path;
    const char *host = url->path ? url->path : url->hosts[0].name;
    char limit[24], port[16], hosts[URL_HOSTS_MAX * 280] = "";
    const char *open[] = {"OPEN",
                          HOST_PROTOCOL,
                          limit,
                          url->host_count > 1 ? hosts : host,
                          port,
                          url->user,
                          password,
                          url->database,
                          url->table,
                          url->tls ? "1" : "0",
                          address->tls.ca.path,
                          address->tls.cert.path,
                          key,
                          *address->client ? address->client : "rlock",
                          greeting->address,
                          url->margin};

    if (url->host_count > 1)
        url_append_hosts(url, hosts, sizeof hosts);
    snprintf(limit, sizeof limit, "%" PRId64, ms);
    snprintf(port, sizeof port, "%d", url->hosts[0].port);
    for (size_t i = 0; i < sizeof open / sizeof *open; i++)
        if (!open[i])
            open[i] = "";
    conn_encode(bytes, sizeof open / sizeof *open, open);
}

void redis_greeting_begin_host(struct redis_greeting *greeting, const struct store_address *address,
                               const char *password, int64_t ms, struct strbuf *bytes)
{
    struct redis_greeting begun = {.step = STEP_AUTH, .replicas = -1};
    const char *role[] = {"ROLE"}, *time[] = {"TIME"};

    memcpy(begun.address, greeting->address, sizeof begun.address);
    *greeting = begun;
    add_open(greeting, address, password, ms, bytes);
    conn_encode(bytes, 1, role);
    conn_encode(bytes, 1, time);
}

bool redis_greeting_is_master(const struct redis_greeting *greeting, const struct redisReply *reply,
                              struct answer *answer)
{
    const char *role = redis_reply_string(reply, 0), *master = redis_reply_string(reply, 1);

    if (!role || strcmp(role, "master") == 0)
        return true;
    bool replica = strcmp(role, "slave") == 0;
    *answer = (struct answer){.verdict = VERDICT_UNKNOWN};
    /* In a quorum it is a mistake of the user, not a server that fails. */
    answer->cause = !replica                                ? CAUSE_UNFIT
                    : greeting->identity == IDENTITY_NEEDED ? CAUSE_MISFIT
                                                            : CAUSE_NOT_READY;
    if (replica && master && reply->elements > 2) {
        snprintf(answer->text, sizeof answer->text,
                 "this is a read-only replica of %s:%" PRId64 "; locks live on the master", master,
                 redis_reply_count(reply, 2));
    } else if (strcmp(role, "sentinel") == 0) {
        /* A Sentinel's ROLE has the names of the masters that it watches. */
        const redisReply *names = reply->elements > 1 ? reply->element[1] : NULL;
        const char *name = names ? redis_reply_string(names, 0) : NULL;
        snprintf(answer->text, sizeof answer->text,
                 "this is a Sentinel, not a server that keeps data: write sentinel://HOST:PORT/%s",
                 name ? name : "MASTER");
    } else {
        snprintf(answer->text, sizeof answer->text, "this is a Redis %.20s, not a master", role);
    }
    return false;
}

int redis_greeting_replicas(const struct redisReply *role)
{
    const char *word = redis_reply_string(role, 0);
    const redisReply *replicas = word ? redis_reply_list(role, 2) : NULL;

    if (!replicas || strcmp(word, "master") != 0)
        return -1;
    return replicas->elements < REPLICAS_MAX ? (int)replicas->elements : REPLICAS_MAX;
}

/* Whether the greeting continues after that error of its present step. A user who may not use ROLE,
 * TIME or INFO, or whose server lacks them, loses a check, not the lock; a connection without a
 * name loses nothing. But a server that takes no clients says so in reply to the first command. */
static bool does_without(const struct redis_greeting *greeting, const char *error)
{
    bool missing = strncmp(error, "NOPERM", 6) == 0 || strstr(error, "unknown command");

    if (greeting->step == STEP_NAME)
        return missing ||
               (strncmp(error, "ERR ", 4) == 0 && redis_error_class(error) == REDIS_ERROR_OTHER);
    return missing && (greeting->step == STEP_ROLE || greeting->step == STEP_TIME ||
                       (greeting->step == STEP_INFO && greeting->identity == IDENTITY_WANTED));
}

/* Takes what a host's reply to OPEN tells: "OK N", how often a waiter may ask in ms, or "OK
 * ADDRESS", where it found the database. */
static void hear_host(struct redis_greeting *greeting, const struct redisReply *reply)
{
    if (reply->type != REDIS_REPLY_STATUS || strncmp(reply->str, "OK ", 3) != 0)
        return;
    const char *words = reply->str + 3;
    if (!decimal_parse(words, 1, INT32_MAX, &greeting->poll_ms))
        snprintf(greeting->address, sizeof greeting->address, "%s", words);
}

/* Notes the process of the server. INFO has run_id:0123456789abcdef0123456789abcdef01234567 among
 * other lines. */
static void hear_run_id(struct redis_greeting *greeting, const struct redisReply *reply)
{
    static const char name[] = "\nrun_id:";
    const char *line = reply->type == REDIS_REPLY_STRING ? strstr(reply->str, name) : NULL;
    const char *id = line ? line + strlen(name) : "";

    snprintf(greeting->node, MEMBER_SERVER_SIZE, "%.*s", (int)strcspn(id, "\r\n"), id);
}

enum greeting_state redis_greeting_hear(struct redis_greeting *greeting,
                                        const struct redisReply *reply, struct answer *answer)
{
    if (reply->type == REDIS_REPLY_ERROR && !does_without(greeting, reply->str)) {
        *answer = (struct answer){0};
        redis_error_answer(reply->str, answer);
        return GREETING_REFUSED;
    }
    switch (greeting->step) {
    case STEP_AUTH: hear_host(greeting, reply); break; /* a server's OK has no words to take */
    case STEP_ROLE:
        /* A Cluster's replica refers to its master later, in reply to a call. */
        if (!greeting->cluster && !redis_greeting_is_master(greeting, reply, answer))
            return GREETING_REFUSED;
        greeting->replicas = redis_greeting_replicas(reply);
        break;
    case STEP_TIME: greeting->clock_ms = redis_reply_time(reply) / 1000; break; /* 0: none */
    case STEP_INFO: hear_run_id(greeting, reply); break;
    default: break;
    }
    greeting->step = next_step(greeting, greeting->step);
    return greeting->step == STEP_END ? GREETING_DONE : GREETING_GOING;
}
