/* Each test begins with processes of its own. Its first finding is its result: after a lie, the
 * "fine" that it reports at its end does not count. The texts that are put are numbered. A
 * "process" is an index of kit->drivers, and "padding" counts the bytes that make a text longer.
 *
 * To add a test, write a function, and name it in the table here, in the one of
 * store/hosted/checkup.c, in docs/drivers.md and in rlock-doctor(1). */
#include "host/driver_kit.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "host/driver.h"

#define PROCESSES 8
#define RACES     8
#define COUNTS    10000
#define READS     20
#define TEST_NS   (3 * NS_PER_SEC)
/* A record of a lock with some hundred waiters. Its text ends in an empty line. */
#define PADDING 99980
/* So many puts are remembered. */
#define PUTS_MAX 65536
/* By how much a store's time may differ from what this process's clock has counted. */
#define OFF_MS 1500

#define ADVICE_WHOLE "a put replaces the whole record, and a get returns all of its bytes"
#define ADVICE_NOT_DONE                                                                            \
    "say conflict or failed only where nothing was done, and nothing will be; else unknown"

static const struct {
    struct slice key, other;
} keys = {{DRIVER_TRIAL_KEY, sizeof DRIVER_TRIAL_KEY - 1}, {DRIVER_TRIAL_KEY "-none", 17}};

struct kit {
    struct driver *drivers[PROCESSES];
    size_t count;
    struct driver_finding *finding; /* of its level nothing is known yet: NULL */
    struct driver_answer answer;    /* the latest one; its text is freed by the next question */
};

/* The number of the latest put, and which puts were not done, by the driver's word. */
static unsigned number;
static bool refused[PUTS_MAX];

/* Reports a finding. Only the first finding counts. Returns false, for a question that has
 * failed. */
__attribute__((format(printf, 3, 4))) static bool report_finding(struct kit *kit, const char *level,
                                                                 const char *format, ...)
{
    va_list values;

    if (kit->finding->level)
        return false;
    kit->finding->level = level;
    va_start(values, format);
    vsnprintf(kit->finding->text, sizeof kit->finding->text, format, values);
    va_end(values);
    return false;
}

/* -- asking ------------------------------------------------------------------------------------ */

/* Puts of another doctor have another process. */
static char *text_of(unsigned put, size_t padding)
{
    char *text = mem_zeroed(padding + 80);
    int size = sprintf(text, "trial %ld %u %zu\n", (long)getpid(), put, padding);

    for (size_t i = 0; i < padding; i++)
        text[(size_t)size + i] = (char)(i % 61 ? '!' + (int)((i + put) % 90) : '\n');
    return text;
}

static bool report_bytes(struct kit *kit)
{
    kit->finding->advice = ADVICE_WHOLE;
    return report_finding(kit, "unfit", "a get returns other bytes than were put");
}

/* Hears the driver's answer. False, and reported: it failed. */
static bool hear_driver(struct kit *kit, size_t process)
{
    slice_free(&kit->answer.text);
    driver_hear(kit->drivers[process], &kit->answer);
    if (kit->answer.verdict == DRIVER_FAILED || kit->answer.verdict == DRIVER_UNKNOWN)
        return report_finding(kit, "unfit", "%s", kit->answer.said);
    return true;
}

/* Returns the version of the key; any text will do. NULL: a fault. */
static const char *current_version(struct kit *kit, size_t process)
{
    driver_ask_get(kit->drivers[process], keys.key);
    return hear_driver(kit, process) ? kit->answer.version : NULL;
}

/* Has a driver get the key. *got: the number of the put whose text the get returns; 0: there is
 * none. False: a lie, or another doctor's text. */
static bool get_number(struct kit *kit, size_t process, unsigned *got)
{
    long pid;
    size_t padding;

    driver_ask_get(kit->drivers[process], keys.key);
    if (!hear_driver(kit, process))
        return false;
    *got = 0;
    if (kit->answer.verdict == DRIVER_NONE)
        return true;
    /* NOLINTNEXTLINE(cert-err34-c): what is not such a text differs */
    if (sscanf(kit->answer.text.at, "trial %ld %u %zu", &pid, got, &padding) != 3 ||
        padding > PADDING)
        return report_bytes(kit);
    if (pid != (long)getpid())
        return report_finding(kit, "note", "another doctor is at work there: not tried");
    char *text = text_of(*got, padding);
    bool same = slice_equal(kit->answer.text, slice_of(text));
    free(text);
    if (!same)
        return report_bytes(kit);
    if (!refused[*got % PUTS_MAX])
        return true;
    kit->finding->advice = ADVICE_NOT_DONE;
    return report_finding(kit, "unfit", "a put that was not done, by the driver's word, was done");
}

/* Hears the answer to put number "put", and notes whether it says that nothing was done. */
static bool hear_put(struct kit *kit, size_t process, unsigned put)
{
    bool heard = hear_driver(kit, process);

    refused[put % PUTS_MAX] =
        kit->answer.verdict == DRIVER_CONFLICT || kit->answer.verdict == DRIVER_FAILED;
    return heard;
}

/* Has a driver put the text of that number on the version "on". Returns at once. */
static void ask_put(struct kit *kit, size_t process, const char *on, unsigned put, size_t padding)
{
    char *text = text_of(put, padding);

    refused[put % PUTS_MAX] = false;
    driver_ask_put(kit->drivers[process], keys.key, on, text);
    free(text);
}

/* Puts a text with the next number. */
static bool put_number(struct kit *kit, size_t process, const char *on, size_t padding)
{
    char *version_of = mem_strdup(on); /* it may be in the answer */

    ask_put(kit, process, version_of, ++number, padding);
    free(version_of);
    return hear_put(kit, process, number);
}

/* Reports that a put which should have been done is a conflict; but another doctor may have caused
 * it, which the key shows then. Returns false. */
static bool report_conflict(struct kit *kit, const char *what)
{
    unsigned got;

    return get_number(kit, 0, &got) && report_finding(kit, "unfit", "%s is a conflict", what);
}

/* Puts a text on the current version, again until one is done. */
static bool put_anyhow(struct kit *kit, size_t process, size_t padding)
{
    struct moment until = moment_plus(moment_now(), TEST_NS);
    bool heard = true;

    do {
        const char *on = current_version(kit, process);
        heard = on && put_number(kit, process, on, padding);
    } while (heard && kit->answer.verdict != DRIVER_DONE && !moment_reached(until, moment_now()));
    return heard && (kit->answer.verdict == DRIVER_DONE ||
                     report_conflict(kit, "each put on the version of a get"));
}

/* -- the tests --------------------------------------------------------------------------------- */

/* Tries whether any bytes come back as they were put, and a key that is not there has no value. */
static void try_bytes(struct kit *kit)
{
    unsigned got;

    if (!put_anyhow(kit, 0, PADDING) || !get_number(kit, 1, &got))
        return;
    if (got != number)
        report_finding(kit, "unfit", "a get behind a put returns another text");
    /* A file system that ignores case has one file for the latter and the key of the put. */
    const struct slice absent[] = {keys.other, slice_of("RLOCK-DOCTOR")};
    for (size_t i = 0; i < sizeof absent / sizeof *absent; i++) {
        driver_ask_get(kit->drivers[0], absent[i]);
        if (hear_driver(kit, 0) && kit->answer.verdict != DRIVER_NONE)
            report_finding(kit, "unfit", "a get of %s, which is not there, returns a value",
                           absent[i].at);
    }
    report_finding(kit, "fine", "what is put comes back, byte by byte");
}

/* Two processes must not both make a key. */
static void try_create(struct kit *kit)
{
    if (!put_anyhow(kit, 0, 0))
        return;
    for (size_t process = 0; process < 2; process++)
        if (put_number(kit, process, DRIVER_NO_KEY, 0) && kit->answer.verdict == DRIVER_DONE)
            report_finding(kit, "unfit", "a put on no version replaces a key that is there");
    report_finding(kit, "fine", "a key that is there is not made anew");
}

/* Processes put on the same version at once. Returns how many were done. */
static unsigned race_puts(struct kit *kit, const char *on)
{
    char *old = mem_strdup(on);
    unsigned done = 0, first = number + 1;

    for (size_t process = 0; process < PROCESSES; process++)
        ask_put(kit, process, old, first + (unsigned)process, 0);
    for (size_t process = 0; process < PROCESSES; process++) {
        hear_put(kit, process, ++number);
        done += kit->answer.verdict == DRIVER_DONE;
    }
    free(old);
    return done;
}

/* Has several processes put on the same version at once: one put at most may be done. */
static void try_race(struct kit *kit)
{
    struct moment until = moment_plus(moment_now(), TEST_NS);
    unsigned puts = 0, most = 0, got;

    while (puts < RACES * PROCESSES && !kit->finding->level &&
           !moment_reached(until, moment_now())) {
        const char *on = current_version(kit, 0);
        unsigned done = on ? race_puts(kit, on) : 0;
        puts += PROCESSES;
        most = done > most ? done : most;
        if (on && most <= 1)
            get_number(kit, 0, &got);
    }
    if (most > 1)
        report_finding(kit, "unfit",
                       "of %d puts on one version %u are done: it does not compare and set",
                       PROCESSES, most);
    report_finding(kit, "fine", "of %u puts on %u versions at most one each is done", puts,
                   puts / PROCESSES);
}

/* From one text to another and back: the first version must not come again. */
static void try_versions(struct kit *kit)
{
    static const char behind[] = "a put on the version of the put before";
    char first[DRIVER_WORD_SIZE];

    if (!put_anyhow(kit, 0, 0))
        return;
    unsigned same = number;
    snprintf(first, sizeof first, "%s", kit->answer.version);
    if (!put_number(kit, 0, first, 0) || kit->answer.verdict != DRIVER_DONE)
        return (void)report_conflict(kit, behind);
    char *on = mem_strdup(kit->answer.version);
    ask_put(kit, 0, on, same, 0);
    free(on);
    if (!hear_driver(kit, 0) || kit->answer.verdict != DRIVER_DONE)
        return (void)report_conflict(kit, behind);
    bool again = strcmp(kit->answer.version, first) == 0;
    if (again || (put_number(kit, 1, first, 0) && kit->answer.verdict == DRIVER_DONE))
        report_finding(kit, "unfit",
                       "a version comes twice: a put on one that was replaced is done");
    report_finding(kit, "fine", "a version does not come twice");
}

/* Tries whether a get in another process sees each put that was done before. */
static void try_reads(struct kit *kit)
{
    struct moment until = moment_plus(moment_now(), TEST_NS);
    unsigned got = 0;
    int i = 0;

    while (i < READS && !kit->finding->level && !moment_reached(until, moment_now())) {
        size_t reader = 1 + (size_t)i++ % (PROCESSES - 1);
        if (put_anyhow(kit, 0, 0) && get_number(kit, reader, &got) && got != number)
            report_finding(kit, "unfit",
                           "a get behind a put that is done returns what was there before");
    }
    report_finding(kit, "fine", "%d gets behind a put in another process return it", i);
}

/* Kills a driver while it puts a text, as it happens when a host of rlock is killed while it asks
 * for a put. */
static bool break_off(struct kit *kit)
{
    unsigned got = 0;

    if (!put_anyhow(kit, 0, 0))
        return false;
    char *text = text_of(number + 1, 0);
    driver_break_off(kit->drivers[--kit->count], keys.key, kit->answer.version, text);
    free(text);
    driver_hear(kit->drivers[kit->count], &kit->answer);
    driver_end(kit->drivers[kit->count]);
    if (kit->answer.verdict != DRIVER_DONE)
        return get_number(kit, 0, &got) && (got == number || report_bytes(kit));
    kit->finding->advice = "count the bytes that have come before they are put";
    return report_finding(kit, "unfit",
                          "a put is done although fewer bytes than its LENGTH have come");
}

/* A process is killed while it puts: the text is there or not, but it is whole, and stays. In each
 * turn the key has the text "before", a put is broken off (later "lost"), a get must find one of
 * the two, and one more put must not be undone. */
static void try_lost(struct kit *kit)
{
    struct moment until = moment_plus(moment_now(), TEST_NS);
    unsigned before, got = 0, seen = 0;

    if (!break_off(kit))
        return;
    while (kit->count > 1 && !kit->finding->level && !moment_reached(until, moment_now())) {
        if (!put_anyhow(kit, 0, 0))
            return;
        before = number++;
        ask_put(kit, kit->count - 1, kit->answer.version, number, PADDING);
        usleep((useconds_t)(1000 << kit->count)); /* later and later */
        driver_kill(kit->drivers[--kit->count]);
        if (get_number(kit, 0, &seen) && seen != before && seen != number)
            report_finding(kit, "unfit", "a get returns neither of two texts");
        unsigned lost = number;
        if (!put_anyhow(kit, 0, 0))
            return;
        if (get_number(kit, 0, &got) && got != number)
            report_finding(kit, "unfit",
                           got == lost ? "a put of a killed process is done on a later version"
                                       : "a get behind a put returns another text");
    }
    report_finding(kit, "fine", "a put of a killed process is done as a whole, or not at all");
}

/* Has processes count up by turns, in races: each put that is done must be found by another
 * process, and no other in its place. */
static void try_count(struct kit *kit)
{
    struct moment until = moment_plus(moment_now(), TEST_NS);
    unsigned rounds = 0, lost = 0, got;

    while (rounds < COUNTS / PROCESSES && !kit->finding->level &&
           !moment_reached(until, moment_now())) {
        const char *on = current_version(kit, rounds % PROCESSES);
        unsigned first = number + 1, done = on ? race_puts(kit, on) : 0;
        rounds++;
        if (done > 1)
            report_finding(kit, "unfit", "%u puts on one version are done", done);
        if (!get_number(kit, (rounds + 1) % PROCESSES, &got))
            return;
        lost += done == 1 && (got < first || got > number);
    }
    if (lost)
        report_finding(kit, "unfit", "of %u puts that are done %u are lost", rounds, lost);
    report_finding(kit, "fine", "of %u puts by %d processes none is lost, none is done twice",
                   rounds * PROCESSES, PROCESSES);
}

struct listed {
    bool found, strange;
};

/* For driver_list(): notes which of two keys was listed. */
static void note_key(void *arg, struct slice key)
{
    struct listed *listed = arg;

    listed->found |= slice_equal(key, keys.key);
    listed->strange |= slice_equal(key, keys.other);
}

/* A list must have a key that another process has put, and none that is not there. */
static void try_list(struct kit *kit)
{
    struct listed listed = {.found = false}, none = listed;

    if (!put_anyhow(kit, 0, 0))
        return;
    if (!driver_list(kit->drivers[1], slice_of("rlock-do"), note_key, &listed, &kit->answer) ||
        !driver_list(kit->drivers[1], slice_of("rlock-du"), note_key, &none, &kit->answer))
        report_finding(kit, "unfit", "list: %s", kit->answer.said);
    else if (!listed.found)
        report_finding(kit, "unfit", "a list lacks a key that is there");
    else if (listed.strange)
        report_finding(kit, "unfit", "a list has a key that is not there");
    report_finding(kit, "fine", "a list has the keys that there are");
}

/* Reads by how many ms the store's time is ahead of this process's, as that driver tells it. */
static bool read_date(struct kit *kit, size_t process, int64_t *ahead_ms)
{
    if (!current_version(kit, process))
        return false;
    *ahead_ms = kit->answer.date_ms - moment_now().ns / NS_PER_MS;
    return true;
}

/* The store's time must run as this host's does, whichever driver asks. */
static void try_date(struct kit *kit)
{
    int64_t first, next, off, most = 0;

    if (!driver_has_dates(kit->drivers[0])) {
        report_finding(
            kit, "note",
            "the store tells no time: the lock of a dead holder becomes free while somebody "
            "waits for it");
        return;
    }
    if (!read_date(kit, 0, &first))
        return;
    usleep(2 * OFF_MS * 1000);
    for (size_t process = 0; process < kit->count && read_date(kit, process, &next); process++) {
        off = next > first ? next - first : first - next;
        most = off > most ? off : most;
    }
    if (most > OFF_MS)
        report_finding(kit, "unfit", "the store's time is %" PRId64 " ms off within %d ms", most,
                       2 * OFF_MS);
    report_finding(kit, "fine", "the store's time runs as this host's does");
}

static const struct {
    const char *name;
    void (*try)(struct kit *kit);
    const char *advice;
} tests[] = {
    {"bytes", try_bytes, ADVICE_WHOLE},
    {"create", try_create, "the version - says that the key must not be there"},
    {"race", try_race, "the comparison and the write have to be one step of the store"},
    {"versions", try_versions, "add something to each version that never comes again"},
    {"reads", try_reads, "read from where the writes are acknowledged, without a cache"},
    {"lost", try_lost, "write aside, and put that in place at once"},
    {"count", try_count, "say done when the store keeps it for good, and conflict if it is not"},
    {"list", try_list, "list has all keys that begin with PREFIX"},
    {"date", try_date, "take the time of the answer itself, not of a cache"},
};

void driver_kit_try(const char *driver, const char *rest, const char *test,
                    struct driver_finding *finding)
{
    struct kit kit = {.finding = finding};
    struct host_error why = {.said = ""};
    size_t i = 0;

    *finding = (struct driver_finding){.level = NULL, .advice = NULL};
    while (i < sizeof tests / sizeof *tests && strcmp(tests[i].name, test) != 0)
        i++;
    while (kit.count < PROCESSES && (kit.drivers[kit.count] = driver_start(driver, rest, &why)))
        kit.count++;
    if (kit.count < PROCESSES)
        report_finding(&kit, "unfit", "%s", why.said);
    else if (i < sizeof tests / sizeof *tests)
        tests[i].try(&kit);
    else
        report_finding(&kit, "note", "no such test");
    bool fine = strcmp(finding->level, "unfit") != 0;
    if (!finding->advice)
        finding->advice = fine || kit.count < PROCESSES ? "" : tests[i].advice;
    slice_free(&kit.answer.text);
    while (kit.count > 0)
        driver_end(kit.drivers[--kit.count]);
}
