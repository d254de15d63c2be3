/* The Lua scripts of src/rules/lua, those of locks behind the common prelude, as bytes of
 * this program. */
#pragma once

struct script {
    const char *name;
    const char *text;
    const char *sha1; /* 40 hex digits, as EVALSHA wants it */
};

extern const struct script script_acquire, script_renew, script_release;
extern const struct script script_force, script_inspect, script_latch, script_init, script_adjust;
extern const struct script script_pauses, script_unmirror, script_match;
/* How scripts call a row of ShedLock's table: this, and its name (lua/mirror.lua). */
#define SHEDLOCK_KEY "\1shedlock:"
/* All of them, ended by NULL. */
extern const struct script *const script_list[];
