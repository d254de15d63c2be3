/* The requests of etcd, by gRPC, or by its gateway of JSON, which takes it several times as long:
 * sent as the user of the URL, to whichever member answers; and how names, values and numbers stand
 * in them. It knows no record and no message. */
#pragma once

#include <jansson.h>

#include "base/strbuf.h"
#include "host/http.h"
#include "host/store.h"

/* Notes where to connect to, and the names of keys; connects to nothing yet. table: "rlock", or,
 * in tests, a part of all names. */
void gateway_open(const struct host_target *target, const char *table);
/* Gets a token of etcd's for the user, if there is one, for all further requests. False: why is in
 * the fault. */
bool gateway_log_in(struct host_fault *fault);

/* Asks by JSON. Returns the reply, which the caller drops. NULL: why is in the fault. A request
 * that only reads goes to the next member where one is cut off from the others. */
json_t *gateway_ask(const char *path, const char *body, enum http_effect effect,
                    struct host_fault *fault);
/* Asks by JSON as gateway_ask() does, but one member only, and once. */
json_t *gateway_ask_once(const char *path, const char *body, enum http_effect effect,
                         struct host_fault *fault);

/* Returns what a member says of itself, with a version of etcd, and at http_date_us() of its time.
 * The caller drops it. NULL: why is in the fault. */
json_t *gateway_status(struct host_fault *fault);

/* Asks by gRPC. *answer: the message that answers, valid until the next request. False: why is in
 * the fault. */
bool gateway_call(const char *path, struct slice message, enum http_effect effect,
                  struct slice *answer, struct host_fault *fault);

/* The name of a key: the prefix, the name in printable ASCII, and "behind". The caller frees. */
char *gateway_key(struct slice name, const char *behind);
/* Adds bytes as JSON has them, in base64. */
void gateway_add_bytes(struct strbuf *out, const char *text, size_t size);
/* Adds the name of a key, as gateway_key() has it, as JSON has that. */
void gateway_add_name(struct strbuf *out, struct slice name, const char *behind);
/* Adds both ends of a range: all names that begin so. */
void gateway_add_range(struct strbuf *body, struct slice prefix);

/* Returns the bytes of a field, *size of them and a NUL; none if it is not there. The caller
 * frees. */
char *gateway_bytes(const json_t *row, const char *field, size_t *size);
/* Returns the name of a row's key, without the prefix, as gateway_bytes(). The caller frees. */
char *gateway_name(const json_t *row, size_t *size);
/* A number; 0 if it is not there. */
int64_t gateway_number(const json_t *object, const char *name);
