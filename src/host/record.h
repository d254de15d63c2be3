/* One key's data as a Redis would have it: a string, or a hash of fields, and when it expires. A
 * database keeps it as one text of printable ASCII, so that it can be read with SQL as well. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Some bytes, which may have a NUL among them. */
struct slice {
    const char *at;
    size_t size;
};

/* Borrows the text, without its NUL. */
struct slice slice_of(const char *text);
bool slice_equal(struct slice a, struct slice b);
/* Whether the slice is that word, in small or large letters. */
bool slice_is(struct slice slice, const char *word);
/* Returns a copy with a NUL behind it, which the caller frees by slice_free(). */
struct slice slice_duplicate(struct slice slice);
/* Frees the bytes of a copy, and empties it. */
void slice_free(struct slice *slice);

/* RECORD_OTHER: a type that no script of ours uses; its data are kept like a string's. */
enum record_type { RECORD_NONE, RECORD_STRING, RECORD_HASH, RECORD_OTHER };

struct record_field {
    struct slice name, value; /* owned */
    bool gone;                /* it was removed; the name stays, for the index */
    bool written;             /* since it was read, be it with the value that it had */
};

/* All zero: there is none. */
struct record {
    enum record_type type;
    int64_t version;             /* 0: the store has no row */
    int64_t expires;             /* ms since 1970; 0: never */
    bool expires_written;        /* since it was read, be it with the same time */
    bool changed;                /* since it was loaded */
    struct record_field *fields; /* in the order in which they came; a string's is called "" */
    size_t count, room;
    size_t live;     /* of them are not gone */
    uint32_t *index; /* a field's number + 1; 0: nothing */
    size_t buckets;
};

/* Makes it one that does not exist. "version" and "changed" stay as they are. */
void record_clear(struct record *record);
/* now_us: since 1970, by the clock that "expires" counts by. */
static inline bool record_has_expired(const struct record *record, int64_t now_us)
{
    return record->expires && record->expires <= now_us / 1000;
}

/* NULL: it has none of that name. */
struct record_field *record_find(const struct record *record, struct slice name);
/* Copies both. Returns whether the field is new. */
bool record_set(struct record *record, struct slice name, struct slice value);
/* Removes the field of that name. Returns whether there was one. */
bool record_unset(struct record *record, struct slice name);

/* Returns the record as a text, all but its version; the caller frees. */
char *record_print(const struct record *record);
/* Replaces all but the version by what such a text says. False: it is not such a text, and a part
 * may have been taken. */
bool record_read(struct record *record, const char *text, size_t size);
/* From now on, its fields count as read, not as written. */
void record_settle(struct record *record);

/* Returns the name of a key as record_print() writes bytes: printable ASCII, without spaces. The
 * caller frees. */
char *record_print_name(struct slice name);
/* Makes such a text, of *size bytes, the name again: in place, where it shrinks to *size bytes, and
 * a NUL follows. False: it is not such a text. */
bool record_read_name(char *text, size_t *size);
