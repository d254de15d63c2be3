#include "store/zookeeper/message.h"

#include <endian.h>
#include <stdlib.h>
#include <string.h>

#define ANY_VERSION (-1) /* of a node that is changed */
#define ALL_RIGHTS  31   /* ZooDefs.Perms.ALL */

/* -- the encoding ------------------------------------------------------------------------------ */

void jute_put_int(struct strbuf *out, int32_t number)
{
    uint32_t word = htobe32((uint32_t)number);

    strbuf_add(out, &word, sizeof word);
}

void jute_put_long(struct strbuf *out, int64_t number)
{
    uint64_t word = htobe64((uint64_t)number);

    strbuf_add(out, &word, sizeof word);
}

void jute_put_bool(struct strbuf *out, bool value)
{
    char byte = value ? 1 : 0;

    strbuf_add(out, &byte, 1);
}

void jute_put_buffer(struct strbuf *out, const char *bytes, size_t size)
{
    jute_put_int(out, (int32_t)size);
    strbuf_add(out, bytes, size);
}

void jute_put_string(struct strbuf *out, const char *text)
{
    jute_put_buffer(out, text, strlen(text));
}

size_t jute_begin(struct strbuf *out)
{
    jute_put_int(out, 0);
    return out->size;
}

void jute_end(struct strbuf *out, size_t frame)
{
    uint32_t length = htobe32((uint32_t)(out->size - frame));

    memcpy(out->text + frame - sizeof length, &length, sizeof length);
}

/* Takes the next "size" bytes; NULL if there are less. */
static const char *take_bytes(struct jute_in *in, size_t size)
{
    const char *at = in->at;

    if (in->damaged || size > (size_t)(in->end - in->at)) {
        in->damaged = true;
        return NULL;
    }
    in->at += size;
    return at;
}

int32_t jute_int(struct jute_in *in)
{
    uint32_t word = 0;
    const char *at = take_bytes(in, sizeof word);

    if (at)
        memcpy(&word, at, sizeof word);
    return (int32_t)be32toh(word);
}

int64_t jute_long(struct jute_in *in)
{
    uint64_t word = 0;
    const char *at = take_bytes(in, sizeof word);

    if (at)
        memcpy(&word, at, sizeof word);
    return (int64_t)be64toh(word);
}

bool jute_bool(struct jute_in *in)
{
    const char *at = take_bytes(in, 1);

    return at && *at;
}

struct jute_text jute_text(struct jute_in *in)
{
    int32_t size = jute_int(in);
    const char *bytes = NULL;

    if (size < -1)
        in->damaged = true;
    if (size > 0)
        bytes = take_bytes(in, (size_t)size);
    return bytes ? (struct jute_text){bytes, (size_t)size} : (struct jute_text){"", 0};
}

size_t jute_count(struct jute_in *in, size_t least)
{
    int32_t count = jute_int(in);

    if (count < -1 || (count > 0 && (size_t)count > (size_t)(in->end - in->at) / least))
        in->damaged = true;
    return in->damaged || count < 0 ? 0 : (size_t)count;
}

int64_t jute_frame(const char *bytes, size_t size, struct jute_in *frame)
{
    struct jute_in in = {bytes, bytes + size, false};
    int32_t length = jute_int(&in);

    if (in.damaged)
        return 0;
    if (length < 0 || length > JUTE_FRAME_MAX)
        return -1;
    if (size - sizeof length < (size_t)length)
        return 0;
    *frame = (struct jute_in){in.at, in.at + length, false};
    return (int64_t)sizeof length + length;
}

/* -- sessions ---------------------------------------------------------------------------------- */

void zk_put_connect(struct strbuf *out, const struct zk_identity *session, int32_t timeout_ms,
                    int64_t zxid)
{
    size_t frame = jute_begin(out);

    jute_put_int(out, 0); /* the protocol's version */
    jute_put_long(out, zxid);
    jute_put_int(out, timeout_ms);
    jute_put_long(out, session->id);
    jute_put_buffer(out, session->password, sizeof session->password);
    jute_put_bool(out, false); /* a read-only server is of no use */
    jute_end(out, frame);
}

bool zk_read_connected(struct jute_in *in, struct zk_identity *session, int32_t *timeout_ms)
{
    jute_int(in);
    *timeout_ms = jute_int(in);
    session->id = jute_long(in);
    struct jute_text password = jute_text(in);

    if (*timeout_ms <= 0)
        session->id = 0;
    if (session->id != 0 && password.size != sizeof session->password)
        return false;
    if (session->id != 0)
        memcpy(session->password, password.bytes, password.size);
    return !in->damaged;
}

void zk_put_digest(struct strbuf *out, const char *user, const char *password)
{
    size_t frame = jute_begin(out);

    jute_put_int(out, ZK_XID_AUTH);
    jute_put_int(out, OP_AUTH);
    jute_put_int(out, 0); /* the type, which servers ignore */
    jute_put_string(out, "digest");
    size_t proof = jute_begin(out); /* a buffer begins as a frame does */
    strbuf_printf(out, "%s:%s", user, password);
    jute_end(out, proof);
    jute_end(out, frame);
}

/* -- requests ---------------------------------------------------------------------------------- */

/* Adds the head of a request with the next xid. Returns what jute_end() wants. */
static size_t begin_request(struct zk_batch *batch, int operation)
{
    size_t frame = jute_begin(&batch->out);

    jute_put_int(&batch->out, batch->xid + (int32_t)batch->count++);
    jute_put_int(&batch->out, operation);
    return frame;
}

/* Puts the body of a creation. closed: only the user of this session may touch the node, others not
 * even read it. */
static void put_create(struct strbuf *out, const char *path, const char *data, bool closed,
                       int flags)
{
    jute_put_string(out, path);
    jute_put_string(out, data);
    jute_put_int(out, 1); /* list of rights: one entry */
    jute_put_int(out, ALL_RIGHTS);
    jute_put_string(out, closed ? "auth" : "world");
    jute_put_string(out, closed ? "" : "anyone");
    jute_put_int(out, flags);
}

void zk_container(struct zk_batch *batch, const char *path, bool closed)
{
    size_t frame = begin_request(batch, OP_CREATE_CONTAINER);

    put_create(&batch->out, path, "", closed, ZK_CONTAINER);
    batch->writes = true;
    jute_end(&batch->out, frame);
}

void zk_query(struct zk_batch *batch, int operation, const char *path, enum zk_watching watch)
{
    size_t frame = begin_request(batch, operation);

    jute_put_string(&batch->out, path);
    jute_put_bool(&batch->out, watch == ZK_WATCH);
    jute_end(&batch->out, frame);
}

void zk_get_child(struct zk_batch *batch, const char *parent, const char *name)
{
    char *path = strbuf_print("%s/%s", parent, name);

    zk_query(batch, OP_GET_DATA, path, ZK_NO_WATCH);
    free(path);
}

void zk_close(struct zk_batch *batch)
{
    size_t frame = begin_request(batch, OP_CLOSE);

    batch->writes = true;
    jute_end(&batch->out, frame);
}

void zk_multi(struct zk_batch *batch)
{
    batch->writes = true;
    batch->multi = begin_request(batch, OP_MULTI);
}

/* Adds the header of an operation of a transaction; OP_ERROR: the mark that ends it. Returns where
 * its body has to be put. */
static struct strbuf *put_operation(struct zk_batch *batch, int operation)
{
    struct strbuf *out = &batch->out;

    jute_put_int(out, operation);
    jute_put_bool(out, operation == OP_ERROR); /* it is the last */
    jute_put_int(out, -1);                     /* the error, of replies */
    return out;
}

void zk_multi_change(struct zk_batch *batch, int operation, const char *path, const char *data)
{
    struct strbuf *out = put_operation(batch, operation);

    jute_put_string(out, path);
    if (data)
        jute_put_string(out, data);
    jute_put_int(out, ANY_VERSION);
}

void zk_multi_create(struct zk_batch *batch, enum zk_create kind, const char *path,
                     const char *data, bool closed)
{
    put_create(put_operation(batch, OP_CREATE), path, data, closed, kind);
}

void zk_multi_end(struct zk_batch *batch)
{
    jute_end(put_operation(batch, OP_ERROR), batch->multi);
}

/* -- replies ----------------------------------------------------------------------------------- */

bool zk_read_reply(struct jute_in *in, struct zk_reply *reply)
{
    reply->xid = jute_int(in);
    reply->zxid = jute_long(in);
    reply->error = jute_int(in);
    reply->body = *in;
    return !in->damaged;
}

/* Takes the description of a node, of which only some members are of use. */
static struct zk_stat take_stat(struct jute_in *in)
{
    struct zk_stat stat;

    stat.czxid = jute_long(in);
    jute_long(in); /* mzxid */
    stat.ctime_ms = jute_long(in);
    stat.mtime_ms = jute_long(in);
    jute_int(in); /* versions of data, children, access */
    jute_int(in);
    jute_int(in);
    stat.session = jute_long(in);
    jute_int(in); /* how much data, how many children */
    jute_int(in);
    jute_long(in); /* pzxid */
    return stat;
}

int zk_read_data(const struct zk_reply *reply, struct jute_text *data, struct zk_stat *stat)
{
    struct jute_in in = reply->body;

    if (reply->error != ZK_OK)
        return reply->error;
    *data = jute_text(&in);
    *stat = take_stat(&in);
    return in.damaged ? ZK_MARSHALLING : ZK_OK;
}

int zk_read_children(const struct zk_reply *reply, struct zk_names *names)
{
    *names = (struct zk_names){.in = reply->body};
    if (reply->error != ZK_OK)
        return reply->error == ZK_NO_NODE ? ZK_OK : reply->error;
    names->left = jute_count(&names->in, sizeof(int32_t));
    return names->in.damaged ? ZK_MARSHALLING : ZK_OK;
}

bool zk_next_name(struct zk_names *names, struct jute_text *name)
{
    if (names->left == 0)
        return false;
    names->left--;
    *name = jute_text(&names->in);
    return !names->in.damaged;
}

bool zk_next_result(struct jute_in *in, struct zk_result *result)
{
    int operation = jute_int(in);
    bool last = jute_bool(in);
    int error = jute_int(in);

    *result = (struct zk_result){.path = {"", 0}};
    if (in->damaged || last)
        return false;
    switch (operation) {
    case OP_ERROR: error = jute_int(in); break;
    case OP_CREATE: result->path = jute_text(in); break;
    case OP_SET_DATA: take_stat(in); break;
    case OP_CHECK:
    case OP_DELETE: break;
    default: in->damaged = true;
    }
    result->error = operation == OP_ERROR ? error : ZK_OK;
    return !in->damaged;
}

int zk_multi_error(const struct zk_reply *reply, size_t *index)
{
    struct jute_in in = reply->body;
    struct zk_result result;

    for (size_t i = 0; zk_next_result(&in, &result); i++) {
        if (result.error == ZK_OK)
            continue;
        if (index)
            *index = i;
        return result.error;
    }
    return reply->error ? reply->error : in.damaged ? ZK_MARSHALLING : ZK_OK;
}
