/* Jute, the encoding that ZooKeeper speaks: big-endian integers, strings and buffers behind their
 * length, and frames, which have their length in front. Pure. */
#ifndef RLOCK_STORE_ZOOKEEPER_JUTE_H
#define RLOCK_STORE_ZOOKEEPER_JUTE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/strbuf.h"

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

int32_t jute_int(struct jute_in *in);
int64_t jute_long(struct jute_in *in);
bool jute_bool(struct jute_in *in);
/* A string or a buffer; one that is null is empty. */
struct jute_text jute_text(struct jute_in *in);
/* How many elements follow, of which each takes at least "least" bytes. */
size_t jute_count(struct jute_in *in, size_t least);

/* Takes one whole frame off the "size" bytes: its length in bytes with what is in front of it, and
 * *frame. 0: it is not all there yet. -1: its length is negative or above JUTE_FRAME_MAX. */
#define JUTE_FRAME_MAX (64 << 20)
int64_t jute_frame(const char *bytes, size_t size, struct jute_in *frame);

#endif
