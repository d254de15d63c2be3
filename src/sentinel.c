/* One Sentinel asked. */
#include "sentinel.h"
#include "conn.h"
#include "loop.h"
#include "mem.h"
#include "redis_error.h"
#include "resolve.h"

#include <errno.h>
#include <hiredis/hiredis.h>
#include <stdio.h>

enum step { STEP_NONE, STEP_FIND, STEP_CONNECT, STEP_ASK, STEP_AUTH, STEP_LIST };

struct sentinel {
    struct loop *loop;
    const struct url *url;
    const struct url_host *host;
    struct tls *tls;
    void (*heard)(void *arg);
    void *arg;

    struct conn *conn;
    bool open;     /* the connection; idle if there is no step */
    bool used;     /* it is one of before, which may be dead without our knowing */
    bool told_who; /* it knows the password */
    struct resolver *resolver;
    struct endpoint endpoints[RESOLVE_MAX];
    int count, next;
    bool refused; /* by all addresses tried so far */

    enum step step;
    const char *password;
    struct moment until;
    struct loop_timer timer; /* armed while there is a step */
    struct sentinel_word word;
};

static void connect_next(struct sentinel *sentinel);

static void hang_up(struct sentinel *sentinel)
{
    conn_close(sentinel->conn);
    sentinel->open = sentinel->told_who = false;
    if (sentinel->resolver)
        resolver_stop(sentinel->resolver);
    sentinel->resolver = NULL;
}

static void finish(struct sentinel *sentinel, enum sentinel_said said, const char *why)
{
    sentinel->word.said = said;
    snprintf(sentinel->word.why, sizeof sentinel->word.why, "%s", why);
    sentinel->step = STEP_NONE;
    loop_disarm(sentinel->loop, &sentinel->timer);
    sentinel->heard(sentinel->arg);
}

static void fail(struct sentinel *sentinel, enum sentinel_said said, const char *why)
{
    hang_up(sentinel);
    finish(sentinel, said, why);
}

static void send_command(struct sentinel *sentinel, enum step step, int argc, const char **argv)
{
    char *bytes = NULL;
    size_t size = 0;

    conn_encode(&bytes, &size, argc, argv, NULL);
    conn_send(sentinel->conn, bytes, size);
    free(bytes);
    sentinel->step = step;
}

static void send_question(struct sentinel *sentinel)
{
    const char *argv[] = {"SENTINEL", "GET-MASTER-ADDR-BY-NAME", sentinel->url->master};
    send_command(sentinel, STEP_ASK, 3, argv);
}

static void send_password(struct sentinel *sentinel)
{
    const char *user = sentinel->url->user;
    const char *argv[] = {"AUTH", user ? user : sentinel->password, sentinel->password};

    sentinel->told_who = true;
    send_command(sentinel, STEP_AUTH, user ? 3 : 2, argv);
}

static void connected(void *arg)
{
    struct sentinel *sentinel = arg;

    sentinel->open = true;
    loop_arm(sentinel->loop, &sentinel->timer, sentinel->until);
    send_question(sentinel);
}

/* -- answers --------------------------------------------------------------------------------- */

static const char *string_at(const redisReply *reply, size_t i)
{
    return reply->type == REDIS_REPLY_ARRAY && i < reply->elements &&
                   reply->element[i]->type == REDIS_REPLY_STRING
               ? reply->element[i]->str
               : NULL;
}

static void hear_error(struct sentinel *sentinel, const char *text)
{
    bool denied = redis_error_class(text) == REDIS_ERROR_DENIED;

    if (denied && sentinel->password && !sentinel->told_who)
        send_password(sentinel);
    else if (denied)
        fail(sentinel, SENTINEL_DENIED, text);
    else if (strstr(text, "unknown command"))
        fail(sentinel, SENTINEL_UNFIT, "what answers there is not a Sentinel");
    else
        fail(sentinel, SENTINEL_SILENT, text);
}

static void hear_address(struct sentinel *sentinel, const redisReply *reply)
{
    struct sentinel_word *word = &sentinel->word;
    const char *list[] = {"SENTINEL", "MASTERS"};
    const char *host = string_at(reply, 0), *port = string_at(reply, 1);
    long number = host && port ? strtol(port, NULL, 10) : 0;

    if (reply->type == REDIS_REPLY_ERROR) {
        hear_error(sentinel, reply->str);
    } else if (reply->type == REDIS_REPLY_NIL) {
        send_command(sentinel, STEP_LIST, 2, list);
    } else if (number < 1 || number > 65535 || !*host || strlen(host) >= sizeof word->host) {
        fail(sentinel, SENTINEL_UNFIT, "what answers there is not a Sentinel");
    } else {
        strcpy(word->host, host);
        word->port = (int)number;
        finish(sentinel, SENTINEL_NAMES, "");
    }
}

/* The masters that it knows, by name, for the user. */
static void hear_list(struct sentinel *sentinel, const redisReply *reply)
{
    char names[sizeof sentinel->word.why] = "";

    for (size_t i = 0; reply->type == REDIS_REPLY_ARRAY && i < reply->elements; i++) {
        const redisReply *master = reply->element[i];
        const char *field = string_at(master, 0), *name = string_at(master, 1);
        size_t used = strlen(names);
        if (field && name && strcmp(field, "name") == 0 && used + strlen(name) + 3 < sizeof names)
            snprintf(names + used, sizeof names - used, "%s%s", used ? ", " : "", name);
    }
    finish(sentinel, SENTINEL_UNKNOWN, names);
}

static void replied(void *arg, redisReply *reply)
{
    struct sentinel *sentinel = arg;

    switch (sentinel->step) {
    case STEP_ASK: hear_address(sentinel, reply); break;
    case STEP_LIST: hear_list(sentinel, reply); break;
    case STEP_AUTH:
        if (reply->type == REDIS_REPLY_ERROR)
            fail(sentinel, SENTINEL_DENIED, reply->str);
        else
            send_question(sentinel);
        break;
    default: hang_up(sentinel); break; /* speaks without being asked */
    }
    freeReplyObject(reply);
}

/* -- on the way there ------------------------------------------------------------------------ */

/* One more address did not lead there. Without an answer from any of them, the name is looked up anew next time. */
static void go_on(struct sentinel *sentinel, const char *why, bool refused)
{
    sentinel->refused &= refused;
    sentinel->step = STEP_CONNECT;
    snprintf(sentinel->word.why, sizeof sentinel->word.why, "%s", why);
    if (sentinel->next < sentinel->count) {
        connect_next(sentinel);
        return;
    }
    sentinel->count = 0;
    loop_arm(sentinel->loop, &sentinel->timer, loop_now(sentinel->loop));
}

static void broken(void *arg, const char *why)
{
    struct sentinel *sentinel = arg;
    bool used = sentinel->used, was_open = sentinel->open;

    hang_up(sentinel);
    if (sentinel->step == STEP_NONE)
        return;
    if (used && was_open) {
        sentinel->used = false;
        sentinel->next = 0;
        connect_next(sentinel);
    } else {
        go_on(sentinel, why, !was_open && strcmp(why, strerror(ECONNREFUSED)) == 0);
    }
}

static void timed_out(struct loop_timer *timer)
{
    struct sentinel *sentinel = timer->owner;
    bool over = moment_reached(sentinel->until, loop_now(sentinel->loop));
    bool gone = sentinel->step == STEP_CONNECT && sentinel->count == 0;
    char why[sizeof sentinel->word.why];

    snprintf(why, sizeof why, "%s", sentinel->word.why);
    if (gone)
        fail(sentinel, sentinel->refused ? SENTINEL_GONE : SENTINEL_SILENT, why);
    else if (over)
        fail(sentinel, SENTINEL_SILENT,
             sentinel->step == STEP_FIND ? "no answer from the name service" : "no answer in time");
    else
        broken(sentinel, "no answer in time");
}

static void found(void *arg, const struct endpoint *endpoints, int count, const char *fault)
{
    struct sentinel *sentinel = arg;

    if (count > 0)
        memcpy(sentinel->endpoints, endpoints, (size_t)count * sizeof *endpoints);
    sentinel->count = count;
    sentinel->next = 0;
    resolver_stop(sentinel->resolver);
    sentinel->resolver = NULL;
    if (count > 0)
        connect_next(sentinel);
    else
        go_on(sentinel, fault, false);
}

static void find(struct sentinel *sentinel)
{
    const struct url_host *host = sentinel->host;

    sentinel->step = STEP_FIND;
    sentinel->next = 0;
    sentinel->refused = true;
    if (resolve_numeric(host->name, host->port, &sentinel->endpoints[0])) {
        sentinel->count = 1;
        connect_next(sentinel);
        return;
    }
    loop_arm(sentinel->loop, &sentinel->timer, sentinel->until);
    sentinel->resolver = resolver_start(sentinel->loop, host->name, host->port, found, sentinel);
    if (!sentinel->resolver)
        go_on(sentinel, strerror(errno), false);
}

/* Tries the next address; every one gets its share of the time that is left. */
static void connect_next(struct sentinel *sentinel)
{
    struct moment now = loop_now(sentinel->loop);
    int share = sentinel->count - sentinel->next;

    if (sentinel->next == sentinel->count) {
        find(sentinel);
        return;
    }
    sentinel->step = STEP_CONNECT;
    loop_arm(sentinel->loop, &sentinel->timer,
             moment_plus(now, moment_until(now, sentinel->until) / share));
    if (conn_open(sentinel->conn, &sentinel->endpoints[sentinel->next++], sentinel->tls,
                  sentinel->host->name) != 0)
        go_on(sentinel, strerror(errno), errno == ECONNREFUSED);
}

/* -- from outside ---------------------------------------------------------------------------- */

struct sentinel *sentinel_new(struct loop *loop, const struct url *url, size_t host,
                              struct tls *tls, void (*heard)(void *arg), void *arg)
{
    static const struct conn_events events = {connected, replied, broken};
    struct sentinel *sentinel = mem_zeroed(sizeof *sentinel);

    *sentinel = (struct sentinel){.loop = loop, .url = url, .tls = tls, .heard = heard, .arg = arg};
    sentinel->host = &url->hosts[host];
    sentinel->timer = (struct loop_timer){.fire = timed_out, .owner = sentinel};
    sentinel->conn = conn_new(loop, &events, sentinel);
    return sentinel;
}

void sentinel_free(struct sentinel *sentinel)
{
    hang_up(sentinel);
    loop_disarm(sentinel->loop, &sentinel->timer);
    conn_free(sentinel->conn);
    free(sentinel);
}

void sentinel_ask(struct sentinel *sentinel, const char *password, struct moment until)
{
    struct moment now = loop_now(sentinel->loop);

    if (sentinel->step != STEP_NONE)
        hang_up(sentinel);
    sentinel->word = (struct sentinel_word){.said = SENTINEL_ASKED};
    sentinel->password = password;
    sentinel->until = until;
    sentinel->used = sentinel->open;
    sentinel->refused = true;
    if (sentinel->open) {
        /* It may be dead: half of the time is for another. */
        loop_arm(sentinel->loop, &sentinel->timer, moment_plus(now, moment_until(now, until) / 2));
        send_question(sentinel);
    } else {
        sentinel->next = 0;
        connect_next(sentinel);
    }
}

const struct sentinel_word *sentinel_word(const struct sentinel *sentinel)
{
    return &sentinel->word;
}
