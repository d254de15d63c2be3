/* Jute. */
#include "store/zookeeper/jute.h"

#include <endian.h>
#include <string.h>

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

/* The next "size" bytes; NULL if there are less. */
static const char *take(struct jute_in *in, size_t size)
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
    const char *at = take(in, sizeof word);

    if (at)
        memcpy(&word, at, sizeof word);
    return (int32_t)be32toh(word);
}

int64_t jute_long(struct jute_in *in)
{
    uint64_t word = 0;
    const char *at = take(in, sizeof word);

    if (at)
        memcpy(&word, at, sizeof word);
    return (int64_t)be64toh(word);
}

bool jute_bool(struct jute_in *in)
{
    const char *at = take(in, 1);

    return at && *at;
}

struct jute_text jute_text(struct jute_in *in)
{
    int32_t size = jute_int(in);
    const char *bytes = NULL;

    if (size < -1)
        in->damaged = true;
    if (size > 0)
        bytes = take(in, (size_t)size);
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
