/* The commands of Redis that the scripts of rules/ use, over the records of a unit. Each leaves its
 * reply on the stack of Lua, as a script of Redis gets it: an error is a table with "err", a status
 * one with "ok", nil is false. */
#pragma once

#include "host/unit.h"

struct lua_State;

/* One command under way. */
struct command_call {
    struct lua_State *lua;
    struct unit *unit;
    const struct slice *words; /* the command's name first */
    size_t count;
    struct record *record; /* of the first key; NULL: the command has none */
};

enum command_flag {
    COMMAND_KEY = 1 << 0,    /* the second word is a key */
    COMMAND_WRITES = 1 << 1, /* the command may change it */
};

struct command {
    const char *name;
    size_t least; /* so many words at least, its name included */
    unsigned flags;
    enum record_type type; /* of the record, if there is one; RECORD_NONE: any */
    void (*run)(struct command_call *call);
};

/* For tests, which need more of a Redis than scripts do. */
struct command_extra {
    const struct command *commands; /* ended by a name of NULL; looked through first */
    /* Returns the error that a command fails with, NULL: none. */
    const char *(*refuse)(const struct unit *unit, struct slice name);
};

/* Whether whoever runs a command may touch that key. */
typedef bool command_reach(struct slice key);

/* Runs the command, and leaves one value on the stack, its reply: an error for a command that there
 * is not. extra: NULL, but in tests. reach: which key the caller may touch; NULL: any. False if the
 * unit must be done again: then the stack is as before. */
bool command_run(struct lua_State *lua, struct unit *unit, const struct command_extra *extra,
                 command_reach *reach, const struct slice *words, size_t count);

/* Leave one value on the stack. */
void command_push_error(struct lua_State *lua, const char *text);
void command_push_status(struct lua_State *lua, const char *text);
