/* Start reading at sentinels_ask(). Each Sentinel is connected to and asked by itself, step by
 * step (enum step). hear_answers() makes of its replies a struct sentinel_word, its vote for a
 * master; on_word() decides whether there are votes enough. To ask for more, add a question before
 * QUESTIONS. */
#include "store/redis/find/sentinels.h"
#include "base/decimal.h"
#include "base/mem.h"
#include "base/strbuf.h"
#include "base/text.h"
#include "net/conn.h"
#include "net/loop.h"
#include "net/resolve.h"
#include "net/tls.h"
#include "rules/error.h"
#include "rules/reply.h"

#include <errno.h>
#include <hiredis/hiredis.h>
#include <stdio.h>

#define PORT_MAX 65535

/* Asked at once: the master, and, if peers are wanted, the other Sentinels and its own id. */
enum { QUESTION_MASTER, QUESTION_PEERS, QUESTION_ID, QUESTIONS };

enum step { STEP_NONE, STEP_FIND, STEP_CONNECT, STEP_ASK, STEP_AUTH, STEP_LIST };

/* Another Sentinel that one tells of. */
struct peer {
    char host[256];
    int port;
    char id[SENTINEL_ID_SIZE];
};

/* One Sentinel. Once it has answered, its connection stays open for the next time. */
struct sentinel {
    struct sentinels *all;
    const struct sentinel_host *host;
    struct sentinel_word *word;

    struct conn *conn;
    bool open;     /* the connection; idle without a step */
    bool used;     /* it was open before this question, so it may be dead */
    bool told_who; /* it knows the password */
    struct resolver addresses;
    int next;     /* of these */
    bool found;   /* it had addresses once */
    bool nowhere; /* it never had, and there is no host of that name */

    enum step step;
    struct loop_timer timer; /* armed while there is a step */
    bool wants_peers;
    redisReply *replies[QUESTIONS];
    size_t got;
    struct peer *peers; /* as it told last */
    size_t peer_count;
};

struct sentinels {
    struct loop *loop;
    const struct url *url;
    struct tls *tls;
    struct sentinel *members[SENTINELS_MAX];
    struct sentinel_facts facts;

    bool asking;
    enum sentinels_question question;
    const char *user;
    char *password;
    struct moment until;
    enum cause silence; /* that of an answer if none answers */
    sentinels_done *done;
    void *arg;
};

static void connect_next(struct sentinel *sentinel);
static void on_word(struct sentinels *sentinels);

static void forget_replies(struct sentinel *sentinel)
{
    for (size_t i = 0; i < sentinel->got; i++)
        freeReplyObject(sentinel->replies[i]);
    sentinel->got = 0;
}

/* Ends the connection to the Sentinel, or the attempt to make one. */
static void hang_up(struct sentinel *sentinel)
{
    forget_replies(sentinel);
    conn_close(sentinel->conn);
    sentinel->open = sentinel->told_who = false;
    resolver_stop(&sentinel->addresses);
}

/* Notes what the Sentinel has said, or why it is silent, and has all that was said looked at. */
static void finish_sentinel(struct sentinel *sentinel, enum sentinel_said said, const char *why)
{
    sentinel->word->said = said;
    text_copy(sentinel->word->why, sizeof sentinel->word->why, why);
    sentinel->step = STEP_NONE;
    loop_disarm(sentinel->all->loop, &sentinel->timer);
    on_word(sentinel->all);
}

/* Ends the connection to the Sentinel, and notes why it has not said where the master is. */
static void fail_sentinel(struct sentinel *sentinel, enum sentinel_said said, const char *why)
{
    hang_up(sentinel);
    finish_sentinel(sentinel, said, why);
}

/* Sends one command to the Sentinel; its reply is that of "step". */
static void send_command(struct sentinel *sentinel, enum step step, int argc, const char **argv)
{
    struct strbuf bytes = {0};

    conn_encode(&bytes, argc, argv);
    stream_send(sentinel->conn->stream, bytes.text, bytes.size);
    strbuf_free(&bytes);
    sentinel->step = step;
}

/* Asks the Sentinel where the master is; and once, which other Sentinels there are, and who it
 * is. */
static void send_questions(struct sentinel *sentinel)
{
    const char *master = sentinel->all->url->master;
    const char *address[] = {"SENTINEL", "GET-MASTER-ADDR-BY-NAME", master};
    const char *peers[] = {"SENTINEL", "SENTINELS", master}, *id[] = {"SENTINEL", "MYID"};
    struct strbuf bytes = {0};

    forget_replies(sentinel);
    conn_encode(&bytes, 3, address);
    if (sentinel->wants_peers) {
        conn_encode(&bytes, 3, peers);
        conn_encode(&bytes, 2, id);
    }
    stream_send(sentinel->conn->stream, bytes.text, bytes.size);
    strbuf_free(&bytes);
    sentinel->step = STEP_ASK;
}

/* The connection to the Sentinel is up. */
static void on_connected(void *arg)
{
    struct sentinel *sentinel = arg;

    sentinel->open = true;
    loop_arm(sentinel->all->loop, &sentinel->timer, sentinel->all->until);
    send_questions(sentinel);
}

/* -- answers --------------------------------------------------------------------------------- */

/* Ends the question to a Sentinel that answers with an error, which "text" has. */
static void fail_by_error(struct sentinel *sentinel, enum sentinel_said said, const char *text)
{
    struct answer plain = {.verdict = VERDICT_UNKNOWN};

    redis_error_answer(text, &plain);
    fail_sentinel(sentinel, said, plain.text);
}

/* Takes an error in place of the address. A Sentinel that wants a password is told it, once, if
 * there is one. */
static void hear_error(struct sentinel *sentinel, const char *text)
{
    enum redis_error class = redis_error_class(text);
    bool denied = class == REDIS_ERROR_LOGIN || class == REDIS_ERROR_DENIED;

    if (denied && sentinel->all->password && !sentinel->told_who) {
        const char *user = sentinel->all->user;
        const char *argv[] = {"AUTH", user ? user : sentinel->all->password,
                              sentinel->all->password};
        sentinel->told_who = true;
        send_command(sentinel, STEP_AUTH, user ? 3 : 2, argv);
    } else if (denied) {
        fail_by_error(sentinel, SENTINEL_DENIED, text);
    } else if (strstr(text, "unknown command")) {
        fail_sentinel(sentinel, SENTINEL_UNFIT, "what answers there is not a Sentinel");
    } else {
        fail_by_error(sentinel, SENTINEL_SILENT, text);
    }
}

/* Returns the port in the text; 0: there is none. */
static int port_of(const char *text)
{
    int64_t port = 0;

    return text && decimal_read(text, strlen(text), PORT_MAX, &port) ? (int)port : 0;
}

/* Reads the address and the id of another Sentinel. False if the fields have no address. */
static bool read_peer(const redisReply *fields, struct peer *peer)
{
    const char *host = redis_reply_field(fields, "ip"), *id = redis_reply_field(fields, "runid");

    *peer = (struct peer){.port = port_of(redis_reply_field(fields, "port"))};
    if (!host || !*host || strlen(host) >= sizeof peer->host || peer->port == 0)
        return false;
    strcpy(peer->host, host);
    snprintf(peer->id, sizeof peer->id, "%s", id && strlen(id) < sizeof peer->id ? id : "");
    return true;
}

/* Notes the other Sentinels that this one tells of, and its own id. One that may not tell, or does
 * not know how, tells of none, and has no id. */
static void hear_peers(struct sentinel *sentinel, const redisReply *peers, const redisReply *id)
{
    size_t told = peers->type == REDIS_REPLY_ARRAY ? peers->elements : 0;
    bool named = id->type == REDIS_REPLY_STRING && id->len < sizeof sentinel->word->id;

    free(sentinel->peers);
    sentinel->peers = mem_zeroed(SENTINELS_MAX * sizeof *sentinel->peers);
    sentinel->peer_count = 0;
    for (size_t i = 0; i < told && i < SENTINELS_MAX; i++)
        sentinel->peer_count +=
            read_peer(peers->element[i], &sentinel->peers[sentinel->peer_count]);
    snprintf(sentinel->word->id, sizeof sentinel->word->id, "%s", named ? id->str : "");
}

/* Takes the reply to QUESTION_MASTER: the address; nil: this Sentinel does not know the name, and
 * is asked which it knows. */
static void hear_address(struct sentinel *sentinel, const redisReply *reply)
{
    struct sentinel_word *word = sentinel->word;
    const char *list[] = {"SENTINEL", "MASTERS"};
    const char *host = redis_reply_string(reply, 0);
    int port = port_of(redis_reply_string(reply, 1));

    if (reply->type == REDIS_REPLY_NIL) {
        send_command(sentinel, STEP_LIST, 2, list);
    } else if (!host || !*host || strlen(host) >= sizeof word->host || port == 0) {
        fail_sentinel(sentinel, SENTINEL_UNFIT, "what answers there is not a Sentinel");
    } else {
        strcpy(word->host, host);
        word->port = port;
        finish_sentinel(sentinel, SENTINEL_NAMES, "");
    }
}

/* Takes the replies to the questions, which are all there. */
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

/* Notes the names of the masters that this Sentinel knows, for the user. */
static void hear_list(struct sentinel *sentinel, const redisReply *reply)
{
    char names[sizeof sentinel->word->why] = "";

    for (size_t i = 0; reply->type == REDIS_REPLY_ARRAY && i < reply->elements; i++) {
        const char *name = redis_reply_field(reply->element[i], "name");
        if (name && strlen(names) + strlen(name) + 3 < sizeof names)
            text_append(names, sizeof names, "%s%s", *names ? ", " : "", name);
    }
    finish_sentinel(sentinel, SENTINEL_UNKNOWN, names);
}

/* Takes a reply of one Sentinel, which it owns: those to the questions are kept until all of
 * them are there. */
static void on_reply(void *arg, redisReply *reply)
{
    struct sentinel *sentinel = arg;

    if (sentinel->step == STEP_ASK) {
        sentinel->replies[sentinel->got++] = reply;
        if (sentinel->got == (sentinel->wants_peers ? QUESTIONS : 1))
            hear_answers(sentinel);
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

/* Tries the next address of a Sentinel, as this one failed. If none is left, the Sentinel fails
 * when the loop turns (timed_out()), and its name is looked up anew next time. */
static void try_next(struct sentinel *sentinel, const char *why)
{
    sentinel->step = STEP_CONNECT;
    snprintf(sentinel->word->why, sizeof sentinel->word->why, "%s", why);
    if (sentinel->next < sentinel->addresses.count) {
        connect_next(sentinel);
        return;
    }
    sentinel->addresses.count = 0;
    loop_arm(sentinel->all->loop, &sentinel->timer, loop_now(sentinel->all->loop));
}

/* Tries the next address, as none could be connected to or looked up, for the reason in errno,
 * which is this host's. */
static void try_next_by_errno(struct sentinel *sentinel)
{
    sentinel->all->silence = cause_of_errno(errno);
    try_next(sentinel, strerror(errno));
}

/* The connection has ended. One that had answered an earlier question may have been closed as idle:
 * it is opened again. Any other failure is that of this address. */
static void on_broken(void *arg, const char *why)
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

/* The Sentinel is silent on this address: tries its next one, or fails when all time is over. One
 * without addresses left has failed before (try_next()), which is only reported now. */
static void timed_out(struct loop_timer *timer)
{
    struct sentinel *sentinel = timer->owner;
    bool over = moment_reached(sentinel->all->until, loop_now(sentinel->all->loop));
    bool gone = sentinel->step == STEP_CONNECT && sentinel->addresses.count == 0;
    char why[sizeof sentinel->word->why];

    snprintf(why, sizeof why, "%s", sentinel->word->why);
    if (gone)
        fail_sentinel(sentinel, SENTINEL_SILENT, why);
    else if (over)
        fail_sentinel(sentinel, SENTINEL_SILENT,
                      sentinel->step == STEP_FIND ? "no answer from the name service"
                                                  : "no answer in time");
    else
        on_broken(sentinel, "no answer in time");
}

/* The Sentinel's name is looked up: connects to its addresses, or fails. count: how many there are;
 * 0: the name service failed; -1: there is no host of that name. */
static void on_addresses(void *arg, int count, const char *fault)
{
    struct sentinel *sentinel = arg;

    sentinel->found |= count > 0;
    sentinel->nowhere = count < 0 && !sentinel->found;
    if (count > 0)
        connect_next(sentinel);
    else
        try_next(sentinel, fault);
}

/* Tries the next address, with its share of the time that is left. Where there is none, the name is
 * looked up first. */
static void connect_next(struct sentinel *sentinel)
{
    struct moment now = loop_now(sentinel->all->loop);
    int share = sentinel->addresses.count - sentinel->next;

    if (sentinel->next == sentinel->addresses.count) {
        const struct sentinel_host *host = sentinel->host;
        sentinel->step = STEP_FIND;
        loop_arm(sentinel->all->loop, &sentinel->timer, sentinel->all->until);
        if (!resolver_start(&sentinel->addresses, sentinel->all->loop, host->name, host->port,
                            on_addresses, sentinel))
            try_next_by_errno(sentinel);
        return;
    }
    sentinel->step = STEP_CONNECT;
    loop_arm(sentinel->all->loop, &sentinel->timer,
             moment_plus(now, moment_until(now, sentinel->all->until) / share));
    if (stream_open(sentinel->conn->stream, &sentinel->addresses.found[sentinel->next++],
                    sentinel->all->tls, sentinel->host->name) != 0)
        try_next_by_errno(sentinel);
}

/* Asks one Sentinel for the master, and for the other Sentinels, unless the question leaves them
 * out (SENTINELS_KNOWN). Its word is there by "until", never before this returned. */
static void ask_sentinel(struct sentinel *sentinel, enum sentinels_question question)
{
    struct moment now = loop_now(sentinel->all->loop), until = sentinel->all->until;

    if (sentinel->step != STEP_NONE)
        hang_up(sentinel);
    sentinel->word->said = SENTINEL_ASKED;
    sentinel->word->why[0] = '\0';
    sentinel->wants_peers = question != SENTINELS_KNOWN || !sentinel->open;
    sentinel->used = sentinel->open;
    if (sentinel->open) {
        /* The connection may be dead: half of the time is for a new one. */
        loop_arm(sentinel->all->loop, &sentinel->timer,
                 moment_plus(now, moment_until(now, until) / 2));
        send_questions(sentinel);
    } else {
        sentinel->next = 0;
        connect_next(sentinel);
    }
}

/* Whether the Sentinel is at that address: its host has that name, or that numeric address as far
 * as is known. */
static bool is_at(const struct sentinel *sentinel, const char *host, int port)
{
    struct endpoint there;

    if (sentinel->host->port != port)
        return false;
    if (strcmp(sentinel->host->name, host) == 0)
        return true;
    for (int i = 0; resolve_numeric(host, port, &there) && i < sentinel->addresses.count; i++) {
        if (sentinel->addresses.found[i].length == there.length &&
            memcmp(&sentinel->addresses.found[i].address, &there.address, there.length) == 0)
            return true;
    }
    return false;
}

/* -- all of them ----------------------------------------------------------------------------- */

/* Whether each Sentinel that counts has answered, or failed. */
static bool is_complete(const struct sentinels *sentinels)
{
    for (size_t i = 0; i < sentinels->facts.count; i++) {
        const struct sentinel_word *word = &sentinels->facts.words[i];
        if (sentinel_counts(word) && word->said == SENTINEL_ASKED)
            return false;
    }
    return true;
}

/* Adds a Sentinel by its address; it is asked with all others. */
static struct sentinel *add_sentinel(struct sentinels *sentinels, const char *name, int port)
{
    static const struct conn_events events = {on_connected, on_reply, on_broken};
    struct sentinel *sentinel = mem_zeroed(sizeof *sentinel);
    size_t i = sentinels->facts.count++;
    struct sentinel_host *host = &sentinels->facts.hosts[i];

    sentinels->members[i] = sentinel;
    host->port = port;
    snprintf(host->name, sizeof host->name, "%s", name);
    sentinel->all = sentinels;
    sentinel->host = host;
    sentinel->word = &sentinels->facts.words[i];
    sentinel->timer = (struct loop_timer){.fire = timed_out, .owner = sentinel};
    sentinel->conn = conn_new(sentinels->loop, &events, sentinel);
    return sentinel;
}

/* Returns the Sentinel of that id or address; NULL if it is not known yet. id: "": not told. */
static struct sentinel *find_known(const struct sentinels *sentinels, const char *host, int port,
                                   const char *id)
{
    for (size_t i = 0; i < sentinels->facts.count; i++) {
        struct sentinel *sentinel = sentinels->members[i];
        if ((*id && strcmp(sentinel_id(sentinel->word), id) == 0) || is_at(sentinel, host, port))
            return sentinel;
    }
    return NULL;
}

/* Counts a Sentinel that another one has told of, and asks it if it did not count before. */
static void learn_of(struct sentinels *sentinels, const struct peer *peer)
{
    struct sentinel *sentinel = find_known(sentinels, peer->host, peer->port, peer->id);
    bool counted = sentinel && sentinel_counts(sentinel->word);

    if (!sentinel && sentinels->facts.count < SENTINELS_MAX)
        sentinel = add_sentinel(sentinels, peer->host, peer->port);
    if (!sentinel)
        return;
    sentinel->word->named_by_other = true;
    memcpy(sentinel->word->told_id, peer->id, sizeof peer->id);
    if (!counted)
        ask_sentinel(sentinel, SENTINELS_ALL);
}

/* A Sentinel has spoken its word, or failed: asks the Sentinels that it has named, and ends the
 * question if the votes decide it. */
static void on_word(struct sentinels *sentinels)
{
    if (!sentinels->asking)
        return;
    for (size_t i = 0; i < sentinels->facts.count; i++) {
        const struct sentinel *sentinel = sentinels->members[i];
        bool tells = sentinel_counts(sentinel->word) && sentinel_votes(sentinel->word);
        for (size_t peer = 0; tells && peer < sentinel->peer_count; peer++)
            learn_of(sentinels, &sentinel->peers[peer]);
    }
    struct sentinel_vote vote = sentinel_vote(sentinels->facts.words, sentinels->facts.count);
    /* Slower Sentinels may finish: their connections serve the next question. */
    if (vote.outcome == SENTINELS_OPEN ||
        (sentinels->question == SENTINELS_ALL && !is_complete(sentinels)))
        return;
    sentinels->asking = false;
    sentinels->done(sentinels->arg, &vote);
}

struct sentinels *sentinels_new(struct loop *loop, const struct url *url, struct tls *tls)
{
    struct sentinels *sentinels = mem_zeroed(sizeof *sentinels);

    sentinels->loop = loop;
    sentinels->url = url;
    sentinels->tls = tls;
    for (size_t i = 0; i < url->host_count; i++) {
        const struct url_host *host = &url->hosts[i];
        if (!find_known(sentinels, host->name, host->port, "")) /* listed twice, it has one vote */
            add_sentinel(sentinels, host->name, host->port)->word->in_url = true;
    }
    return sentinels;
}

void sentinels_free(struct sentinels *sentinels)
{
    for (size_t i = 0; i < sentinels->facts.count; i++) {
        struct sentinel *sentinel = sentinels->members[i];
        hang_up(sentinel);
        loop_disarm(sentinels->loop, &sentinel->timer);
        conn_free(sentinel->conn);
        free(sentinel->peers);
        free(sentinel);
    }
    free(sentinels->password);
    free(sentinels);
}

struct sentinel_login sentinel_login(const struct store_address *address, const char *own,
                                     const char *servers)
{
    const char *user = own ? NULL : address->urls->user;

    return (struct sentinel_login){.user = address->sentinel_user ? address->sentinel_user : user,
                                   .password = own ? own : servers};
}

/* Asks all Sentinels that count. Those that others named in an earlier round count once they are
 * named again. */
void sentinels_ask(struct sentinels *sentinels, enum sentinels_question question,
                   const struct sentinel_login *login, struct moment until, sentinels_done *done,
                   void *arg)
{
    char *old = sentinels->password; /* which *login may point to */

    sentinels->asking = true;
    sentinels->question = question;
    sentinels->until = until;
    sentinels->silence = CAUSE_UNREACHABLE;
    sentinels->done = done;
    sentinels->arg = arg;
    sentinels->user = login->user;
    sentinels->password = login->password ? mem_strdup(login->password) : NULL;
    for (size_t i = 0; i < sentinels->facts.count; i++) {
        struct sentinel *sentinel = sentinels->members[i];
        sentinel->word->named_by_other &= question == SENTINELS_KNOWN;
        if (sentinel_counts(sentinel->word)) {
            ask_sentinel(sentinel, question);
        } else if (sentinel->step != STEP_NONE) {
            hang_up(sentinel);
            sentinel->step = STEP_NONE;
            loop_disarm(sentinel->all->loop, &sentinel->timer);
        }
    }
    free(old);
}

void sentinels_hush(struct sentinels *sentinels)
{
    sentinels->asking = false;
}

/* -- their words -------------------------------------------------------------------------- */

bool sentinels_contradict(const struct sentinels *sentinels, const char *host, int port)
{
    for (size_t i = 0; i < sentinels->facts.count; i++) {
        const struct sentinel_word *word = &sentinels->facts.words[i];
        if (sentinel_counts(word) && sentinel_votes(word) && !sentinel_names(word, host, port))
            return true;
    }
    return false;
}

const struct sentinel_facts *sentinels_facts(const struct sentinels *sentinels)
{
    return &sentinels->facts;
}

struct tls_expiry sentinels_expiry(const struct sentinels *sentinels)
{
    struct tls_expiry first = {0}, one;

    for (size_t i = 0; i < sentinels->facts.count; i++) {
        stream_expiry(sentinels->members[i]->conn->stream, &one);
        if (one.whose && (!first.whose || one.spare_s < first.spare_s))
            first = one;
    }
    return first;
}

/* Whether a Sentinel that counts has not answered. */
static bool is_silent(const struct sentinel_word *word)
{
    return sentinel_counts(word) && word->said == SENTINEL_SILENT;
}

/* Whether a Sentinel before the ith one is silent for the same reason, which is told once. */
static bool was_listed(const struct sentinels *sentinels, size_t i)
{
    for (size_t before = 0; before < i; before++) {
        if (is_silent(&sentinels->facts.words[before]) &&
            strcmp(sentinels->facts.words[before].why, sentinels->facts.words[i].why) == 0)
            return true;
    }
    return false;
}

/* Prints those without an answer by their reasons: "10.0.0.2:26379, 10.0.0.3:26379 (Connection
 * refused), 10.0.0.4:26379 (no answer in time)". */
static void list_silent(const struct sentinels *sentinels, char *out, size_t size)
{
    *out = '\0';
    for (size_t first = 0; first < sentinels->facts.count; first++) {
        const char *why = sentinels->facts.words[first].why;
        if (!is_silent(&sentinels->facts.words[first]) || was_listed(sentinels, first))
            continue;
        for (size_t i = first; i < sentinels->facts.count; i++) {
            const struct sentinel_host *host = &sentinels->facts.hosts[i];
            if (is_silent(&sentinels->facts.words[i]) &&
                strcmp(sentinels->facts.words[i].why, why) == 0)
                text_append(out, size, "%s%s:%d", *out ? ", " : "", host->name, host->port);
        }
        text_append(out, size, " (%s)", why);
    }
}

void sentinels_explain(const struct sentinels *sentinels, const struct sentinel_vote *vote,
                       struct answer *answer)
{
    const struct sentinel_word *word = &sentinels->facts.words[vote->speaker];
    const struct sentinel_host *host = &sentinels->facts.hosts[vote->speaker];
    char silent[sizeof answer->text];

    list_silent(sentinels, silent, sizeof silent);
    switch (vote->outcome) {
    case SENTINELS_DO_NOT_KNOW: /* it may still be added */
        answer_fail(answer, CAUSE_NOT_READY, "the sentinels know no master '%s'%s%s",
                    sentinels->url->master, word->why[0] ? ", but " : "", word->why);
        break;
    case SENTINELS_DIFFER:
        answer_fail(answer, CAUSE_NOT_READY, "the sentinels do not agree on the master");
        break;
    case SENTINELS_TOO_FEW:
        answer_fail(answer, CAUSE_NOT_READY, "only %zu of %zu sentinels %s: no answer from %s",
                    vote->votes, vote->all, vote->votes == 1 ? "answers" : "answer", silent);
        break;
    case SENTINELS_DENY:
    case SENTINELS_UNFIT:
        answer_fail(answer, vote->outcome == SENTINELS_DENY ? CAUSE_DENIED : CAUSE_UNFIT,
                    "sentinel %s:%d: %s", host->name, host->port, word->why);
        answer->login_refused = vote->outcome == SENTINELS_DENY;
        break;
    case SENTINELS_SILENT:
    case SENTINELS_OPEN: /* this and the next are never explained */
    case SENTINELS_NAME:
        answer_fail(answer, sentinels->silence, "no sentinel answers: %s", silent);
        answer->nowhere = true;
        for (size_t i = 0; i < sentinels->facts.count; i++)
            answer->nowhere &= sentinels->members[i]->nowhere;
        answer->hint = answer->nowhere ? HINT_NAME : HINT_NONE;
        break;
    }
}
