/* Messages of Protocol Buffers: how fields are written and read, and what is damaged. */
#include "host/protobuf.h"

#include "tap.h"

/* As the encoding's own documentation has them, and a list of two. */
static const struct {
    const char *bytes;
    size_t size;
    unsigned number; /* of the field that is looked for */
    int64_t value;
    const char *text; /* NULL: it is not there, or a number */
} rows[] = {
    {"\x08\x96\x01", 3, 1, 150, NULL},
    {"\x12\x07testing", 9, 2, 0, "testing"},
    {"\x08\x96\x01\x12\x02hi", 7, 2, 0, "hi"},
    {"\x12\x02hi\x12\x02ho", 8, 2, 0, "hi"},
    {"\x12\x00", 2, 2, 0, ""},
    {"\x09"
     "12345678"
     "\x10\x05",
     11, 2, 5, NULL},
    {"\x0d"
     "1234"
     "\x10\x05",
     7, 2, 5, NULL},
    {"\x58\x07", 2, 11, 7, NULL},
    {"\x08\xff\xff\xff\xff\xff\xff\xff\xff\x7f", 10, 1, INT64_MAX, NULL},
    {"\x08\x96\x01", 3, 2, 0, NULL},
    {"", 0, 1, 0, NULL},
    {"\x08", 1, 1, 0, NULL},
    {"\x08\x96", 2, 1, 0, NULL},
    {"\x12\x07test", 6, 2, 0, NULL},
    {"\x12\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01hi", 13, 2, 0, NULL},
    {"\x09"
     "1234",
     5, 1, 0, NULL},
    {"\x08\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x00", 12, 1, 0, NULL},
};

/* The first field with a number is found in a message; in a damaged one, none. */
static void test_reading(void)
{
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const struct protobuf_field field =
            protobuf_find((struct slice){rows[i].bytes, rows[i].size}, rows[i].number);
        const char *text = rows[i].text;
        bool same =
            text ? field.bytes.at && slice_equal(field.bytes, slice_of(text)) : !field.bytes.at;
        tap_ok(same && field.value == rows[i].value, "row %zu", i);
    }
}

/* Numbers of all lengths, bytes and a wrapped message are read back as they were written. */
static void test_writing(void)
{
    static const int64_t numbers[] = {0, 1, 127, 128, 16384, INT64_MAX, -1};
    struct strbuf message = {0};
    struct protobuf_field field;
    char text[300];

    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        protobuf_add_number(&message, (unsigned)i * 100 + 1, numbers[i]);
    memset(text, 'x', sizeof text);
    protobuf_add_bytes(&message, 5, (struct slice){text, sizeof text});
    protobuf_wrap(&message, 6);
    struct slice rest = {message.text, message.size};
    tap_ok(protobuf_take(&rest, &field) && field.number == 6 && rest.size == 0, "one field");
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        tap_ok(protobuf_find(field.bytes, (unsigned)i * 100 + 1).value == numbers[i], "%" PRId64,
               numbers[i]);
    tap_ok(slice_equal(protobuf_find(field.bytes, 5).bytes, (struct slice){text, sizeof text}),
           "bytes");
    strbuf_free(&message);
}

int main(void)
{
    test_reading();
    test_writing();
    return tap_done();
}
