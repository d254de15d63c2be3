/* Which Host headers are known. */
#include "serve/host_header.h"

#include "tap.h"

static const char *const names[] = {"localhost", "vm.example.com", "Locks", "full.example.org."};

static const struct {
    const char *header;
    bool known;
} headers[] = {
    {"localhost", true},
    {"localhost:9750", true},
    {"LocalHost:1", true},
    {"localhost.", true},
    {"localhost.:80", true},
    {"localhost:", true},
    {"vm.example.com:9750", true},
    {"locks", true},
    {"full.example.org", true},
    {"127.0.0.1", true},
    {"127.0.0.1:9750", true},
    {"10.1.2.3", true},
    {"[::1]", true},
    {"[::1]:9750", true},
    {"[2001:db8::7]:80", true},
    {"", false},
    {":80", false},
    {".", false},
    {"evil.example", false},
    {"evil.example:9750", false},
    {"localhost.evil.example", false},
    {"127.0.0.1.evil.example", false},
    {"127.0.0.1@evil.example", false},
    {"localhost@evil.example", false},
    {"localhost:80@evil.example", false},
    {"localhost:evil.example", false},
    {"localhost evil", false},
    {"localhostx", false},
    {"localhos", false},
    {"vm", false},
    {"1.2.3", false},
    {"0x7f000001", false},
    {"::1", false},
    {"[::1", false},
    {"[]", false},
    {"[::1]x", false},
    {"[localhost]", false},
    {"[127.0.0.1]", false},
};

static const struct {
    const char *name;
    bool good;
} allowed[] = {
    {"locks.example.com", true}, {"locks", true},       {"locks.", true},     {"", false},
    {".", false},                {"locks:9750", false}, {"http://x", false},  {"a b", false},
    {"*.example.com", false},    {"[::1]", false},      {"a\033[31m", false}, {"x_y", true},
};

int main(void)
{
    char long_header[400];

    for (size_t i = 0; i < COUNT(headers); i++)
        tap_ok(host_header_is_known(headers[i].header, names, COUNT(names)) == headers[i].known,
               "%s is %s", tap_show(headers[i].header), headers[i].known ? "known" : "not known");
    tap_ok(host_header_is_known("127.0.0.1", NULL, 0), "an address without any name");
    memset(long_header, 'a', sizeof long_header - 1);
    long_header[sizeof long_header - 1] = '\0';
    tap_ok(!host_header_is_known(long_header, names, COUNT(names)), "a long one is not known");
    tap_ok(!host_header_is_name(long_header), "a long one is not a name");
    for (size_t i = 0; i < COUNT(allowed); i++)
        tap_ok(host_header_is_name(allowed[i].name) == allowed[i].good, "%s is %s name",
               tap_show(allowed[i].name), allowed[i].good ? "a" : "no");
    return tap_done();
}
