/* JSON by libjansson, which is loaded only when JSON is asked for: each library a program is linked
 * with costs some 50 microseconds at every start, and `rlock run` is started often. */
#ifndef RLOCK_CLI_JSON_H
#define RLOCK_CLI_JSON_H

#include <jansson.h>
#include <stdbool.h>

/* The functions used, as jansson.h declares them. Its inline functions call others: not to be
 * used. */
struct json_library {
    json_t *(*object)(void);
    json_t *(*array)(void);
    json_t *(*string)(const char *value);
    json_t *(*integer)(json_int_t value);
    json_t *(*null)(void), *(*yes)(void), *(*no)(void);
    int (*object_set_new)(json_t *object, const char *key, json_t *value);
    int (*array_append_new)(json_t *array, json_t *value);
    char *(*dumps)(const json_t *json, size_t flags);
    void (*destroy)(json_t *json);
};

/* Fills *json. False with a message in "fault" if the library cannot be loaded. */
bool json_load(struct json_library *json, char *fault, size_t size);

/* Sets a member to a text, made valid UTF-8 first; to null where the text is NULL or "". */
void json_put_text(const struct json_library *json, json_t *object, const char *name,
                   const char *text);
void json_put_number(const struct json_library *json, json_t *object, const char *name,
                     json_int_t value);
void json_put_bool(const struct json_library *json, json_t *object, const char *name, bool value);
void json_put_null(const struct json_library *json, json_t *object, const char *name);

/* Prints one line with its newline, in ASCII (other characters as \u…, so that nothing in it can
 * act on a terminal), and gives "value" back. NULL when out of memory. The caller frees. */
char *json_print(const struct json_library *json, json_t *value);

#endif
