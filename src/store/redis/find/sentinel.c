/* One Sentinel asked. */
#include "store/redis/find/sentinel.h"
#include "base/decimal.h"
#include "base/mem.h"
#include "base/strbuf.h"
#include "net/conn.h"
#include "net/loop.h"
#include "net/resolve.h"
#include "rules/error.h"
#include "rules/reply.h"

#include <errno.h>
#include <hiredis/hiredis.h>
#include <stdio.h>

#define PORT_MAX 65535

/* Asked at once: the master, and, if they are wanted, the other Sentinels and its own id. */
enum { QUESTION_MASTER, QUESTION_PEERS, QUESTION_ID, QUESTIONS };

enum step { STEP_NONE, STEP_FIND, STEP_CONNECT, STEP_ASK, STEP_AUTH, STEP_LIST };

struct sentinel {
    struct loop *loop;
    const struct url *url;
    const struct url_host *host;
    struct tls *tls;
    void (*heard)(void *arg);
    void *arg;

    struct conn *conn;
    bool open;     /* the connection; idle without a step */
    bool used;     /* it was open before this question, so it may be dead */
    bool told_who; /* it knows the password */
    struct resolver *resolver;
    struct endpoint endpoints[RESOLVE_MAX];
    int count, next;

    enum step step;
    const char *password;
    struct moment until;
    struct loop_timer timer; /* armed while there is a step */
    bool wants_peers;
    redisReply *replies[QUESTIONS];
    size_t got;
    struct sentinel_word word;
    struct sentinel_peer *peers;
    size_t peer_count;
};

static void connect_next(struct sentinel *sentinel);

static void forget_replies(struct sentinel *sentinel)
{
    for (size_t i = 0; i < sentinel->got; i++)
        freeReplyObject(sentinel->replies[i]);
    sentinel->got = 0;
}

static void hang_up(struct sentinel *sentinel)
{
    forget_replies(sentinel);
    conn_close(sentinel->conn);
    sentinel->open = sentinel->told_who = false;
    if (sentinel->resolver)
        resolver_stop(sentinel->resolver);
    sentinel->resolver = NULL;
}

static void finish(struct sentinel *sentinel, enum sentinel_said said, const char *why)
{
    sentinel->word.said = said;
    snprintf(sentinel->word.why, sizeof sentinel->word.why, "%.127s", why);
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
    struct strbuf bytes = {0};

    conn_encode(&bytes, argc, argv, NULL);
    conn_send(sentinel->conn, bytes.text, bytes.size);
    strbuf_free(&bytes);
    sentinel->step = step;
}

static void send_questions(struct sentinel *sentinel)
{
    const char *master = sentinel->url->master;
    const char *address[] = {"SENTINEL", "GET-MASTER-ADDR-BY-NAME", master};
    const char *peers[] = {"SENTINEL", "SENTINELS", master}, *id[] = {"SENTINEL", "MYID"};
    struct strbuf bytes = {0};

    forget_replies(sentinel);
    conn_encode(&bytes, 3, address, NULL);
    if (sentinel->wants_peers) {
        conn_encode(&bytes, 3, peers, NULL);
        conn_encode(&bytes, 2, id, NULL);
    }
    conn_send(sentinel->conn, bytes.text, bytes.size);
    strbuf_free(&bytes);
    sentinel->step = STEP_ASK;
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
    send_questions(sentinel);
}

/* -- answers --------------------------------------------------------------------------------- */

static void fail_by_error(struct sentinel *sentinel, enum sentinel_said said, const char *text)
{
    struct answer plain = {.verdict = VERDICT_UNKNOWN};

    redis_error_answer(text, &plain);
    fail(sentinel, said, plain.text);
}

static void hear_error(struct sentinel *sentinel, const char *text)
{
    bool denied = redis_error_class(text) == REDIS_ERROR_DENIED;

    if (denied && sentinel->password && !sentinel->told_who)
        send_password(sentinel);
    else if (denied)
        fail_by_error(sentinel, SENTINEL_DENIED, text);
    else if (strstr(text, "unknown command"))
        fail(sentinel, SENTINEL_UNFIT, "what answers there is not a Sentinel");
    else
        fail_by_error(sentinel, SENTINEL_SILENT, text);
}

/* Reads a port; 0: it is not one. */
static int port_of(const char *text)
{
    int64_t port = 0;

    return text && decimal_read(text, strlen(text), PORT_MAX, &port) ? (int)port : 0;
}

/* Reads ["name", …, "ip", …, "port", …, "runid", …, …]; false if it has no address. */
static bool read_peer(const redisReply *fields, struct sentinel_peer *peer)
{
    const char *host = NULL, *id = NULL, *name;

    *peer = (struct sentinel_peer){.port = 0};
    for (size_t i = 0; (name = redis_reply_string(fields, i)) != NULL; i += 2) {
        const char *value = redis_reply_string(fields, i + 1);
        if (strcmp(name, "ip") == 0)
            host = value;
        else if (strcmp(name, "port") == 0)
            peer->port = port_of(value);
        else if (strcmp(name, "runid") == 0)
            id = value;
    }
    if (!host || !*host || strlen(host) >= sizeof peer->host || peer->port == 0)
        return false;
    strcpy(peer->host, host);
    snprintf(peer->id, sizeof peer->id, "%s", id && strlen(id) < sizeof peer->id ? id : "");
    return true;
}

/* A Sentinel that may not tell, or does not know how, tells of none, and has no id. */
static void hear_peers(struct sentinel *sentinel, const redisReply *peers, const redisReply *id)
{
    size_t told = peers->type == REDIS_REPLY_ARRAY ? peers->elements : 0;
    bool named = id->type == REDIS_REPLY_STRING && id->len < sizeof sentinel->word.id;

    free(sentinel->peers);
    sentinel->peers = mem_zeroed(SENTINELS_MAX * sizeof *sentinel->peers);
    sentinel->peer_count = 0;
    for (size_t i = 0; i < told && i < SENTINELS_MAX; i++)
        sentinel->peer_count +=
            read_peer(peers->element[i], &sentinel->peers[sentinel->peer_count]);
    snprintf(sentinel->word.id, sizeof sentinel->word.id, "%s", named ? id->str : "");
}

static void hear_address(struct sentinel *sentinel, const redisReply *reply)
{
    struct sentinel_word *word = &sentinel->word;
    const char *list[] = {"SENTINEL", "MASTERS"};
    const char *host = redis_reply_string(reply, 0);
    int port = port_of(redis_reply_string(reply, 1));

    if (reply->type == REDIS_REPLY_NIL) {
        send_command(sentinel, STEP_LIST, 2, list);
    } else if (!host || !*host || strlen(host) >= sizeof word->host || port == 0) {
        fail(sentinel, SENTINEL_UNFIT, "what answers there is not a Sentinel");
    } else {
        strcpy(word->host, host);
        word->port = port;
        finish(sentinel, SENTINEL_NAMES, "");
    }
}

static void hear_answers(struct sentinel *sentinel)
{
    redisReply *master = sentinel->replies[QUESTION_MASTER];

    if (sentinel->wants_peers && master->type != REDIS_REPLY_ERROR)
        hear_peers(sentinel, sentinel->replies[QUESTION_PEERS], sentinel->replies[QUESTION_ID]);
    sentinel->replies[QUESTION_MASTER] = NULL;
    forget_replies(sentinel);
    if (master->type == REDIS_REPLY_ERROR)
        hear_error(sentinel, master->str);
    else
        hear_address(sentinel, master);
    freeReplyObject(master);
}

/* Owns the reply from now on. */
static void hear_answer(struct sentinel *sentinel, redisReply *reply)
{
    sentinel->replies[sentinel->got++] = reply;
    if (sentinel->got == (sentinel->wants_peers ? QUESTIONS : 1))
        hear_answers(sentinel);
}

/* Lists the masters that it knows, for the user. */
static void hear_list(struct sentinel *sentinel, const redisReply *reply)
{
    char names[sizeof sentinel->word.why] = "";

    for (size_t i = 0; reply->type == REDIS_REPLY_ARRAY && i < reply->elements; i++) {
        const redisReply *master = reply->element[i];
        const char *field = redis_reply_string(master, 0), *name = redis_reply_string(master, 1);
        size_t used = strlen(names);
        if (field && name && strcmp(field, "name") == 0 && used + strlen(name) + 3 < sizeof names)
            snprintf(names + used, sizeof names - used, "%s%s", used ? ", " : "", name);
    }
    finish(sentinel, SENTINEL_UNKNOWN, names);
}

static void replied(void *arg, redisReply *reply)
{
    struct sentinel *sentinel = arg;

    if (sentinel->step == STEP_ASK) {
        hear_answer(sentinel, reply);
        return;
    }
    switch (sentinel->step) {
    case STEP_LIST: hear_list(sentinel, reply); break;
    case STEP_AUTH:
        if (reply->type == REDIS_REPLY_ERROR)
            fail_by_error(sentinel, SENTINEL_DENIED, reply->str);
        else
            send_questions(sentinel);
        break;
    default: hang_up(sentinel); break; /* an unsolicited reply */
    }
    freeReplyObject(reply);
}

/* -- on the way there ------------------------------------------------------------------------ */

/* One more address did not lead there. If all of them fail, the name is looked up anew next
 * time. */
static void try_next(struct sentinel *sentinel, const char *why)
{
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
        sentinel->wants_peers = true; /* it may be another Sentinel by now */
        sentinel->next = 0;
        connect_next(sentinel);
    } else {
        try_next(sentinel, why);
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
        fail(sentinel, SENTINEL_SILENT, why);
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
    sentinel->count = count > 0 ? count : 0;
    sentinel->next = 0;
    resolver_stop(sentinel->resolver);
    sentinel->resolver = NULL;
    if (count > 0)
        connect_next(sentinel);
    else
        try_next(sentinel, fault);
}

static void find(struct sentinel *sentinel)
{
    const struct url_host *host = sentinel->host;

    sentinel->step = STEP_FIND;
    sentinel->next = 0;
    if (resolve_numeric(host->name, host->port, &sentinel->endpoints[0])) {
        sentinel->count = 1;
        connect_next(sentinel);
        return;
    }
    loop_arm(sentinel->loop, &sentinel->timer, sentinel->until);
    sentinel->resolver = resolver_start(sentinel->loop, host->name, host->port, found, sentinel);
    if (!sentinel->resolver)
        try_next(sentinel, strerror(errno));
}

/* Tries the next address, with its share of the time that is left. */
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
        try_next(sentinel, strerror(errno));
}

/* -- from outside ---------------------------------------------------------------------------- */

struct sentinel *sentinel_new(struct loop *loop, const struct url *url, const struct url_host *host,
                              struct tls *tls, void (*heard)(void *arg), void *arg)
{
    static const struct conn_events events = {connected, replied, broken};
    struct sentinel *sentinel = mem_zeroed(sizeof *sentinel);

    *sentinel = (struct sentinel){
        .loop = loop, .url = url, .host = host, .tls = tls, .heard = heard, .arg = arg};
    sentinel->timer = (struct loop_timer){.fire = timed_out, .owner = sentinel};
    sentinel->conn = conn_new(loop, &events, sentinel);
    return sentinel;
}

void sentinel_free(struct sentinel *sentinel)
{
    hang_up(sentinel);
    loop_disarm(sentinel->loop, &sentinel->timer);
    conn_free(sentinel->conn);
    free(sentinel->peers);
    free(sentinel);
}

void sentinel_hush(struct sentinel *sentinel)
{
    if (sentinel->step == STEP_NONE)
        return;
    hang_up(sentinel);
    sentinel->step = STEP_NONE;
    loop_disarm(sentinel->loop, &sentinel->timer);
}

void sentinel_ask(struct sentinel *sentinel, const char *password, bool peers, struct moment until)
{
    struct moment now = loop_now(sentinel->loop);

    if (sentinel->step != STEP_NONE)
        hang_up(sentinel);
    sentinel->word.said = SENTINEL_ASKED;
    sentinel->word.why[0] = '\0';
    sentinel->password = password;
    sentinel->wants_peers = peers || !sentinel->open;
    sentinel->until = until;
    sentinel->used = sentinel->open;
    if (sentinel->open) {
        /* It may be dead: half of the time is for a new one. */
        loop_arm(sentinel->loop, &sentinel->timer, moment_plus(now, moment_until(now, until) / 2));
        send_questions(sentinel);
    } else {
        sentinel->next = 0;
        connect_next(sentinel);
    }
}

const struct sentinel_word *sentinel_word(const struct sentinel *sentinel)
{
    return &sentinel->word;
}

const struct sentinel_peer *sentinel_peers(const struct sentinel *sentinel, size_t *count)
{
    *count = sentinel->peer_count;
    return sentinel->peers;
}

bool sentinel_is_at(const struct sentinel *sentinel, const char *host, int port)
{
    struct endpoint there;

    if (sentinel->host->port != port)
        return false;
    if (strcmp(sentinel->host->name, host) == 0)
        return true;
    for (int i = 0; resolve_numeric(host, port, &there) && i < sentinel->count; i++) {
        if (sentinel->endpoints[i].length == there.length &&
            memcmp(&sentinel->endpoints[i].address, &there.address, there.length) == 0)
            return true;
    }
    return false;
}
