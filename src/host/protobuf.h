/* Messages of Protocol Buffers, as far as etcd's need them: fields by number, each with a whole
 * number, or with bytes, which may be a message in turn. Pure. */
#pragma once

#include "base/strbuf.h"
#include "host/record.h"

void protobuf_add_number(struct strbuf *message, unsigned field, int64_t number);
void protobuf_add_bytes(struct strbuf *message, unsigned field, struct slice bytes);
/* Replaces the message by another one that has it as its only field, of that number. */
void protobuf_wrap(struct strbuf *message, unsigned field);

struct protobuf_field {
    unsigned number;
    int64_t value;      /* 0 where it has bytes */
    struct slice bytes; /* of the message that it was taken from; none where it has a number */
};
/* Takes the next field from the front of a message. False: none is left, or it is damaged. */
bool protobuf_take(struct slice *message, struct protobuf_field *field);
/* Returns the first field of that number; all of it is 0 if there is none. */
struct protobuf_field protobuf_find(struct slice message, unsigned number);
