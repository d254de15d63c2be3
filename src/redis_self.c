/* What HELLO, INFO and CONFIG GET say. */
#include "redis_self.h"

#include <hiredis/hiredis.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The value of one line of INFO's reply; false if it is not in it. */
static bool info_text(const char *info, const char *name, char *out, size_t size)
{
    size_t length = strlen(name);

    for (const char *line = info; line; line = strchr(line, '\n')) {
        line += *line == '\n';
        if (strncmp(line, name, length) != 0 || line[length] != ':')
            continue;
        snprintf(out, size, "%.*s", (int)strcspn(line + length + 1, "\r\n"), line + length + 1);
        return true;
    }
    return false;
}

/* Of numbers only the size matters, and one of this size can be reckoned with. */
static int64_t number_of(const char *text)
{
    const int64_t most = INT64_C(1) << 53;
    int64_t number = strtoll(text, NULL, 10);

    return number < most ? number : most;
}

static void info_number(const char *info, const char *name, int64_t *out)
{
    char text[32];

    if (info_text(info, name, text, sizeof text))
        *out = number_of(text);
}

static bool info_says(const char *info, const char *name, const char *value)
{
    char text[32];
    return info_text(info, name, text, sizeof text) && strcmp(text, value) == 0;
}

/* "slave0:ip=10.0.0.2,port=6379,state=online,offset=…" */
static int64_t count_replicas(const char *info)
{
    int64_t count = 0, listed = UNTOLD;
    char name[16], line[256];

    info_number(info, "connected_slaves", &listed);
    for (int64_t i = 0; i < listed; i++) {
        snprintf(name, sizeof name, "slave%d", (int)i);
        if (!info_text(info, name, line, sizeof line))
            break;
        count += strstr(line, "state=online") != NULL;
    }
    return listed < 0 ? UNTOLD : count;
}

void redis_self_info(struct server_facts *facts, const redisReply *reply)
{
    char aof[8];

    if (reply->type != REDIS_REPLY_STRING)
        return;
    const char *info = reply->str;
    if (!info_text(info, "valkey_version", facts->version, sizeof facts->version))
        info_text(info, "redis_version", facts->version, sizeof facts->version);
    info_text(info, "server_name", facts->software, sizeof facts->software);
    info_text(info, "redis_mode", facts->mode, sizeof facts->mode);
    info_text(info, "run_id", facts->run_id, sizeof facts->run_id);
    info_text(info, "maxmemory_policy", facts->policy, sizeof facts->policy);
    if (info_text(info, "aof_enabled", aof, sizeof aof))
        strcpy(facts->appendonly, aof[0] == '1' ? "yes" : "no");
    info_number(info, "uptime_in_seconds", &facts->uptime_s);
    info_number(info, "maxmemory", &facts->maxmemory);
    info_number(info, "connected_clients", &facts->clients);
    info_number(info, "maxclients", &facts->clients_max);
    facts->replicas = count_replicas(info);
    facts->aof_failed = info_says(info, "aof_last_write_status", "err");
    facts->snapshot_failed = info_says(info, "rdb_last_bgsave_status", "err");
}

/* HELLO needs no right but that of being connected. */
void redis_self_hello(struct server_facts *facts, const redisReply *reply)
{
    if (reply->type != REDIS_REPLY_ARRAY)
        return;
    for (size_t i = 0; i + 1 < reply->elements; i += 2) {
        const redisReply *name = reply->element[i], *value = reply->element[i + 1];
        if (name->type != REDIS_REPLY_STRING || value->type != REDIS_REPLY_STRING)
            continue;
        if (strcmp(name->str, "server") == 0)
            snprintf(facts->software, sizeof facts->software, "%.20s", value->str);
        if (strcmp(name->str, "version") == 0)
            snprintf(facts->version, sizeof facts->version, "%.20s", value->str);
        if (strcmp(name->str, "mode") == 0)
            snprintf(facts->mode, sizeof facts->mode, "%.20s", value->str);
    }
}

const char *const redis_self_settings[] = {
    "maxmemory", "maxmemory-policy", "appendonly", "appendfsync", "save", "min-replicas-to-write",
    "timeout",   "maxclients",       NULL};

void redis_self_setting(struct server_facts *facts, const char *name, const redisReply *reply)
{
    const struct {
        const char *name;
        int64_t *number;
        char *text;
        size_t size;
    } places[] = {
        {"maxmemory", &facts->maxmemory, NULL, 0},
        {"maxmemory-policy", NULL, facts->policy, sizeof facts->policy},
        {"appendonly", NULL, facts->appendonly, sizeof facts->appendonly},
        {"appendfsync", NULL, facts->appendfsync, sizeof facts->appendfsync},
        {"save", NULL, facts->save, sizeof facts->save},
        {"min-replicas-to-write", &facts->min_replicas, NULL, 0},
        {"timeout", &facts->timeout_s, NULL, 0},
        {"maxclients", &facts->clients_max, NULL, 0},
    };

    if (reply->type != REDIS_REPLY_ARRAY || reply->elements != 2 ||
        reply->element[1]->type != REDIS_REPLY_STRING)
        return;
    const char *value = reply->element[1]->str;
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        if (strcmp(name, places[i].name) != 0)
            continue;
        if (places[i].number)
            *places[i].number = number_of(value);
        else
            snprintf(places[i].text, places[i].size, "%s", *value ? value : "none");
    }
}
