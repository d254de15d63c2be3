#include "lives/server.h"

#include "host/script.h"

/* The program's own loop is not used, but all that it does for a client. Each server knows its own
 * scripts only. */
#define script_is_known knows_script
#define script_load     learn_script
static bool knows_script(const char *hex);
static bool learn_script(struct slice text, char hex[SHA1_HEX_SIZE]);
#include "host/serve.c"
#undef script_is_known
#undef script_load

#include <errno.h>
#include <lua.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/text.h"
#include "lives/database.h"
#include "lives/latch.h"
#include "lives/life.h"
#include "lives/lua_memory.h"
#include "lives/queue.h"
#include "lives/names.h"
#include "lives/replication.h"
#include "lives/sentinels.h"
#include "memory_records.h"
#include "store/quorum/quorum.h"

#define ENTRIES 64
#define SCRIPTS 16
/* How many lives have one quorum: the scripts run at each of its servers. */
#define QUORUM_EVERY 20

/* A holder in the records, for the oracle. */
struct entry {
    char name[64], owner[OWNER_ROOM];
    int64_t deadline; /* ms */
};

static struct node {
    __typeof__(server) host;
    struct host_channels channels;
    struct memory_records records;
    struct entry entries[ENTRIES];
    size_t entry_count;
    char scripts[SCRIPTS][SHA1_HEX_SIZE]; /* that it knows */
    size_t script_count;
    bool knows_all;
    /* INFO tells them: the id of its history, that of the one before; the process, since when it
     * runs, and how many scripts it has run. */
    unsigned replication_id, former_replication_id;
    unsigned process;
    int64_t started; /* ns */
    unsigned long calls, failed;
    int64_t frozen_until, down_until, clock_rate, clock_step;
    int64_t asked; /* when it was first asked for a lock, as far as it knows; 0: never */
    enum trouble trouble;
    int64_t trouble_until;
} nodes[SERVERS], *here = nodes; /* the one whose state is in serve.c's variables */

int server_count;

static struct proc self = {.kind = SERVER};
static bool by_admin;             /* the request under way is */
static struct connection *asking; /* by that connection */

static void note_entries(const char *name, const struct record *record);
static void on_change(const char *name, const struct record *record);
static void on_commit(void);
static const struct memory_watch watch = {on_change, on_commit};

/* Has serve.c act for that server from now on. */
static void enter(struct node *node)
{
    here->host = server;
    here->channels = host_channels;
    here = node;
    server = node->host;
    host_channels = node->channels;
    memory_records_use(&node->records, &watch);
}

static int64_t now_at(const struct node *node)
{
    return WALL_BASE + node->clock_step + world.now +
           (world.now - 1000 * SEC) / 1000 * node->clock_rate / 1000;
}

int64_t server_now(void)
{
    return now_at(here);
}

static int number_of(const struct node *node)
{
    return (int)(node - nodes);
}

/* A replica that has no room for more is read-only all the same: Redis asks for room, for a disk
 * and for replicas at a master only. */
static enum trouble trouble_of(const struct node *node)
{
    enum trouble trouble = world.now < node->trouble_until ? node->trouble : TROUBLE_NONE;
    bool is_master = server_count > 1 || replication_is_master(number_of(node));
    bool of_masters = trouble == TROUBLE_NONE || trouble == TROUBLE_DISK ||
                      trouble == TROUBLE_FEW_REPLICAS || trouble == TROUBLE_MEMORY;

    return of_masters && !is_master ? TROUBLE_REPLICA : trouble;
}

/* Whether what is stored there counts. */
static bool counts(int number)
{
    bool has_ended = number != replication.master && !server_is_up(number);

    if (!replication.servers)
        return number < server_count;
    return replication_is_master(number) && !has_ended;
}

/* -- scripts ----------------------------------------------------------------------------------- */

static bool knows_script(const char *hex)
{
    bool known = here->knows_all;

    for (size_t i = 0; i < here->script_count && !known; i++)
        known = strcmp(here->scripts[i], hex) == 0;
    return known && script_is_known(hex);
}

/* A digest takes its time, and clients have hardly a script but those of rules/. */
static bool learn_script(struct slice text, char hex[SHA1_HEX_SIZE])
{
    const struct bytecode *one = bytecodes;

    while (one->script && strcmp(text.at, one->script->text) != 0)
        one++;
    if (one->script)
        memcpy(hex, one->script->sha1, SHA1_HEX_SIZE);
    if (one->script ? !script_is_known(hex) : !script_load(text, hex))
        return false;
    if (!knows_script(hex)) {
        if (here->script_count == SCRIPTS)
            abort();
        memcpy(here->scripts[here->script_count++], hex, SHA1_HEX_SIZE);
    }
    return true;
}

/* -- the records, for the oracle --------------------------------------------------------------- */

static void add_entries(const char *name, const struct record_field *family)
{
    char *text = strndup(family->value.at, family->value.size), *rest = text, *line;
    long long deadline;

    while ((line = strsep(&rest, "\n"))) {
        struct entry *entry = &here->entries[here->entry_count];
        if (sscanf(line, "%lld %*s %*s %119s", &deadline, entry->owner) != 2)
            continue;
        snprintf(entry->name, sizeof entry->name, "%s", name);
        entry->deadline = deadline;
        if (strstr(line, " asked="))
            life_on_asked(entry->owner);
        if (++here->entry_count == ENTRIES)
            abort();
    }
    free(text);
}

static bool is_over(const struct node *node, const struct entry *entry)
{
    return entry->deadline * MS <= now_at(node);
}

/* When it ends, as the world counts. */
static int64_t ends_at(const struct node *node, const struct entry *entry)
{
    int64_t left = entry->deadline * MS - now_at(node);

    return world.now + left - left / 1000 * node->clock_rate / 1000;
}

static bool has_entry(const struct entry *all, size_t count, const struct entry *wanted)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp(all[i].name, wanted->name) == 0 && strcmp(all[i].owner, wanted->owner) == 0)
            return true;
    return false;
}

/* Whether the record remembers a run of that owner. */
static bool remembers(const struct record *record, const char *owner)
{
    bool found = false;

    for (size_t i = 0; i < record->count && !found; i++) {
        const struct record_field *field = &record->fields[i];
        found = !field->gone && field->name.size > 2 && memcmp(field->name.at, "r:", 2) == 0 &&
                memmem(field->value.at, field->value.size, owner, strlen(owner));
    }
    return found;
}

static void note_entries(const char *name, const struct record *record)
{
    struct entry before[ENTRIES], *entries = here->entries;
    size_t before_count = here->entry_count;

    memcpy(before, entries, before_count * sizeof *before);
    for (size_t i = here->entry_count; i-- > 0;)
        if (strcmp(entries[i].name, name) == 0)
            entries[i] = entries[--here->entry_count];
    for (size_t i = 0; i < record->count; i++) {
        const struct record_field *field = &record->fields[i];
        if (!field->gone && field->name.size > 2 && memcmp(field->name.at, "h:", 2) == 0)
            add_entries(name, field);
    }
    for (size_t i = 0; by_admin && i < before_count; i++)
        if (!has_entry(entries, here->entry_count, &before[i]))
            life_on_taken(before[i].owner, ends_at(here, &before[i]));
    if (server_count > 1 || number_of(here) != replication.master)
        return; /* there is no queue, or it is a replica's */
    for (size_t i = 0; asking && asking->run && !by_admin && i < before_count; i++)
        if (strcmp(before[i].name, name) == 0 && strcmp(before[i].owner, asking->run->owner) == 0 &&
            !has_entry(entries, here->entry_count, &before[i]) && !is_over(here, &before[i]))
            life_on_released(asking->run, remembers(record, before[i].owner) ||
                                              trouble_of(here) == TROUBLE_MEMORY);
    queue_read(name, record);
    latch_on_change(name, record);
    for (size_t i = 0; i < here->entry_count; i++)
        if (strcmp(entries[i].name, name) == 0 && !has_entry(before, before_count, &entries[i]))
            life_on_granted(name, entries[i].owner);
}

static void on_change(const char *name, const struct record *record)
{
    here->asked = here->asked ? here->asked : world.now;
    replication_note(name);
    note_entries(name, record);
}

static void on_commit(void)
{
    replication_commit(number_of(here), asking);
    life_on_commit();
}

/* -- the host ---------------------------------------------------------------------------------- */

/* The same scripts come with each connection: each is digested once. */
bool __real_script_load(struct slice text, char hex[SHA1_HEX_SIZE]);
bool __wrap_script_load(struct slice text, char hex[SHA1_HEX_SIZE])
{
    static struct known {
        struct slice text;
        char hex[SHA1_HEX_SIZE];
    } known[32];
    struct known *one = known;

    while (one->text.at && !slice_equal(one->text, text))
        if (++one == known + sizeof known / sizeof *known)
            return __real_script_load(text, hex);
    if (!one->text.at) {
        one->text = slice_duplicate(text);
        if (!__real_script_load(text, one->hex))
            abort();
        lua_memory_keep();
    }
    memcpy(hex, one->hex, SHA1_HEX_SIZE);
    return true;
}

/* A Redis has all of its keys: nothing is done again because one was not loaded. */
struct record *__real_unit_record(struct unit *unit, struct slice name, enum unit_use use);
struct record *__wrap_unit_record(struct unit *unit, struct slice name, enum unit_use use)
{
    if (server.store == &memory_records_store)
        memory_records_reach(unit, name, use);
    return __real_unit_record(unit, name, use);
}

/* SCRIPT LOAD, which rlock asks a host for as it asks Redis. */
static bool reply_to_script(const struct slice *words, size_t count, struct strbuf *out)
{
    char hex[SHA1_HEX_SIZE];

    if (count < 3 || !slice_is(words[0], "script"))
        return false;
    learn_script(words[2], hex);
    resp_bulk(out, slice_of(hex));
    return true;
}

/* A command of a script. */
static const char *refuse(const struct unit *unit, struct slice name)
{
    bool has_written = false;

    for (size_t i = 0; i < unit->count; i++)
        has_written |= unit->keys[i].record.changed;
    return trouble_with_write(trouble_of(here), name, has_written);
}

/* A number of the process, as it forgets nothing while it runs (member.lua). */
static void run_info(struct command_call *call)
{
    char text[500];

    snprintf(text, sizeof text,
             "# "
             "Server\r\nmaster_replid:%040u\r\nmaster_replid2:%040u\r\nrun_id:%020d%020u\r\nuptime_"
             "in_seconds:%lld\r\n"
             "number_of_cached_scripts:%zu\r\n"
             "cmdstat_eval:calls=%lu,usec=1,usec_per_call=1.00,rejected_calls=0,"
             "failed_calls=%lu\r\n",
             here->replication_id, here->former_replication_id, number_of(here), here->process,
             (long long)((world.now - here->started) / SEC), here->script_count, here->calls,
             here->failed);
    lua_pushstring(call->lua, text);
}

void server_load(void)
{
    static const struct command commands_here[] = {{"info", 1, 0, RECORD_NONE, run_info}, {0}};
    static const struct command_extra extra = {commands_here, refuse};
    static const struct host host = {
        .store = &memory_records_store, .listener = 1, .extra = &extra, .reply = reply_to_script};

    for (int i = 0; i < SERVERS; i++) {
        nodes[i].host.host = &host;
        nodes[i].host.store = &memory_records_store;
    }
    server = here->host;
    scripts_begin(&extra);
    for (const struct bytecode *one = bytecodes; one->script; one++)
        if (!script_is_known(one->script->sha1))
            abort();
    lua_memory_keep();
}

static void drop_clients(struct node *node)
{
    struct proc *before = kernel.current;

    enter(node);
    kernel.current = &self;
    while (server.client_count > 0)
        drop_client(0);
    kernel.current = before;
}

static void forget_records(struct node *node)
{
    memory_records_clear(&node->records);
    node->entry_count = 0;
    node->asked = 0;
}

static void begin(struct node *node, int64_t rate)
{
    drop_clients(node);
    forget_records(node);
    server.broken = false;
    node->script_count = 0;
    node->knows_all = !one_in(3);
    node->process = 0;
    node->replication_id = 1;
    node->former_replication_id = 0;
    node->started = 0;
    node->calls = node->failed = 0;
    node->clock_rate = rate;
    node->clock_step = node->frozen_until = node->down_until = node->trouble_until = 0;
}

/* The clocks of a quorum need not agree. */
static void begin_quorum(int64_t rate)
{
    server_count = one_in(4) ? 5 : 3;
    for (int i = 0; i < server_count; i++) {
        nodes[i].knows_all = false;
        nodes[i].clock_rate = rate ? chance_below(20000) - 10000 : 0;
        nodes[i].clock_step = one_in(2) ? 0 : chance_below(3600 * SEC);
    }
}

bool server_clocks_differ(void)
{
    for (int i = 1; i < server_count; i++)
        if (nodes[i].clock_step != nodes[0].clock_step)
            return true;
    return false;
}

void server_begin_replicas(void)
{
    for (int i = 0; i < replication.servers; i++) {
        nodes[i].knows_all &= i == 0;
        if (replication.clocks_differ && i > 0)
            nodes[i].clock_step = (one_in(2) ? 1 : -1) * chance_below(3600 * SEC);
    }
}

void server_begin(int64_t rate)
{
    queue_begin();
    for (int i = 0; i < SERVERS; i++)
        begin(&nodes[i], rate);
    server_count = 1;
    if (one_in(QUORUM_EVERY))
        begin_quorum(rate);
    enter(nodes);
}

void server_begin_database(void)
{
    server.store = database_here.cuts_of_1000 ? &database_store : &memory_records_store;
}

bool server_serves_admin(void)
{
    return by_admin;
}

bool server_is_up(int number)
{
    if (number >= SENTINEL_FIRST && number < NOWHERE)
        return sentinel_is_up(number);
    return number < SERVERS && world.now >= nodes[number].down_until;
}

void server_accept(struct connection *connection)
{
    if (connection->server >= SENTINEL_FIRST)
        return;
    struct node *node = &nodes[connection->server];
    const char *words = trouble_with_client(trouble_of(node));

    if (words) {
        network_answer(connection, words, strlen(words));
        network_hang_up(connection);
        return;
    }
    enter(node);
    add_client(SERVER_DESCRIPTORS + connection->number);
}

void server_close(struct connection *connection)
{
    if (!connection)
        return;
    connection->waits = false;
    if (connection->accepted)
        network_hang_up(connection);
}

static struct client *client_of(const struct connection *connection)
{
    for (size_t i = 0; i < server.client_count; i++)
        if (server.clients[i]->fd == SERVER_DESCRIPTORS + connection->number)
            return server.clients[i];
    return NULL;
}

static void send_answers(void)
{
    memory_records_store.read_messages();
    for (size_t i = server.client_count; i-- > 0;) {
        send_all(server.clients[i]);
        if (server.clients[i]->gone)
            drop_client(i);
    }
}

/* Redis's reply of a replica. */
static void tell_replica(struct strbuf *out)
{
    resp_array(out, 5);
    resp_bulk(out, slice_of("slave"));
    resp_bulk(out, slice_of("10.0.0.9"));
    resp_number(out, 6379);
    resp_bulk(out, slice_of("connected"));
    resp_number(out, 0);
}

static void tell_master(struct strbuf *out)
{
    int count = replication_count(number_of(here));

    resp_array(out, 3);
    resp_bulk(out, slice_of("master"));
    resp_number(out, 0);
    resp_array(out, (size_t)count);
    for (int i = 0; i < count; i++) {
        resp_array(out, 3);
        resp_bulk(out, slice_of("10.0.0.9"));
        resp_bulk(out, slice_of("6379"));
        resp_bulk(out, slice_of("0"));
    }
}

static void wait_for_replicas(struct connection *connection, const struct request *request)
{
    if (trouble_is_replica(trouble_of(here)))
        resp_error(&request->client->out,
                   "ERR WAIT cannot be used with replica instances. Please also note that writes "
                   "to replicas are just local and are not propagated.");
    else
        replication_wait(connection, (unsigned)atoi(word_text(request, 1)),
                         strtoll(word_text(request, 2), NULL, 10) * MS);
}

static void drop_queue(struct client *client)
{
    while (client->queued > 0)
        words_free(&client->queue[--client->queued]);
    client->queues = false;
}

/* A transaction of which a command was refused is refused. */
static void discard(struct client *client)
{
    drop_queue(client);
    resp_error(&client->out, "EXECABORT Transaction discarded because of previous errors.");
}

/* A call of a script, by itself or in a transaction, is done or not, and answered by an error. */
static bool answer_for_proxy(const struct request *request)
{
    struct client *client = request->client;
    const char *error = trouble_with_call(trouble_of(here));
    struct slice name = request->words[0];
    size_t before = client->out.size;
    bool calls = slice_is(name, "exec") ||
                 (!client->queues && (slice_is(name, "evalsha") || slice_is(name, "eval")));

    if (!error || !calls)
        return false;
    if (one_in(2))
        obey_request(request);
    else
        drop_queue(client);
    strbuf_cut(&client->out, before);
    resp_error(&client->out, error);
    return true;
}

/* As commandstats counts. */
static void count_call(const struct client *client, size_t before)
{
    here->calls++;
    here->failed += client->out.size > before && client->out.text[before] == '-';
}

/* The client's UNSUBSCRIBE was refused: Redis refuses all else then, too. */
static bool is_subscribed(const struct request *request)
{
    return channel_of(request->client, NULL) && !request->client->queues &&
           !slice_is(request->words[0], "subscribe") && !slice_is(request->words[0], "unsubscribe");
}

static void answer(struct connection *connection, const struct request *request)
{
    struct client *client = request->client;
    struct slice name = request->words[0];
    size_t before = client->out.size;
    const char *refusal = trouble_with_command(trouble_of(here), name, client->queues);

    if (is_subscribed(request)) {
        resp_error(&client->out, "ERR Can't execute it: only SUBSCRIBE and the like are allowed");
        return;
    }
    if (answer_for_proxy(request))
        return;
    if (refusal) {
        connection->aborts |= client->queues;
        resp_error(&client->out, refusal);
    } else if (slice_is(name, "exec") && connection->aborts) {
        connection->aborts = false;
        discard(client);
    } else if (slice_is(name, "role") && trouble_is_replica(trouble_of(here))) {
        tell_replica(&client->out);
    } else if (slice_is(name, "role") && !client->queues) {
        tell_master(&client->out);
    } else if (slice_is(name, "wait") && !client->queues) {
        wait_for_replicas(connection, request);
    } else {
        obey_request(request);
    }
    if (!client->queues && (slice_is(name, "evalsha") || slice_is(name, "eval")))
        count_call(client, before);
}

/* As read_commands() of serve.c, but for WAIT, behind which nothing is done for the time being. */
static void answer_all(struct connection *connection, struct client *client)
{
    struct request request = {client, NULL, 0};
    enum resp_state state = RESP_MORE;

    while (!connection->waits && !server.broken &&
           (state = resp_next(&client->in, &request.words, &request.count)) == RESP_COMMAND) {
        if (request.count > 0)
            answer(connection, &request);
        send_all(client);
    }
    client->gone |= server.broken; /* each client of a database has a host of its own */
    server.broken = false;
    client->gone |= state == RESP_DAMAGED;
}

static void read_requests(struct connection *connection, struct client *client)
{
    char bytes[16384];
    ssize_t got = network_take(connection, bytes, sizeof bytes);

    if (got < 0)
        return;
    if (got == 0) {
        client->gone = true;
        return;
    }
    resp_feed(&client->in, bytes, (size_t)got);
    answer_all(connection, client);
}

/* One that waits for replicas is not read from; where it has gone, all that it sent is lost. */
static void serve(struct connection *connection, struct client *client)
{
    while (!client->gone && !connection->waits &&
           (connection->arrived_size || connection->client_ended))
        read_requests(connection, client);
    client->gone |= connection->waits && connection->client_ended;
}

/* While it is frozen nothing is read: on_thaw() does. */
void server_read_from(struct connection *connection)
{
    if (connection->server >= SENTINEL_FIRST) {
        sentinel_read_from(connection);
        return;
    }
    struct node *node = &nodes[connection->server];
    struct proc *before = kernel.current;

    if (world.now < node->frozen_until)
        return;
    lua_memory_rewind();
    enter(node);
    kernel.current = &self;
    struct client *client = client_of(connection);
    by_admin = connection->by_admin;
    asking = connection;
    if (client)
        serve(connection, client);
    if (asking->run && !by_admin)
        asking->run->served_at = world.now;
    asking = NULL;
    by_admin = false;
    send_answers();
    kernel.current = before;
}

void server_commit(struct unit *unit)
{
    struct proc *before = kernel.current;
    struct host_fault fault;

    enter(nodes);
    kernel.current = &self;
    memory_records_store.commit(unit, &fault);
    send_answers();
    kernel.current = before;
}

void server_unblock(struct connection *connection, unsigned count)
{
    struct proc *before = kernel.current;

    connection->waits = false;
    enter(&nodes[connection->server]);
    kernel.current = &self;
    struct client *client = client_of(connection);
    asking = connection;
    if (client) {
        resp_number(&client->out, count);
        send_all(client);
        answer_all(connection, client);
    }
    asking = NULL;
    kernel.current = before;
    server_read_from(connection);
}

/* -- as a master or a replica ------------------------------------------------------------------ */

const struct memory_records *server_records(int number)
{
    return &nodes[number].records;
}

int64_t server_frozen_until(int number)
{
    return nodes[number].frozen_until;
}

static struct memory_kind *record_of(struct memory_records *records, const char *name)
{
    for (size_t i = 0; i < records->count; i++)
        if (strcmp(records->all[i].name, name) == 0)
            return &records->all[i];
    struct memory_kind *added = MEM_APPEND(records->all, records->count);
    *added = (struct memory_kind){.name = mem_strdup(name)};
    return added;
}

void server_take(int number, const struct memory_kind *taken)
{
    struct node *before = here;
    struct record record = {0};

    enter(&nodes[number]);
    struct memory_kind *mine = record_of(&here->records, taken->name);
    if (taken->version > mine->version) {
        free(mine->text);
        mine->text = mem_strdup(taken->text);
        mine->version = taken->version;
        if (!record_read(&record, mine->text, strlen(mine->text)))
            abort();
        note_entries(mine->name, &record);
        record_clear(&record);
    }
    enter(before);
}

void server_copy(int from, int to)
{
    const struct memory_records *records = &nodes[from].records;

    forget_records(&nodes[to]);
    for (size_t i = 0; i < records->count; i++)
        server_take(to, &records->all[i]);
}

void server_compare(int old, int new, void (*tell)(const char *owner, int64_t deadline, bool lacks))
{
    for (size_t i = 0; i < nodes[old].entry_count; i++) {
        const struct entry *entry = &nodes[old].entries[i];
        int64_t deadline = ends_at(&nodes[old], entry), there = 0;
        for (size_t k = 0; k < nodes[new].entry_count; k++)
            if (has_entry(&nodes[new].entries[k], 1, entry))
                there = ends_at(&nodes[new], &nodes[new].entries[k]);
        if (!is_over(&nodes[old], entry) && there < deadline)
            tell(entry->owner, deadline, !there);
    }
}

void server_promote(int number, int old)
{
    nodes[number].former_replication_id = nodes[old].replication_id;
    nodes[number].replication_id = nodes[old].replication_id + 1;
    queue_begin();
}

void server_demote(int number, int new)
{
    nodes[number].replication_id = nodes[new].replication_id;
    drop_clients(&nodes[number]);
}

/* -- faults ------------------------------------------------------------------------------------ */

static void read_if_here(struct connection *connection)
{
    if (connection->server == number_of(here))
        server_read_from(connection);
}

static void on_thaw(void *node)
{
    enter(node);
    replication_on_thaw(number_of(node));
    enter(node);
    network_each(read_if_here);
}

void server_freeze(int number, int64_t ns)
{
    int64_t until = world.now + ns;

    if (until > nodes[number].frozen_until)
        nodes[number].frozen_until = until;
    world_at(until, on_thaw, &nodes[number]);
}

void server_restart(int number, int64_t ns)
{
    struct node *node = &nodes[number];

    node->down_until = world.now + ns;
    node->process++;
    node->started = node->down_until;
    node->calls = node->failed = 0;
    network_reset_clients(number);
    drop_clients(node);
    database_drop();
    server_forget_scripts(number);
    replication_on_restart(number, node->down_until);
}

void server_forget_scripts(int number)
{
    nodes[number].script_count = 0;
    nodes[number].knows_all = false;
}

static bool has_majority(int count)
{
    return count > server_count / 2;
}

/* When a majority of the servers lets a lock end that these let end then; NEVER: they are none.
 * Changes "ends". */
static int64_t end_at_majority(int64_t ends[], int count)
{
    int64_t latest = NEVER;

    if (!has_majority(count))
        return NEVER;
    for (int needed = server_count / 2; needed >= 0; needed--) {
        int best = 0;
        for (int i = 1; i < count; i++)
            best = ends[i] > ends[best] ? i : best;
        latest = ends[best];
        ends[best] = INT64_MIN;
    }
    return latest;
}

/* From when on the owner of an entry may have no majority without that server. Its latest lease may
 * be one that others do not have: "if only a bare majority has it, because the others are down, no
 * server may forget": rlock-stores(7). */
static int64_t end_without(const struct node *node, const struct entry *wanted)
{
    int64_t ends[SERVERS];
    int count = 0;

    for (int n = 0; n < SERVERS; n++)
        for (size_t i = 0; i < nodes[n].entry_count && &nodes[n] != node && counts(n); i++)
            if (has_entry(&nodes[n].entries[i], 1, wanted) && count < SERVERS)
                ends[count++] = ends_at(&nodes[n], &nodes[n].entries[i]);
    return has_majority(count) ? end_at_majority(ends, count) : world.now;
}

/* Calls "tell" for each entry of that server that lasts on when its owner has no majority without
 * it. */
static void tell_of_losers(const struct node *node,
                           void (*tell)(const char *owner, struct span span))
{
    for (size_t i = 0; i < node->entry_count; i++) {
        struct span span = {end_without(node, &node->entries[i]), ends_at(node, &node->entries[i])};
        if (span.until > span.from && span.until > world.now)
            tell(node->entries[i].owner, span);
    }
}

/* Whether it can make a majority with others that are as new, once it has no data: "in the first
 * 100 ms of a quorum", and "if only a bare majority has it, because the others are down, no server
 * may forget": rlock-stores(7). */
static bool will_look_new(int number)
{
    int new = 0;

    for (int n = 0; n < server_count; n++)
        new += n != number &&
               (!nodes[n].asked || world.now < nodes[n].asked + QUORUM_FIRST_ASKED_MS * MS);
    return server_count > 1 && has_majority(new + 1);
}

void server_forget(int number)
{
    /* rlock-stores(7), of --grace: "A holder whose lock was forgotten claims it". */
    bool lasts = server_count > 1 || replication.grace;

    if (counts(number) && will_look_new(number))
        tell_of_losers(&nodes[number], life_on_shortened);
    if (counts(number))
        tell_of_losers(&nodes[number], lasts ? life_on_thinned : life_on_forgotten);
    forget_records(&nodes[number]);
    database_drop();
    if (number == replication.master)
        queue_begin();
    replication_on_flush(number);
}

void server_step_clock(int number, int64_t ns)
{
    if (ns > 0 && counts(number))
        tell_of_losers(&nodes[number], life_on_shortened);
    nodes[number].clock_step += ns;
}

void server_trouble(int number, enum trouble trouble, int64_t ns)
{
    nodes[number].trouble = trouble;
    nodes[number].trouble_until = world.now + ns;
}

/* -- for the oracle ---------------------------------------------------------------------------- */

/* key_in_store() has put the prefix in front, and braces around. */
static bool is_of_key(const char *name, const char *key)
{
    return strstr(name, key) != NULL;
}

bool server_has_entry(const char *key, const char *owner)
{
    for (int n = 0; n < SERVERS; n++)
        for (size_t i = 0; i < nodes[n].entry_count && counts(n); i++)
            if (strcmp(nodes[n].entries[i].owner, owner) == 0 &&
                is_of_key(nodes[n].entries[i].name, key))
                return true;
    return false;
}

int64_t server_lease_end(const char *key, const char *owner)
{
    int64_t ends[SERVERS];
    int count = 0;

    for (int n = 0; n < SERVERS; n++)
        for (size_t i = 0; i < nodes[n].entry_count && counts(n) && count < SERVERS; i++)
            if (strcmp(nodes[n].entries[i].owner, owner) == 0 &&
                is_of_key(nodes[n].entries[i].name, key))
                ends[count++] = ends_at(&nodes[n], &nodes[n].entries[i]);
    return end_at_majority(ends, count);
}

bool server_has_holder(const char *key, const char *owner)
{
    int count = 0;

    for (int n = 0; n < SERVERS; n++)
        for (size_t i = 0; i < nodes[n].entry_count && counts(n); i++) {
            const struct entry *entry = &nodes[n].entries[i];
            count += strcmp(entry->owner, owner) == 0 && is_of_key(entry->name, key) &&
                     !is_over(&nodes[n], entry);
        }
    return has_majority(count);
}

int server_holders(const char *key, char *out, size_t size)
{
    int count = 0;

    *out = '\0';
    for (int n = 0; n < SERVERS; n++)
        for (size_t i = 0; i < nodes[n].entry_count && counts(n); i++) {
            const struct entry *entry = &nodes[n].entries[i];
            if (!is_of_key(entry->name, key) || is_over(&nodes[n], entry))
                continue;
            count++;
            text_append(out, size, "%s until %lld ", entry->owner, (long long)entry->deadline);
        }
    return count;
}

const char *server_record(const char *key)
{
    const struct memory_records *records = &nodes[replication.master].records;

    for (size_t i = 0; i < records->count; i++)
        if (is_of_key(records->all[i].name, key))
            return records->all[i].text;
    return "";
}
