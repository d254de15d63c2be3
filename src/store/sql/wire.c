/* Frames. */
#include "store/sql/wire.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/decimal.h"
#include "base/mem.h"

#define LENGTH_SIZE 4
#define CHUNK       16384

/* -- writing ----------------------------------------------------------------------------------- */

static void append(struct wire_out *out, const char *bytes, size_t count)
{
    if (out->room - out->size < count) {
        out->room = 2 * out->room + count + 256;
        out->bytes = mem_checked(realloc(out->bytes, out->room));
    }
    memcpy(out->bytes + out->size, bytes, count);
    out->size += count;
}

static void put_length(char to[LENGTH_SIZE], size_t length)
{
    for (int i = 0; i < LENGTH_SIZE; i++)
        to[i] = (char)(length >> (8 * (LENGTH_SIZE - 1 - i)) & 0xff);
}

void wire_begin(struct wire_out *out, enum wire_type type)
{
    const char head[LENGTH_SIZE + 1] = {0, 0, 0, 0, (char)type};

    out->frame = out->size;
    append(out, head, sizeof head);
}

void wire_text(struct wire_out *out, const char *text)
{
    size_t length = strlen(text);
    char head[LENGTH_SIZE];

    put_length(head, length);
    append(out, head, sizeof head);
    append(out, text, length + 1);
}

void wire_number(struct wire_out *out, int64_t number)
{
    char text[24];

    snprintf(text, sizeof text, "%" PRId64, number);
    wire_text(out, text);
}

bool wire_end(struct wire_out *out)
{
    size_t length = out->size - out->frame - LENGTH_SIZE;

    if (length > WIRE_FRAME_MAX) {
        wire_cancel(out);
        return false;
    }
    put_length(out->bytes + out->frame, length);
    return true;
}

void wire_cancel(struct wire_out *out)
{
    out->size = out->frame;
}

/* What was sent may have had a password in it. */
void wire_sent(struct wire_out *out, size_t count)
{
    memmove(out->bytes, out->bytes + count, out->size - count);
    explicit_bzero(out->bytes + out->size - count, count);
    out->size -= count;
}

/* -- reading ----------------------------------------------------------------------------------- */

static size_t get_length(const char *from)
{
    size_t length = 0;

    for (int i = 0; i < LENGTH_SIZE; i++)
        length = length << 8 | (unsigned char)from[i];
    return length;
}

char *wire_room(struct wire_in *in, size_t *size)
{
    if (in->taken > 0) {
        in->size -= in->taken;
        memmove(in->bytes, in->bytes + in->taken, in->size);
        in->taken = 0;
    }
    if (in->room - in->size < CHUNK) {
        in->room = 2 * in->room + CHUNK;
        in->bytes = mem_checked(realloc(in->bytes, in->room));
    }
    *size = in->room - in->size;
    return in->bytes + in->size;
}

void wire_received(struct wire_in *in, size_t count)
{
    in->size += count;
}

enum wire_state wire_next(struct wire_in *in, struct wire_frame *frame)
{
    size_t left = in->size - in->taken;

    if (left < LENGTH_SIZE)
        return WIRE_MORE;
    const char *start = in->bytes + in->taken;
    size_t length = get_length(start);
    if (length == 0 || length > WIRE_FRAME_MAX)
        return WIRE_DAMAGED;
    if (left - LENGTH_SIZE < length)
        return WIRE_MORE;
    frame->type = (enum wire_type)(unsigned char)start[LENGTH_SIZE];
    frame->at = start + LENGTH_SIZE + 1;
    frame->end = start + LENGTH_SIZE + length;
    in->taken += LENGTH_SIZE + length;
    return WIRE_FRAME;
}

bool wire_take(struct wire_frame *frame, const char **text)
{
    size_t left = (size_t)(frame->end - frame->at);

    if (left < LENGTH_SIZE + 1)
        return false;
    size_t length = get_length(frame->at);
    *text = frame->at + LENGTH_SIZE;
    if (left - LENGTH_SIZE - 1 < length || strnlen(*text, length + 1) != length)
        return false;
    frame->at = *text + length + 1;
    return true;
}

bool wire_take_number(struct wire_frame *frame, int64_t *number)
{
    const char *text;

    return wire_take(frame, &text) && decimal_parse(text, 0, INT64_MAX, number);
}
