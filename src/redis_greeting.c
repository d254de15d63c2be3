/* The greeting of a Redis server. */
#include "redis_greeting.h"
#include "conn.h"
#include "redis_error.h"
#include "redis_reply.h"

#include <hiredis/hiredis.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* In this order. ASKING is without effect on what follows, but the nodes of a Cluster alone understand it. */
enum step { STEP_AUTH, STEP_SELECT, STEP_ASKING, STEP_ROLE, STEP_TIME, STEP_INFO, STEP_END };

static int next_step(const struct redis_greeting *greeting, int after)
{
    int step = after + 1;

    while ((step == STEP_SELECT && greeting->db == 0) ||
           (step == STEP_ASKING && !greeting->cluster) || (step == STEP_INFO && !greeting->member))
        step++;
    return step;
}

void redis_greeting_begin(struct redis_greeting *greeting, const struct url *url,
                          const char *password, bool member, char **bytes, size_t *size)
{
    const char *auth[] = {"AUTH", url->user ? url->user : password, password};
    char db[16];
    const char *select[] = {"SELECT", db}, *asking[] = {"ASKING"}, *role[] = {"ROLE"};
    const char *time[] = {"TIME"}, *info[] = {"INFO", "server"};

    *greeting = (struct redis_greeting){.db = url->db,
                                        .cluster = strcmp(url->scheme, "cluster") == 0,
                                        .member = member,
                                        .replicas = -1};
    greeting->step = password ? STEP_AUTH : next_step(greeting, STEP_AUTH);
    snprintf(db, sizeof db, "%d", url->db);
    if (password)
        conn_encode(bytes, size, url->user ? 3 : 2, auth, NULL);
    if (url->db != 0)
        conn_encode(bytes, size, 2, select, NULL);
    if (greeting->cluster)
        conn_encode(bytes, size, 1, asking, NULL);
    conn_encode(bytes, size, 1, role, NULL);
    conn_encode(bytes, size, 1, time, NULL);
    if (member)
        conn_encode(bytes, size, 2, info, NULL);
}

static const char *string_at(const redisReply *reply, size_t i)
{
    return reply->type == REDIS_REPLY_ARRAY && i < reply->elements &&
                   reply->element[i]->type == REDIS_REPLY_STRING
               ? reply->element[i]->str
               : NULL;
}

/* A Sentinel tells the names of the masters that it watches. */
static void describe_sentinel(const redisReply *reply, char *text, size_t size)
{
    const redisReply *names = reply->elements > 1 ? reply->element[1] : NULL;
    const char *name = names ? string_at(names, 0) : NULL;

    snprintf(text, size,
             "this is a Sentinel, not a server that keeps data: write sentinel://HOST:PORT/%.60s",
             name ? name : "MASTER");
}

static bool is_master(struct redis_greeting *greeting, const redisReply *reply,
                      struct answer *answer)
{
    const char *role = string_at(reply, 0), *master = string_at(reply, 1);

    if (!role || strcmp(role, "master") == 0)
        return true;
    answer->verdict = VERDICT_UNKNOWN;
    greeting->replica = strcmp(role, "slave") == 0;
    /* In a quorum, a mistake, and not a server that fails. */
    answer->cause = greeting->replica && greeting->member ? CAUSE_MISFIT : CAUSE_UNFIT;
    if (greeting->replica && master && reply->elements > 2)
        snprintf(answer->text, sizeof answer->text,
                 "this is a read-only replica of %.80s:%lld; locks live on the master", master,
                 reply->element[2]->integer);
    else if (strcmp(role, "sentinel") == 0)
        describe_sentinel(reply, answer->text, sizeof answer->text);
    else
        snprintf(answer->text, sizeof answer->text, "this is a Redis %.20s, not a master", role);
    return false;
}

int redis_greeting_replicas(const struct redisReply *role)
{
    const char *word = string_at(role, 0);

    return word && strcmp(word, "master") == 0 && role->elements > 2 &&
                   role->element[2]->type == REDIS_REPLY_ARRAY
               ? (int)role->element[2]->elements
               : -1;
}

static int64_t clock_of(const redisReply *reply)
{
    const char *seconds = string_at(reply, 0), *micros = string_at(reply, 1);
    int64_t s = seconds ? strtoll(seconds, NULL, 10) : -1,
            us = micros ? strtoll(micros, NULL, 10) : -1;
    bool sound = s >= 0 && s < REDIS_CLOCK_MAX / 1000 && us >= 0 && us < 1000000;

    return sound ? s * 1000 + us / 1000 : 0;
}

/* run_id:0123456789abcdef0123456789abcdef01234567 among other lines. */
static void read_node(const redisReply *reply, char node[STORE_NODE_SIZE])
{
    static const char name[] = "\nrun_id:";
    const char *at = reply->type == REDIS_REPLY_STRING ? strstr(reply->str, name) : NULL;

    if (at)
        at += strlen(name);
    snprintf(node, STORE_NODE_SIZE, "%.*s", at ? (int)strcspn(at, "\r\n") : 0, at ? at : "");
}

enum greeting_state redis_greeting_hear(struct redis_greeting *greeting,
                                        const struct redisReply *reply, struct answer *answer)
{
    bool failed = reply->type == REDIS_REPLY_ERROR;
    bool needed = greeting->step != STEP_ROLE && greeting->step != STEP_TIME;

    *answer = (struct answer){0};
    /* A user without ROLE or TIME loses a check, not the lock. */
    if (failed && (needed || strncmp(reply->str, "NOPERM", 6) != 0)) {
        redis_error_answer(reply->str, answer);
        return GREETING_REFUSED;
    }
    /* A Cluster's replica says who the master is, when it is asked for something. */
    if (greeting->step == STEP_ROLE && !greeting->cluster && !is_master(greeting, reply, answer))
        return GREETING_REFUSED;
    if (greeting->step == STEP_ROLE)
        greeting->replicas = redis_greeting_replicas(reply);
    if (greeting->step == STEP_TIME)
        greeting->clock_ms = clock_of(reply);
    if (greeting->step == STEP_INFO)
        read_node(reply, greeting->node);
    greeting->step = next_step(greeting, greeting->step);
    return greeting->step == STEP_END ? GREETING_DONE : GREETING_GOING;
}
