/* Messages as Protocol Buffers encode them: field after field, each with a tag in front, which is 8
 * times its number, and its kind. Whole numbers are varints: seven bits a byte, the lowest first,
 * and a high bit that says whether more follow. */
#include "host/protobuf.h"

enum kind { VARINT, EIGHT_BYTES, BYTES, FOUR_BYTES = 5 };

static void add_varint(struct strbuf *message, uint64_t number)
{
    for (; number > 127; number >>= 7)
        strbuf_putc(message, (char)(number | 128));
    strbuf_putc(message, (char)number);
}

void protobuf_add_number(struct strbuf *message, unsigned field, int64_t number)
{
    add_varint(message, 8 * field + VARINT);
    add_varint(message, (uint64_t)number);
}

void protobuf_add_bytes(struct strbuf *message, unsigned field, struct slice bytes)
{
    add_varint(message, 8 * field + BYTES);
    add_varint(message, bytes.size);
    strbuf_add(message, bytes.at, bytes.size);
}

void protobuf_wrap(struct strbuf *message, unsigned field)
{
    struct strbuf inner = *message;

    *message = (struct strbuf){0};
    protobuf_add_bytes(message, field, (struct slice){inner.text, inner.size});
    strbuf_free(&inner);
}

/* Takes a varint off the front of the message into *number. False: it is damaged. */
static bool take_varint(struct slice *message, uint64_t *number)
{
    unsigned char byte = 128;

    *number = 0;
    for (unsigned bits = 0; byte > 127; bits += 7) {
        if (message->size == 0 || bits > 63)
            return false;
        byte = (unsigned char)*message->at++;
        message->size--;
        *number |= (uint64_t)(byte & 127) << bits;
    }
    return true;
}

bool protobuf_take(struct slice *message, struct protobuf_field *field)
{
    uint64_t tag, number = 0; /* the field's value; or how many bytes it has */

    *field = (struct protobuf_field){0};
    if (!take_varint(message, &tag))
        return false;
    enum kind kind = tag & 7;
    field->number = (unsigned)(tag >> 3);
    if (kind == EIGHT_BYTES || kind == FOUR_BYTES)
        number = kind == EIGHT_BYTES ? 8 : 4;
    else if (!take_varint(message, &number))
        return false;
    if (kind == VARINT) {
        field->value = (int64_t)number;
        return true;
    }
    if (number > message->size)
        return false;
    field->bytes = (struct slice){message->at, number};
    message->at += number;
    message->size -= number;
    return true;
}

struct protobuf_field protobuf_find(struct slice message, unsigned number)
{
    struct protobuf_field field;

    while (protobuf_take(&message, &field))
        if (field.number == number)
            return field;
    return (struct protobuf_field){0};
}
