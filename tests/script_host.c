/* Runs the scripts of src/rules in a host (src/host), for the tests of the scripts, in place of a
 * redis-server. It takes that one's option --unixsocket PATH, and the commands that those tests
 * need besides those of the scripts. The records are in memory, or in the database that it was
 * built for (HOST_STORE): RLOCK_SCRIPT_STORE says in which, as "HOST PORT USER PASSWORD DATABASE";
 * USER is - for none. Each process has tables of its own. */
#include <lua.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "host/script.h"
#include "host/store.h"
#include "memory_records.h"

/* -- what tests ask of a Redis besides --------------------------------------------------------- */

static const struct host_store *store = &memory_records_store;
static bool is_full;    /* maxmemory */
static int64_t started; /* s since 1970 */

static struct tally {
    char name[24];
    unsigned calls, failed;
} tallies[64];
static size_t tally_count;

static struct tally *tally_of(struct slice name)
{
    for (size_t i = 0; i < tally_count; i++)
        if (slice_is(name, tallies[i].name))
            return &tallies[i];
    struct tally *tally = &tallies[tally_count++ % 64];
    *tally = (struct tally){.calls = 0};
    for (size_t i = 0; i < name.size && i < sizeof tally->name - 1; i++)
        tally->name[i] = (char)(name.at[i] | 0x20);
    return tally;
}

static bool is_write(struct slice name)
{
    static const char *const writes[] = {"hset", "hdel", "set", "del", "pexpire"};

    for (size_t i = 0; i < sizeof writes / sizeof *writes; i++)
        if (slice_is(name, writes[i]))
            return true;
    return false;
}

/* A full server refuses what may need memory, until a script has written. */
static const char *refuse(const struct unit *unit, struct slice name)
{
    static const char *const grow[] = {"hset", "set", "lpush", "rpush", "sadd", "incr"};
    static int64_t latest; /* unit, by its time */
    static bool has_written;
    struct tally *tally = tally_of(name);

    tally->calls++;
    has_written &= latest == unit->now_us;
    latest = unit->now_us;
    for (size_t i = 0; is_full && !has_written && i < sizeof grow / sizeof *grow; i++)
        if (slice_is(name, grow[i])) {
            tally->failed++;
            return "OOM command not allowed when used memory > 'maxmemory'.";
        }
    has_written |= is_write(name);
    return NULL;
}

static void run_incr(struct command_call *call)
{
    const struct record_field *field = record_find(call->record, slice_of(""));
    char text[24];
    long long next = field ? strtoll(field->value.at, NULL, 10) + 1 : 1;

    snprintf(text, sizeof text, "%lld", next);
    call->record->type = RECORD_STRING;
    call->record->changed = true;
    record_set(call->record, slice_of(""), slice_of(text));
    lua_pushnumber(call->lua, (lua_Number)next);
}

/* Makes the key one of a type that scripts must refuse. */
static void run_other(struct command_call *call)
{
    call->record->type = RECORD_OTHER;
    call->record->changed = true;
    record_set(call->record, call->words[call->count - 1], call->words[call->count - 1]);
    lua_pushnumber(call->lua, (lua_Number)call->record->live);
}

static void run_dump(struct command_call *call)
{
    char *text = record_print(call->record);

    lua_pushstring(call->lua, text);
    free(text);
}

static void run_restore(struct command_call *call)
{
    struct slice text = call->words[3];
    long long ms = strtoll(call->words[2].at, NULL, 10);

    if (!record_read(call->record, text.at, text.size)) {
        command_push_error(call->lua, "ERR Bad data format");
        return;
    }
    call->record->expires = ms ? call->unit->now_us / 1000 + ms : 0;
    call->record->changed = true;
    command_push_status(call->lua, "OK");
}

static void run_info(struct command_call *call)
{
    char text[8000] = "";
    size_t used = 0;

    if (call->count > 1 && slice_is(call->words[1], "commandstats")) {
        for (size_t i = 0; i < tally_count; i++)
            used += (size_t)snprintf(text + used, sizeof text - used,
                                     "cmdstat_%s:calls=%u,usec=1,usec_per_call=1.00,"
                                     "rejected_calls=0,failed_calls=%u\r\n",
                                     tallies[i].name, tallies[i].calls, tallies[i].failed);
    } else {
        snprintf(text, sizeof text,
                 "run_id:%040d\r\nuptime_in_seconds:%lld\r\nrole:master\r\n"
                 "master_replid:%040d\r\nmaster_replid2:%040d\r\n",
                 (int)getpid(), (long long)(clock_wall() / NS_PER_SEC - started), (int)getpid(), 0);
    }
    lua_pushstring(call->lua, text);
}

static const struct command commands[] = {
    {"info", 1, 0, RECORD_NONE, run_info},
    {"incr", 2, COMMAND_KEY | COMMAND_WRITES, RECORD_STRING, run_incr},
    {"lpush", 3, COMMAND_KEY | COMMAND_WRITES, RECORD_OTHER, run_other},
    {"rpush", 3, COMMAND_KEY | COMMAND_WRITES, RECORD_OTHER, run_other},
    {"sadd", 3, COMMAND_KEY | COMMAND_WRITES, RECORD_OTHER, run_other},
    {"zadd", 4, COMMAND_KEY | COMMAND_WRITES, RECORD_OTHER, run_other},
    {"xadd", 4, COMMAND_KEY | COMMAND_WRITES, RECORD_OTHER, run_other},
    {"dump", 2, COMMAND_KEY, RECORD_NONE, run_dump},
    {"restore", 4, COMMAND_KEY | COMMAND_WRITES, RECORD_NONE, run_restore},
    {0}};

/* -- commands of the server -------------------------------------------------------------------- */

static void add_name(void *arg, struct slice name)
{
    unit_add(arg, name, UNIT_WRITES);
}

/* All records, as many in one unit as each store takes. */
#define FLUSHED 32

static void flush_some(const struct unit *all, size_t from)
{
    struct unit unit = {0};
    struct host_fault fault;
    enum host_outcome outcome;

    for (size_t i = from; i < all->count && i < from + FLUSHED; i++)
        unit_add(&unit, all->keys[i].name, UNIT_WRITES);
    do {
        unit_restart(&unit);
        if (store->load(&unit, &fault) != HOST_DONE)
            abort();
        for (size_t i = 0; i < unit.count; i++) {
            record_clear(&unit.keys[i].record);
            unit.keys[i].record.changed = true;
        }
        outcome = store->commit(&unit, &fault);
    } while (outcome == HOST_AGAIN);
    if (outcome == HOST_FAILED) {
        fprintf(stderr, "flushall: %s\n", fault.why.said);
        abort();
    }
    unit_end(&unit);
}

static void flush(void)
{
    struct unit all = {0};
    struct host_fault fault;

    if (!store->list(slice_of(""), add_name, &all, &fault))
        abort();
    for (size_t i = 0; i < all.count; i += FLUSHED)
        flush_some(&all, i);
    unit_end(&all);
}

static bool reply(const struct slice *words, size_t count, struct strbuf *out)
{
    if (slice_is(words[0], "config") && count > 1) {
        if (slice_is(words[1], "resetstat"))
            tally_count = 0;
        for (size_t i = 2; i + 1 < count; i += 2)
            if (slice_is(words[i], "maxmemory"))
                is_full = atoi(words[i + 1].at) > 0;
        resp_status(out, "OK");
    } else if (slice_is(words[0], "script") && count > 2) {
        char hex[SHA1_HEX_SIZE];
        if (!script_load(words[2], hex))
            abort();
        resp_bulk(out, slice_of(hex));
    } else if (slice_is(words[0], "flushall")) {
        flush();
        resp_status(out, "OK");
    } else {
        return false;
    }
    return true;
}

static int listen_at(const char *path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    snprintf(address.sun_path, sizeof address.sun_path, "%s", path);
    if (fd < 0 || bind(fd, (const struct sockaddr *)&address, sizeof address) != 0 ||
        listen(fd, 600) != 0) {
        perror(path);
        exit(1);
    }
    return fd;
}

#ifdef HOST_STORE
static void open_store(const char *where)
{
    static char host[200], port[20], user[100], password[100], database[100], table[40];
    struct host_fault fault;

    if (!where ||
        sscanf(where, "%199s %19s %99s %99s %99s", host, port, user, password, database) != 5) {
        fprintf(stderr, "RLOCK_SCRIPT_STORE: HOST PORT USER PASSWORD DATABASE\n");
        exit(1);
    }
    snprintf(table, sizeof table, "t%d", (int)getpid());
    const struct host_target target = {.host = host,
                                       .port = port,
                                       .user = strcmp(user, "-") == 0 ? "" : user,
                                       .password = password,
                                       .database = database,
                                       .ca = "",
                                       .certificate = "",
                                       .key = "",
                                       .client = "tests",
                                       .margin = ""};
    store = &HOST_STORE;
    if (!store->open(&target, table, &fault) || !store->make(NULL, &fault)) {
        fprintf(stderr, "%s: %s\n", where, fault.why.said);
        exit(1);
    }
}
#endif

int main(int argc, char **argv)
{
    static const struct command_extra extra = {commands, refuse};
    const char *path = "script-host.sock";

    for (int i = 1; i + 1 < argc; i++)
        if (strcmp(argv[i], "--unixsocket") == 0)
            path = argv[i + 1];
    started = clock_wall() / NS_PER_SEC;
#ifdef HOST_STORE
    open_store(getenv("RLOCK_SCRIPT_STORE"));
#endif
    const struct host host = {
        .store = store, .listener = listen_at(path), .extra = &extra, .reply = reply};
    return host_serve(&host);
}
