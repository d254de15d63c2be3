/* H129 What may be a host: of what is none, no certificate can be verified. */
#include "net/resolve.h"

#include "tap.h"

#define TEN   "a123456789"
#define SIXTY TEN TEN TEN TEN TEN TEN

static const struct {
    bool name, address;
    const char *const *texts;
} rows[] = {
    {true, false,
     INPUTS("h", "a.example", "a.example.", "A-1_b.xn--bcher-kva.example", "1.2.3", SIXTY "abc",
            SIXTY "abc." SIXTY "abc." SIXTY "abc." SIXTY "d",
            SIXTY "abc." SIXTY "abc." SIXTY "abc." SIXTY "d.")},
    /* Most of these would turn verification off, or make it weaker. */
    {false, false,
     INPUTS(SIXTY "abc." SIXTY "abc." SIXTY "abc." SIXTY "de", SIXTY "abcd", "", ".", "..",
            ".a.example", "a..example", "a.example..", "%", "a%b", "fe80::1%eth0", "[::1]",
            "::1::2", "*", "*.example", "-a", "a-", "a-.example", " a", "a b", "a:1", "a/b",
            "b\303\274cher.example")},
    {true, true, INPUTS("127.0.0.1")},
    {false, true, INPUTS("::1", "2001:db8::ffff:127.0.0.1")},
};

int main(void)
{
    for (size_t i = 0; i < COUNT(rows); i++) {
        EACH(text, rows[i].texts) {
            tap_ok(host_is_name(*text) == rows[i].name, "host_is_name %s", tap_show(*text));
            tap_ok(host_is_address(*text) == rows[i].address, "host_is_address %s",
                   tap_show(*text));
        }
    }
    return tap_done();
}
