#include "cli/json.h"

#include <dlfcn.h>
#include <stdio.h>

#include "base/mem.h"
#include "base/utf8.h"

#ifdef STATIC_BINARY

bool json_load(struct json_library *json, char *fault, size_t size)
{
    (void)fault, (void)size;
    *json = (struct json_library){
        json_object, json_array, json_string,         json_integer,          json_null,
        json_true,   json_false, json_object_set_new, json_array_append_new, json_dumps,
        json_delete,
    };
    return true;
}

#else

#ifndef JANSSON_SONAME /* configure finds it out */
#define JANSSON_SONAME "libjansson.so.4"
#endif

/* POSIX lets dlsym()'s result be a function's address; only C needs the detour by memcpy(). */
static bool find(void *handle, const char *name, void *function)
{
    void *address = dlsym(handle, name);
    memcpy(function, &address, sizeof address);
    return address != NULL;
}

bool json_load(struct json_library *json, char *fault, size_t size)
{
    /* It is never closed. */
    void *handle = dlopen(JANSSON_SONAME, RTLD_NOW | RTLD_LOCAL);

    if (!handle) {
        snprintf(fault, size, "JSON needs the library jansson: %s", dlerror());
        return false;
    }
    if (find(handle, "json_object", &json->object) && find(handle, "json_array", &json->array) &&
        find(handle, "json_string", &json->string) &&
        find(handle, "json_integer", &json->integer) && find(handle, "json_null", &json->null) &&
        find(handle, "json_true", &json->yes) && find(handle, "json_false", &json->no) &&
        find(handle, "json_object_set_new", &json->object_set_new) &&
        find(handle, "json_array_append_new", &json->array_append_new) &&
        find(handle, "json_dumps", &json->dumps) && find(handle, "json_delete", &json->destroy))
        return true;
    snprintf(fault, size, "JSON needs the library jansson: %s", dlerror());
    return false;
}

#endif

void json_put_text(const struct json_library *json, json_t *object, const char *name,
                   const char *text)
{
    if (!text || !*text) {
        json->object_set_new(object, name, json->null());
        return;
    }
    size_t room = 3 * strlen(text) + 1; /* U+FFFD has three bytes */
    char *valid = mem_checked(malloc(room));
    json->object_set_new(object, name, json->string(utf8_repair(text, valid, room)));
    free(valid);
}

void json_put_number(const struct json_library *json, json_t *object, const char *name,
                     json_int_t value)
{
    json->object_set_new(object, name, json->integer(value));
}

void json_put_bool(const struct json_library *json, json_t *object, const char *name, bool value)
{
    json->object_set_new(object, name, value ? json->yes() : json->no());
}

void json_put_known(const struct json_library *json, json_t *object, const char *name,
                    json_int_t value, bool known)
{
    json->object_set_new(object, name, known ? json->integer(value) : json->null());
}

char *json_print(const struct json_library *json, json_t *value)
{
    char *text = mem_checked(json->dumps(value, JSON_COMPACT | JSON_ENSURE_ASCII));

    json->destroy(value); /* its only reference */
    size_t length = strlen(text);
    text = mem_checked(realloc(text, length + 2));
    memcpy(text + length, "\n", 2);
    return text;
}

void json_write(struct strbuf *out, const struct json_library *json, json_t *value)
{
    char *line = json_print(json, value);

    strbuf_puts(out, line);
    free(line);
}
