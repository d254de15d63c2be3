/* The commands of Redis that scripts use. A function run_…() executes one: its words are there, and
 * as many as it needs at least; its record is that of its key. It changes the record, and pushes
 * one value on the stack of Lua, the reply, as a script of Redis would get it.
 *
 * To add a command, write its function, and a row in the table at the end. */
#include "host/commands.h"

#include <inttypes.h>
#include <lua.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WRONG_TYPE "WRONGTYPE Operation against a key holding the wrong kind of value"

void command_push_error(lua_State *lua, const char *text)
{
    lua_newtable(lua);
    lua_pushstring(lua, text);
    lua_setfield(lua, -2, "err");
}

void command_push_status(lua_State *lua, const char *text)
{
    lua_newtable(lua);
    lua_pushstring(lua, text);
    lua_setfield(lua, -2, "ok");
}

static void push_slice(lua_State *lua, struct slice slice)
{
    lua_pushlstring(lua, slice.at ? slice.at : "", slice.size);
}

/* Pushes the value of a field, or false for NULL: there is no such field. */
static void push_value(lua_State *lua, const struct record_field *field)
{
    if (field)
        push_slice(lua, field->value);
    else
        lua_pushboolean(lua, 0);
}

static void push_count(struct command_call *call, size_t count)
{
    lua_pushnumber(call->lua, (lua_Number)count);
}

/* -- hashes ------------------------------------------------------------------------------------ */

static void run_hset(struct command_call *call)
{
    size_t added = 0;

    bool has_pairs = call->count % 2 == 0; /* HSET KEY, then FIELD VALUE, each time */
    if (!has_pairs) {
        command_push_error(call->lua, "ERR wrong number of arguments for 'hset' command");
        return;
    }
    call->record->type = RECORD_HASH;
    call->record->changed = true;
    for (size_t i = 2; i < call->count; i += 2)
        added += record_set(call->record, call->words[i], call->words[i + 1]);
    push_count(call, added);
}

static void run_hget(struct command_call *call)
{
    push_value(call->lua, record_find(call->record, call->words[2]));
}

static void run_hmget(struct command_call *call)
{
    lua_createtable(call->lua, (int)call->count, 0);
    for (size_t i = 2; i < call->count; i++) {
        push_value(call->lua, record_find(call->record, call->words[i]));
        lua_rawseti(call->lua, -2, (int)i - 1);
    }
}

static void run_hdel(struct command_call *call)
{
    size_t gone = 0;

    for (size_t i = 2; i < call->count; i++)
        gone += record_unset(call->record, call->words[i]);
    if (gone > 0)
        call->record->changed = true;
    if (gone > 0 && call->record->live == 0) /* a hash without fields is not there */
        record_clear(call->record);
    push_count(call, gone);
}

static void run_hexists(struct command_call *call)
{
    push_count(call, record_find(call->record, call->words[2]) != NULL);
}

/* HGETALL, and HKEYS, which leaves out the values. */
static void run_fields(struct command_call *call)
{
    bool values = slice_is(call->words[0], "hgetall");
    int at = 0;

    lua_newtable(call->lua);
    for (size_t i = 0; i < call->record->count; i++) {
        const struct record_field *field = &call->record->fields[i];
        if (field->gone)
            continue;
        push_slice(call->lua, field->name);
        lua_rawseti(call->lua, -2, ++at);
        if (values) {
            push_slice(call->lua, field->value);
            lua_rawseti(call->lua, -2, ++at);
        }
    }
}

/* -- how long a key lives ---------------------------------------------------------------------- */

/* Sets how long the record lives. ms: from now on; 0: forever. */
static void set_expires(struct command_call *call, int64_t ms)
{
    call->record->expires = ms ? call->unit->now_us / 1000 + ms : 0;
    call->record->expires_written = true;
}

/* -- strings: records with one field, whose name is "" ----------------------------------------- */

static void run_get(struct command_call *call)
{
    push_value(call->lua, record_find(call->record, slice_of("")));
}

/* Takes the options of SET: NX (*if_new), and PX with how many ms it lives (*ms; 0: forever).
 * False: there is another one. */
static bool take_set_options(struct command_call *call, bool *if_new, int64_t *ms)
{
    *if_new = false;
    *ms = 0;
    for (size_t i = 3; i < call->count; i++) {
        bool has_next = i + 1 < call->count;
        if (slice_is(call->words[i], "nx"))
            *if_new = true;
        else if (has_next && slice_is(call->words[i], "px"))
            *ms = strtoll(call->words[++i].at, NULL, 10);
        else
            return false;
    }
    return true;
}

/* SET KEY VALUE [NX] [PX ms]. */
static void run_set(struct command_call *call)
{
    bool if_new;
    int64_t ms;

    if (!take_set_options(call, &if_new, &ms)) {
        command_push_error(call->lua, "ERR syntax error");
    } else if (if_new && call->record->type != RECORD_NONE) {
        lua_pushboolean(call->lua, 0);
    } else {
        struct slice value = slice_duplicate(call->words[2]);
        record_clear(call->record);
        call->record->type = RECORD_STRING;
        set_expires(call, ms);
        call->record->changed = true;
        record_set(call->record, slice_of(""), value);
        slice_free(&value);
        command_push_status(call->lua, "OK");
    }
}

/* -- any key ----------------------------------------------------------------------------------- */

static void run_del(struct command_call *call)
{
    size_t gone = 0;

    for (size_t i = 1; i < call->count; i++) {
        struct record *record = unit_record(call->unit, call->words[i], UNIT_WRITES);
        if (record && record->type != RECORD_NONE) {
            record_clear(record);
            record->changed = true;
            gone++;
        }
    }
    push_count(call, gone);
}

static void run_exists(struct command_call *call)
{
    size_t there = 0;

    for (size_t i = 1; i < call->count; i++) {
        const struct record *record = unit_record(call->unit, call->words[i], UNIT_READS);
        there += record && record->type != RECORD_NONE;
    }
    push_count(call, there);
}

static void run_type(struct command_call *call)
{
    static const char *const names[] = {[RECORD_NONE] = "none",
                                        [RECORD_STRING] = "string",
                                        [RECORD_HASH] = "hash",
                                        [RECORD_OTHER] = "list"};

    command_push_status(call->lua, names[call->record->type]);
}

static void run_pexpire(struct command_call *call)
{
    int64_t ms = strtoll(call->words[2].at, NULL, 10);
    bool there = call->record->type != RECORD_NONE;

    if (there && ms <= 0) /* its time is over */
        record_clear(call->record);
    else if (there)
        set_expires(call, ms);
    call->record->changed |= there;
    push_count(call, there);
}

/* Replies how many ms the key lives; -1: forever; -2: there is no such key. */
static void run_pttl(struct command_call *call)
{
    const struct record *record = call->record;
    int64_t ms = record->type == RECORD_NONE ? -2
                 : record->expires == 0      ? -1
                                             : record->expires - call->unit->now_us / 1000;

    lua_pushnumber(call->lua, (lua_Number)ms);
}

/* -- no key ------------------------------------------------------------------------------------ */

static void push_number_text(lua_State *lua, int64_t number)
{
    char text[24];

    snprintf(text, sizeof text, "%" PRId64, number);
    lua_pushstring(lua, text);
}

/* Replies the store's time, which stays the same for the whole unit: s since 1970, and us. */
static void run_time(struct command_call *call)
{
    lua_createtable(call->lua, 2, 0);
    push_number_text(call->lua, call->unit->now_us / 1000000);
    lua_rawseti(call->lua, -2, 1);
    push_number_text(call->lua, call->unit->now_us % 1000000);
    lua_rawseti(call->lua, -2, 2);
}

/* Publishes a message, once the unit is committed. Replies 1: how many will receive it is not
 * known, and no script asks. */
static void run_publish(struct command_call *call)
{
    unit_tell(call->unit, call->words[1], call->words[2]);
    push_count(call, 1);
}

/* Accepts SELECT: there is one database. */
static void run_select(struct command_call *call)
{
    command_push_status(call->lua, "OK");
}

static const struct command commands[] = {
    {"hget", 3, COMMAND_KEY, RECORD_HASH, run_hget},
    {"hmget", 3, COMMAND_KEY, RECORD_HASH, run_hmget},
    {"hset", 4, COMMAND_KEY | COMMAND_WRITES, RECORD_HASH, run_hset},
    {"hdel", 3, COMMAND_KEY | COMMAND_WRITES, RECORD_HASH, run_hdel},
    {"hexists", 3, COMMAND_KEY, RECORD_HASH, run_hexists},
    {"hgetall", 2, COMMAND_KEY, RECORD_HASH, run_fields},
    {"hkeys", 2, COMMAND_KEY, RECORD_HASH, run_fields},
    {"exists", 2, COMMAND_KEY, RECORD_NONE, run_exists},
    {"del", 2, COMMAND_KEY | COMMAND_WRITES, RECORD_NONE, run_del},
    {"type", 2, COMMAND_KEY, RECORD_NONE, run_type},
    {"pexpire", 3, COMMAND_KEY | COMMAND_WRITES, RECORD_NONE, run_pexpire},
    {"pttl", 2, COMMAND_KEY, RECORD_NONE, run_pttl},
    {"get", 2, COMMAND_KEY, RECORD_STRING, run_get},
    {"set", 3, COMMAND_KEY | COMMAND_WRITES, RECORD_NONE, run_set},
    {"time", 1, 0, RECORD_NONE, run_time},
    {"publish", 3, 0, RECORD_NONE, run_publish},
    {"select", 2, 0, RECORD_NONE, run_select},
    {0}};

/* The command of that name; NULL: there is none. all: ended by a name of NULL; or NULL. */
static const struct command *find_command(const struct command *all, struct slice name)
{
    for (; all && all->name; all++)
        if (slice_is(name, all->name))
            return all;
    return NULL;
}

bool command_run(struct lua_State *lua, struct unit *unit, const struct command_extra *extra,
                 command_reach *reach, const struct slice *words, size_t count)
{
    struct command_call call = {.lua = lua, .unit = unit, .words = words, .count = count};
    const struct command *command = extra && count ? find_command(extra->commands, words[0]) : NULL;
    int top = lua_gettop(lua);

    if (command)
        reach = NULL; /* a test's own command may touch any key */
    else if (count)
        command = find_command(commands, words[0]);
    const char *fault = !command                 ? "ERR unknown command"
                        : count < command->least ? "ERR wrong number of arguments"
                        : extra                  ? extra->refuse(unit, words[0])
                                                 : NULL;
    if (fault) {
        command_push_error(lua, fault);
        return true;
    }
    if (command->flags & COMMAND_KEY) {
        if (reach && !reach(words[1])) {
            command_push_error(lua, "ERR the key is out of reach");
            return true;
        }
        enum unit_use use = command->flags & COMMAND_WRITES ? UNIT_WRITES : UNIT_READS;
        call.record = unit_record(unit, words[1], use);
        if (!call.record)
            return false;
    }
    if (call.record && command->type && call.record->type && call.record->type != command->type)
        command_push_error(lua, WRONG_TYPE);
    else
        command->run(&call);
    if (unit->again)
        lua_settop(lua, top);
    return !unit->again;
}
