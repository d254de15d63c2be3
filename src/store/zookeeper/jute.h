/* Jute, the encoding that ZooKeeper speaks: big-endian integers, strings and buffers behind their
 * length, and frames, which have their length in front. Pure. */
#ifndef RLOCK_STORE_ZOOKEEPER_JUTE_H
#define RLOCK_STORE_ZOOKEEPER_JUTE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What is written; zeroed at first. */
struct jute_out {
    char *bytes;
    size_t size, room;
};

void jute_put_int(struct jute_out *out, int32_t number);
void jute_put_long(struct jute_out *out, int64_t number);
void jute_put_bool(struct jute_out *out, bool value);
/* Bytes as they are, without their length. */
void jute_put_bytes(struct jute_out *out, const void *bytes, size_t size);
void jute_put_buffer(struct jute_out *out, const char *bytes, size_t size);
void jute_put_string(struct jute_out *out, const char *text);
/* A frame is what is put between these two. jute_begin() returns what jute_end() wants. */
size_t jute_begin(struct jute_out *out);
void jute_end(struct jute_out *out, size_t frame);
/* Frees the bytes; it is empty then. */
void jute_drop(struct jute_out *out);

/* What is read, borrowed. Where something does not fit in, it is "damaged" from there on, and all
 * that is read is zero or empty. */
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
