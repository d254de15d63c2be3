#include "base/duration.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/decimal.h"

#define DIGITS "0123456789"

#define NS_MS   INT64_C(1000000)
#define NS_SEC  (1000 * NS_MS)
#define NS_MIN  (60 * NS_SEC)
#define NS_HOUR (60 * NS_MIN)
#define NS_DAY  (24 * NS_HOUR)

static const struct unit {
    const char *name;
    int64_t ns;
} units[] = {{"d", NS_DAY}, {"h", NS_HOUR}, {"m", NS_MIN}, {"s", NS_SEC}, {"ms", NS_MS}};

#define UNIT_COUNT  (sizeof(units) / sizeof(units[0]))
#define UNIT_SECOND 3
#define TOO_LONG    (DURATION_MAX_NS + 1)

/* One number with its unit, as found in the text. */
struct component {
    const char *whole;
    size_t whole_length;
    const char *fraction;
    size_t fraction_length;
    size_t unit; /* UNIT_COUNT: none written */
};

/* Splits the component at *text off and moves *text behind it. False: there is none. */
static bool component_read(const char **text, struct component *c)
{
    const char *p = *text;

    *c = (struct component){.whole = p, .whole_length = strspn(p, DIGITS)};
    p += c->whole_length;
    if (*p == '.') {
        c->fraction = p + 1;
        c->fraction_length = strspn(c->fraction, DIGITS);
        if (c->fraction_length == 0)
            return false;
        p = c->fraction + c->fraction_length;
    }
    if (c->whole_length + c->fraction_length == 0)
        return false;

    size_t length = strcspn(p, DIGITS ".");
    for (c->unit = 0; length > 0; c->unit++) {
        if (c->unit == UNIT_COUNT)
            return false;
        const char *name = units[c->unit].name;
        if (strlen(name) == length && memcmp(name, p, length) == 0)
            break;
    }
    if (length == 0)
        c->unit = UNIT_COUNT;
    *text = p + length;
    return true;
}

/* Adds the component, counted in units of "unit" ns, to *sum, which does not grow beyond
 * TOO_LONG. */
static void component_add(const struct component *c, int64_t unit, int64_t *sum)
{
    int64_t whole = 0;
    if (c->whole_length > 0 &&
        !decimal_read(c->whole, c->whole_length, DURATION_MAX_NS / unit, &whole))
        whole = DURATION_MAX_NS / unit + 1;
    /* From the last digit to the first, rounded up at each step, which equals one rounding at the
     * end. Up, because 0 often means something else ("no limit"), and no fraction may become 0. */
    int64_t part = 0;
    for (size_t i = c->fraction_length; i > 0; i--)
        part = ((c->fraction[i - 1] - '0') * unit + part + 9) / 10;

    *sum += whole * unit + part;
    if (*sum > DURATION_MAX_NS)
        *sum = TOO_LONG;
}

/* Returns the ns of all components, TOO_LONG at most; -1: the text is not a duration. */
static int64_t add_up(const char *text)
{
    int64_t sum = 0;
    struct component c = {0};
    const char *p = text;

    for (size_t next_unit = 0; p == text || *p; next_unit = c.unit + 1) {
        bool first = p == text;
        /* Only the last component may have a fraction. */
        if (c.fraction_length > 0 || !component_read(&p, &c))
            return -1;
        /* A number without a unit is all of the text: "90" is 90 s. */
        if (c.unit == UNIT_COUNT) {
            if (!first || *p)
                return -1;
            c.unit = UNIT_SECOND;
        }
        if (c.unit < next_unit) /* units fall, and none is there twice */
            return -1;
        component_add(&c, units[c.unit].ns, &sum);
    }
    return sum;
}

bool duration_parse(const char *text, int64_t *ns)
{
    int64_t sum = add_up(text);

    if (sum < 0 || sum > DURATION_MAX_NS)
        return false;
    *ns = sum;
    return true;
}

const char *duration_fault(const char *text, const char *otherwise)
{
    return add_up(text) > DURATION_MAX_NS ? "is longer than ten years" : otherwise;
}

/* Returns the multiple of "step" that is nearest to ns. */
static uint64_t rounded(uint64_t ns, uint64_t step)
{
    return (ns + step / 2) / step * step;
}

/* Prints ns as two units, the second with two digits: "3m12s". */
static void print_two(uint64_t ns, uint64_t unit, char name, uint64_t part, char part_name,
                      char *out, size_t size)
{
    snprintf(out, size, "%" PRIu64 "%c%02" PRIu64 "%c", ns / unit, name, ns % unit / part,
             part_name);
}

/* Prints the first form that is large enough. Each form has its precision. A value that rounds up
 * to the least of the next form has that, so that 1h59m59.9s is 2h00m. */
char *duration_print(int64_t ns, char *out, size_t size)
{
    uint64_t left = ns > 0 ? (uint64_t)ns : 0;

    if (left < NS_SEC && (left = rounded(left, NS_MS)) < NS_SEC)
        snprintf(out, size, left ? "%" PRIu64 "ms" : "0s", left / NS_MS);
    else if (left < 10 * NS_SEC && (left = rounded(left, NS_SEC / 10)) < 10 * NS_SEC &&
             left % NS_SEC)
        snprintf(out, size, "%" PRIu64 ".%" PRIu64 "s", left / NS_SEC, left % NS_SEC * 10 / NS_SEC);
    else if (left < NS_MIN && (left = rounded(left, NS_SEC)) < NS_MIN)
        snprintf(out, size, "%" PRIu64 "s", left / NS_SEC);
    else if (left < NS_HOUR && (left = rounded(left, NS_SEC)) < NS_HOUR)
        print_two(left, NS_MIN, 'm', NS_SEC, 's', out, size);
    else if (left < NS_DAY && (left = rounded(left, NS_MIN)) < NS_DAY)
        print_two(left, NS_HOUR, 'h', NS_MIN, 'm', out, size);
    else
        print_two(rounded(left, NS_HOUR), NS_DAY, 'd', NS_HOUR, 'h', out, size);
    return out;
}
