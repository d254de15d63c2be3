/* The Lua scripts of src/lua, those of locks behind the common prelude, as bytes of this program. */
#ifndef RLOCK_SCRIPTS_H
#define RLOCK_SCRIPTS_H

#include <stddef.h>

struct script {
    const char *name;
    const char *text;
    size_t size;
    const char *sha1; /* 40 hex digits, as EVALSHA wants it */
};

extern const struct script script_acquire, script_renew, script_release, script_force, script_inspect;
extern const struct script script_latch, script_init;

#endif
