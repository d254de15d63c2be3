/* Records, whose fields are found by an index, a hash table of their numbers; and the texts that
 * they are kept as:
 *
 *     rlock/1 hash EXPIRES
 *     NAME VALUE
 *     ...
 *
 * Names and values are as they are, but for backslashes and all that is not printable ASCII: those
 * are \\, \n, and \xHH; in a name, a space is \s. */
#include "host/record.h"

#include <ctype.h>
#include <stdio.h>
#include <strings.h>

#include "base/hash.h"
#include "base/mem.h"
#include "base/percent.h"

#define HEAD "rlock/1 "

static const char *const type_names[] = {"none", "string", "hash", "other"};

struct slice slice_of(const char *text)
{
    return (struct slice){text, strlen(text)};
}

bool slice_equal(struct slice a, struct slice b)
{
    return a.size == b.size && memcmp(a.at, b.at, a.size) == 0;
}

bool slice_is(struct slice slice, const char *word)
{
    return slice.size == strlen(word) && strncasecmp(slice.at, word, slice.size) == 0;
}

struct slice slice_duplicate(struct slice slice)
{
    char *copy = mem_zeroed(slice.size + 1);

    memcpy(copy, slice.at, slice.size);
    return (struct slice){copy, slice.size};
}

void slice_free(struct slice *slice)
{
    free((void *)(uintptr_t)slice->at);
    *slice = (struct slice){0};
}

/* -- fields ------------------------------------------------------------------------------------ */

void record_clear(struct record *record)
{
    for (size_t i = 0; i < record->count; i++) {
        slice_free(&record->fields[i].name);
        slice_free(&record->fields[i].value);
    }
    free(record->fields);
    free(record->index);
    *record = (struct record){.version = record->version, .changed = record->changed};
}

/* The place of the index where a field of that name stands, or behind which it does. */
static size_t bucket_of(const struct record *record, struct slice name)
{
    return hash_add(HASH_START, name.at, name.size) & (record->buckets - 1);
}

/* NOLINTBEGIN(clang-analyzer-unix.Malloc): record_clear() leaves no pointer to what it freed */
/* Returns the field of that name, gone or not; NULL: there is none. */
static struct record_field *find_field(const struct record *record, struct slice name)
{
    if (record->buckets == 0) /* it has never had a field */
        return NULL;
    for (size_t at = bucket_of(record, name); record->index[at];
         at = (at + 1) & (record->buckets - 1)) {
        struct record_field *field = &record->fields[record->index[at] - 1];
        if (slice_equal(field->name, name))
            return field;
    }
    return NULL;
}

struct record_field *record_find(const struct record *record, struct slice name)
{
    struct record_field *field = find_field(record, name);

    return field && !field->gone ? field : NULL;
}

/* Notes the number of a field, an index of record->fields, in the next free place of the index
 * behind its bucket: as one more, as 0 is a free place. */
static void index_field(struct record *record, size_t number)
{
    size_t at = bucket_of(record, record->fields[number].name);

    while (record->index[at])
        at = (at + 1) & (record->buckets - 1);
    record->index[at] = (uint32_t)number + 1;
}

/* Makes room for twice as many fields, and the index anew. */
static void make_room(struct record *record)
{
    record->room = record->room ? 2 * record->room : 16;
    record->fields = mem_checked(realloc(record->fields, record->room * sizeof *record->fields));
    record->buckets = 4 * record->room;
    free(record->index);
    record->index = mem_zeroed(record->buckets * sizeof *record->index);
    for (size_t i = 0; i < record->count; i++)
        index_field(record, i);
}

bool record_set(struct record *record, struct slice name, struct slice value)
{
    struct record_field *field = find_field(record, name);
    bool is_new = !field || field->gone;

    if (!field) {
        if (record->count == record->room)
            make_room(record);
        field = &record->fields[record->count];
        *field = (struct record_field){.name = slice_duplicate(name)};
        index_field(record, record->count++);
    }
    struct slice fresh = slice_duplicate(value); /* it may be a part of the old one */
    slice_free(&field->value);
    field->value = fresh;
    field->gone = false;
    field->written = true;
    record->live += is_new;
    return is_new;
}
/* NOLINTEND(clang-analyzer-unix.Malloc) */

bool record_unset(struct record *record, struct slice name)
{
    struct record_field *field = record_find(record, name);

    if (!field)
        return false;
    field->gone = true;
    slice_free(&field->value);
    record->live--;
    return true;
}

/* -- as a text --------------------------------------------------------------------------------- */

enum part { NAME, VALUE };

/* Writes the bytes as the text of a record has them, at most four for each. Returns the end of what
 * it has written. */
static char *print_slice(char *to, struct slice slice, enum part part)
{
    static const char digits[] = "0123456789abcdef";

    for (size_t i = 0; i < slice.size; i++) {
        unsigned char byte = (unsigned char)slice.at[i];
        int letter = byte == ' ' && part == NAME ? 's'
                     : byte == '\n'              ? 'n'
                     : byte == '\\'              ? '\\'
                                                 : '\0';
        if (letter) {
            *to++ = '\\';
            *to++ = (char)letter;
        } else if (byte >= ' ' && byte < 0x7f) {
            *to++ = (char)byte;
        } else {
            *to++ = '\\';
            *to++ = 'x';
            *to++ = digits[byte >> 4];
            *to++ = digits[byte & 15];
        }
    }
    return to;
}

char *record_print(const struct record *record)
{
    size_t room = sizeof HEAD + 40;

    for (size_t i = 0; i < record->count; i++)
        room += 4 * (record->fields[i].name.size + record->fields[i].value.size) + 2;
    char *text = mem_checked(malloc(room));
    char *to = text + sprintf(text, HEAD "%s %lld\n", type_names[record->type],
                              (long long)record->expires);
    for (size_t i = 0; i < record->count; i++) {
        if (record->fields[i].gone)
            continue;
        to = print_slice(to, record->fields[i].name, NAME);
        *to++ = ' ';
        to = print_slice(to, record->fields[i].value, VALUE);
        *to++ = '\n';
    }
    *to = '\0';
    return text;
}

char *record_print_name(struct slice name)
{
    char *text = mem_checked(malloc(4 * name.size + 1));

    *print_slice(text, name, NAME) = '\0';
    return text;
}

bool record_read_name(char *text, size_t *size)
{
    const char *from = text, *end = text + *size;
    char *to = text;

    while (from < end) {
        char byte = *from++;
        if (byte == '\\' && from < end) {
            byte = *from++;
            int high = byte == 'x' && end - from >= 2 ? percent_digit(from[0]) : -1;
            int low = high >= 0 ? percent_digit(from[1]) : -1;
            if (low >= 0) {
                byte = (char)(16 * high + low);
                from += 2;
            } else if (byte == 's' || byte == 'n') {
                byte = byte == 's' ? ' ' : '\n';
            } else if (byte != '\\') {
                return false;
            }
        } else if (byte == '\\') {
            return false;
        }
        *to++ = byte;
    }
    *to = '\0';
    *size = (size_t)(to - text);
    return true;
}

/* Reads the line "NAME VALUE" of "size" bytes, which are overwritten, into the record. False: it is
 * not such a line. */
static bool read_field(struct record *record, char *line, size_t size)
{
    char *space = memchr(line, ' ', size);

    if (!space)
        return false;
    struct slice name = {line, (size_t)(space - line)};
    struct slice value = {space + 1, size - name.size - 1};
    *space = '\0';
    if (!record_read_name(line, &name.size) || !record_read_name(space + 1, &value.size))
        return false;
    record_set(record, name, value);
    return true;
}

/* Reads the first line of a text: the type of a record, and when it expires. False: it is not such
 * a line. */
static bool read_head(struct record *record, const char *line)
{
    char type[16];
    long long expires;

    /* NOLINTNEXTLINE(cert-err34-c): the host wrote it */
    if (sscanf(line, HEAD "%15s %lld", type, &expires) != 2)
        return false;
    for (size_t i = 0; i < sizeof type_names / sizeof *type_names; i++)
        if (strcmp(type, type_names[i]) == 0) {
            record->type = (enum record_type)i;
            record->expires = expires;
            return true;
        }
    return false;
}

bool record_read(struct record *record, const char *text, size_t size)
{
    char *copy = mem_checked(strndup(text, size)), *line = copy;
    char *end = strchr(line, '\n');

    record_clear(record);
    bool sound = end && read_head(record, line);
    while (sound && *(line = end + 1)) {
        end = strchr(line, '\n');
        if (end)
            *end = '\0';
        sound = end && read_field(record, line, (size_t)(end - line));
    }
    record_settle(record);
    free(copy);
    return sound;
}

void record_settle(struct record *record)
{
    for (size_t i = 0; i < record->count; i++)
        record->fields[i].written = false; /* NOLINT(clang-analyzer-unix.Malloc): as above */
}
