/* Growable text. */
#include "base/strbuf.h"

#include "base/mem.h"
#include "tap.h"

/* A buffer that gets one byte at a time, across every size at which its memory grows, is a string
 * after each. */
static void test_growth(void)
{
    struct strbuf buf = {0};
    bool sound = true;

    for (size_t i = 0; i < 5000; i++) {
        strbuf_putc(&buf, (char)('a' + i % 26));
        sound &= buf.size == i + 1 && buf.text[i] == (char)('a' + i % 26) && !buf.text[i + 1];
    }
    tap_ok(sound && strlen(buf.text) == 5000, "5000 bytes, each followed by a NUL");
    strbuf_printf(&buf, "%05000d.", 7);
    tap_ok(buf.size == 10001 && buf.text[10000] == '.' && !buf.text[10001], "a long print");
    strbuf_free(&buf);
    tap_ok(!buf.text && !buf.size && !buf.room, "empty when freed");
}

/* Bytes are added, printed, dropped at either end and detached; the text always ends with a
 * NUL. */
static void test_pieces(void)
{
    struct strbuf buf = {0};

    strbuf_add(&buf, NULL, 0);
    tap_ok(buf.text && tap_same(buf.text, ""), "nothing added is an empty text");
    strbuf_puts(&buf, "a");
    strbuf_add(&buf, "\0b", 2);
    strbuf_printf(&buf, "%d", 42);
    tap_ok(buf.size == 5 && memcmp(buf.text, "a\0b42", 6) == 0, "a NUL is a byte as any other");
    strbuf_drop(&buf, 2);
    tap_ok(buf.size == 3 && tap_same(buf.text, "b42"), "the first bytes are removed");
    strbuf_cut(&buf, 1);
    tap_ok(buf.size == 1 && tap_same(buf.text, "b"), "the last bytes are removed");
    memcpy(strbuf_room(&buf, 100), "xyz", 3);
    strbuf_grew(&buf, 3);
    tap_ok(buf.room - buf.size >= 97 && tap_same(buf.text, "bxyz"), "bytes written in place");
    char *text = strbuf_detach(&buf);
    tap_ok(tap_same(text, "bxyz") && !buf.text, "detached");
    free(text);
    text = strbuf_detach(&buf);
    tap_ok(tap_same(text, ""), "an empty buffer is detached as an empty text");
    free(text);
    strbuf_drop(&buf, 0);
    strbuf_cut(&buf, 0);
    text = strbuf_print("%s/%03d", "a", 5);
    tap_ok(tap_same(text, "a/005"), "a printed text");
    free(text);
}

/* Control characters, backslashes and bytes that are not UTF-8 are escaped in what is added, not in
 * what was there before; a text of which each byte becomes four is whole. */
static void test_escape(void)
{
    struct strbuf buf = {0};
    char long_text[301];

    memset(long_text, '\033', sizeof long_text - 1);
    long_text[sizeof long_text - 1] = '\0';
    strbuf_puts(&buf, "\n");
    strbuf_escape(&buf, "%s: %d\\", "caf\xc3\xa9\n\xff", 7);
    tap_is(buf.text, "\ncaf\xc3\xa9\\x0a\\xff: 7\\\\", "strbuf_escape:", "what is added");
    size_t before = buf.size;
    strbuf_escape(&buf, "%s", long_text);
    strbuf_escape(&buf, "%s", "");
    tap_ok(buf.size == before + 4 * strlen(long_text) && strlen(buf.text) == buf.size,
           "a long text is whole");
    strbuf_free(&buf);
}

int main(void)
{
    test_growth();
    test_pieces();
    test_escape();
    return tap_done();
}
