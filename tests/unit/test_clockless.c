/* Records without a clock of their store's: which of their fields have times, and how old a line is
 * taken to be. */
#include "host/clockless.h"

#include "base/mem.h"

#include "tap.h"

#define S        INT64_C(1000000)
#define START    (INT64_C(1700000000) * S)
#define KEY      "rlock:{k}"
#define DEADLINE "1700000030000"
#define MARGIN   (2 * S)

/* -- a host of a client ------------------------------------------------------------------------ */

struct host {
    int64_t offset_us; /* of its clock */
    struct clockless known;
    struct unit_key key;
    struct clockless_reading reading;
};

static int64_t now;      /* us, true */
static char *stored;     /* the record in the store */
static int64_t date_off; /* of the clock of the server that answers */
static bool dates = true;

static struct host host_make(int64_t offset_us)
{
    return (struct host){.offset_us = offset_us,
                         .known = {.margin_us = MARGIN},
                         .key = {.name = {KEY, sizeof KEY - 1}}};
}

/* The store's Date is cut to a second. */
static bool load(struct host *host)
{
    int64_t clock = now + host->offset_us;

    host->reading = (struct clockless_reading){clock, clock, dates ? (now + date_off) / S * S : 0};
    record_clear(&host->key.record);
    return !stored ||
           clockless_read(&host->known, &host->key, stored, strlen(stored), &host->reading);
}

static void commit(struct host *host)
{
    free(stored);
    stored = clockless_print(&host->known, &host->key, &host->reading);
    clockless_wrote(&host->known, &host->key, stored, &host->reading);
}

static void set(struct host *host, const char *name, const char *value)
{
    host->key.record.type = RECORD_HASH;
    record_set(&host->key.record, slice_of(name), slice_of(value));
}

/* Makes a record of only that field. */
static void write_alone(struct host *host, const char *name, const char *value)
{
    free(stored);
    stored = NULL;
    load(host);
    set(host, name, value);
    commit(host);
}

static const char *get(const struct host *host, const char *name)
{
    const struct record_field *field = record_find(&host->key.record, slice_of(name));

    return field ? field->value.at : NULL;
}

static void host_end(struct host *host)
{
    record_clear(&host->key.record);
    clockless_end(&host->known);
}

/* -- the fields -------------------------------------------------------------------------------- */

/* moved: the value as a host finds it that looks for the first time, with a clock 5 s ahead;
 * NULL: the same. */
static const struct {
    const char *field, *value, *moved;
} fields[] = {
    ROW("h:a", "1700000030000 30000 7 a 1700000000000 x 0 - - - - -",
        "1700000035000 30000 7 a 1700000005000 x 0 - - - - -"),
    ROW("h:a",
        "1700000030000 30000 7 a 1700000000000 x 0 - - - - -\n"
        "1700000009000 9000 7 a.b 1699999999000 x 0 h u 12 1700000000000 - hears=1 "
        "asked=1700000001000 by=u why=due=5",
        "1700000035000 30000 7 a 1700000005000 x 0 - - - - -\n"
        "1700000014000 9000 7 a.b 1700000004000 x 0 h u 12 1700000000000 - hears=1 "
        "asked=1700000006000 by=u why=due=5"),
    ROW("q:12", "1700000007000 a 1700000000000 x - - - - -",
        "1700000012000 a 1700000005000 x - - - - -"),
    ROW("q:12", "1700000007000 a 1700000000000 S ", "1700000012000 a 1700000005000 S "),
    ROW("q:12",
        "1700000007000 a 1700000000000 x - - - - - priority=2 waited=5000 due=1700000060000 "
        "rank=2:7 attempt=1700000000000 offer=to-k_1/3/1700000009500/30000",
        "1700000012000 a 1700000005000 x - - - - - priority=2 waited=5000 due=1700000065000 "
        "rank=2:7 attempt=1700000000000 offer=to-k_1/3/1700000014500/30000"),
    ROW("q:a.b:3", "1700000007000 a.b.c 1700000000000 l - - - - - far=120000",
        "1700000012000 a.b.c 1700000005000 l - - - - - far=120000"),
    ROW("q", "1 12 3", NULL),
    ROW("q:a.b", "1 12 3", NULL),
    ROW("q:a1", "1700000000000 1700000000012 3", NULL),
    ROW("t", "a=1700000060000;b.c/1700000000000=1700000007000;!d=1700000001000;",
        "a=1700000065000;b.c/1700000000000=1700000012000;!d=1700000006000;"),
    ROW("p", "1700000060000 pause 1700000000000 x h u 12 - - why=1700000000000",
        "1700000065000 pause 1700000005000 x h u 12 - - why=1700000000000"),
    ROW("p",
        "rlock:{a* 1700000060000 pause 1700000000000 x - - - - -\n"
        "rlock:{7* 1700000009000 pause 1700000000000 x - - - - -",
        "rlock:{a* 1700000065000 pause 1700000005000 x - - - - -\n"
        "rlock:{7* 1700000014000 pause 1700000005000 x - - - - -"),
    ROW("po", "1700000060000 pause 1700000000000 x - - - - -",
        "1700000065000 pause 1700000005000 x - - - - -"),
    ROW("e", "1700000060000", "1700000065000"),
    ROW("e", "17000000600000000", NULL),
    ROW("t", "a=99999999999999999999;b=x;c=", NULL),
    /* Without times, or with some that are only shown. */
    ROW("k", "lock/1", NULL),
    ROW("f", "1700000000000000", NULL),
    ROW("b", "0o", NULL),
    ROW("w:a", "q:12", NULL),
    ROW("o", "60000 1:1:2:0", NULL),
    ROW("o:1:2", "12", NULL),
    ROW("g:q:a", "a", NULL),
    ROW("g", "a 1700000007000 b 1700000000000 x - - - - -", NULL),
    ROW("l", "3", NULL),
    ROW("m", "redlock rlock:other a", NULL),
    ROW("a", "1700000000000", NULL),
    ROW("c", "7 5000 1700000000000 1700000001000", NULL),
    ROW("n:failed", "1 1700000000000", NULL),
    ROW("r:0", "1700000001000 7 a 1700000000000 x 0 - - - - - ran=1 exit=0", NULL),
    ROW("d:1", "1700000000000", NULL),
    ROW("", "1700000000000", NULL),
};

/* A record's writer finds each field as written; a host whose clock is 5 s ahead finds its
 * times moved by that, and leaves what it has not written as it was. */
static void test_fields(void)
{
    for (size_t i = 0; i < COUNT(fields); i++) {
        struct host writer = host_make(0), reader = host_make(5 * S);
        const char *field = fields[i].field, *value = fields[i].value;
        const char *moved = fields[i].moved ? fields[i].moved : value;
        now = START;
        write_alone(&writer, field, value);
        load(&writer);
        tap_is(get(&writer, field), value, "its writer finds", value);
        load(&reader);
        tap_is(get(&reader, field), moved, field, value);
        set(&reader, "x", "y");
        commit(&reader);
        load(&writer);
        tap_is(get(&writer, field), value, "what another has not written is", value);
        host_end(&writer);
        host_end(&reader);
    }
}

/* The first comments of the scripts describe the fields below, and no others. A new field needs a
 * row in the table above, and perhaps one in the table of clockless.c. */
static void test_descriptions(void)
{
    static const struct {
        const char *file, *last, *fields;
    } scripts[] = {
        {"lock", "-- MODE is x",
         "k,f,s,b,h:OWNER,q, q:OWNER,q:N, q:OWNER:N,w:OWNER,o,"
         "g:QUEUE:GROUP,g,l,p,po,m,a,c,n:WHAT,r:N,t,"},
        {"latch", "-- A latch that", "k,n,l,g,s, e,d:ID,r:WORD,"},
    };
    const char *top = getenv("top_srcdir");

    for (size_t i = 0; i < COUNT(scripts); i++) {
        char path[1000], line[200], found[400] = "";
        snprintf(path, sizeof path, "%s/src/rules/lua/%s.lua", top ? top : ".", scripts[i].file);
        FILE *file = fopen(path, "r");
        while (file && fgets(line, sizeof line, file) && !strstr(line, scripts[i].last)) {
            const char *end = strncmp(line, "--   ", 5) == 0 ? strstr(line + 5, "  ") : NULL;
            if (end && line[5] != ' ')
                strncat(strncat(found, line + 5, (size_t)(end - line - 5)), ",", 2);
        }
        tap_is(found, scripts[i].fields, "the fields of", scripts[i].file);
        if (file)
            fclose(file);
    }
}

/* -- how old a line is ------------------------------------------------------------------------- */

#define PLACE "q:1"
#define REST  " a 1700000000000 x - - - - -"

/* When the place ends by that host, ms after the true time of its writing. */
static int64_t end_at(struct host *host)
{
    const char *place = load(host) ? get(host, PLACE) : NULL;

    return place ? strtoll(place, NULL, 10) - (START + host->offset_us) / 1000 : -1;
}

static void is_end(struct host *host, int64_t wanted, const char *what)
{
    int64_t got = end_at(host);

    if (!tap_ok(got == wanted, "%s", what))
        tap_note("it ends after %" PRId64 " ms, not %" PRId64, got, wanted);
}

/* One host writes a place that lasts for 30 s, and is not heard of any more. To a host that knows
 * all, it ends at 30000 ms; to one that finds it after 20 s and takes it for new, at 50000. A Date
 * tells that it is older, by 20 s less the second that Dates are cut to, and less MARGIN: 33000. */
static struct host begin(int64_t offset_us)
{
    struct host writer = host_make(offset_us);
    char text[80];

    now = START;
    date_off = 0;
    dates = true;
    snprintf(text, sizeof text, "%" PRId64 REST, (now + offset_us) / 1000 + 30000);
    write_alone(&writer, PLACE, text);
    return writer;
}

/* Where the store tells no time, a host counts a deadline from when it first saw the line:
 * never sooner than its writer's, and as new only if somebody wrote the same value anew. */
static void test_own_eyes(void)
{
    struct host writer = begin(-300 * S), reader = host_make(300 * S);

    dates = false;
    is_end(&writer, 30000, "its writer: as it wrote it");
    is_end(&reader, 30000, "seen at once: as its writer wrote it");
    now += 20 * S;
    is_end(&reader, 30000, "seen since then: the same");
    struct host late = host_make(0);
    is_end(&late, 50000, "seen for the first time, 20 s later: as if it was new");
    now += 7 * S;
    is_end(&late, 50000, "seen since then: the same");
    load(&late);
    set(&late, "x", "y");
    commit(&late);
    is_end(&reader, 30000, "the record was written by one who knows less: the same");
    struct host anew = host_make(-400 * S);
    is_end(&anew, 50000, "seen for the first time, with the age that was passed on");
    char *same = mem_strdup(get(&anew, PLACE));
    set(&anew, PLACE, same);
    commit(&anew);
    free(same);
    is_end(&reader, 50000, "written anew, with the value that was shown: it is new");
    host_end(&writer);
    host_end(&reader);
    host_end(&late);
    host_end(&anew);
}

/* A host that writes a record passes on for how long it has watched a line; one that sees the
 * record for the first time counts from there, and one that has seen more keeps to its own. */
static void test_age(void)
{
    struct host writer = begin(-300 * S), reader = host_make(300 * S), late = host_make(10 * S);

    dates = false;
    load(&reader);
    now += 12 * S;
    load(&reader);
    set(&reader, "x", "y");
    commit(&reader);
    now += 5 * S;
    is_end(&late, 35000, "watched by another for 12 s, who wrote the record 5 s ago");
    load(&late);
    set(&late, "x", "z");
    commit(&late);
    struct host later = host_make(0);
    is_end(&later, 35000, "who passes on what was passed on");
    is_end(&reader, 30000, "who has seen more than was passed on");
    host_end(&writer);
    host_end(&reader);
    host_end(&late);
    host_end(&later);
}

/* By the store's Date a line that was never seen before is as old as the store says, less the
 * margins; without a Date, or by one that runs behind, the line counts as new. */
static void test_date(void)
{
    struct host writer = begin(-300 * S), reader = host_make(300 * S);

    now += 20 * S;
    is_end(&reader, 33000, "by the store's clock it has been there for 20 s: less 1 s and 2 s");
    struct host never = host_make(0);
    never.known.margin_us = CLOCKLESS_NEVER;
    is_end(&never, 50000, "without regard to the store's clock");
    dates = false;
    struct host blind = host_make(0);
    is_end(&blind, 50000, "the store tells no time now");
    dates = true;
    date_off = -100 * S;
    struct host behind = host_make(0);
    is_end(&behind, 50000, "by a clock that is behind, it is new");
    is_end(&reader, 33000, "what was known stays known");
    host_end(&writer);
    host_end(&reader);
    host_end(&never);
    host_end(&blind);
    host_end(&behind);
}

/* The answer took 4 s, of which its Date may be at the beginning. */
static void test_round_trip(void)
{
    struct host writer = begin(0), reader = host_make(0);

    load(&writer);
    writer.reading.asked_us -= 4 * S;
    writer.reading.date_us -= 4 * S;
    set(&writer, PLACE, DEADLINE REST);
    commit(&writer);
    now += 20 * S;
    is_end(&reader, 33000, "the time of an answer counts from before it was asked for");
    host_end(&writer);
    host_end(&reader);
}

/* A host was told a Date between "asked" and "read". At "now", it is at least that Date plus the
 * time since "read", and at most that plus the time since "asked", each within 1 %, as clocks
 * drift. */
static void test_later(void)
{
    static const struct {
        int64_t asked, read, date, now, least, most;
    } rows[] = {
        {0, 0, 100, 0, 100, 100},       {0, 4, 100, 4, 100, 104}, {0, 0, 100, 100, 199, 201},
        {0, 50, 100, 1000, 1040, 1110}, {0, 50, 0, 1000, 0, 0},
    };

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const struct clockless_reading told = {rows[i].asked * S, rows[i].read * S,
                                               rows[i].date * S};
        const struct clockless_reading later = clockless_later(&told, rows[i].now * S);
        int64_t most = later.date_us ? later.date_us + later.read_us - later.asked_us : 0;
        tap_ok(later.read_us == rows[i].now * S && later.date_us <= rows[i].least * S &&
                   later.date_us + S / 10 > rows[i].least * S && most >= rows[i].most * S &&
                   most - S / 10 < rows[i].most * S,
               "%" PRId64 " s after a Date", rows[i].now - rows[i].read);
    }
}

/* Clocks that differ by a part of a ms round a deadline up, never down; a clock that begins in
 * 1970 works. */
static void test_rounding(void)
{
    struct host writer = begin(0), reader = host_make(1), behind = host_make(-1);

    load(&reader);
    tap_is(get(&reader, PLACE), "1700000030001 a 1700000000001 x - - - - -",
           "a part of a ms is a whole one", "+1 us");
    load(&behind);
    tap_is(get(&behind, PLACE), DEADLINE REST, "a part of a ms is a whole one", "-1 us");
    struct host past = host_make(-START + 5 * S);
    load(&past);
    tap_is(get(&past, PLACE), "35000 a 5000 x - - - - -", "a clock that begins in 1970", "5 s");
    host_end(&writer);
    host_end(&reader);
    host_end(&behind);
    host_end(&past);
}

/* -- the whole record -------------------------------------------------------------------------- */

/* The field "s" has the earliest of the holders' deadlines, in the time of the host that reads
 * it. Of a latch it is when that was set, which no host moves. */
static void test_earliest(void)
{
    struct host writer = begin(0), reader = host_make(100 * S);

    load(&writer);
    set(&writer, "s", "s 0 2 1700000020000 30000 a");
    set(&writer, "h:a",
        "1700000030000 30000 7 a 1700000000000 s 0 \n1700000020000 30000 7 a.b 1700000000000 s 0 ");
    commit(&writer);
    load(&reader);
    tap_is(get(&reader, "s"), "s 0 2 1700000120000 30000 a", "of the holders' deadlines", "one");
    now += 10 * S;
    load(&writer);
    set(&writer, "h:b", "1700000025000 9000 8 b 1700000010000 s 0 ");
    commit(&writer);
    struct host late = host_make(100 * S);
    load(&late);
    tap_is(get(&late, "s"), "s 0 2 1700000120000 30000 a", "of the holders' deadlines", "ages");
    load(&writer);
    tap_is(get(&writer, "s"), "s 0 2 1700000020000 30000 a", "of the holders' deadlines", "own");
    set(&writer, "s", "1700000000000");
    commit(&writer);
    load(&reader);
    tap_is(get(&reader, "s"), "1700000000000", "of a latch: when it was set", "s");
    host_end(&writer);
    host_end(&reader);
    host_end(&late);
}

/* The life of a record (its expiry) is moved like a deadline; only who prolongs it may change
 * it. */
static void test_life(void)
{
    struct host writer = begin(0), reader = host_make(100 * S);

    load(&writer);
    writer.key.record.expires = 1700000060000;
    writer.key.record.expires_written = true;
    commit(&writer);
    load(&writer);
    tap_ok(writer.key.record.expires == 1700000060000, "its writer finds its life as it was");
    tap_ok(writer.key.record.live == 1, "its life is not a field");
    load(&reader);
    tap_ok(reader.key.record.expires == 1700000160000, "another finds it moved");
    now += 10 * S;
    load(&reader);
    set(&reader, "x", "y");
    commit(&reader);
    load(&writer);
    tap_ok(writer.key.record.expires == 1700000060000, "who has not prolonged it leaves it");
    dates = false;
    now += 15 * S;
    struct host late = host_make(0);
    load(&late);
    tap_ok(late.key.record.expires == 1700000075000, "who sees it later finds a later one");
    set(&late, "x", "z");
    commit(&late);
    load(&writer);
    tap_ok(writer.key.record.expires == 1700000060000, "who knows less leaves it, too");
    load(&late);
    late.key.record.expires_written = true;
    commit(&late);
    load(&writer);
    tap_ok(writer.key.record.expires == 1700000075000, "prolonged, by the time that was shown");
    load(&writer);
    writer.key.record.expires = 0;
    commit(&writer);
    load(&reader);
    tap_ok(reader.key.record.expires == 0, "forever");
    host_end(&writer);
    host_end(&reader);
    host_end(&late);
}

/* A record with a line that lacks a word, or a number that is none, is refused as a whole. */
static void test_damaged(void)
{
    static const char *const texts[] = {
        "rlock/1 hash 0\nq:1 1700000030000 a 1700000000000 x \n",
        "rlock/1 hash 0\nh:a 1 2\n",
        "rlock/1 hash 0\nt 1 2 -3 a=5;\n",
        "rlock/1 hash 0\n! 1 2 99999999999999999999 5\n",
        "rlock/1 hash 0\ne\n",
        "rlock/1\n",
        "",
    };

    for (size_t i = 0; i < COUNT(texts); i++) {
        struct host reader = host_make(0);
        free(stored);
        stored = mem_strdup(texts[i]);
        tap_ok(!load(&reader), "not a record: %s", tap_show(texts[i]));
        host_end(&reader);
    }
}

int main(void)
{
    test_fields();
    test_descriptions();
    test_own_eyes();
    test_age();
    test_date();
    test_round_trip();
    test_later();
    test_rounding();
    test_earliest();
    test_life();
    test_damaged();
    free(stored);
    return tap_done();
}
