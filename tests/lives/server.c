#include "lives/server.h"

/* The program's own loop is not used, but all that it does for a client. */
#include "host/serve.c"

#include <errno.h>

#include "base/clock.h"
#include "base/text.h"
#include "lives/life.h"
#include "lives/queue.h"

static struct proc self = {.kind = SERVER};
static int64_t frozen_until, down_until, clock_rate;
static bool by_admin; /* the request under way is */

int64_t server_now(void)
{
    return WALL_BASE + world.now + (world.now - 1000 * SEC) / 1000 * clock_rate / 1000;
}

/* -- records in memory ------------------------------------------------------------------------- */

#define RECORDS 64
#define ENTRIES 64

static struct kept {
    char *name, *text;
    int64_t version;
} kept[RECORDS];
static size_t kept_count;

/* The holders in these records, for the oracle. */
static struct entry {
    char name[64], owner[64];
    int64_t deadline; /* ms */
} entries[ENTRIES];
static size_t entry_count;

static struct unit_message *messages;
static size_t message_count;

static struct kept *find_kept(const char *name)
{
    for (size_t i = 0; i < kept_count; i++)
        if (strcmp(kept[i].name, name) == 0)
            return &kept[i];
    return NULL;
}

static bool memory_open(const struct host_target *target, const char *table,
                        struct host_fault *fault)
{
    (void)target, (void)table, (void)fault;
    return true;
}

static enum host_outcome memory_load(struct unit *unit, struct host_fault *fault)
{
    (void)fault;
    unit->now_us = clock_wall() / 1000;
    for (size_t i = 0; i < unit->count; i++) {
        struct unit_key *key = &unit->keys[i];
        char *name = record_print_name(key->name);
        const struct kept *found = find_kept(name);
        if (found && !record_read(&key->record, found->text, strlen(found->text)))
            abort();
        key->record.version = found ? found->version : 0;
        free(name);
    }
    return HOST_DONE;
}

static void add_entries(const char *name, const struct record_field *family)
{
    char *text = strndup(family->value.at, family->value.size), *rest = text, *line;
    long long deadline;

    while ((line = strsep(&rest, "\n"))) {
        struct entry *entry = &entries[entry_count];
        if (sscanf(line, "%lld %*s %*s %63s", &deadline, entry->owner) != 2)
            continue;
        snprintf(entry->name, sizeof entry->name, "%s", name);
        entry->deadline = deadline;
        if (strstr(line, " asked="))
            life_on_asked(entry->owner);
        if (++entry_count == ENTRIES)
            abort();
    }
    free(text);
}

static bool has_entry(const struct entry *all, size_t count, const struct entry *wanted)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp(all[i].name, wanted->name) == 0 && strcmp(all[i].owner, wanted->owner) == 0)
            return true;
    return false;
}

static void note_entries(const char *name, const struct record *record)
{
    struct entry before[ENTRIES];
    size_t before_count = entry_count;

    memcpy(before, entries, sizeof before);
    for (size_t i = entry_count; i-- > 0;)
        if (strcmp(entries[i].name, name) == 0)
            entries[i] = entries[--entry_count];
    for (size_t i = 0; i < record->count; i++) {
        const struct record_field *field = &record->fields[i];
        if (!field->gone && field->name.size > 2 && memcmp(field->name.at, "h:", 2) == 0)
            add_entries(name, field);
    }
    for (size_t i = 0; by_admin && i < before_count; i++)
        if (!has_entry(entries, entry_count, &before[i]))
            life_on_taken(before[i].owner, before[i].deadline * MS);
    for (size_t i = 0; i < entry_count; i++)
        if (strcmp(entries[i].name, name) == 0 && !has_entry(before, before_count, &entries[i]))
            life_on_granted(name, entries[i].owner);
    queue_read(name, record);
}

static void keep(const struct unit_key *key)
{
    char *name = record_print_name(key->name);
    struct kept *found = find_kept(name);

    if (!found) {
        if (kept_count == RECORDS)
            abort();
        found = &kept[kept_count++];
        *found = (struct kept){.name = strdup(name)};
    }
    free(found->text);
    found->text = record_print(&key->record);
    found->version = key->record.version + 1;
    note_entries(name, &key->record);
    free(name);
}

static enum host_outcome memory_commit(struct unit *unit, struct host_fault *fault)
{
    (void)fault;
    for (size_t i = 0; i < unit->count; i++)
        if (unit->keys[i].record.changed)
            keep(&unit->keys[i]);
    life_on_commit();
    for (size_t i = 0; i < unit->message_count; i++)
        *MEM_APPEND(messages, message_count) = (struct unit_message){
            piece_duplicate(unit->messages[i].channel), piece_duplicate(unit->messages[i].text)};
    return HOST_DONE;
}

static void memory_abandon(void)
{
}

static bool memory_list(struct piece prefix, void (*each)(void *arg, struct piece name), void *arg,
                        struct host_fault *fault)
{
    (void)prefix, (void)each, (void)arg, (void)fault;
    return true;
}

static bool memory_hear(void)
{
    for (size_t i = 0; i < message_count; i++) {
        host_tell(messages[i].channel, messages[i].text);
        piece_drop(&messages[i].channel);
        piece_drop(&messages[i].text);
    }
    message_count = 0;
    return true;
}

static int memory_rest(enum host_ears ears, int *ms)
{
    (void)ears;
    return *ms = -1;
}

static bool memory_make(const char *user, struct host_fault *fault)
{
    (void)user, (void)fault;
    return true;
}

static const struct host_store memory = {.open = memory_open,
                                         .load = memory_load,
                                         .commit = memory_commit,
                                         .abandon = memory_abandon,
                                         .list = memory_list,
                                         .rest = memory_rest,
                                         .hear = memory_hear,
                                         .make = memory_make};

/* -- the host ---------------------------------------------------------------------------------- */

/* SCRIPT LOAD, which rlock asks a host for as it asks Redis. */
static bool reply_to_script(const struct piece *words, size_t count, struct strbuf *out)
{
    char hex[SHA1_HEX_SIZE];

    if (count < 3 || !piece_is(words[0], "script"))
        return false;
    if (!script_load(words[2], hex))
        abort();
    resp_bulk(out, piece_of(hex));
    return true;
}

static const char *refuse_nothing(const struct unit *unit, struct piece name)
{
    (void)unit, (void)name;
    return NULL;
}

void server_load(void)
{
    static const struct command none[] = {{0}};
    static const struct command_extra extra = {none, refuse_nothing};
    static const struct host host = {
        .store = &memory, .listener = 1, .extra = &extra, .reply = reply_to_script};

    server.host = &host;
    server.store = &memory;
    scripts_begin(&extra);
}

static void drop_clients(void)
{
    struct proc *before = kernel.current;

    kernel.current = &self;
    while (server.client_count > 0)
        drop_client(0);
    kernel.current = before;
}

void server_begin(int64_t rate)
{
    drop_clients();
    for (size_t i = 0; i < kept_count; i++) {
        free(kept[i].name);
        free(kept[i].text);
    }
    kept_count = entry_count = 0;
    queue_begin();
    server.broken = false;
    clock_rate = rate;
    frozen_until = down_until = 0;
}

bool server_is_up(void)
{
    return world.now >= down_until;
}

void server_accept(struct connection *connection)
{
    add_client(SERVER_DESCRIPTORS + connection->number);
}

void server_close(struct connection *connection)
{
    if (connection && connection->accepted)
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
    memory_hear();
    for (size_t i = server.client_count; i-- > 0;) {
        send_all(server.clients[i]);
        if (server.clients[i]->gone)
            drop_client(i);
    }
}

/* While it is frozen nothing is read: on_thaw() does. */
void server_read_from(struct connection *connection)
{
    struct proc *before = kernel.current;
    struct client *client = client_of(connection);

    if (world.now < frozen_until)
        return;
    kernel.current = &self;
    by_admin = connection->by_admin;
    while (client && !client->gone && (connection->arrived_size || connection->client_ended))
        read_commands(client);
    by_admin = false;
    send_answers();
    kernel.current = before;
}

/* -- faults ------------------------------------------------------------------------------------ */

static void on_thaw(void *unused)
{
    (void)unused;
    network_each(server_read_from);
}

void server_freeze(int64_t ns)
{
    frozen_until = world.now + ns;
    world_at(frozen_until, on_thaw, NULL);
}

void server_restart(int64_t ns)
{
    down_until = world.now + ns;
    network_reset_clients();
    drop_clients();
}

/* -- for the oracle ---------------------------------------------------------------------------- */

/* key_in_store() has put the prefix in front, and braces around. */
static bool is_of_key(const char *name, const char *key)
{
    return strstr(name, key) != NULL;
}

int64_t server_deadline(const char *key, const char *owner)
{
    for (size_t i = 0; i < entry_count; i++)
        if (strcmp(entries[i].owner, owner) == 0 && is_of_key(entries[i].name, key))
            return entries[i].deadline * MS;
    return 0;
}

int server_holders(const char *key, char *out, size_t size)
{
    int count = 0;

    *out = '\0';
    for (size_t i = 0; i < entry_count; i++) {
        if (!is_of_key(entries[i].name, key) || entries[i].deadline * MS <= server_now())
            continue;
        count++;
        text_append(out, size, "%s until %lld ", entries[i].owner, (long long)entries[i].deadline);
    }
    return count;
}

const char *server_record(const char *key)
{
    for (size_t i = 0; i < kept_count; i++)
        if (is_of_key(kept[i].name, key))
            return kept[i].text;
    return "";
}
