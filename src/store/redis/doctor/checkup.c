/* Start reading at ask_server(). To ask a server for more, add a function there, and one that notes
 * the replies in struct server_facts (judge.h), of which judge.c makes findings. */
#include "store/redis/doctor/checkup.h"
#include "base/decimal.h"
#include "base/mem.h"
#include "lock/key.h"
#include "net/loop.h"
#include "net/tls.h"
#include "rules/error.h"
#include "rules/arguments.h"
#include "rules/reply.h"
#include "store/redis/find/sentinels.h"
#include "store/redis/session.h"

#include <hiredis/hiredis.h>
#include <stdio.h>

/* The pings take long enough to see whether the server's clock advances as much as ours. */
#define PINGS     15
#define PAUSE_NS  (8 * NS_PER_MS)
#define ANSWER_NS (5 * NS_PER_SEC)
#define SCRATCH   "rlock-doctor" /* a KEY that questions name, and that nothing writes */
#define CHANNEL   "rlock-doctor:none"
/* In the year 2116; durations can be added to it. */
#define CLOCK_MAX_NS (INT64_MAX / 2)

/* -- reading replies -------------------------------------------------------------------------- */

/* Prints the value of a line "NAME:VALUE" of INFO's reply; false if there is not such a line. */
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

/* Returns the number in the text, or REDIS_NUMBER_MAX if it is larger; UNTOLD: there is none. */
static int64_t number_of(const char *text)
{
    int64_t number = decimal_size(text, REDIS_NUMBER_MAX);
    return number < 0 ? UNTOLD : number;
}

/* Reads the number of that name in INFO; *out stays as it is if there is none. */
static void info_number(const char *info, const char *name, int64_t *out)
{
    char text[64];

    if (info_text(info, name, text, sizeof text))
        *out = number_of(text);
}

/* Whether INFO has that value under that name. */
static bool info_says(const char *info, const char *name, const char *value)
{
    char text[32];
    return info_text(info, name, text, sizeof text) && strcmp(text, value) == 0;
}

/* Returns how many replicas INFO lists as online, in lines of
 * "slave0:ip=10.0.0.2,port=6379,state=online,offset=…"; UNTOLD: it does not list them. */
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

/* The facts that have a name in the replies to HELLO, to INFO, and to CONFIG GET. */
static const struct fact {
    const char *hello, *info, *setting;
    size_t place, size; /* in struct server_facts; size 0: a number */
} facts_with_names[] = {
#define TEXT(name)   offsetof(struct server_facts, name), sizeof((struct server_facts){0}.name)
#define NUMBER(name) offsetof(struct server_facts, name), 0
    {"server", "server_name", NULL, TEXT(figures.software)},
    {"version", NULL, NULL, TEXT(figures.version)},
    {"mode", "redis_mode", NULL, TEXT(mode)},
    {NULL, "run_id", NULL, TEXT(memory.run_id)},
    {NULL, "master_replid", NULL, TEXT(grace.own_replication)},
    {NULL, "uptime_in_seconds", NULL, NUMBER(figures.uptime_s)},
    {NULL, "used_memory", NULL, NUMBER(figures.memory)},
    {NULL, "connected_clients", NULL, NUMBER(clients)},
    {NULL, "maxmemory", "maxmemory", NUMBER(figures.maxmemory)},
    {NULL, "maxmemory_policy", "maxmemory-policy", TEXT(policy)},
    {NULL, NULL, "appendonly", TEXT(appendonly)},
    {NULL, NULL, "appendfsync", TEXT(appendfsync)},
    {NULL, NULL, "no-appendfsync-on-rewrite", TEXT(no_fsync)},
    {NULL, NULL, "save", TEXT(save)},
    {NULL, NULL, "min-replicas-to-write", NUMBER(min_replicas)},
    {NULL, NULL, "replica-read-only", TEXT(read_only)},
    {NULL, NULL, "timeout", NUMBER(timeout_s)},
    {NULL, "maxclients", "maxclients", NUMBER(clients_max)},
};
#define FACTS (sizeof facts_with_names / sizeof *facts_with_names)

/* Puts a value where the table says: as text, which has a size, or as a number. */
static void take_fact(struct server_facts *facts, const struct fact *fact, const char *value)
{
    char *place = (char *)facts + fact->place;

    if (fact->size)
        snprintf(place, fact->size, "%s", value);
    else
        *(int64_t *)(void *)place = number_of(value);
}

void redis_facts_info(struct server_facts *facts, const redisReply *reply)
{
    char value[128];

    if (reply->type != REDIS_REPLY_STRING)
        return;
    const char *info = reply->str;
    for (size_t i = 0; i < FACTS; i++) {
        const struct fact *fact = &facts_with_names[i];
        if (fact->info && info_text(info, fact->info, value, sizeof value))
            take_fact(facts, fact, value);
    }
    if (!info_text(info, "valkey_version", facts->figures.version, sizeof facts->figures.version))
        info_text(info, "redis_version", facts->figures.version, sizeof facts->figures.version);
    if (info_text(info, "aof_enabled", value, sizeof value))
        strcpy(facts->appendonly, value[0] == '1' ? "yes" : "no");
    /* Buffers for replicas and the append-only file do not count as used. */
    int64_t uncounted = 0;
    info_number(info, "mem_not_counted_for_evict", &uncounted);
    if (uncounted > 0 && uncounted < facts->figures.memory)
        facts->figures.memory -= uncounted;
    facts->grace.promoted =
        info_text(info, "master_replid2", value, sizeof value) && value[strspn(value, "0")] != '\0';
    facts->figures.replicas = count_replicas(info);
    facts->aof_failed = info_says(info, "aof_last_write_status", "err");
    facts->snapshot_failed = info_says(info, "rdb_last_bgsave_status", "err");
}

/* Returns the ith text of a list, which the reply owns; "": there is none. */
static const char *text_at(const redisReply *reply, size_t i)
{
    const char *text = redis_reply_string(reply, i);
    return text ? text : "";
}

/* Reads the marker of --grace, the reply to HMGET: run id, replication id, the longest lease in ms,
 * until when nothing is granted. All are nil (marked: false) where no request with --grace has come
 * yet; an error tells nothing. */
static void read_grace(struct server_facts *facts, const redisReply *reply)
{
    struct grace_facts *grace = &facts->grace;

    if (reply->type != REDIS_REPLY_ARRAY || reply->elements != 4)
        return;
    grace->has_marker = true;
    grace->marked = *text_at(reply, 0) != '\0';
    snprintf(grace->run_id, sizeof grace->run_id, "%s", text_at(reply, 0));
    snprintf(grace->replication, sizeof grace->replication, "%s", text_at(reply, 1));
    grace->longest_ms = number_of(text_at(reply, 2));
    grace->until_ms = number_of(text_at(reply, 3));
}

/* HELLO needs no right but that of being connected. */
void redis_facts_hello(struct server_facts *facts, const redisReply *reply)
{
    for (size_t i = 0; i < FACTS; i++) {
        const struct fact *fact = &facts_with_names[i];
        const char *value = fact->hello ? redis_reply_field(reply, fact->hello) : NULL;
        if (value)
            take_fact(facts, fact, value);
    }
}

/* Reads the marker of a quorum's member, the reply to HMGET: run id, since when it has forgotten
 * nothing, when it was first asked (ms since 1970). INFO's run_id and the server's clock, now_ms,
 * must have been read. */
static void read_member(struct server_facts *facts, const redisReply *reply)
{
    int64_t now = facts->grace.now_ms;

    if (reply->type != REDIS_REPLY_ARRAY || reply->elements != 3 || now <= 0 || !*text_at(reply, 0))
        return;
    int64_t since = now - number_of(text_at(reply, 1)), first = now - number_of(text_at(reply, 2));
    bool same = strcmp(text_at(reply, 0), facts->memory.run_id) == 0;
    facts->memory.remembers_ms = same && since > 0 ? since : 0; /* another process forgot all */
    facts->memory.serves_ms = first > 0 ? first : 0;
}

void redis_facts_setting(struct server_facts *facts, const char *name, const redisReply *reply)
{
    const char *value = redis_reply_string(reply, 1);

    if (!value)
        return;
    for (size_t i = 0; i < FACTS; i++) {
        const struct fact *fact = &facts_with_names[i];
        /* As a fact, an empty text is one that was not told. */
        if (fact->setting && strcmp(name, fact->setting) == 0)
            take_fact(facts, fact, *value || !fact->size ? value : "none");
    }
}

/* -- asking ------------------------------------------------------------------------------------ */

struct probe {
    const struct store_address *address;
    struct server_facts *facts;
    struct loop *loop;
    struct redis_session *session;
    struct moment sent;
    struct moment answered;
    /* Takes the replies of the batch under way. */
    void (*hear)(struct probe *probe, redisReply *const *replies);
    bool failed;

    int64_t pings[PINGS];
    size_t ping_count;
    int64_t first_clock_ns, last_clock_ns; /* the server's, since 1970 */
    struct moment first_read, last_read;   /* when, by ours */
};

/* Ends the wait for an answer, and has the question's function hear it
 * (redis_session_events.done). */
static void on_replies(void *arg, redisReply *const *replies, size_t count,
                       const struct answer *failure)
{
    struct probe *probe = arg;

    (void)count;
    probe->answered = moment_now();
    if (failure) {
        probe->failed = true;
        probe->facts->failure = *failure;
    } else if (probe->hear) {
        probe->hear(probe, replies);
    }
    loop_stop(probe->loop);
}

/* Sends the commands that were added, and waits for their replies, which hear() takes. Returns
 * whether they came. */
static bool send_question(struct probe *probe, size_t replies,
                          void (*hear)(struct probe *, redisReply *const *))
{
    probe->hear = hear;
    probe->sent = moment_now();
    redis_session_send(probe->session, replies, 0, moment_plus(probe->sent, ANSWER_NS));
    return answer_await(probe->loop, &probe->facts->failure) && !probe->failed;
}

/* -- latency and clock ------------------------------------------------------- */

/* Returns what a reply to TIME says, in ns since 1970; UNTOLD: it is an error, or too large. */
static int64_t clock_of(const redisReply *reply)
{
    int64_t us = redis_reply_time(reply);
    return us >= 0 && us < CLOCK_MAX_NS / NS_PER_US ? us * NS_PER_US : UNTOLD;
}

/* Notes how long the reply to TIME took (an error takes as long on the way), and what the server's
 * clock said. */
static void hear_ping(struct probe *probe, redisReply *const *replies)
{
    int64_t took = moment_until(probe->sent, probe->answered);
    int64_t clock = clock_of(replies[0]);

    probe->pings[probe->ping_count++] = took;
    if (clock == UNTOLD)
        return;
    probe->last_clock_ns = clock;
    probe->last_read = probe->answered;
    if (probe->first_clock_ns)
        return;
    probe->first_clock_ns = clock;
    probe->first_read = probe->answered;
    probe->facts->figures.ahead_ms = (clock + took / 2 - clock_wall()) / NS_PER_MS;
}

/* Measures some round trips, and how far the server's clock and this host's advance meanwhile.
 * False: a question was not answered. */
static bool ask_pings(struct probe *probe)
{
    struct server_facts *facts = probe->facts;

    for (size_t i = 0; i < PINGS; i++) {
        if (i > 0)
            loop_run_for(probe->loop, PAUSE_NS);
        REDIS_SESSION_ADD(probe->session, "TIME");
        if (!send_question(probe, 1, hear_ping))
            return false;
    }
    diagnosis_sort_pings(probe->pings, PINGS, &facts->figures.ping_median_ns,
                         &facts->figures.ping_max_ns);
    facts->clock_ns = probe->last_clock_ns - probe->first_clock_ns;
    facts->here_ns = moment_until(probe->first_read, probe->last_read);
    return true;
}

/* -- version and settings ---------------------------------------------------------- */

/* Takes what the server says of itself: HELLO, INFO, and then each setting. */
static void hear_self(struct probe *probe, redisReply *const *replies)
{
    redis_facts_hello(probe->facts, replies[0]);
    redis_facts_info(probe->facts, replies[1]);
    for (size_t i = 0, next = 2; i < FACTS; i++)
        if (facts_with_names[i].setting)
            redis_facts_setting(probe->facts, facts_with_names[i].setting, replies[next++]);
}

/* Asks the server for what it says of itself, in one batch. False: no answer. */
static bool ask_self(struct probe *probe)
{
    size_t count = 2;

    REDIS_SESSION_ADD(probe->session, "HELLO", "2");
    REDIS_SESSION_ADD(probe->session, "INFO");
    for (size_t i = 0; i < FACTS; i++) {
        if (!facts_with_names[i].setting)
            continue;
        REDIS_SESSION_ADD(probe->session, "CONFIG", "GET", facts_with_names[i].setting);
        count++;
    }
    return send_question(probe, count, hear_self);
}

/* -- may it have forgotten locks? -------------------------------------------------------------- */

/* Takes the replies to ask_markers(). */
static void hear_markers(struct probe *probe, redisReply *const *replies)
{
    probe->facts->grace.now_ms = clock_of(replies[0]) / NS_PER_MS;
    read_grace(probe->facts, replies[1]);
    read_member(probe->facts, replies[2]);
    probe->facts->memory.told = probe->answered;
}

/* Asks for the server's time, and for two markers, which only requests with --grace (epoch.lua), or
 * in a quorum (member.lua), write. False: no answer. */
static bool ask_markers(struct probe *probe)
{
    char *epoch = redis_marker(probe->address->prefix, "epoch");
    char *quorum = redis_marker(probe->address->prefix, "quorum");

    REDIS_SESSION_ADD(probe->session, "TIME");
    REDIS_SESSION_ADD(probe->session, "HMGET", epoch, "r", "i", "l", "u"); /* read_grace() */
    REDIS_SESSION_ADD(probe->session, "HMGET", quorum, "run", "since", "first");
    bool is_answered = send_question(probe, 3, hear_markers);
    free(epoch);
    free(quorum);
    return is_answered;
}

/* -- does it run scripts? --------------------------------------------------------------------- */

/* Takes the time of a script that does nothing, or why it was refused. */
static void hear_script(struct probe *probe, redisReply *const *replies)
{
    struct server_facts *facts = probe->facts;
    struct answer answer = {0};

    if (replies[0]->type == REDIS_REPLY_INTEGER) {
        facts->script_ns = moment_until(probe->sent, probe->answered);
        return;
    }
    if (replies[0]->type == REDIS_REPLY_ERROR)
        redis_error_answer(replies[0]->str, &answer);
    else
        redis_error_senseless(&answer);
    memcpy(facts->script_fault, answer.text, sizeof facts->script_fault);
}

/* Has the server run a script that does nothing. False: no answer. */
static bool ask_script(struct probe *probe)
{
    REDIS_SESSION_ADD(probe->session, "EVAL", "return 1", "0");
    return send_question(probe, 1, hear_script);
}

/* -- does a restart bring back what scripts wrote? -------------------------------------------- */

/* The commands, with words behind the key, that a script's writes are in the append-only file. */
static const char *const replayed[][4] = {
    {"HSET", "f", "v"}, {"HDEL", "f"}, {"PEXPIREAT", "1"}, {"DEL"}};
#define REPLAYED (sizeof replayed / sizeof *replayed)

/* Takes the replies about the user "default". The server says, as a text, why it would deny a
 * command; an error tells nothing. */
static void hear_replay(struct probe *probe, redisReply *const *replies)
{
    probe->facts->replay = REPLAY_ALLOWED;
    for (size_t i = 0; i < REPLAYED; i++)
        if (replies[i]->type == REDIS_REPLY_ERROR)
            probe->facts->replay = REPLAY_UNTOLD;
        else if (replies[i]->type == REDIS_REPLY_STRING && probe->facts->replay != REPLAY_UNTOLD)
            probe->facts->replay = REPLAY_DENIED;
}

/* Asks whether the user "default", in whose name a restart replays that file, may do each of these.
 * False: no answer. */
static bool ask_replay(struct probe *probe)
{
    char *key = key_in_store(probe->address->prefix, SCRATCH);

    for (size_t i = 0; i < REPLAYED; i++) {
        const char *argv[] = {"ACL", "DRYRUN",       "default",     replayed[i][0],
                              key,   replayed[i][1], replayed[i][2]};
        int argc = 5; /* up to the key; the words behind it may be NULL */
        while (argc < 7 && argv[argc])
            argc++;
        redis_session_add(probe->session, argc, argv);
    }
    free(key);
    return send_question(probe, REPLAYED, hear_replay);
}

/* -- rights ---------------------------------------------------------------------- */

/* Notes what the reply says of that right: that the user lacks it, or has it only for other keys or
 * channels, or that the server does not know the command. Any other error comes behind that check:
 * it has the right. */
static void note_lack(struct server_facts *facts, size_t right, const redisReply *reply)
{
    enum rights_lack lack =
        reply->type == REDIS_REPLY_ERROR ? rights_judge(reply->str) : RIGHTS_FINE;

    facts->unknown[right] |= lack == RIGHTS_NO_COMMAND;
    facts->lacks[right] |= lack == RIGHTS_LACK_COMMAND || lack == RIGHTS_NO_COMMAND;
    facts->lacks_keys |= lack == RIGHTS_LACK_KEYS;
    facts->lacks_channels |= lack == RIGHTS_LACK_CHANNELS;
}

/* Whether it is the right to MULTI or EXEC, between which the server is asked about all others. */
static bool frames_others(const struct right *right)
{
    return strcmp(right->name, "multi") == 0 || strcmp(right->name, "exec") == 0;
}

/* Takes the replies about the rights to MULTI and EXEC: whether the others can be asked about. */
static void hear_frame(struct probe *probe, redisReply *const *replies)
{
    size_t next = 0;

    for (size_t i = 0; *rights[i].name; i++)
        if (frames_others(&rights[i]))
            note_lack(probe->facts, i, replies[next++]);
    probe->facts->rights_known = replies[0]->type != REDIS_REPLY_ERROR;
}

/* Takes the replies about all other rights, within a transaction that is not executed. */
static void hear_rights(struct probe *probe, redisReply *const *replies)
{
    size_t next = 1; /* the first is MULTI's */

    for (size_t i = 0; *rights[i].name; i++)
        if (!frames_others(&rights[i]))
            note_lack(probe->facts, i, replies[next++]);
}

/* Adds the call that shows whether the user has a right: its words, with a key or a channel in
 * place of the marks for these. */
static void add_right(struct probe *probe, const struct right *right, const char *key,
                      const char *channel)
{
    const char *argv[RIGHT_WORDS];
    char call[sizeof right->call], *rest;
    int argc = 0;

    strcpy(call, right->call);
    for (char *word = strtok_r(call, " ", &rest); word; word = strtok_r(NULL, " ", &rest))
        argv[argc++] = strcmp(word, RIGHT_KEY) == 0       ? key
                       : strcmp(word, RIGHT_CHANNEL) == 0 ? channel
                                                          : word;
    redis_session_add(probe->session, argc, argv);
}

/* Asks whether the user has each right. Rights are checked when a command is queued, and nothing of
 * what is queued here is ever executed: the connection is closed instead. False: no answer. */
static bool ask_rights(struct probe *probe)
{
    char *key = key_in_store(probe->address->prefix, SCRATCH);
    char *channel = key_in_store(probe->address->prefix, CHANNEL);
    size_t count = 1;

    REDIS_SESSION_ADD(probe->session, "MULTI");
    REDIS_SESSION_ADD(probe->session, "EXEC");
    bool is_answered = send_question(probe, 2, hear_frame);
    if (is_answered && probe->facts->rights_known) {
        REDIS_SESSION_ADD(probe->session, "MULTI");
        for (const struct right *right = rights; *right->name; right++) {
            if (frames_others(right))
                continue;
            add_right(probe, right, key, channel);
            count++;
        }
        is_answered = send_question(probe, count, hear_rights);
    }
    free(key);
    free(channel);
    return is_answered;
}

/* -- all of it --------------------------------------------------------------------------------- */

/* Connects to the server, and notes how long that took. Returns whether it let the user in. */
static bool greet_server(struct probe *probe)
{
    struct moment began = moment_now();

    redis_session_send(probe->session, 0, 0, moment_plus(began, probe->address->connect_timeout));
    if (!answer_await(probe->loop, &probe->facts->failure) || probe->failed)
        return false;
    probe->facts->connected_ns = moment_until(began, probe->answered);
    redis_session_expiry(probe->session, &probe->facts->expiry);
    return true;
}

/* Makes all facts untold: they stay so where the server does not tell them. */
static void know_nothing(struct server_facts *facts)
{
    *facts = (struct server_facts){.connected_ns = UNTOLD,
                                   .figures = untold_figures,
                                   .grace = {.now_ms = UNTOLD},
                                   .memory.remembers_ms = UNTOLD,
                                   .memory.serves_ms = UNTOLD,
                                   .script_ns = UNTOLD};
    for (size_t i = 0; i < FACTS; i++)
        if (facts_with_names[i].size == 0)
            *(int64_t *)(void *)((char *)facts + facts_with_names[i].place) = UNTOLD;
}

/* Asks the server of address->urls[0], for less than connect_timeout and a few seconds; changes
 * nothing there. False with a message in "fault" if the question could not even be asked here. */
static bool ask_server(const struct store_address *address, struct server_facts *facts, char *fault,
                       size_t size)
{
    static const struct redis_session_events events = {.done = on_replies};
    struct probe probe = {.address = address, .facts = facts, .loop = loop_new()};

    know_nothing(facts);
    probe.session = redis_session_new(probe.loop, address, &events, &probe, fault, size);
    if (probe.session) {
        /* A server that stops answering half-way counts as not reached. */
        probe.facts->reached = greet_server(&probe) && ask_pings(&probe) && ask_self(&probe) &&
                               ask_markers(&probe) && ask_script(&probe) && ask_replay(&probe) &&
                               ask_rights(&probe);
        redis_session_free(probe.session);
    }
    loop_free(probe.loop);
    return probe.session != NULL;
}

/* -- Sentinels --------------------------------------------------------------------------------- */

/* All Sentinels have answered, or cannot: ends the loop, arg, in which check_sentinels() waits. */
static void all_heard(void *arg, const struct sentinel_vote *vote)
{
    (void)vote;
    loop_stop(arg);
}

/* Asks the Sentinels of address->urls[0], for less than connect_timeout, and adds findings about
 * them. False with a message in "fault" if they could not even be asked from here. */
static bool check_sentinels(const struct store_address *address, struct diagnosis *diagnosis,
                            char *fault, size_t size)
{
    struct tls *tls = address->urls->tls ? tls_new(&address->tls, fault, size) : NULL;

    if (address->urls->tls && !tls)
        return false;
    struct loop *loop = loop_new();
    struct sentinels *sentinels = sentinels_new(loop, address->urls, tls);
    struct sentinel_login login =
        sentinel_login(address, address->sentinel_password, store_address_password(address));
    sentinels_ask(sentinels, SENTINELS_ALL, &login,
                  moment_plus(moment_now(), address->connect_timeout), all_heard, loop);
    loop_run(loop);
    judge_sentinels(sentinels_facts(sentinels), diagnosis);
    struct tls_expiry expiry = sentinels_expiry(sentinels);
    diagnosis_add_expiry(diagnosis, "a Sentinel: ", &expiry);
    sentinels_free(sentinels);
    tls_discard(tls);
    loop_free(loop);
    return true;
}

/* -- findings ---------------------------------------------------------------------------------- */

/* Adds a server to the checkup, with its facts and the findings. Returns it, valid until the next
 * one is added. */
static struct checked_server *add_server(const struct checkup_plan *plan, const struct url *url,
                                         const struct server_facts *facts, struct checkup *checkup)
{
    struct checked_server *server = checkup_add(checkup, url);
    const struct store_address *address = plan->address;
    struct requirements requirements = {.url = url,
                                        .prefix = address->prefix,
                                        .lease = plan->lease,
                                        .replicas = address->replicas == REPLICAS_NONE ? 0
                                                    : address->replicas == REPLICAS_COUNT
                                                        ? address->replica_count
                                                        : 1,
                                        .grace = address->grace,
                                        .quorum = address->url_count > 1,
                                        .secret = url->password || address->password};

    server->reached = facts->reached;
    server->cause = facts->failure.cause;
    snprintf(server->said, sizeof server->said, "%s", facts->failure.said);
    server->figures = facts->figures;
    judge_server(facts, &requirements, &server->diagnosis);
    return server;
}

bool redis_check_server(const struct checkup_plan *plan, const struct url *url,
                        struct checkup *checkup, struct redis_memory *memory, char *fault,
                        size_t size)
{
    struct store_address address = *plan->address;
    struct server_facts facts;

    address.urls = url;
    address.url_count = 1;
    if (!ask_server(&address, &facts, fault, size))
        return false;
    if (!facts.reached) /* half of the facts are not to be relied on */
        facts.memory.remembers_ms = UNTOLD;
    if (memory)
        *memory = facts.memory;
    struct checked_server *server = add_server(plan, url, &facts, checkup);
    return !url->master || check_sentinels(&address, &server->diagnosis, fault, size);
}

void redis_check_none(const struct checkup_plan *plan, const struct url *url,
                      const struct answer *failure, struct checkup *checkup)
{
    struct server_facts facts;

    know_nothing(&facts);
    facts.failure = *failure;
    add_server(plan, url, &facts, checkup);
}

bool redis_check(const struct checkup_plan *plan, struct checkup *checkup, char *fault, size_t size)
{
    return redis_check_server(plan, plan->address->urls, checkup, NULL, fault, size);
}
