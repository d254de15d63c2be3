#include "cli/json.h"

#include <dlfcn.h>
#include <stdio.h>

#include "base/mem.h"
#include "base/utf8.h"

#ifdef STATIC_BINARY

struct json_library jansson = {
    json_object, json_array,          json_string,           json_integer, json_null,   json_true,
    json_false,  json_object_set_new, json_array_append_new, json_dumps,   json_delete,
};

bool json_load(char *fault, size_t size)
{
    (void)fault, (void)size;
    return true;
}

#else

#ifndef JANSSON_SONAME /* configure finds it out */
#define JANSSON_SONAME "libjansson.so.4"
#endif

struct json_library jansson;

/* In the order of the members. */
static const char names[][24] = {"json_object",  "json_array",          "json_string",
                                 "json_integer", "json_null",           "json_true",
                                 "json_false",   "json_object_set_new", "json_array_append_new",
                                 "json_dumps",   "json_delete"};

_Static_assert(sizeof names / sizeof *names == sizeof jansson / sizeof(void *),
               "each function has its name");

bool json_load(char *fault, size_t size)
{
    void *handle = dlopen(JANSSON_SONAME, RTLD_NOW | RTLD_LOCAL); /* never closed */

    if (!handle) {
        snprintf(fault, size, "JSON needs the library jansson (Debian's libjansson4): %s",
                 dlerror());
        return false;
    }
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        void *function = dlsym(handle, names[i]);
        if (!function) {
            snprintf(fault, size, "JSON needs the library jansson (Debian's libjansson4): %s",
                     dlerror());
            return false;
        }
        /* POSIX lets it be a function's address; only C needs the detour by memcpy(). */
        memcpy((char *)&jansson + i * sizeof function, &function, sizeof function);
    }
    return true;
}

#endif

void json_put_text(json_t *object, const char *name, const char *text)
{
    if (!text || !*text) {
        jansson.object_set_new(object, name, jansson.null());
        return;
    }
    size_t room = 3 * strlen(text) + 1; /* U+FFFD has three bytes */
    char *valid FREED = mem_checked(malloc(room));
    jansson.object_set_new(object, name, jansson.string(utf8_repair(text, valid, room)));
}

void json_put_number(json_t *object, const char *name, json_int_t value)
{
    jansson.object_set_new(object, name, jansson.integer(value));
}

void json_put_bool(json_t *object, const char *name, bool value)
{
    jansson.object_set_new(object, name, value ? jansson.yes() : jansson.no());
}

void json_put_known(json_t *object, const char *name, json_int_t value, bool known)
{
    jansson.object_set_new(object, name, known ? jansson.integer(value) : jansson.null());
}

void json_write(struct strbuf *out, json_t *value)
{
    char *text FREED = mem_checked(jansson.dumps(value, JSON_COMPACT | JSON_ENSURE_ASCII));

    strbuf_printf(out, "%s\n", text);
    jansson.destroy(value); /* its only reference */
}
