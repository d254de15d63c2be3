/* Which Host headers are known. */
#include "serve/host_header.h"

#include "tap.h"

static const char *const names[] = {"localhost", "vm.example.com", "Locks", "full.example.org."};

static const char *const *const known =
    INPUTS("localhost", "localhost:9750", "LocalHost:1", "localhost.", "localhost.:80",
           "localhost:", "vm.example.com:9750", "locks", "full.example.org", "127.0.0.1",
           "127.0.0.1:9750", "10.1.2.3", "[::1]", "[::1]:9750", "[2001:db8::7]:80");
static const char *const *const unknown =
    INPUTS("", ":80", ".", "evil.example", "evil.example:9750", "localhost.evil.example",
           "127.0.0.1.evil.example", "127.0.0.1@evil.example", "localhost@evil.example",
           "localhost:80@evil.example", "localhost:evil.example", "localhost evil", "localhostx",
           "localhos", "vm", "1.2.3", "0x7f000001", "::1", "[::1", "[]", "[::1]x", "[localhost]",
           "[127.0.0.1]");

static const char *const *const good = INPUTS("locks.example.com", "locks", "locks.", "x_y");
static const char *const *const poor =
    INPUTS("", ".", "locks:9750", "http://x", "a b", "*.example.com", "[::1]", "a\033[31m");

int main(void)
{
    char long_header[400];

    EACH(text, known)
        tap_ok(host_header_is_known(*text, names, COUNT(names)), "%s is known", *text);
    EACH(text, unknown)
        tap_ok(!host_header_is_known(*text, names, COUNT(names)), "%s is not known",
               tap_show(*text));
    tap_ok(host_header_is_known("127.0.0.1", NULL, 0), "an address without any name");
    memset(long_header, 'a', sizeof long_header - 1);
    long_header[sizeof long_header - 1] = '\0';
    tap_ok(!host_header_is_known(long_header, names, COUNT(names)), "a long one is not known");
    tap_ok(!host_header_is_name(long_header), "a long one is not a name");
    EACH(text, good)
        tap_ok(host_header_is_name(*text), "%s is a name", *text);
    EACH(text, poor)
        tap_ok(!host_header_is_name(*text), "%s is not a name", tap_show(*text));
    return tap_done();
}
