/* Keeps the lines of records by the clocks of their writers, as clockless.h explains. A field's
 * value has one line or several; "times" says which words of these are times. A key that is known
 * has two tables with the same order: the values of its lines as they were written, and when that
 * was. */
#include "host/clockless.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>

#include "base/decimal.h"
#include "base/mem.h"
#include "base/strbuf.h"

#define US_PER_MS INT64_C(1000)
/* A Date is cut to a second. */
#define SECOND_US INT64_C(1000000)
/* The field that has, as a line of its own, until when the whole record lives, in ms. No script has
 * such a field. */
#define LIFE "!"
/* How long a record stays that was deleted. */
#define WEEK_MS INT64_C(604800000)

/* -- which fields have times ------------------------------------------------------------------- */

#define WORD(n)   (1U << (n)) /* in a set of words */
#define LAST_WORD 8           /* no word from this one on is a time */

/* The times in the lines of a field, as rules/lua/lock.lua and latch.lua describe them. */
static const struct times {
    const char *field; /* its name, or how that begins, up to a colon */
    unsigned words;    /* these words are times; the first one that is a number is number 1 */
    /* A time stands behind each of these. A star is what has neither a slash nor a space. */
    const char *behind[2];
} table[] = {
    {"h:", WORD(1) | WORD(5), {" asked="}},              /* DEADLINE LEASE FENCE OWNER SINCE */
    {"q:", WORD(1) | WORD(3), {" due=", " offer=*/*/"}}, /* DEADLINE OWNER SINCE */
    {"p", WORD(1) | WORD(3), {NULL}},                    /* of pauses of GLOBs, behind each GLOB */
    {"po", WORD(1) | WORD(3), {NULL}},
    {"t", 0, {"="}},        /* OWNER=UNTIL;... */
    {"e", WORD(1), {NULL}}, /* of a latch */
    {LIFE, WORD(1), {NULL}},
};

static bool begins_with(struct slice slice, const char *with)
{
    return slice.size >= strlen(with) && memcmp(slice.at, with, strlen(with)) == 0;
}

/* Whether the field is a waiter's place, which has times: q:N and q:OWNER:N are; q:OWNER is a
 * queue. */
static bool is_place(struct slice name)
{
    size_t digits = 0;

    while (digits < name.size && isdigit((unsigned char)name.at[name.size - 1 - digits]))
        digits++;
    return digits > 0 && digits < name.size && name.at[name.size - 1 - digits] == ':';
}

/* The row of the table for the field of that name; NULL: the field has no times. */
static const struct times *times_of(struct slice name)
{
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        const char *field = table[i].field;
        bool is_beginning = field[strlen(field) - 1] == ':';
        if (is_beginning ? begins_with(name, field) : slice_equal(name, slice_of(field)))
            return *field == 'q' && !is_place(name) ? NULL : &table[i];
    }
    return NULL;
}

/* -- moving them ------------------------------------------------------------------------------- */

/* Returns the end of what fits the pattern at the beginning of "at"; NULL: nothing does. A star is
 * any text without a slash or a space. */
static const char *match_pattern(const char *pattern, const char *at)
{
    for (; *pattern; pattern++) {
        if (*pattern == '*')
            at += strcspn(at, "/ \n");
        else if (*at++ != *pattern)
            return NULL;
    }
    return at;
}

/* Returns the end of the mark of these times, such as " due=", that begins at "at": a time follows.
 * NULL: none does. */
static const char *end_of_mark(const struct times *times, const char *at)
{
    const char *end = NULL;

    for (size_t i = 0; !end && i < sizeof times->behind / sizeof *times->behind; i++)
        end = times->behind[i] ? match_pattern(times->behind[i], at) : NULL;
    return end;
}

/* Whether the word is a number, of as many digits as the scripts take for one. */
static bool is_number(const char *word)
{
    size_t digits = strspn(word, "0123456789");

    return digits > 0 && digits <= 16 && strchr(" \n", word[digits]);
}

/* Adds the time in ms that begins at "at", moved by so many us; returns its end. */
static const char *add_moved(struct strbuf *out, const char *at, int64_t shift_us)
{
    /* A part of a ms counts as a whole one, so that the time is not too early. */
    int64_t shift = (shift_us + (shift_us > 0 ? US_PER_MS - 1 : 0)) / US_PER_MS, time;

    if (decimal_take(&at, INT64_MAX / 4, &time))
        strbuf_printf(out, "%" PRId64, time + shift > 0 ? time + shift : 0);
    return at;
}

/* Returns the value of a field with all its times moved by so many us; the caller frees it by
 * slice_free(). */
static struct slice move_times(const struct times *times, struct slice value, int64_t shift_us)
{
    const char *at = value.at, *end = value.at + value.size, *next;
    struct strbuf out = {0};
    unsigned word = 0; /* the number of the one that began last */

    /* Behind the first number of a line, words are counted; a time may also stand behind a mark. */
    while (at < end) {
        char before = '\n';
        if (at > value.at)
            before = at[-1];
        bool is_word = before == ' ' || before == '\n';
        word = before == '\n' ? 0 : word;
        word += is_word && (word > 0 || is_number(at));
        if (is_word && is_number(at) && word < LAST_WORD && times->words & WORD(word)) {
            at = add_moved(&out, at, shift_us);
        } else if ((next = end_of_mark(times, at))) {
            strbuf_add(&out, at, (size_t)(next - at));
            at = add_moved(&out, next, shift_us);
        } else {
            strbuf_putc(&out, *at++);
        }
    }
    size_t size = out.size;
    return (struct slice){strbuf_detach(&out), size};
}

/* Sets EARLIEST in the field s of a lock to the least of the holders' deadlines, which were moved
 * one by one: no holder must be dead before that. */
static void set_earliest(struct record *record)
{
    struct record_field *state = record_find(record, slice_of("s"));
    int64_t earliest = INT64_MAX, old;
    const char *at = state ? state->value.at : "";

    /* The field s of a lock begins with its mode; that of a latch is a time, which stays. */
    if (!strchr("xsl", *at))
        return;
    for (size_t i = 0; i < record->count; i++) {
        const struct record_field *field = &record->fields[i];
        if (field->gone || !begins_with(field->name, "h:"))
            continue;
        for (const char *line = field->value.at; line; line = strchr(line, '\n')) {
            int64_t deadline;
            line += *line == '\n';
            if (decimal_take(&line, INT64_MAX, &deadline) && deadline < earliest)
                earliest = deadline;
        }
    }
    for (size_t i = 0; at && i < 3; i++) /* behind MODE LIMIT FAMILIES */
        at = (at = strchr(at, ' ')) ? at + 1 : NULL;
    const char *rest = at;
    if (!at || earliest == INT64_MAX || !decimal_take(&rest, INT64_MAX, &old))
        return;
    char *text = strbuf_print("%.*s%" PRId64 "%s", (int)(at - state->value.at), state->value.at,
                              earliest, rest);
    record_set(record, slice_of("s"), slice_of(text));
    free(text);
}

/* -- what is known of lines -------------------------------------------------------------------- */

struct clockless_line {
    int64_t stamp_us, date_us; /* T, DATE */
    int64_t shift_us;          /* from the writer's clock to this one, at most */
};

/* A record as it was when it was last read or written. */
struct clockless_key {
    struct record values; /* of its lines, as their writers wrote them */
    struct clockless_line *lines;
};

/* Returns what is known of the key of that name; NULL: nothing is. */
static struct clockless_key *key_of(const struct clockless *known, struct slice name)
{
    const struct record_field *field = record_find(&known->names, name);

    return field ? &known->keys[field - known->names.fields] : NULL;
}

/* Forgets what was known of the key. */
static void forget_key(struct clockless_key *key)
{
    record_clear(&key->values);
    free(key->lines);
    key->lines = NULL;
}

/* Returns what is known of the key's line of that name, and fills in its value; NULL: nothing is.
 * key: may be NULL. */
static const struct clockless_line *line_of(const struct clockless_key *key, struct slice name,
                                            struct slice *value)
{
    const struct record_field *field = key ? record_find(&key->values, name) : NULL;

    if (!field)
        return NULL;
    *value = field->value;
    return &key->lines[field - key->values.fields];
}

/* Takes the stamp "T AGE DATE " from the front of a value: T and DATE into "line", AGE into
 * *age_us. False: there is none. */
static bool take_stamp(struct slice *value, struct clockless_line *line, int64_t *age_us)
{
    int64_t *const numbers[] = {&line->stamp_us, age_us, &line->date_us};
    const char *at = value->at;

    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        if (!decimal_take(&at, INT64_MAX / 4, numbers[i]) || *at++ != ' ')
            return false;
    *value = (struct slice){at, value->size - (size_t)(at - value->at)};
    return true;
}

/* Returns by how much the times of a line must be moved, in us, so that they are by this process's
 * clock: its stamp and its age together are now. value, line, age_us: the line as it was read. */
static int64_t shift_of(const struct clockless *known, const struct clockless_key *key,
                        struct slice name, struct slice value, const struct clockless_line *line,
                        int64_t age_us, const struct clockless_reading *reading)
{
    struct slice seen;
    const struct clockless_line *before = line_of(key, name, &seen);

    /* The store's dates may show that it is older. */
    if (line->date_us && reading->date_us && known->margin_us != CLOCKLESS_NEVER) {
        int64_t passed = reading->date_us - line->date_us - SECOND_US - known->margin_us;
        age_us = passed > age_us ? passed : age_us;
    }
    int64_t shift = reading->read_us - age_us - line->stamp_us;
    /* A line that was read before is moved by no more than then, as nothing makes it younger. */
    bool same = before && before->stamp_us == line->stamp_us && slice_equal(seen, value);
    return same && before->shift_us < shift ? before->shift_us : shift;
}

/* Takes the stamps off the lines of a record that was read, and moves their times to this process's
 * clock. As they were read, they are what is known of the key from now on. False: a line has no
 * stamp. */
static bool learn_record(struct clockless *known, struct slice name, struct record *record,
                         const struct clockless_reading *reading)
{
    struct clockless_key fresh = {.lines = NULL};
    size_t keys = known->names.count;
    bool sound = true;

    if (record_set(&known->names, name, slice_of("")))
        *MEM_APPEND(known->keys, keys) = fresh;
    struct clockless_key *key = key_of(known, name);
    for (size_t i = 0; sound && i < record->count; i++) {
        const struct record_field *field = &record->fields[i];
        const struct times *times = times_of(field->name);
        struct slice value = field->value;
        struct clockless_line line;
        int64_t age_us;
        if (!times || !(sound = take_stamp(&value, &line, &age_us)))
            continue;
        line.shift_us = shift_of(known, key, field->name, value, &line, age_us, reading);
        size_t count = fresh.values.count;
        record_set(&fresh.values, field->name, value);
        *MEM_APPEND(fresh.lines, count) = line;
        struct slice moved = move_times(times, value, line.shift_us);
        record_set(record, field->name, moved);
        slice_free(&moved);
    }
    forget_key(key);
    *key = fresh;
    return sound;
}

/* -- reading and writing ----------------------------------------------------------------------- */

struct clockless_reading clockless_later(const struct clockless_reading *reading, int64_t now_us)
{
    /* By so much the two clocks may have come to differ since: 1 %. */
    int64_t off_us = (now_us - reading->asked_us) / 100 + 1;
    int64_t told_in_us = reading->read_us - reading->asked_us;

    return (struct clockless_reading){
        now_us - told_in_us - 2 * off_us, now_us,
        reading->date_us ? reading->date_us + now_us - reading->read_us - off_us : 0};
}

bool clockless_read(struct clockless *known, struct unit_key *key, const char *text, size_t size,
                    const struct clockless_reading *reading)
{
    struct record *record = &key->record;

    if (!record_read(record, text, size) || !learn_record(known, key->name, record, reading))
        return false;
    set_earliest(record);
    const struct record_field *life = record_find(record, slice_of(LIFE));
    if (life) { /* the time that the record lives for, which no script must see as a field */
        decimal_parse(life->value.at, 0, INT64_MAX, &record->expires);
        record_unset(record, slice_of(LIFE));
    }
    record_settle(record); /* lines that were moved do not count as written */
    return true;
}

/* Adds a line to a record that is going to be written, with its stamp: as its writer wrote it, if
 * it is known, but with the age that it has now; if it was written now ("written"), as a new one.
 * name, value: as the script sees it. key: what is known of the record; may be NULL. */
static void add_stamped(struct record *record, const struct clockless_key *key, struct slice name,
                        struct slice value, bool written, const struct clockless_reading *reading)
{
    struct slice old;
    const struct clockless_line *line = written ? NULL : line_of(key, name, &old);
    char stamp[80];
    struct strbuf text = {0};

    if (line)
        snprintf(stamp, sizeof stamp, "%" PRId64 " %" PRId64 " %" PRId64 " ", line->stamp_us,
                 reading->read_us - line->shift_us - line->stamp_us, line->date_us);
    else /* no age; and the store may have told its time right after it was asked */
        snprintf(stamp, sizeof stamp, "%" PRId64 " 0 %" PRId64 " ", reading->read_us,
                 reading->date_us ? reading->date_us + reading->read_us - reading->asked_us : 0);
    strbuf_puts(&text, stamp);
    strbuf_add(&text, line ? old.at : value.at, line ? old.size : value.size);
    record_set(record, name, (struct slice){text.text, text.size});
    strbuf_free(&text);
}

char *clockless_print(const struct clockless *known, const struct unit_key *key,
                      const struct clockless_reading *reading)
{
    const struct clockless_key *lines = key_of(known, key->name);
    const struct record *record = &key->record;
    struct record stamped = {.type = record->type};
    bool deleted = record->type == RECORD_NONE, is_fresh = deleted || record->expires_written;
    int64_t expires = deleted ? reading->read_us / US_PER_MS + WEEK_MS : record->expires;

    for (size_t i = 0; i < record->count; i++) {
        const struct record_field *field = &record->fields[i];
        if (field->gone)
            continue;
        if (times_of(field->name))
            add_stamped(&stamped, lines, field->name, field->value, field->written, reading);
        else
            record_set(&stamped, field->name, field->value);
    }
    /* The time that the record lives for is a line, too, so that it is moved to other clocks. A
     * record that was deleted stays for a week, lest a late request make it again. */
    if (expires) {
        char life[24];
        snprintf(life, sizeof life, "%" PRId64, expires);
        add_stamped(&stamped, lines, slice_of(LIFE), slice_of(life), is_fresh, reading);
    }
    char *text = record_print(&stamped);
    record_clear(&stamped);
    return text;
}

void clockless_wrote(struct clockless *known, const struct unit_key *key, const char *text,
                     const struct clockless_reading *reading)
{
    struct record record = {0};

    if (record_read(&record, text, strlen(text)))
        learn_record(known, key->name, &record, reading);
    record_clear(&record);
}

bool clockless_has_expired(int64_t margin_us, const char *text, size_t size,
                           const struct clockless_reading *reading)
{
    struct clockless known = {.margin_us = margin_us};
    struct unit_key key = {.name = slice_of("")};
    bool expired = clockless_read(&known, &key, text, size, reading) &&
                   record_has_expired(&key.record, reading->read_us);

    record_clear(&key.record);
    clockless_end(&known);
    return expired;
}

void clockless_end(struct clockless *known)
{
    for (size_t i = 0; i < known->names.count; i++)
        forget_key(&known->keys[i]);
    free(known->keys);
    record_clear(&known->names);
    *known = (struct clockless){.margin_us = known->margin_us};
}
