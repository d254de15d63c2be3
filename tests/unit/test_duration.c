/* Durations: how they are read and shown. */
#include "base/duration.h"

#include "tap.h"

#define MS  INT64_C(1000000)
#define SEC (1000 * MS)
#define MIN (60 * SEC)
#define HR  (60 * MIN)
#define DAY (24 * HR)

static const struct {
    int64_t ns;
    const char *const *texts;
} parsed[] = {
    {0, INPUTS("0", "0s", "00", "0.0", "0d0h0m0s0ms")},
    {30 * SEC, INPUTS("30", "0030", "30s")},
    {1500 * MS, INPUTS("1.5")},
    {500 * MS, INPUTS(".5", "500ms")},
    {MS, INPUTS("1ms", "0.001")},
    {5 * MIN, INPUTS("5m")},
    {2 * HR, INPUTS("2h")},
    {DAY, INPUTS("1d", "86400s")},
    {90 * SEC, INPUTS("1m30s")},
    {90 * MIN, INPUTS("1.5h", "1h30m", "90m")},
    {12 * HR, INPUTS("0.5d")},
    {HR + 30 * SEC, INPUTS("1h0.5m")},
    {MIN + 500 * MS, INPUTS("1m500ms")},
    {DAY + 2 * HR + 3 * MIN + 4 * SEC + 5 * MS, INPUTS("1d2h3m4s5ms")},
    {DAY + 5 * MS + 250000, INPUTS("1d5.25ms")},
    /* nothing that is not 0 becomes 0 */
    {1, INPUTS("0.000000001", "0.0000000001",
               "0.00000000000000000000000000000000000000000000000000000000000001d")},
    {SEC, INPUTS("1.0000000000000000000000000000000000000000000000000000000000000s", "0.9999999999",
                 "000000000000000000000000000000000000000000000001s")},
    {SEC - 1, INPUTS("0.999999999")},
    {DAY / 3, INPUTS("0.33333333333333333333d")},
    {DURATION_MAX_NS, INPUTS("3650d", "87600h", "315360000", "315360000000ms", "3649d24h",
                             "3649.99999999999999999999d")},
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

#define NUMBERS(...) ((const int64_t[]){__VA_ARGS__, LAST})
#define LAST         4711 /* ends a list of numbers */

static const struct {
    const char *text;
    const int64_t *numbers;
} printed[] = {
    {"0s", NUMBERS(0, 1, MS / 2 - 1, -1, -5 * DAY, INT64_MIN)},
    {"1ms", NUMBERS(MS - 1, MS)},
    {"850ms", NUMBERS(850 * MS)},
    {"999ms", NUMBERS(SEC - MS)},
    {"1s", NUMBERS(SEC - 1, SEC, 1049 * MS)},
    {"1.1s", NUMBERS(1050 * MS, 1100 * MS)},
    {"1.5s", NUMBERS(1500 * MS)},
    {"9.9s", NUMBERS(9949 * MS)},
    {"10s", NUMBERS(9950 * MS, 10 * SEC)},
    {"24s", NUMBERS(24499 * MS)},
    {"25s", NUMBERS(24500 * MS)},
    {"59s", NUMBERS(59499 * MS)},
    {"1m00s", NUMBERS(MIN - 1, MIN)},
    {"3m12s", NUMBERS(3 * MIN + 12 * SEC)},
    {"59m59s", NUMBERS(HR - SEC)},
    {"1h00m", NUMBERS(HR - 1, HR)},
    {"2h00m", NUMBERS(2 * HR - 100 * MS)},
    {"2h05m", NUMBERS(2 * HR + 5 * MIN + 29 * SEC)},
    {"2h06m", NUMBERS(2 * HR + 5 * MIN + 30 * SEC)},
    {"23h59m", NUMBERS(DAY - MIN)},
    {"1d00h", NUMBERS(DAY - 1, DAY)},
    {"3d04h", NUMBERS(3 * DAY + 4 * HR)},
    {"3650d00h", NUMBERS(DURATION_MAX_NS)},
    {"106752d00h", NUMBERS(INT64_MAX)},
};

/* Durations in all units are read as ns; a text that is none is refused, and leaves the number
 * as it was. */
static void test_parse(void)
{
    for (size_t i = 0; i < COUNT(parsed); i++)
        EACH(text, parsed[i].texts) {
            int64_t ns = 4711;
            bool accepted = duration_parse(*text, &ns);
            if (!tap_ok(accepted && ns == parsed[i].ns, "duration_parse %s", tap_show(*text)))
                tap_note("got %s, %" PRId64 ", wanted %" PRId64, accepted ? "accepted" : "refused",
                         ns, parsed[i].ns);
        }
    EACH(text, refused) {
        int64_t ns = 4711;
        tap_ok(!duration_parse(*text, &ns) && ns == 4711, "duration_parse refuses %s",
               tap_show(*text));
    }
}

/* A duration of more than ten years is told to be too long, only if it is a duration. */
static void test_fault(void)
{
    const char *const *const too_long =
        INPUTS("3651d", "99999999999999999999999999s", "3650d1ms", "3650.0000000000000001d");

    EACH(text, too_long)
        tap_is(duration_fault(*text, "no"), "is longer than ten years", "duration_fault", *text);
    tap_is(duration_fault("99999999d1x", "no"), "no", "duration_fault", "99999999d1x");
}

/* A text of a million characters is read to its end, or refused, without an overflow. */
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

/* A duration is printed in two units at most, and cut to the room that there is. */
static void test_print(void)
{
    char out[32];

    for (size_t i = 0; i < COUNT(printed); i++)
        for (const int64_t *ns = printed[i].numbers; *ns != LAST; ns++) {
            char name[32];
            snprintf(name, sizeof(name), "%" PRId64, *ns);
            tap_is(duration_print(*ns, out, sizeof(out)), printed[i].text, "duration_print", name);
        }
    tap_is(duration_print(3 * MIN, out, 4), "3m0", "duration_print into 4 bytes", "3m00s");
}

int main(void)
{
    test_parse();
    test_fault();
    test_huge("zeros", '0', "1s", true);
    test_huge("zeros behind the point", '0', ".0", true);
    test_huge("nines", '9', "", false);
    test_huge("letters", 'm', "", false);
    test_huge("points", '.', "", false);
    test_print();
    return tap_done();
}
