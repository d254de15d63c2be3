/* EVALSHA and EVAL. */
#include "redis_call.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "key.h"
#include "mem.h"

void redis_call_begin(struct redis_call *call, const struct script *script, const char *prefix,
                      const char *const *keys, size_t count)
{
    call->script = script;
    call->keys = mem_zeroed(count * sizeof *call->keys);
    call->key_count = count;
    for (size_t i = 0; i < count; i++)
        call->keys[i] = key_in_store(prefix, keys[i]);
}

void redis_call_text(struct redis_call *call, const char *text)
{
    call->argv = mem_checked(realloc(call->argv, (call->argc + 1) * sizeof *call->argv));
    call->argv[call->argc++] = mem_strdup(text);
}

void redis_call_number(struct redis_call *call, int64_t number)
{
    char text[24];

    snprintf(text, sizeof text, "%" PRId64, number);
    redis_call_text(call, text);
}

void redis_call_replace(struct redis_call *call, size_t i, const char *text)
{
    free(call->argv[i]);
    call->argv[i] = mem_strdup(text);
}

void redis_call_add(const struct redis_call *call, struct redis_link *link)
{
    size_t count = 3 + call->key_count + call->argc;
    const char **argv = mem_zeroed(count * sizeof *argv);
    char key_count[24];

    snprintf(key_count, sizeof key_count, "%zu", call->key_count);
    argv[0] = call->whole ? "EVAL" : "EVALSHA";
    argv[1] = call->whole ? call->script->text : call->script->sha1;
    argv[2] = key_count;
    memcpy(argv + 3, call->keys, call->key_count * sizeof *argv);
    memcpy(argv + 3 + call->key_count, call->argv, call->argc * sizeof *argv);
    redis_link_add(link, (int)count, argv, NULL);
    free(argv);
}

void redis_call_drop(struct redis_call *call)
{
    for (size_t i = 0; i < call->argc; i++)
        free(call->argv[i]);
    for (size_t i = 0; i < call->key_count; i++)
        free(call->keys[i]);
    free(call->argv);
    free(call->keys);
    *call = (struct redis_call){.script = NULL};
}
