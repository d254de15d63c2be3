/* Durations: how they are read and shown. */
#include "base/duration.h"

#include "tap.h"

#define MS  INT64_C(1000000)
#define SEC (1000 * MS)
#define MIN (60 * SEC)
#define HR  (60 * MIN)
#define DAY (24 * HR)

static const struct {
    const char *text;
    int64_t ns;
} parsed[] = {
    {"0", 0},
    {"0s", 0},
    {"00", 0},
    {"0.0", 0},
    {"0d0h0m0s0ms", 0},
    {"30", 30 * SEC},
    {"0030", 30 * SEC},
    {"1.5", 1500 * MS},
    {".5", 500 * MS},
    {"500ms", 500 * MS},
    {"1ms", MS},
    {"30s", 30 * SEC},
    {"5m", 5 * MIN},
    {"2h", 2 * HR},
    {"1d", DAY},
    {"1m30s", 90 * SEC},
    {"1.5h", 90 * MIN},
    {"0.5d", 12 * HR},
    {"1h30m", 90 * MIN},
    {"1h0.5m", HR + 30 * SEC},
    {"1m500ms", MIN + 500 * MS},
    {"1d2h3m4s5ms", DAY + 2 * HR + 3 * MIN + 4 * SEC + 5 * MS},
    {"1d5.25ms", DAY + 5 * MS + 250000},
    {"90m", 90 * MIN},
    {"86400s", DAY},
    {"0.001", MS},
    {"0.000000001", 1},
    /* nothing that is not 0 becomes 0 */
    {"0.0000000001", 1},
    {"0.00000000000000000000000000000000000000000000000000000000000001d", 1},
    {"1.0000000000000000000000000000000000000000000000000000000000000s", SEC},
    {"0.9999999999", SEC},
    {"0.999999999", SEC - 1},
    {"0.33333333333333333333d", DAY / 3},
    {"3650d", DURATION_MAX_NS},
    {"87600h", DURATION_MAX_NS},
    {"315360000", DURATION_MAX_NS},
    {"315360000000ms", DURATION_MAX_NS},
    {"3649d24h", DURATION_MAX_NS},
    {"3649.99999999999999999999d", DURATION_MAX_NS},
    {"000000000000000000000000000000000000000000000001s", SEC},
};

static const char *const *const refused = INPUTS(
    "", " ", ".", "5.", "5.s", ".s", "s", "ms", "-1", "-1s", "+1", "-0", "1h-1m", " 1s", "1s ",
    "1 s", "1h 30m", "1s\n", "\t1", "1e3", "1e3s", "1E3", "0x10", "1_000", "1,5", "1,5h", "1.5.5",
    "1..5", "inf", "infinity", "nan", "forever", "1w", "1y", "1us", "1ns", "1S", "1H", "1MS",
    "1sec", "1min", "1mm", "1sm", "1m1m", "1s1s", "0s0s", "30m1h", "1ms1s", "1s1d", "1.5h30m",
    "1.0h30m", "1h30", "30h1", "1.5m1", "3651d", "3650d1ms", "3650.0000000000000001d", "315360001",
    "315360000.000000001", "315360000001ms", "9223372036854775807", "9223372036854775808",
    "18446744073709551616", "18446744073709551617s", "9223372036854775807d",
    "9223372036854775807ms", "213503982334601d",
    "99999999999999999999999999999999999999999999999999999999ms", "1\xc2\xa0s", "1\xc2\xb5s",
    "\xd9\xa1s", "\xff", "1\xff", "\x01", "1m\x7f", "$(date)", "%n");

static const struct {
    int64_t ns;
    const char *text;
} printed[] = {
    {0, "0s"},
    {1, "0s"},
    {MS / 2 - 1, "0s"},
    {MS - 1, "1ms"},
    {-1, "0s"},
    {-5 * DAY, "0s"},
    {INT64_MIN, "0s"},
    {MS, "1ms"},
    {850 * MS, "850ms"},
    {SEC - MS, "999ms"},
    {SEC - 1, "1s"},
    {SEC, "1s"},
    {1049 * MS, "1s"},
    {1050 * MS, "1.1s"},
    {1100 * MS, "1.1s"},
    {1500 * MS, "1.5s"},
    {9949 * MS, "9.9s"},
    {9950 * MS, "10s"},
    {10 * SEC, "10s"},
    {24499 * MS, "24s"},
    {24500 * MS, "25s"},
    {59499 * MS, "59s"},
    {MIN - 1, "1m00s"},
    {MIN, "1m00s"},
    {3 * MIN + 12 * SEC, "3m12s"},
    {HR - SEC, "59m59s"},
    {HR - 1, "1h00m"},
    {HR, "1h00m"},
    {2 * HR - 100 * MS, "2h00m"},
    {2 * HR + 5 * MIN + 29 * SEC, "2h05m"},
    {2 * HR + 5 * MIN + 30 * SEC, "2h06m"},
    {DAY - MIN, "23h59m"},
    {DAY - 1, "1d00h"},
    {DAY, "1d00h"},
    {3 * DAY + 4 * HR, "3d04h"},
    {DURATION_MAX_NS, "3650d00h"},
    {INT64_MAX, "106752d00h"},
};

static void test_parse(void)
{
    for (size_t i = 0; i < COUNT(parsed); i++) {
        int64_t ns = 4711;
        bool accepted = duration_parse(parsed[i].text, &ns);
        if (!tap_ok(accepted && ns == parsed[i].ns, "duration_parse %s", tap_show(parsed[i].text)))
            tap_note("got %s, %" PRId64 ", wanted %" PRId64, accepted ? "accepted" : "refused", ns,
                     parsed[i].ns);
    }
    EACH(text, refused) {
        int64_t ns = 4711;
        tap_ok(!duration_parse(*text, &ns) && ns == 4711, "duration_parse refuses %s",
               tap_show(*text));
    }
}

static void test_huge(const char *what, char fill, const char *tail, bool wanted)
{
    size_t length = 1000000;
    char *text = malloc(length + strlen(tail) + 1);
    int64_t ns;

    if (!text)
        return;
    memset(text, fill, length);
    strcpy(text + length, tail);
    tap_ok(duration_parse(text, &ns) == wanted, "duration_parse of a million %s", what);
    free(text);
}

static void test_print(void)
{
    char out[32];

    for (size_t i = 0; i < COUNT(printed); i++) {
        char name[32];
        snprintf(name, sizeof(name), "%" PRId64, printed[i].ns);
        tap_is(duration_print(printed[i].ns, out, sizeof(out)), printed[i].text, "duration_print",
               name);
    }
    tap_is(duration_print(3 * MIN, out, 4), "3m0", "duration_print into 4 bytes", "3m00s");
}

int main(void)
{
    test_parse();
    test_huge("zeros", '0', "1s", true);
    test_huge("zeros behind the point", '0', ".0", true);
    test_huge("nines", '9', "", false);
    test_huge("letters", 'm', "", false);
    test_huge("points", '.', "", false);
    test_print();
    return tap_done();
}
