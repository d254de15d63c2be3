/* H129 What may be a host: of what is none, no certificate can be verified. */
#include "net/host.h"

#include "tap.h"

#define TEN   "a123456789"
#define SIXTY TEN TEN TEN TEN TEN TEN

static const struct {
    const char *text;
    bool name, address;
} rows[] = {
    {"h", true, false},
    {"a.example", true, false},
    {"a.example.", true, false},
    {"A-1_b.xn--bcher-kva.example", true, false},
    {"1.2.3", true, false},
    {SIXTY "abc", true, false},
    {SIXTY "abc." SIXTY "abc." SIXTY "abc." SIXTY "d", true, false},
    {SIXTY "abc." SIXTY "abc." SIXTY "abc." SIXTY "d.", true, false},
    {SIXTY "abc." SIXTY "abc." SIXTY "abc." SIXTY "de", false, false},
    {SIXTY "abcd", false, false},
    {"127.0.0.1", true, true},
    {"::1", false, true},
    {"2001:db8::ffff:127.0.0.1", false, true},
    /* These would turn verification off, or make it weaker. */
    {"", false, false},
    {".", false, false},
    {"..", false, false},
    {".a.example", false, false},
    {"a..example", false, false},
    {"a.example..", false, false},
    {"%", false, false},
    {"a%b", false, false},
    {"fe80::1%eth0", false, false},
    {"[::1]", false, false},
    {"::1::2", false, false},
    {"*", false, false},
    {"*.example", false, false},
    {"-a", false, false},
    {"a-", false, false},
    {"a-.example", false, false},
    {" a", false, false},
    {"a b", false, false},
    {"a:1", false, false},
    {"a/b", false, false},
    {"b\303\274cher.example", false, false},
};

int main(void)
{
    for (size_t i = 0; i < COUNT(rows); i++) {
        const char *text = rows[i].text;
        tap_ok(host_is_name(text) == rows[i].name, "host_is_name %s", tap_show(text));
        tap_ok(host_is_address(text) == rows[i].address, "host_is_address %s", tap_show(text));
    }
    return tap_done();
}
