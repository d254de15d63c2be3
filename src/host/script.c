/* Runs scripts in Lua 5.1, with what Redis gives them: KEYS, ARGV, redis.call() and the like. One
 * call is under way at a time (the variable "scripts"); its reply is the value on top of Lua's
 * stack. A script that needs what its unit lacks is ended by an error of Lua, and the unit is done
 * again. */
#include "host/script.h"

#include <inttypes.h>
#include <lauxlib.h>
#include <lua.h>
#include <lualib.h>
#include <stdio.h>

#include "base/clock.h"
#include "base/mem.h"
#include "rules/scripts.h"

/* How long a script may run, and how often that is looked at. The longest that is known takes
 * 20 ms. */
#define TIME_LIMIT_NS (5 * NS_PER_SEC)
#define LOOK_EVERY    1000000

static struct {
    lua_State *lua;
    const struct command_extra *extra;
    /* The call under way: */
    const struct script_call *call;
    struct unit *unit;
    struct moment began;
    bool overreached; /* it wanted a key that it was not given */
} scripts;

/* -- SHA-1, by RFC 3174 ------------------------------------------------------------------------ */

static uint32_t rotate_left(uint32_t word, int bits)
{
    return word << bits | word >> (32 - bits);
}

/* The part of a round of SHA-1 that changes every twenty rounds: its function and its constant. */
static uint32_t sha1_mix(int round, uint32_t b, uint32_t c, uint32_t d)
{
    switch (round / 20) {
    case 0: return ((b & c) | (~b & d)) + 0x5a827999;
    case 1: return (b ^ c ^ d) + 0x6ed9eba1;
    case 2: return ((b & c) | (b & d) | (c & d)) + 0x8f1bbcdc;
    default: return (b ^ c ^ d) + 0xca62c1d6;
    }
}

/* Adds 64 bytes to the state, as FIPS 180-4 has it. */
static void sha1_add_block(uint32_t state[5], const unsigned char *block)
{
    uint32_t w[80], s[5];

    for (int i = 0; i < 16; i++)
        w[i] = (uint32_t)block[4 * i] << 24 | (uint32_t)block[4 * i + 1] << 16 |
               (uint32_t)block[4 * i + 2] << 8 | block[4 * i + 3];
    for (int i = 16; i < 80; i++)
        w[i] = rotate_left(w[i - 3] ^ w[i - 8] ^ w[i - 14] ^ w[i - 16], 1);
    memcpy(s, state, sizeof s);
    for (int i = 0; i < 80; i++) {
        uint32_t next = rotate_left(s[0], 5) + sha1_mix(i, s[1], s[2], s[3]) + s[4] + w[i];
        s[4] = s[3];
        s[3] = s[2];
        s[2] = rotate_left(s[1], 30);
        s[1] = s[0];
        s[0] = next;
    }
    for (int i = 0; i < 5; i++)
        state[i] += s[i];
}

/* Fills hex with the SHA-1 of the bytes, which are padded to whole blocks: by a bit that is set,
 * zeros, and the number of their bits. */
static void sha1_hex(struct slice slice, char hex[SHA1_HEX_SIZE])
{
    uint32_t state[5] = {0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476, 0xc3d2e1f0};
    size_t total = ((slice.size + 8) / 64 + 1) * 64;
    unsigned char *padded = mem_zeroed(total);

    memcpy(padded, slice.at, slice.size);
    padded[slice.size] = 0x80;
    for (int i = 0; i < 8; i++)
        padded[total - 1 - (size_t)i] = (unsigned char)((uint64_t)slice.size * 8 >> (8 * i));
    for (size_t at = 0; at < total; at += 64)
        sha1_add_block(state, padded + at);
    free(padded);
    for (int i = 0; i < 5; i++)
        sprintf(hex + 8 * i, "%08x", state[i]);
}

/* -- what a script sees ------------------------------------------------------------------------ */

/* Makes words of what a script passes to a command, the first "count" values on Lua's stack, which
 * owns them. Numbers are written as Redis writes them. False: a value is neither text nor
 * number. */
static bool make_words(lua_State *lua, struct slice *words, int count)
{
    bool sound = true;

    for (int i = 0; i < count; i++) {
        if (lua_type(lua, i + 1) == LUA_TNUMBER) {
            char text[40];
            snprintf(text, sizeof text, "%.17g", lua_tonumber(lua, i + 1));
            lua_pushstring(lua, text);
            lua_replace(lua, i + 1);
        }
        words[i].at = lua_tolstring(lua, i + 1, &words[i].size);
        sound &= words[i].at != NULL;
    }
    return sound;
}

/* Whether the value on top is an error. */
static bool is_error(lua_State *lua)
{
    if (!lua_istable(lua, -1))
        return false;
    lua_getfield(lua, -1, "err");
    bool is = lua_isstring(lua, -1);
    lua_pop(lua, 1);
    return is;
}

/* Whether an argument of the call names the key: pauses KEY, epoch KEY or member KEY, keys that a
 * store has besides locks. Such a key need not be declared: no call with such an argument goes to a
 * Cluster. */
static bool is_marker(struct slice key)
{
    static const char *const names[] = {"pauses", "epoch", "member"};
    const struct script_call *call = scripts.call;

    for (size_t i = 0; i + 1 < call->argument_count; i += 2)
        for (size_t n = 0; n < sizeof names / sizeof *names; n++)
            if (slice_is(call->arguments[i], names[n]) && slice_equal(call->arguments[i + 1], key))
                return true;
    return false;
}

/* For command_run(): whether the script may touch that key; a script that may not is ended. A node
 * of a Cluster takes a key that is not among KEYS for one that does not exist while its slot moves.
 * So no script may touch one, wherever it runs. */
static bool may_touch(struct slice key)
{
    for (size_t i = 0; i < scripts.call->key_count; i++)
        if (slice_equal(scripts.call->keys[i], key))
            return true;
    scripts.overreached |= !is_marker(key);
    return !scripts.overreached;
}

/* Runs the command whose words are all of the stack, and pushes its reply. An error of Lua, which
 * does not return, ends the script where its unit must be done again, or it may not touch a key. */
static void push_reply(lua_State *lua)
{
    int count = lua_gettop(lua);
    /* A block of Lua's, as luaL_error() does not return: Lua frees it. */
    struct slice *words = lua_newuserdata(lua, (size_t)(count + 1) * sizeof *words);

    if (!make_words(lua, words, count))
        command_push_error(lua, "ERR Lua redis lib command arguments must be strings or integers");
    else if (!command_run(lua, scripts.unit, scripts.extra, may_touch, words, (size_t)count))
        luaL_error(lua, "the unit must be done again");
    if (scripts.overreached)
        luaL_error(lua, "the script touches a key that is not among its KEYS");
}

/* redis.call() of scripts: an error of the command is one of the script. */
static int redis_call(lua_State *lua)
{
    push_reply(lua);
    return is_error(lua) ? lua_error(lua) : 1;
}

/* redis.pcall() of scripts: returns the reply, also an error. */
static int redis_pcall(lua_State *lua)
{
    push_reply(lua);
    return 1;
}

/* redis.sha1hex() of scripts. */
static int redis_sha1hex(lua_State *lua)
{
    char hex[SHA1_HEX_SIZE];
    struct slice slice;

    slice.at = luaL_checklstring(lua, 1, &slice.size);
    sha1_hex(slice, hex);
    lua_pushstring(lua, hex);
    return 1;
}

/* For Lua, after some instructions: ends a script that takes too long. */
static void look_at_time(lua_State *lua, lua_Debug *debug)
{
    (void)debug;
    if (moment_until(scripts.began, moment_now()) > TIME_LIMIT_NS)
        luaL_error(lua, "the script runs for too long");
}

/* -- scripts ----------------------------------------------------------------------------------- */

void scripts_begin(const struct command_extra *extra)
{
    scripts.extra = extra;
    scripts.lua = mem_checked(luaL_newstate());
    static const lua_CFunction libraries[] = {luaopen_base, luaopen_string, luaopen_table,
                                              luaopen_math};
    static const char *const without[] = {"dofile",         "loadfile", "load",    "loadstring",
                                          "collectgarbage", "print",    "newproxy"};
    static const luaL_Reg redis[] = {
        {"call", redis_call}, {"pcall", redis_pcall}, {"sha1hex", redis_sha1hex}, {NULL, NULL}};
    for (size_t i = 0; i < sizeof libraries / sizeof *libraries; i++) {
        lua_pushcfunction(scripts.lua, libraries[i]);
        lua_call(scripts.lua, 0, 0);
    }
    for (size_t i = 0; i < sizeof without / sizeof *without; i++) {
        lua_pushnil(scripts.lua);
        lua_setglobal(scripts.lua, without[i]);
    }
    luaL_register(scripts.lua, "redis", redis);
    lua_settop(scripts.lua, 0);
    lua_sethook(scripts.lua, look_at_time, LUA_MASKCOUNT, LOOK_EVERY);
}

void scripts_end(void)
{
    lua_close(scripts.lua);
}

/* Makes a function of a script's text or bytecode, and keeps that in Lua's registry, under its
 * digest. False: it does not compile, and Lua's words are on the stack. */
static bool keep_script(lua_State *lua, const char *bytes, size_t size, const char *hex)
{
    if (luaL_loadbuffer(lua, bytes, size, "@user_script") != 0)
        return false;
    lua_setfield(lua, LUA_REGISTRYINDEX, hex);
    return true;
}

bool script_load(struct slice text, char hex[SHA1_HEX_SIZE])
{
    lua_State *lua = scripts.lua;

    lua_settop(lua, 0);
    sha1_hex(text, hex);
    if (script_is_known(hex) || keep_script(lua, text.at, text.size, hex))
        return true;
    command_push_error(
        lua, lua_pushfstring(lua, "ERR Error compiling script: %s", lua_tostring(lua, -1)));
    return false;
}

bool script_is_known(const char *hex)
{
    lua_State *lua = scripts.lua;

    lua_getfield(lua, LUA_REGISTRYINDEX, hex);
    bool is_kept = lua_isfunction(lua, -1);
    lua_pop(lua, 1);
    if (is_kept)
        return true;
    /* One of the program's own is made known when it is first asked for. */
    for (const struct bytecode *one = bytecodes; one->script; one++) {
        if (strcmp(one->script->sha1, hex) != 0)
            continue;
        /* The bytecode is for some machines only; the text is for all. */
        if (keep_script(lua, (const char *)one->bytes, one->size, hex))
            return true;
        lua_settop(lua, 0);
        return keep_script(lua, one->script->text, strlen(one->script->text), hex);
    }
    return false;
}

/* -- a call ------------------------------------------------------------------------------------ */

/* Sets the global of that name, KEYS or ARGV, to a list of the words. */
static void set_words(lua_State *lua, const char *name, const struct slice *words, size_t count)
{
    lua_createtable(lua, (int)count, 0);
    for (size_t i = 0; i < count; i++) {
        lua_pushlstring(lua, words[i].at, words[i].size);
        lua_rawseti(lua, -2, (int)i + 1);
    }
    lua_setglobal(lua, name);
}

/* Replaces the error of Lua on top of the stack, with which a script ended, by a reply that is an
 * error, in the words of Redis. */
static void push_script_error(lua_State *lua, const char *hex)
{
    bool is_of_command = lua_istable(lua, -1); /* it has a code; one of Lua is a text */

    if (is_of_command)
        lua_getfield(lua, -1, "err");
    const char *said = lua_tostring(lua, -1);
    command_push_error(lua, lua_pushfstring(lua, "%s%s script: %s, on @user_script:1.",
                                            is_of_command ? "" : "ERR ", said ? said : "?", hex));
}

enum script_outcome script_run(const struct script_call *call, struct unit *unit)
{
    scripts.call = call;
    scripts.unit = unit;
    scripts.overreached = false;
    scripts.began = moment_now();
    lua_settop(scripts.lua, 0);
    if (call->hex) {
        lua_State *lua = scripts.lua;
        set_words(lua, "KEYS", call->keys, call->key_count);
        set_words(lua, "ARGV", call->arguments, call->argument_count);
        lua_getfield(lua, LUA_REGISTRYINDEX, call->hex);
        bool failed = lua_pcall(lua, 0, 1, 0) != 0;
        if (scripts.unit->again)
            return SCRIPT_AGAIN;
        if (failed)
            push_script_error(lua, call->hex);
        return failed ? SCRIPT_FAILED : SCRIPT_DONE;
    }
    if (!command_run(scripts.lua, unit, scripts.extra, NULL, call->arguments, call->argument_count))
        return SCRIPT_AGAIN;
    return is_error(scripts.lua) ? SCRIPT_FAILED : SCRIPT_DONE;
}

/* -- its reply --------------------------------------------------------------------------------- */

bool script_replied(const char *word)
{
    lua_State *lua = scripts.lua;

    if (!lua_istable(lua, -1))
        return false;
    lua_rawgeti(lua, -1, 1);
    bool begins = lua_type(lua, -1) == LUA_TSTRING && strcmp(lua_tostring(lua, -1), word) == 0;
    lua_pop(lua, 1);
    return begins;
}

static void add_value(lua_State *lua, struct strbuf *out);

/* Adds the table on top of Lua's stack as Redis would send it: {err = …} is an error, {ok = …} a
 * status, and any other a list up to its first nil. The stack stays as it was. */
static void add_table(lua_State *lua, struct strbuf *out)
{
    static const char *const lines[] = {"err", "ok"};
    static void (*const add[])(struct strbuf *, const char *) = {resp_error, resp_status};
    size_t count = 0;

    for (size_t i = 0; i < 2; i++) {
        lua_getfield(lua, -1, lines[i]);
        const char *text = lua_tostring(lua, -1);
        if (text)
            add[i](out, text);
        lua_pop(lua, 1);
        if (text)
            return;
    }
    for (bool more = true; more; count += more) {
        lua_rawgeti(lua, -1, (int)count + 1);
        more = !lua_isnil(lua, -1);
        lua_pop(lua, 1);
    }
    resp_array(out, count);
    for (size_t i = 1; i <= count; i++) {
        lua_rawgeti(lua, -1, (int)i);
        add_value(lua, out);
        lua_pop(lua, 1);
    }
}

/* Adds the value on top of Lua's stack as Redis would send it: numbers lose what is behind the
 * point, true is 1, false and nil are nothing. The stack stays as it was. */
static void add_value(lua_State *lua, struct strbuf *out)
{
    struct slice slice;

    switch (lua_type(lua, -1)) {
    case LUA_TSTRING:
        slice.at = lua_tolstring(lua, -1, &slice.size);
        resp_bulk(out, slice);
        break;
    case LUA_TNUMBER: resp_number(out, (int64_t)lua_tonumber(lua, -1)); break;
    case LUA_TTABLE: add_table(lua, out); break;
    default:
        if (lua_isboolean(lua, -1) && lua_toboolean(lua, -1))
            resp_number(out, 1);
        else
            resp_null(out);
    }
}

void script_reply(struct strbuf *out)
{
    add_value(scripts.lua, out);
}
