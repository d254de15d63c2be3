/* Asks the members of an etcd cluster, and makes a fault of whatever is not the answer. There are
 * two forms of request (host/http.h): one of JSON is answered by JSON, one of gRPC by a message. A
 * fault says whether a request that writes may be done all the same (maybe_done). */
#include "host/etcd_gateway.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/decimal.h"
#include "base/mem.h"
#include "host/http.h"

/* The codes of gRPC, by the names that its documentation has for them. */
enum code {
    INVALID_ARGUMENT = 3,
    PERMISSION_DENIED = 7,
    RESOURCE_EXHAUSTED = 8,
    FAILED_PRECONDITION = 9,
    OUT_OF_RANGE = 11,
    UNIMPLEMENTED = 12,
    UNAUTHENTICATED = 16
};

static struct {
    struct host_target target;
    char *prefix; /* of the names of all keys, with its '/' */
    struct strbuf reply;
} gateway;

/* -- names and values -------------------------------------------------------------------------- */

/* The digits of base64. */
static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

void gateway_add_bytes(struct strbuf *out, const char *text, size_t size)
{
    strbuf_putc(out, '"');
    for (size_t i = 0; i < size; i += 3) { /* three bytes, of 8 bits, are four digits, of 6 */
        uint32_t word = 0;
        for (size_t n = 0; n < 3; n++)
            word = word << 8 | (i + n < size ? (unsigned char)text[i + n] : 0);
        for (size_t n = 0; n < 4; n++) /* '=': a digit has no bits of the last bytes */
            strbuf_putc(out, (char)(i + n > size ? '=' : letters[word >> (18 - 6 * n) & 63]));
    }
    strbuf_putc(out, '"');
}

char *gateway_bytes(const json_t *row, const char *field, size_t *size)
{
    const char *value = json_string_value(json_object_get(row, field)), *text = value ? value : "";
    struct strbuf out = {0};
    uint32_t word = 0;
    unsigned bits = 0;

    for (const char *letter; *text && (letter = strchr(letters, *text)); text++) {
        word = word << 6 | (uint32_t)(letter - letters);
        bits += 6;
        if (bits >= 8) {
            bits -= 8;
            strbuf_putc(&out, (char)(word >> bits));
        }
    }
    *size = out.size;
    return strbuf_detach(&out);
}

char *gateway_key(struct slice name, const char *behind)
{
    char *printed = record_print_name(name);
    char *text = strbuf_print("%s%s%s", gateway.prefix, printed, behind);

    free(printed);
    return text;
}

void gateway_add_name(struct strbuf *out, struct slice name, const char *behind)
{
    char *text = gateway_key(name, behind);

    gateway_add_bytes(out, text, strlen(text));
    free(text);
}

void gateway_add_range(struct strbuf *body, struct slice prefix)
{
    char *printed = record_print_name(prefix);
    char *from = strbuf_print("%s%s", gateway.prefix, printed), *end = mem_strdup(from);

    /* The end is the first name behind all that begin so. For all keys, etcd takes a byte 0, the
     * NUL of an empty text, for either end. */
    strbuf_puts(body, "\"key\":");
    gateway_add_bytes(body, from, *from ? strlen(from) : 1);
    if (*end)
        end[strlen(end) - 1]++;
    strbuf_puts(body, ",\"range_end\":");
    gateway_add_bytes(body, end, *end ? strlen(end) : 1);
    free(printed);
    free(from);
    free(end);
}

char *gateway_name(const json_t *row, size_t *size)
{
    size_t prefix = strlen(gateway.prefix);
    char *name = gateway_bytes(row, "key", size);

    prefix = *size < prefix ? *size : prefix;
    *size -= prefix;
    memmove(name, name + prefix, *size + 1);
    return name;
}

/* -- replies ----------------------------------------------------------------------------------- */

int64_t gateway_number(const json_t *object, const char *name)
{
    /* A number of 64 bits is a string in etcd's JSON. One that is 0 is left out. */
    const char *text = json_string_value(json_object_get(object, name));
    int64_t number = 0;

    if (text)
        decimal_parse(text, 0, INT64_MAX, &number);
    return number;
}

/* The kind of the failure that a member of etcd tells by its code and words. WIRE_UNREACHABLE: the
 * code is not about the request itself, but may be about the time that it took; it may be done, and
 * another member may fare better. */
static enum wire_error error_of(int code, const char *said)
{
    if (strstr(said, "database space exceeded"))
        return WIRE_QUOTA;
    if (strstr(said, "authentication failed"))
        return WIRE_PASSWORD;
    if (strstr(said, "user name is empty"))
        return WIRE_NO_USER;
    if (strstr(said, "authentication is not enabled"))
        return WIRE_NO_USERS;
    switch (code) {
    case PERMISSION_DENIED: return WIRE_KEYS_DENIED;
    case RESOURCE_EXHAUSTED: return WIRE_FAILED;
    case UNAUTHENTICATED: return WIRE_PASSWORD;
    case INVALID_ARGUMENT:
    case FAILED_PRECONDITION:
    case OUT_OF_RANGE:
    case UNIMPLEMENTED: return WIRE_UNFIT;
    default: return WIRE_UNREACHABLE;
    }
}

/* Fills the fault with the failure of a request. maybe_done: it writes, and may have been done.
 * Returns false. */
static bool fail_in_doubt(struct host_fault *fault, enum wire_error error, bool maybe_done,
                          const char *said)
{
    host_fail(fault, error, said);
    fault->why.maybe_done = maybe_done;
    return false;
}

/* Fills the fault with a failure that a member of etcd has told by its code. Returns false. */
static bool fail_by_code(struct host_fault *fault, int code, enum http_effect effect,
                         const char *said)
{
    enum wire_error error = error_of(code, said);
    /* A member looks at its quota twice: the second time, the request is done, and then refused. */
    bool in_doubt = error == WIRE_UNREACHABLE || code == RESOURCE_EXHAUSTED;

    return fail_in_doubt(fault, error, effect == HTTP_WRITES && in_doubt, said);
}

/* Fills the fault with an answer that is not etcd's, but of what stands between, by HTTP's status.
 * Returns false. */
static bool fail_by_status(struct host_fault *fault, long status, enum http_effect effect)
{
    bool may_pass = status >= 500 || status == 429; /* in trouble, or asked too often */
    char said[60];

    snprintf(said, sizeof said, "the answer is HTTP's status %ld, and not etcd's", status);
    return fail_in_doubt(fault, may_pass ? WIRE_UNREACHABLE : WIRE_STRANGER, effect == HTTP_WRITES,
                         said);
}

/* Returns the JSON in gateway.reply, which was sent with that status; the caller drops it. NULL: it
 * tells a failure, or is not etcd's, and why is in the fault. */
static json_t *take_reply(long status, enum http_effect effect, struct host_fault *fault)
{
    const char *text = gateway.reply.text ? gateway.reply.text : "";
    json_t *reply = json_loadb(text, gateway.reply.size, JSON_DISABLE_EOF_CHECK, NULL);

    if (status == 200 && json_is_object(reply))
        return reply;
    const char *said = json_string_value(json_object_get(reply, "message"));
    if (said)
        fail_by_code(fault, (int)json_integer_value(json_object_get(reply, "code")), effect, said);
    else if (strncmp(text, "CommonName of client", 20) == 0)
        host_fail(fault, WIRE_DRIVER,
                  "where etcd has users, a client's certificate must have no CommonName");
    else
        fail_by_status(fault, status, effect);
    json_decref(reply);
    return NULL;
}

/* Takes the answer to a call of gRPC from gateway.reply. *answer: the message, valid until the next
 * request. False: the headers tell a failure, or none is etcd's, and why is in the fault. */
static bool take_message(long status, enum http_effect effect, struct slice *answer,
                         struct host_fault *fault)
{
    const char *text = http_header("grpc-status"), *said = http_header("grpc-message");
    int64_t code;

    if (!text || !decimal_parse(text, 0, INT_MAX, &code))
        return fail_by_status(fault, status, effect);
    if (code != 0)
        return fail_by_code(fault, (int)code, effect, said ? said : "");
    struct slice reply = {gateway.reply.text, gateway.reply.size};
    return http_take_message(&reply, answer) ||
           fail_in_doubt(fault, WIRE_STRANGER, effect == HTTP_WRITES, "its answer is empty");
}

/* -- requests ---------------------------------------------------------------------------------- */

/* Sends the request to the member whose turn it is. The answer goes to *reply, which the caller
 * drops, where the form is JSON, and to *answer where it is gRPC; the other one may be NULL. False:
 * why is in the fault. */
static bool ask_once(const struct http_request *request, json_t **reply, struct slice *answer,
                     struct host_fault *fault)
{
    struct host_error why;
    long status = http_post(request, &gateway.reply, &why);

    if (!status) /* there was no answer */
        return fail_in_doubt(fault, why.error, request->effect == HTTP_WRITES && why.maybe_done,
                             why.said);
    if (request->form == HTTP_GRPC)
        return take_message(status, request->effect, answer, fault);
    *reply = take_reply(status, request->effect, fault);
    return *reply;
}

json_t *gateway_ask_once(const char *path, const char *body, enum http_effect effect,
                         struct host_fault *fault)
{
    const struct http_request request = {HTTP_JSON, path, slice_of(body), effect};
    json_t *reply = NULL;

    ask_once(&request, &reply, NULL, fault);
    return reply;
}

bool gateway_log_in(struct host_fault *fault)
{
    if (!*gateway.target.user)
        return true;
    json_t *who =
        json_pack("{ssss}", "name", gateway.target.user, "password", gateway.target.password);
    char *text = who ? json_dumps(who, 0) : NULL;
    http_authorize(NULL);
    json_t *reply =
        gateway_ask_once("/v3/auth/authenticate", text ? text : "{}", HTTP_READS, fault);
    const char *token = json_string_value(json_object_get(reply, "token"));
    bool done = token;

    if (done)
        http_authorize(token);
    else if (reply)
        host_fail(fault, WIRE_STRANGER, "it gives no token");
    free(text);
    json_decref(who);
    json_decref(reply);
    return done;
}

/* Sends the request to the member whose turn it is, and again where that may help: after a login,
 * or to the next member. The answer goes to *reply, which the caller drops, where the form is JSON,
 * and to *answer where it is gRPC; the other one may be NULL. False: why the last attempt failed is
 * in the fault. */
static bool ask_members(const struct http_request *request, json_t **reply, struct slice *answer,
                        struct host_fault *fault)
{
    bool done = false, again = true;

    /* Once for each member, and once more behind a login. */
    for (size_t i = 0; again && i <= http_servers(); i++) {
        done = ask_once(request, reply, answer, fault);
        if (done)
            break;
        /* A token ends when it was not used for minutes, or when users or roles have changed. */
        if (*gateway.target.user && (strstr(fault->why.said, "invalid auth token") ||
                                     strstr(fault->why.said, "auth store is old"))) {
            again = gateway_log_in(fault);
        } else {
            /* A request that only reads goes to the next member; the next request does, too. */
            again = request->effect == HTTP_READS && fault->why.error == WIRE_UNREACHABLE &&
                    i + 1 < http_servers();
            http_choose(http_server() + 1);
        }
    }
    return done;
}

json_t *gateway_ask(const char *path, const char *body, enum http_effect effect,
                    struct host_fault *fault)
{
    const struct http_request request = {HTTP_JSON, path, slice_of(body), effect};
    json_t *reply = NULL;

    ask_members(&request, &reply, NULL, fault);
    return reply;
}

json_t *gateway_status(struct host_fault *fault)
{
    json_t *status = gateway_ask("/v3/maintenance/status", "{}", HTTP_READS, fault);

    if (!status || json_string_value(json_object_get(status, "version")))
        return status;
    host_fail(fault, WIRE_STRANGER, "it tells no version of etcd");
    json_decref(status);
    return NULL;
}

bool gateway_call(const char *path, struct slice message, enum http_effect effect,
                  struct slice *answer, struct host_fault *fault)
{
    struct strbuf body = {0};

    http_add_message(&body, message);
    const struct http_request request = {HTTP_GRPC, path, {body.text, body.size}, effect};
    bool done = ask_members(&request, NULL, answer, fault);
    strbuf_free(&body);
    return done;
}

/* -- opening ----------------------------------------------------------------------------------- */

void gateway_open(const struct host_target *target, const char *table)
{
    gateway.target = *target;
    gateway.prefix = *target->database ? strbuf_print("%s/", target->database) : mem_strdup("");
    if (strcmp(table, "rlock") != 0) { /* of tests of the scripts */
        char *both = strbuf_print("%s%s/", gateway.prefix, table);
        free(gateway.prefix);
        gateway.prefix = both;
    }
    http_open(target);
}
