/* The messages of ZooKeeper: requests are put into a batch, replies are taken apart. Pure. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/strbuf.h"

/* Operations by their numbers. */
enum {
    OP_CREATE = 1,
    OP_DELETE = 2,
    OP_EXISTS = 3,
    OP_GET_DATA = 4,
    OP_SET_DATA = 5,
    OP_GET_CHILDREN = 8,
    OP_CHECK = 13,
    OP_MULTI = 14,
    OP_CREATE_CONTAINER = 19,
    OP_AUTH = 100,
    OP_CLOSE = -11,
    OP_ERROR = -1,
};

/* -- the encoding, Jute ------------------------------------------------------------------------ */

/* Big-endian integers, strings and buffers behind their length, and frames, which have their length
 * in front. */

/* These add to the end of the text. */
void jute_put_int(struct strbuf *out, int32_t number);
void jute_put_long(struct strbuf *out, int64_t number);
void jute_put_bool(struct strbuf *out, bool value);
void jute_put_buffer(struct strbuf *out, const char *bytes, size_t size);
void jute_put_string(struct strbuf *out, const char *text);
/* A frame is what is put between these two. jute_begin() returns what jute_end() wants. */
size_t jute_begin(struct strbuf *out);
void jute_end(struct strbuf *out, size_t frame);

/* Bytes to be read, borrowed. From the first one that does not make sense, they are "damaged", and
 * all that is read is zero or empty. */
struct jute_in {
    const char *at, *end;
    bool damaged;
};

/* Not ended by a NUL. */
struct jute_text {
    const char *bytes;
    size_t size;
};

/* Each reads what comes next; 0, false or an empty text where that makes no sense. */
int32_t jute_int(struct jute_in *in);
int64_t jute_long(struct jute_in *in);
bool jute_bool(struct jute_in *in);
/* A string or a buffer; one that is null is empty. */
struct jute_text jute_text(struct jute_in *in);
/* Returns how many elements follow, of which each takes at least "least" bytes; 0 where that makes
 * no sense. */
size_t jute_count(struct jute_in *in, size_t least);

/* Takes one whole frame off the "size" bytes: *frame borrows its contents. Returns how many bytes
 * it takes with its length; 0: it is not all there yet; -1: its length is negative or above
 * JUTE_FRAME_MAX. */
#define JUTE_FRAME_MAX (64 << 20)
int64_t jute_frame(const char *bytes, size_t size, struct jute_in *frame);

#define ZK_PASSWORD_SIZE 16

/* Errors of replies. */
enum zk_error {
    ZK_OK = 0,
    ZK_RUNTIME_INCONSISTENCY = -2, /* of a multi: another one of its operations has failed */
    ZK_MARSHALLING = -5,
    ZK_UNIMPLEMENTED = -6,
    ZK_NO_NODE = -101,
    ZK_NO_AUTH = -102,
    ZK_BAD_VERSION = -103,
    ZK_NODE_EXISTS = -110,
    ZK_SESSION_EXPIRED = -112,
    ZK_INVALID_ACL = -114,
    ZK_AUTH_FAILED = -115,
    ZK_SESSION_MOVED = -118,
    ZK_NOT_READ_ONLY = -119,
    ZK_QUOTA_EXCEEDED = -125,
    ZK_THROTTLED = -127,
};

/* -- sessions ---------------------------------------------------------------------------------- */

struct zk_identity {
    int64_t id; /* 0: none yet */
    char password[ZK_PASSWORD_SIZE];
};

/* Adds the first words on a connection, which open the session again, or begin one (id 0). zxid:
 * the latest that the session has seen. */
void zk_put_connect(struct strbuf *out, const struct zk_identity *session, int32_t timeout_ms,
                    int64_t zxid);
/* Reads the answer to that. *session: the session that the server has opened; id 0: none, as it has
 * ended. False if the answer makes no sense. */
bool zk_read_connected(struct jute_in *in, struct zk_identity *session, int32_t *timeout_ms);
/* Adds who the user is. That follows the first words; its answer need not be waited for. */
void zk_put_digest(struct strbuf *out, const char *user, const char *password);

/* -- requests ---------------------------------------------------------------------------------- */

/* Requests that are sent together, each with its xid, one after the other. */
struct zk_batch {
    struct strbuf out;
    int32_t xid; /* of the first one */
    size_t count;
    bool writes;  /* there is a request among them that does, or closes the session */
    size_t multi; /* where the transaction under way begins */
};

/* The flags of a new node. */
enum zk_create { ZK_EPHEMERAL = 1, ZK_EPHEMERAL_SEQUENTIAL = 3, ZK_CONTAINER = 4 };

/* Adds the creation of a node for others to have children of, which the servers delete when it has
 * none any more. closed: only for its creator, by what that has proved with zk_put_digest(). */
void zk_container(struct zk_batch *batch, const char *path, bool closed);
enum zk_watching { ZK_NO_WATCH, ZK_WATCH };

/* Adds a request that reads. operation: OP_EXISTS, OP_GET_DATA or OP_GET_CHILDREN. */
void zk_query(struct zk_batch *batch, int operation, const char *path, enum zk_watching watch);
/* Adds OP_GET_DATA of a child. */
void zk_get_child(struct zk_batch *batch, const char *parent, const char *name);
/* Adds the end of the session. */
void zk_close(struct zk_batch *batch);

/* One transaction: the operations between zk_multi() and zk_multi_end(). */
void zk_multi(struct zk_batch *batch);
void zk_multi_create(struct zk_batch *batch, enum zk_create kind, const char *path,
                     const char *data, bool closed);
/* Adds an operation to the transaction: OP_SET_DATA; or OP_CHECK or OP_DELETE, with NULL for
 * data. */
void zk_multi_change(struct zk_batch *batch, int operation, const char *path, const char *data);
void zk_multi_end(struct zk_batch *batch);

/* -- replies ----------------------------------------------------------------------------------- */

struct zk_stat {
    int64_t czxid, ctime_ms, mtime_ms; /* by the leader's wall clock, since 1970 */
    int64_t session;                   /* whose ephemeral node it is, 0: it is none */
};

enum { ZK_XID_EVENT = -1, ZK_XID_AUTH = -4 };

struct zk_reply {
    int32_t xid;
    int64_t zxid;
    int error; /* enum zk_error, or another */
    struct jute_in body;
    char *frame; /* that has them, if its receiver keeps it */
};

/* Reads a reply; reply->body is the rest. False if it makes no sense. */
bool zk_read_reply(struct jute_in *in, struct zk_reply *reply);

/* Reads what is in a node. Returns ZK_OK; the error of the reply; or ZK_MARSHALLING where the body
 * makes no sense. */
int zk_read_data(const struct zk_reply *reply, struct jute_text *data, struct zk_stat *stat);

/* The names of children, one after the other. */
struct zk_names {
    struct jute_in in;
    size_t left;
};

/* Begins to read the names of a node's children; a node that is not there has none. Returns ZK_OK;
 * the error of the reply; or ZK_MARSHALLING where the body makes no sense. */
int zk_read_children(const struct zk_reply *reply, struct zk_names *names);
/* Reads the next name. False after the last one, or where the reply is damaged. */
bool zk_next_name(struct zk_names *names, struct jute_text *name);

/* The results of a transaction, one after the other. */
struct zk_result {
    int error;
    struct jute_text path; /* of what was created, with the reply's zxid as its czxid */
};

/* Reads the next result. False after the last one, or where the reply is damaged. *in: the reply's
 * body at first. */
bool zk_next_result(struct jute_in *in, struct zk_result *result);
/* Returns the first error of a transaction, or ZK_OK. *index, unless NULL: of the operation that
 * has it; it stays where there is none. */
int zk_multi_error(const struct zk_reply *reply, size_t *index);
