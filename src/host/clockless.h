/* Records of a store that has no clock to decide by, only compare-and-set: the clock of each client
 * decides, and none of them needs to be right.
 *
 * Each line of a record that has a deadline is kept as its writer wrote it, by the writer's clock,
 * with three numbers in front, in us:
 *
 *     NAME T AGE DATE VALUE
 *     q:7 1700000000000000 350000 1700000001000000 1700000007000 OWNER 1700000000000 x WHO
 *
 * T is when the line was written, by the writer's clock. AGE is for how long it had been there, at
 * least, when the record was written last, be it by another client. DATE is what the store's clock
 * said at T, at most, to a second; 0: it says nothing. The time that the whole record lives for is
 * such a line, too.
 *
 * The reader takes as the age of a line the greatest of
 *   - how long it has seen this very line (the same T, the same value), by its own clock;
 *   - AGE, which all clients pass on with what they write;
 *   - the time from DATE to the store's present time, less a second, as these are cut to seconds,
 *     and less a margin, by which the clocks of the store's servers may differ.
 * All three are at most the true age, so the deadlines that the reader shows to a script, moved to
 * its own clock by that, are never too early. The first two need clocks that run at nearly the same
 * rate, as the margin of each lease allows for (1 %). The third needs no clock of a client.
 *
 * A line that a script has not written goes back as it was, so that it gets older whoever else
 * writes the record, and the lease of a dead holder ends. A line that was written is new, even with
 * the value that it had.
 *
 * Times that are only shown stay as they are: those of runs that have ended, and when a latch was
 * set.
 *
 * A record that a script has deleted stays for a week, empty. Otherwise the request that made it,
 * on condition that there was none, could make it again when it arrives late, or twice: a pause
 * would come back.
 *
 * How to call it, for each unit:
 *   1. load: for each key that the store has, clockless_read(). unit->now_us is read_us.
 *   2. commit: for each key that has changed, clockless_print(), and have the store replace the
 *      text that was read, if it is still that one. "reading" is that of the load.
 *   3. If the store says that it is done, clockless_wrote(). Otherwise nothing: the next load finds
 *      out what is there. */
#pragma once

#include "host/unit.h"

/* A margin: the store's time is not counted. */
#define CLOCKLESS_NEVER INT64_MAX

/* The lines that a process knows. All zero, but for the margin, is none. It grows by a copy of the
 * last text of each key that was read. */
struct clockless {
    int64_t margin_us;
    struct record names; /* a field for each key; its number is that of its lines */
    struct clockless_key *keys;
};

/* When a record was read, us since 1970. The first two are by the process's own clock. It may be
 * wrong, but runs on at one rate, also while the machine is suspended (CLOCK_BOOTTIME, and an
 * offset). It should begin with a Date of the store, for the sake of times that are shown. */
struct clockless_reading {
    int64_t asked_us; /* before the store was asked */
    int64_t read_us;  /* behind its answer */
    int64_t date_us;  /* the store's time in the answer; 0: it told none */
};

/* Returns a reading at "now_us", by the process's own clock, with what is known of the store's time
 * then from an earlier one, if both clocks run alike, within 1 %. */
struct clockless_reading clockless_later(const struct clockless_reading *reading, int64_t now_us);
/* Fills the record of the key from what the store has, all but its version. False: it is not such a
 * text. */
bool clockless_read(struct clockless *known, struct unit_key *key, const char *text, size_t size,
                    const struct clockless_reading *reading);
/* Returns the record as the text that the store is to keep, its lines with their stamps; the caller
 * frees. */
char *clockless_print(const struct clockless *known, const struct unit_key *key,
                      const struct clockless_reading *reading);
/* Notes that the store has that text of the key from now on. */
void clockless_wrote(struct clockless *known, const struct unit_key *key, const char *text,
                     const struct clockless_reading *reading);
/* Whether the record has expired, for who sees it for the first time. */
bool clockless_has_expired(int64_t margin_us, const char *text, size_t size,
                           const struct clockless_reading *reading);
/* Forgets all that is known, and frees it; the margin stays. */
void clockless_end(struct clockless *known);
