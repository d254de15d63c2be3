/* Takes the clients of a host, executes what they ask, and answers them. A request is a command of
 * a client: it is about the connection, and has a function do_…() here, or about records, and is
 * run over a unit (unit.h). Replies gather in client->out, and are sent behind each command. */
#include "host/store.h"

#include <errno.h>
#include <netdb.h>
#include <poll.h>
#include <pwd.h>
#include <signal.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/decimal.h"
#include "base/mem.h"
#include "host/script.h"
#include "host/shedlock.h"
#include "rules/scripts.h"

/* How long a command may take, ms: rlock has given up long before. */
#define COMMAND_MS 60000
/* How often a unit is done again because another one was quicker, or it needs more keys. */
#define ATTEMPTS_MAX 200
/* How long it waits before that at most, us, and how often that time is doubled. */
#define PAUSE_MAX_US 500000
#define DOUBLED_MAX  8

/* Words that were copied. */
struct words {
    struct slice *at;
    size_t count;
};

struct client {
    int fd;
    struct resp_in in;
    struct strbuf out;
    bool patient;        /* its messages may be late */
    bool hears_all;      /* the messages of all channels, in tests */
    bool queues;         /* it is between MULTI and EXEC: commands wait in its queue */
    struct words *queue; /* a command each */
    size_t queued;
    bool gone; /* it is dropped at the end of the turn */
};

struct host_channels host_channels;

static struct {
    const struct host *host;
    const struct host_store *store;
    struct client **clients;
    size_t client_count;
    struct words address; /* the words of OPEN */
    char user[64];        /* that has logged in, or tried to */
    bool refused;         /* there is no database, for the reason that is in "fault" */
    struct host_fault fault;
    bool broken; /* the connection to the database is, so this host ends */
} server;

/* Adds a copy of the word. */
static void words_add(struct words *words, struct slice slice)
{
    *MEM_APPEND(words->at, words->count) = slice_duplicate(slice);
}

static void words_free(struct words *words)
{
    while (words->count > 0)
        slice_free(&words->at[--words->count]);
    free(words->at);
    *words = (struct words){0};
}

/* Has SIGALRM end this process in so many ms, where a call of the store hangs; 0: it does not. */
static void limit_time(int64_t ms)
{
    const struct itimerval limit = {.it_value = {ms / 1000, ms % 1000 * 1000}};

    setitimer(ITIMER_REAL, &limit, NULL);
}

/* -- units ------------------------------------------------------------------------------------- */

/* Replies with the fault, as an error with the name of the user. One that breaks the connection to
 * the database ends this host. */
static void reply_fault(struct client *client, struct host_fault *fault)
{
    char text[sizeof fault->why.user + sizeof fault->why.said + 40];

    shedlock_explain(&fault->why);
    snprintf(fault->why.user, sizeof fault->why.user, "%s", server.user);
    host_error_print(&fault->why, text, sizeof text);
    resp_error(&client->out, text);
    server.broken |= fault->broken;
}

/* Sends the messages of a unit to the clients that hear all, which are in tests. */
static void tell_listeners_to_all(const struct unit *unit)
{
    for (size_t i = 0; i < server.client_count; i++)
        for (size_t m = 0; server.clients[i]->hears_all && m < unit->message_count; m++) {
            struct strbuf *out = &server.clients[i]->out;
            resp_array(out, 4);
            resp_bulk(out, slice_of("pmessage"));
            resp_bulk(out, slice_of("*"));
            resp_bulk(out, unit->messages[m].channel);
            resp_bulk(out, unit->messages[m].text);
        }
}

/* Runs the script once over what the store has, and commits what it has changed. HOST_AGAIN: it is
 * to be run again, as others were quicker, or the unit lacked a key. HOST_DONE: the reply is the
 * script's, which may be an error. */
static enum host_outcome attempt_script(const struct script_call *call, struct unit *unit,
                                        struct host_fault *fault)
{
    enum host_outcome outcome = server.store->load(unit, fault);

    if (outcome != HOST_DONE)
        return outcome;
    enum script_outcome ran = script_run(call, unit);
    if (ran == SCRIPT_AGAIN)
        return HOST_AGAIN;
    bool changes = ran == SCRIPT_DONE && unit_has_changes(unit);
    if (changes)
        outcome = server.store->commit(unit, fault);
    else
        server.store->abandon();
    /* Only a commit shows that the guessed records are those of now: the next attempt reads. */
    if (unit->guessed && !changes) {
        unit->again = true;
        return HOST_AGAIN;
    }
    if (outcome == HOST_DONE && ran == SCRIPT_DONE)
        tell_listeners_to_all(unit);
    return outcome;
}

/* Runs the call, a script or one command, until it is committed, and replies: with its reply, or
 * with the fault for which it was not done. */
static void run_script(struct client *client, const struct script_call *call)
{
    /* inspect.lua only reads, most of the time. */
    struct unit unit = {.reads_only = !call->hex || strcmp(call->hex, script_inspect.sha1) == 0,
                        .asks = call->hex && strcmp(call->hex, script_acquire.sha1) == 0};
    struct host_fault fault = {
        .why = {.error = WIRE_NOT_READY, .said = "others were quicker each time"}};
    enum host_outcome outcome = HOST_AGAIN;
    struct moment begun = moment_now();

    for (size_t i = 0; i < call->key_count; i++)
        unit_add(&unit, call->keys[i], UNIT_WRITES);
    for (unsigned i = 0; outcome == HOST_AGAIN && i < ATTEMPTS_MAX && unit.count <= UNIT_KEYS_MAX;
         i++) {
        bool at_once = unit.again;
        unit_restart(&unit);
        if (i > 0 && !at_once) {
            /* A pause, so that two do not get into each other's way again, and many do not keep the
             * store busy with attempts that fail: at random, and at most as long as the attempt
             * before took, doubled with each attempt. Those that ask for a lock may be many, and
             * must not keep others from their renewals and releases, which double half as often. */
            unsigned doubled = unit.asks ? i : i / 2;
            int64_t took_us = moment_until(begun, moment_now()) / NS_PER_US;
            int64_t most_us = took_us << (doubled < DOUBLED_MAX ? doubled : DOUBLED_MAX);
            usleep((useconds_t)(random() % (most_us < PAUSE_MAX_US ? most_us + 1 : PAUSE_MAX_US)));
        }
        begun = moment_now();
        outcome = attempt_script(call, &unit, &fault);
    }
    /* A holder may hear late that it is asked to release the lock. */
    client->patient |= outcome == HOST_DONE && unit.asks && script_replied("GRANTED");
    if (outcome == HOST_DONE)
        script_reply(&client->out);
    else
        reply_fault(client, &fault);
    unit_end(&unit);
}

/* -- for a store ------------------------------------------------------------------------------- */

bool host_fail(struct host_fault *fault, enum wire_error error, const char *said)
{
    fault->broken = wire_error_breaks(error);
    return host_error_set(&fault->why, error, said);
}

void host_find(struct strbuf *out, const char *level, const char *text, const char *advice)
{
    resp_array(out, 3);
    resp_bulk(out, slice_of(level));
    resp_bulk(out, slice_of(text));
    resp_bulk(out, slice_of(advice));
}

/* -- messages ---------------------------------------------------------------------------------- */

void host_tell(struct slice name, struct slice text)
{
    for (size_t i = 0; i < host_channels.count; i++) {
        struct client *client = host_channels.at[i].client;
        if (!slice_equal(host_channels.at[i].name, name))
            continue;
        /* The client has something to do now, and waits for no other message until it listens
         * anew. */
        client->patient = true;
        resp_array(&client->out, 3);
        resp_bulk(&client->out, slice_of("message"));
        resp_bulk(&client->out, name);
        resp_bulk(&client->out, text);
    }
}

/* Returns the channel of that name that the client listens to; without a name (NULL) its latest
 * one. NULL: none. */
static struct host_channel *channel_of(const struct client *client, const struct slice *name)
{
    for (size_t i = host_channels.count; i-- > 0;)
        if (host_channels.at[i].client == client &&
            (!name || slice_equal(host_channels.at[i].name, *name)))
            return &host_channels.at[i];
    return NULL;
}

/* Removes the channel from host_channels, where the last one takes its place. */
static void leave_channel(struct host_channel *channel)
{
    slice_free(&channel->name);
    *channel = host_channels.at[--host_channels.count];
}

/* Replies to (UN)SUBSCRIBE: with the name of the command, the channel (NULL: it listened to none),
 * and to how many channels the client listens now. */
static void reply_subscribed(struct client *client, const char *kind, const struct slice *channel)
{
    int64_t count = 0;

    for (size_t i = 0; i < host_channels.count; i++)
        count += host_channels.at[i].client == client;
    resp_array(&client->out, 3);
    resp_bulk(&client->out, slice_of(kind));
    if (channel)
        resp_bulk(&client->out, *channel);
    else
        resp_null(&client->out);
    resp_number(&client->out, count);
}

/* -- commands ---------------------------------------------------------------------------------- */

/* A command of a client. */
struct request {
    struct client *client;
    const struct slice *words;
    size_t count;
};

static void perform_command(const struct request *request);

/* The text of the ith word, which has a NUL behind it; "": there are not so many words. */
static const char *word_text(const struct request *request, size_t i)
{
    return i < request->count ? request->words[i].at : "";
}

/* Replies "OK N" where a waiter may ask every N ms, else "OK ADDRESS" of the database's server; a
 * Unix socket has none. */
static void reply_opened(struct client *client)
{
    struct sockaddr_storage peer = {0};
    socklen_t size = sizeof peer;
    char text[4 + 48] = "OK";
    int ms;

    if (getpeername(server.store->poll_fd(HOST_NO_LISTENER, &ms), (struct sockaddr *)&peer,
                    &size) == 0 &&
        peer.ss_family != AF_UNIX &&
        getnameinfo((struct sockaddr *)&peer, size, text + 3, sizeof text - 3, NULL, 0,
                    NI_NUMERICHOST) == 0)
        text[2] = ' ';
    if (server.store->poll_ms && *server.store->poll_ms)
        snprintf(text, sizeof text, "OK %d", *server.store->poll_ms);
    resp_status(&client->out, text);
}

/* The words of OPEN, as rules/wire_error.h explains them at HOST_PROTOCOL. */
enum {
    OPEN_PROTOCOL = 1,
    OPEN_LIMIT_MS,
    OPEN_HOST,
    OPEN_PORT,
    OPEN_USER,
    OPEN_PASSWORD,
    OPEN_DATABASE,
    OPEN_TABLE,
    OPEN_TLS,
    OPEN_CA,
    OPEN_CERTIFICATE,
    OPEN_KEY,
    OPEN_CLIENT,
    OPEN_KNOWN,
    OPEN_MARGIN
};

/* OPEN, with which rlock begins: connects to the database, and replies OK, or why that failed. */
static void do_open(const struct request *request)
{
    int64_t given = strtoll(word_text(request, OPEN_LIMIT_MS), NULL, 10),
            limit = given > 0 ? given : COMMAND_MS;
    /* There is time left to say why no host will do. */
    struct moment until = moment_plus(moment_now(), limit * 4 / 5 * NS_PER_MS);

    /* The store keeps the texts, so they are copied to where they stay. */
    for (size_t i = 0; i < request->count; i++)
        words_add(&server.address, request->words[i]);
    const struct request kept = {.words = server.address.at, .count = request->count};
    const struct host_target target = {.host = word_text(&kept, OPEN_HOST),
                                       .port = word_text(&kept, OPEN_PORT),
                                       .user = word_text(&kept, OPEN_USER),
                                       .password = word_text(&kept, OPEN_PASSWORD),
                                       .database = word_text(&kept, OPEN_DATABASE),
                                       .tls = strcmp(word_text(&kept, OPEN_TLS), "1") == 0,
                                       .ca = word_text(&kept, OPEN_CA),
                                       .certificate = word_text(&kept, OPEN_CERTIFICATE),
                                       .key = word_text(&kept, OPEN_KEY),
                                       .client = word_text(&kept, OPEN_CLIENT),
                                       .known = word_text(&kept, OPEN_KNOWN),
                                       .margin = word_text(&kept, OPEN_MARGIN),
                                       .address = "",
                                       .until = until};
    const char *table = *word_text(&kept, OPEN_TABLE) ? word_text(&kept, OPEN_TABLE) : "rlock";

    const struct passwd *own =
        *target.user || !server.store->takes_own ? NULL : getpwuid(geteuid());
    snprintf(server.user, sizeof server.user, "%s", own ? own->pw_name : target.user);
    limit_time(limit);
    server.refused = strcmp(word_text(request, OPEN_PROTOCOL), HOST_PROTOCOL) != 0 ||
                     !server.store->open(&target, table, &server.fault);
    if (server.fault.why.error == WIRE_PASSWORD && !*target.password)
        server.fault.why.error = WIRE_NO_PASSWORD;
    if (server.refused)
        reply_fault(request->client, &server.fault);
    else
        reply_opened(request->client);
}

/* Returns the value of a script's argument, from word "first" on; NULL: it was not sent. */
static const char *argument_text(const struct request *request, size_t first, const char *name)
{
    for (size_t i = first; i + 1 < request->count; i += 2) {
        if (slice_is(request->words[i], name))
            return word_text(request, i + 1);
    }
    return NULL;
}

/* In place of the script init.lua, which marks a new server that has forgotten nothing: makes
 * the tables, and replies as the script does. user: gets rights to them; may be NULL. */
static void make_store(struct client *client, const char *user)
{
    struct unit clock = {.reads_only = true}; /* has no keys: loading it tells the time */
    struct host_fault fault;

    if (!server.store->make(user, &fault) || server.store->load(&clock, &fault) != HOST_DONE) {
        reply_fault(client, &fault);
        return;
    }
    resp_array(&client->out, 2);
    resp_bulk(&client->out, slice_of("MARKED"));
    resp_number(&client->out, clock.now_us / 1000);
}

/* EVALSHA or EVAL, a digest or a script, how many keys, keys, arguments. */
static void do_eval(const struct request *request)
{
    bool by_digest = slice_is(request->words[0], "evalsha");
    char hex[SHA1_HEX_SIZE];
    int64_t keys;

    if (!decimal_parse(word_text(request, 2), 0, (int64_t)request->count - 3, &keys)) {
        resp_error(&request->client->out, "ERR wrong number of keys");
        return;
    }
    snprintf(hex, sizeof hex, "%.*s", SHA1_HEX_SIZE - 1, word_text(request, 1));
    if (by_digest && !script_is_known(hex)) {
        resp_error(&request->client->out, "NOSCRIPT No matching script. Please use EVAL.");
    } else if (!by_digest && !script_load(request->words[1], hex)) {
        script_reply(&request->client->out);
    } else if (strcmp(hex, script_init.sha1) == 0 && !server.host->extra) { /* not in tests */
        make_store(request->client, argument_text(request, 3 + (size_t)keys, "user"));
    } else {
        const struct script_call call = {.hex = hex,
                                         .keys = request->words + 3,
                                         .key_count = (size_t)keys,
                                         .arguments = request->words + 3 + keys,
                                         .argument_count = request->count - 3 - (size_t)keys};
        run_script(request->client, &call);
    }
}

/* Replies as a master without replicas does. */
static void do_role(const struct request *request)
{
    resp_array(&request->client->out, 3);
    resp_bulk(&request->client->out, slice_of("master"));
    resp_number(&request->client->out, 0);
    resp_array(&request->client->out, 0);
}

/* SQL QUERY: asks the store on behalf of a checkup. */
static void do_sql(const struct request *request)
{
    struct host_fault fault;

    if (!server.store->ask(word_text(request, 1), &request->client->out, &fault))
        reply_fault(request->client, &fault);
}

/* MULTI: from now on commands wait for EXEC. Also CLIENT, which has no effect. */
static void do_multi(const struct request *request)
{
    request->client->queues = slice_is(request->words[0], "multi");
    resp_status(&request->client->out, "OK");
}

/* -- SCAN -------------------------------------------------------------------------------------- */

/* For store->list(): adds the name to words. */
static void note_name(void *arg, struct slice name)
{
    words_add(arg, name);
}

/* SCAN CURSOR MATCH PATTERN …: replies all names at once, and "0" for a cursor: there are no more.
 * The store lists the names that begin as the pattern does, up to its first wildcard; match.lua
 * finds those that fit. */
static void do_scan(const struct request *request)
{
    struct words words = {0}; /* the arguments of match.lua: the pattern, and the names */
    struct host_fault fault;

    if (!slice_is(slice_of(word_text(request, 2)), "match")) {
        resp_error(&request->client->out, "ERR syntax error");
        return;
    }
    words_add(&words, slice_of(word_text(request, 3)));
    char *prefix = mem_strdup(words.at[0].at), *to = prefix;
    for (const char *from = prefix; *from && !strchr("*?[", *from); *to++ = *from++)
        if (*from == '\\' && from[1]) /* the next byte is not a wildcard */
            from++;
    if (server.store->list((struct slice){prefix, (size_t)(to - prefix)}, note_name, &words,
                           &fault)) {
        const struct script_call call = {
            .hex = script_match.sha1, .arguments = words.at, .argument_count = words.count};
        struct unit unit = {.reads_only = true};
        script_is_known(call.hex); /* which makes it known */
        if (script_run(&call, &unit) == SCRIPT_DONE) {
            resp_array(&request->client->out, 2);
            resp_bulk(&request->client->out, slice_of("0"));
        }
        script_reply(&request->client->out);
    } else {
        reply_fault(request->client, &fault);
    }
    words_free(&words);
    free(prefix);
}

/* -- channels ---------------------------------------------------------------------------------- */

/* Subscribes the client to a channel, once. */
static void listen_to(struct client *client, struct slice name)
{
    if (!channel_of(client, &name))
        *MEM_APPEND(host_channels.at, host_channels.count) =
            (struct host_channel){client, slice_duplicate(name), .is_new = true};
}

/* SUBSCRIBE: in a transaction, behind the script that the message answers. */
static void do_subscribe(const struct request *request)
{
    for (size_t i = 1; i < request->count; i++) {
        listen_to(request->client, request->words[i]);
        reply_subscribed(request->client, "subscribe", &request->words[i]);
    }
}

/* UNSUBSCRIBE: from all channels, with a reply for each, and one if there are none. */
static void do_unsubscribe(const struct request *request)
{
    struct host_channel *channel = channel_of(request->client, NULL);

    if (!channel)
        reply_subscribed(request->client, "unsubscribe", NULL);
    for (; channel; channel = channel_of(request->client, NULL)) {
        struct slice name = slice_duplicate(channel->name);
        leave_channel(channel);
        reply_subscribed(request->client, "unsubscribe", &name);
        slice_free(&name);
    }
}

/* PSUBSCRIBE: in tests, to the messages of all channels, whatever the pattern. */
static void do_psubscribe(const struct request *request)
{
    request->client->hears_all = true;
    reply_subscribed(request->client, "psubscribe", &request->words[1]);
}

/* -- transactions ------------------------------------------------------------------------------ */

/* EXEC: performs the commands since MULTI. */
static void do_exec(const struct request *request)
{
    struct client *client = request->client;

    client->queues = client->patient = false;
    for (size_t i = 0; i < client->queued; i++) {
        const struct words *words = &client->queue[i];
        /* The connection listens from the end of a unit on. So it must know its channels before the
         * first unit begins: a message right behind that is heard then. */
        if (words->count == 2 && slice_is(words->at[0], "subscribe"))
            listen_to(client, words->at[1]);
        /* A waiter starts when it is called; a holder, which renews, is asked only now and then. */
        client->patient |= words->count > 2 && slice_is(words->at[1], script_renew.sha1);
    }
    resp_array(&client->out, client->queued);
    for (size_t i = 0; i < client->queued; i++) {
        const struct request one = {client, client->queue[i].at, client->queue[i].count};
        perform_command(&one);
        words_free(&client->queue[i]);
    }
    client->queued = 0;
}

static const struct {
    const char *name;
    size_t least; /* so many words at least, its name included */
    void (*run)(const struct request *request);
} commands[] = {
    {"open", 1, do_open},
    {"evalsha", 3, do_eval},
    {"eval", 3, do_eval},
    {"multi", 1, do_multi},
    {"exec", 1, do_exec},
    {"subscribe", 2, do_subscribe},
    {"unsubscribe", 1, do_unsubscribe},
    {"psubscribe", 2, do_psubscribe},
    {"scan", 4, do_scan},
    {"role", 1, do_role},
    {"sql", 2, do_sql},
    {"client", 1, do_multi},
};
enum { COMMANDS = sizeof commands / sizeof *commands };

/* Performs one command, and replies. Commands that are not in the table are about records. */
static void perform_command(const struct request *request)
{
    const struct script_call call = {.arguments = request->words, .argument_count = request->count};
    const struct host *host = server.host;
    size_t i = 0;

    limit_time(COMMAND_MS);
    while (i < COMMANDS &&
           !(slice_is(request->words[0], commands[i].name) && request->count >= commands[i].least))
        i++;
    if (i < COMMANDS)
        commands[i].run(request);
    else if (!host->reply || !host->reply(request->words, request->count, &request->client->out))
        run_script(request->client, &call);
    limit_time(0);
}

/* Performs a command, or puts it into the client's queue behind MULTI, and replies. Without a
 * database each command fails for the reason that OPEN did. */
static void obey_request(const struct request *request)
{
    if (request->count == 0)
        return;
    if (server.refused && !slice_is(request->words[0], "open")) {
        reply_fault(request->client, &server.fault);
    } else if (request->client->queues && !slice_is(request->words[0], "exec")) {
        struct client *client = request->client;
        struct words *words = MEM_APPEND(client->queue, client->queued);
        *words = (struct words){0};
        for (size_t i = 0; i < request->count; i++)
            words_add(words, request->words[i]);
        resp_status(&client->out, "QUEUED");
    } else {
        perform_command(request);
    }
}

/* -- sockets ----------------------------------------------------------------------------------- */

/* Sends the client's replies, and waits where it does not take them yet. */
static void send_all(struct client *client)
{
    size_t sent = 0;

    while (!client->gone && sent < client->out.size) {
        ssize_t count = write(client->fd, client->out.text + sent, client->out.size - sent);
        if (count > 0)
            sent += (size_t)count;
        else if (errno == EAGAIN)
            poll(&(struct pollfd){.fd = client->fd, .events = POLLOUT}, 1, -1);
        else if (errno != EINTR)
            break; /* it may have asked more before it went: reading finds out that it is gone */
    }
    strbuf_cut(&client->out, 0);
}

/* Reads what a client has sent, and performs the commands in it. One that has closed its end, or
 * makes no sense, is gone from then on. */
static void read_commands(struct client *client)
{
    struct request request = {client, NULL, 0};
    enum resp_state state;
    char bytes[16384];
    ssize_t got = read(client->fd, bytes, sizeof bytes);

    if (got < 0 && (errno == EINTR || errno == EAGAIN))
        return;
    if (got <= 0) {
        client->gone = true;
        return;
    }
    resp_feed(&client->in, bytes, (size_t)got);
    while ((state = resp_next(&client->in, &request.words, &request.count)) == RESP_COMMAND &&
           !server.broken) {
        obey_request(&request);
        send_all(client);
    }
    client->gone |= state == RESP_DAMAGED;
}

/* Adds the client of a connection, which it owns. */
static void add_client(int fd)
{
    struct client *client = mem_zeroed(sizeof *client);

    client->fd = fd;
    *MEM_APPEND(server.clients, server.client_count) = client;
}

/* Frees the ith client; the last one takes its number. */
static void drop_client(size_t i)
{
    struct client *client = server.clients[i];

    for (struct host_channel *channel; (channel = channel_of(client, NULL));)
        leave_channel(channel);
    close(client->fd);
    resp_in_free(&client->in);
    strbuf_free(&client->out);
    for (size_t q = 0; q < client->queued; q++)
        words_free(&client->queue[q]);
    free(client->queue);
    free(client);
    server.clients[i] = server.clients[--server.client_count];
}

/* Waits for commands, for messages of the store, and for new clients, and performs the commands.
 * fds: room for the store, the listener if there is one, and from "first" on the clients. */
static void wait_and_read(struct pollfd *fds, size_t first)
{
    size_t known = server.client_count;
    enum host_ears ears = HOST_NO_LISTENER;

    /* As soon as the least patient client must hear. */
    for (size_t i = 0; i < host_channels.count && ears != HOST_ALERT; i++)
        ears = host_channels.at[i].client->patient ? HOST_PATIENT : HOST_ALERT;
    int ms = -1, fd = server.refused ? -1 : server.store->poll_fd(ears, &ms);
    fds[0] = (struct pollfd){.fd = fd, .events = POLLIN};
    if (first > 1)
        fds[1] = (struct pollfd){.fd = server.host->listener, .events = POLLIN};
    for (size_t i = 0; i < known; i++)
        fds[first + i] = (struct pollfd){.fd = server.clients[i]->fd, .events = POLLIN};
    if (poll(fds, first + known, ms) < 0)
        return;
    for (size_t i = 0; i < known; i++)
        if (fds[first + i].revents)
            read_commands(server.clients[i]);
    if (first > 1 && fds[1].revents)
        add_client(accept4(server.host->listener, NULL, NULL, SOCK_CLOEXEC));
}

/* Does what there is to do now: waits for requests and reads them, takes messages from the store,
 * sends answers, and drops clients that are gone. Returns false if the server has to end: the store
 * is broken, or no client is connected and none can connect. */
static bool take_turn(void)
{
    size_t first = server.host->listener ? 2 : 1;
    struct pollfd *fds = mem_zeroed((first + server.client_count) * sizeof *fds);

    wait_and_read(fds, first);
    free(fds);
    limit_time(COMMAND_MS);
    server.broken |= !server.refused && !server.broken && !server.store->read_messages();
    limit_time(0);
    for (size_t i = server.client_count; i-- > 0;) {
        send_all(server.clients[i]);
        if (server.clients[i]->gone)
            drop_client(i);
    }
    return !server.broken && (server.client_count > 0 || server.host->listener);
}

int host_serve(const struct host *host)
{
    sigset_t none;

    server.host = host;
    server.store = host->store;
    server.refused = !host->listener; /* until OPEN; in tests, the store is open */
    host_error_set(&server.fault.why, WIRE_UNFIT,
                   "rlock and its program are of different versions");
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    signal(SIGALRM, SIG_DFL);
    signal(SIGPIPE, SIG_IGN);
    srandom((unsigned)getpid());
    scripts_begin(host->extra);
    /* All that a host has to say goes through the socket. The agent of rlock acquire --keep has one
     * for as long as it lives, and the reader of what acquire has written must not wait for that.
     * The standard output is /dev/null already. */
    if (!host->listener) {
        if (dup2(STDOUT_FILENO, STDERR_FILENO) < 0)
            close(STDERR_FILENO);
        add_client(STDIN_FILENO);
    }
    while (take_turn())
        ;
    while (server.client_count > 0)
        drop_client(0);
    free(server.clients);
    words_free(&server.address);
    scripts_end();
    return 0;
}
