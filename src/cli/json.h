/* JSON by libjansson, which is loaded only when JSON is asked for: each library that a program is
 * linked with costs some 50 microseconds at every start, and `rlock run` is started often. */
#pragma once

#include <jansson.h>
#include <stdbool.h>

#include "base/strbuf.h"

/* The functions, as jansson.h declares them, once json_load() has been called. Its inline functions
 * call others, which are not loaded. */
extern struct json_library {
    json_t *(*object)(void);
    json_t *(*array)(void);
    json_t *(*string)(const char *value);
    json_t *(*integer)(json_int_t value);
    json_t *(*null)(void), *(*yes)(void), *(*no)(void);
    int (*object_set_new)(json_t *object, const char *key, json_t *value);
    int (*array_append_new)(json_t *array, json_t *value);
    char *(*dumps)(const json_t *json, size_t flags);
    void (*destroy)(json_t *json);
} jansson;

/* Returns false with a message in "fault" if the library cannot be loaded. */
bool json_load(char *fault, size_t size);

/* These set a member of an object: to a text, made valid UTF-8, or to null if that is NULL or "";
 * to a number, a number or null, a boolean. */
void json_put_text(json_t *object, const char *name, const char *text);
void json_put_number(json_t *object, const char *name, json_int_t value);
void json_put_known(json_t *object, const char *name, json_int_t value, bool known);
void json_put_bool(json_t *object, const char *name, bool value);

/* Prints one line with its newline, in ASCII (other characters as \u…, so that they have no effect
 * on a terminal), and destroys "value". */
void json_write(struct strbuf *out, json_t *value);
