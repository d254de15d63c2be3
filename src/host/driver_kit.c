/* Each test begins with several processes of the driver. A "process" is an index of kit->drivers.
 * The texts that a test puts are numbered, and differ by that.
 *
 * The result of a test is its first finding: report_first() drops all others, such as the "fine" at
 * the end of a test that has found a lie.
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
#define RACES     8     /* of try_race(), one put of each process */
#define COUNTS    10000 /* puts of try_count() */
#define READS     20    /* gets of try_reads() */
/* For so long a test repeats something, at most. */
#define TEST_NS (3 * NS_PER_SEC)
/* How many bytes a text has behind its first line. A long one is as the record of a lock with some
 * hundred waiters, and ends in an empty line. */
enum { SHORT = 0, LONG = 99980 };
/* So many puts are remembered. */
#define PUTS_MAX 65536
/* By how much a store's time may differ from what this process's clock has counted. */
#define OFF_MS 1500

#define ADVICE_WHOLE "a put replaces the whole record, and a get returns all of its bytes"
#define ADVICE_NOT_DONE                                                                            \
    "say conflict or failed only where nothing was done, and nothing will be; else unknown"

/* The key that the tests put, and one that no test puts. */
static const struct {
    struct slice key, absent;
} keys = {{DRIVER_TRIAL_KEY, sizeof DRIVER_TRIAL_KEY - 1}, {DRIVER_TRIAL_KEY "-none", 17}};

struct kit {
    struct driver *drivers[PROCESSES];
    size_t count;                   /* of the processes that run */
    struct driver_finding *finding; /* level NULL: there is none yet */
    struct driver_answer answer;    /* the latest one; its text is freed by the next question */
};

/* The number of the latest put, and which puts were not done, by the driver's word. */
static unsigned latest_put;
static bool is_refused[PUTS_MAX];

/* Reports a finding, unless there is one already. Returns false, for a caller that ends with it. */
__attribute__((format(printf, 3, 4))) static bool report_first(struct kit *kit, const char *level,
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

/* Returns the text of the put of that number; the caller frees. It has the id of this process, as
 * another doctor may put the same key. */
static char *text_of(unsigned put, size_t padding)
{
    char *text = mem_zeroed(padding + 80);
    int size = sprintf(text, "trial %ld %u %zu\n", (long)getpid(), put, padding);

    for (size_t i = 0; i < padding; i++)
        text[(size_t)size + i] = (char)(i % 61 ? '!' + (int)((i + put) % 90) : '\n');
    return text;
}

/* Reports that a get returned what was never put. Returns false. */
static bool report_bytes(struct kit *kit)
{
    kit->finding->advice = ADVICE_WHOLE;
    return report_first(kit, "unfit", "a get returns other bytes than were put");
}

/* Waits for a process's answer to the latest question: kit->answer. False, and reported: it failed,
 * or what became of it is not known. */
static bool hear_driver(struct kit *kit, size_t process)
{
    slice_free(&kit->answer.text);
    driver_hear(kit->drivers[process], &kit->answer);
    if (kit->answer.verdict == DRIVER_FAILED || kit->answer.verdict == DRIVER_UNKNOWN)
        return report_first(kit, "unfit", "%s", kit->answer.said);
    return true;
}

/* Has a process get the key, and returns the key's version, which is in kit->answer. The text is
 * not looked at. NULL, and reported: the get failed. */
static const char *current_version(struct kit *kit, size_t process)
{
    driver_ask_get(kit->drivers[process], keys.key);
    return hear_driver(kit, process) ? kit->answer.version : NULL;
}

/* Has a process get the key. *got: the number of the put whose text that is; 0: there is no such
 * key. False, and reported: the get failed, a lie, or another doctor's text. */
static bool get_put(struct kit *kit, size_t process, unsigned *got)
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
    if (sscanf(kit->answer.text.at, "trial %ld %u %zu", &pid, got, &padding) != 3 || padding > LONG)
        return report_bytes(kit);
    if (pid != (long)getpid())
        return report_first(kit, "note", "another doctor is at work there: not tried");
    char *text = text_of(*got, padding);
    bool same = slice_equal(kit->answer.text, slice_of(text));
    free(text);
    if (!same)
        return report_bytes(kit);
    if (!is_refused[*got % PUTS_MAX])
        return true;
    kit->finding->advice = ADVICE_NOT_DONE;
    return report_first(kit, "unfit", "a put that was not done, by the driver's word, was done");
}

/* Waits for the answer to put number "put", and notes whether it says that nothing was done. False,
 * and reported: it failed, or what became of it is not known. A conflict is true. */
static bool hear_put(struct kit *kit, size_t process, unsigned put)
{
    bool heard = hear_driver(kit, process);

    is_refused[put % PUTS_MAX] =
        kit->answer.verdict == DRIVER_CONFLICT || kit->answer.verdict == DRIVER_FAILED;
    return heard;
}

/* Asks a process to put the text of that number, if the key has the version "on". Does not wait. */
static void ask_put(struct kit *kit, size_t process, const char *on, unsigned put, size_t padding)
{
    char *text = text_of(put, padding);

    is_refused[put % PUTS_MAX] = false;
    driver_ask_put(kit->drivers[process], keys.key, on, text);
    free(text);
}

/* Puts a text with the next number, if the key has the version "on". False, and reported: the put
 * failed, or what became of it is not known. A conflict is true. */
static bool put_next(struct kit *kit, size_t process, const char *on, size_t padding)
{
    char *version_of = mem_strdup(on); /* it may be in the answer */

    ask_put(kit, process, version_of, ++latest_put, padding);
    free(version_of);
    return hear_put(kit, process, latest_put);
}

/* Reports that "what", a put which should have been done, is a conflict; but if another doctor has
 * caused that, as its text shows, reports the other doctor. Returns false. */
static bool report_conflict(struct kit *kit, const char *what)
{
    unsigned ignored;

    return get_put(kit, 0, &ignored) && report_first(kit, "unfit", "%s is a conflict", what);
}

/* Has a process put a text on the current version, again until one is done. False, and reported:
 * none was done. */
static bool put_anyhow(struct kit *kit, size_t process, size_t padding)
{
    struct moment until = moment_plus(moment_now(), TEST_NS);
    bool heard = true;

    do {
        const char *on = current_version(kit, process);
        heard = on && put_next(kit, process, on, padding);
    } while (heard && kit->answer.verdict != DRIVER_DONE && !moment_reached(until, moment_now()));
    return heard && (kit->answer.verdict == DRIVER_DONE ||
                     report_conflict(kit, "each put on the version of a get"));
}

/* -- the tests --------------------------------------------------------------------------------- */

/* Tries whether any bytes come back as they were put, and a key that is not there has no value. */
static void try_bytes(struct kit *kit)
{
    unsigned got;

    if (!put_anyhow(kit, 0, LONG) || !get_put(kit, 1, &got))
        return;
    if (got != latest_put)
        report_first(kit, "unfit", "a get behind a put returns another text");
    /* A file system that ignores case has one file for the latter and the key of the put. */
    const struct slice absent[] = {keys.absent, slice_of("RLOCK-DOCTOR")};
    for (size_t i = 0; i < sizeof absent / sizeof *absent; i++) {
        driver_ask_get(kit->drivers[0], absent[i]);
        if (hear_driver(kit, 0) && kit->answer.verdict != DRIVER_NONE)
            report_first(kit, "unfit", "a get of %s, which is not there, returns a value",
                         absent[i].at);
    }
    report_first(kit, "fine", "what is put comes back, byte by byte");
}

/* Tries whether a put that is to make a key leaves one that is there as it was, in the process that
 * has put it and in another one. */
static void try_create(struct kit *kit)
{
    if (!put_anyhow(kit, 0, SHORT))
        return;
    for (size_t process = 0; process < 2; process++)
        if (put_next(kit, process, DRIVER_NO_KEY, SHORT) && kit->answer.verdict == DRIVER_DONE)
            report_first(kit, "unfit", "a put on no version replaces a key that is there");
    report_first(kit, "fine", "a key that is there is not made anew");
}

/* Has all processes put on the same version at once: the next PROCESSES numbers. Returns how many
 * of the puts were done. */
static unsigned race_puts(struct kit *kit, const char *on)
{
    char *version = mem_strdup(on); /* it may be in the answer */
    unsigned done = 0, first = latest_put + 1;

    for (size_t process = 0; process < PROCESSES; process++)
        ask_put(kit, process, version, first + (unsigned)process, SHORT);
    for (size_t process = 0; process < PROCESSES; process++) {
        hear_put(kit, process, ++latest_put);
        done += kit->answer.verdict == DRIVER_DONE;
    }
    free(version);
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
            get_put(kit, 0, &got); /* which reports a text that was refused */
    }
    if (most > 1)
        report_first(kit, "unfit",
                     "of %d puts on one version %u are done: it does not compare and set",
                     PROCESSES, most);
    report_first(kit, "fine", "of %u puts on %u versions at most one each is done", puts,
                 puts / PROCESSES);
}

/* Puts one text, another, and the first one again: the version of the first put must not come
 * again, nor may a put on it be done. */
static void try_versions(struct kit *kit)
{
    static const char behind[] = "a put on the version of the put before";
    char first[DRIVER_WORD_SIZE];

    if (!put_anyhow(kit, 0, SHORT))
        return;
    unsigned first_put = latest_put;
    snprintf(first, sizeof first, "%s", kit->answer.version);
    if (!put_next(kit, 0, first, SHORT) || kit->answer.verdict != DRIVER_DONE)
        return (void)report_conflict(kit, behind);
    char *second = mem_strdup(kit->answer.version);
    ask_put(kit, 0, second, first_put, SHORT);
    free(second);
    if (!hear_driver(kit, 0) || kit->answer.verdict != DRIVER_DONE)
        return (void)report_conflict(kit, behind);
    bool comes_again = strcmp(kit->answer.version, first) == 0;
    if (comes_again || (put_next(kit, 1, first, SHORT) && kit->answer.verdict == DRIVER_DONE))
        report_first(kit, "unfit", "a version comes twice: a put on one that was replaced is done");
    report_first(kit, "fine", "a version does not come twice");
}

/* Tries whether a get in another process sees each put that was done before. */
static void try_reads(struct kit *kit)
{
    struct moment until = moment_plus(moment_now(), TEST_NS);
    unsigned got = 0;
    int i = 0;

    while (i < READS && !kit->finding->level && !moment_reached(until, moment_now())) {
        size_t reader = 1 + (size_t)i++ % (PROCESSES - 1);
        if (put_anyhow(kit, 0, SHORT) && get_put(kit, reader, &got) && got != latest_put)
            report_first(kit, "unfit",
                         "a get behind a put that is done returns what was there before");
    }
    report_first(kit, "fine", "%d gets behind a put in another process return it", i);
}

/* Sends the last process half of a put, as a host of rlock does that is killed meanwhile, and ends
 * it. False, and reported: the put was done, or the key has another text than before. */
static bool break_off(struct kit *kit)
{
    unsigned got = 0;

    if (!put_anyhow(kit, 0, SHORT))
        return false;
    char *text = text_of(latest_put + 1, SHORT);
    driver_break_off(kit->drivers[--kit->count], keys.key, kit->answer.version, text);
    free(text);
    driver_hear(kit->drivers[kit->count], &kit->answer);
    driver_end(kit->drivers[kit->count]);
    if (kit->answer.verdict != DRIVER_DONE)
        return get_put(kit, 0, &got) && (got == latest_put || report_bytes(kit));
    kit->finding->advice = "count the bytes that have come before they are put";
    return report_first(kit, "unfit",
                        "a put is done although fewer bytes than its LENGTH have come");
}

/* Kills processes while they put: the text is there or not, but it is whole, and stays. Each turn
 * kills the last process. */
static void try_lost(struct kit *kit)
{
    struct moment until = moment_plus(moment_now(), TEST_NS);
    unsigned got = 0;

    if (!break_off(kit))
        return;
    while (kit->count > 1 && !kit->finding->level && !moment_reached(until, moment_now())) {
        if (!put_anyhow(kit, 0, SHORT))
            return;
        unsigned put_before = latest_put, killed_put = ++latest_put;
        ask_put(kit, kit->count - 1, kit->answer.version, killed_put, LONG);
        usleep((useconds_t)(1000 << kit->count)); /* half as long each turn */
        driver_kill(kit->drivers[--kit->count]);
        if (get_put(kit, 0, &got) && got != put_before && got != killed_put)
            report_first(kit, "unfit", "a get returns neither of two texts");
        if (!put_anyhow(kit, 0, SHORT))
            return;
        if (get_put(kit, 0, &got) && got != latest_put)
            report_first(kit, "unfit",
                         got == killed_put ? "a put of a killed process is done on a later version"
                                           : "a get behind a put returns another text");
    }
    report_first(kit, "fine", "a put of a killed process is done as a whole, or not at all");
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
        unsigned first = latest_put + 1, done = on ? race_puts(kit, on) : 0;
        rounds++;
        if (done > 1)
            report_first(kit, "unfit", "%u puts on one version are done", done);
        if (!get_put(kit, (rounds + 1) % PROCESSES, &got))
            return;
        bool is_of_round = got >= first && got <= latest_put;
        lost += done == 1 && !is_of_round;
    }
    if (lost)
        report_first(kit, "unfit", "of %u puts that are done %u are lost", rounds, lost);
    report_first(kit, "fine", "of %u puts by %d processes none is lost, none is done twice",
                 rounds * PROCESSES, PROCESSES);
}

struct listed {
    bool has_key, has_absent;
};

/* For driver_list(): notes which of two keys was listed. */
static void note_key(void *arg, struct slice key)
{
    struct listed *listed = arg;

    listed->has_key |= slice_equal(key, keys.key);
    listed->has_absent |= slice_equal(key, keys.absent);
}

/* A list must have a key that another process has put, and none that is not there. */
static void try_list(struct kit *kit)
{
    struct listed listed = {.has_key = false}, ignored = listed;

    if (!put_anyhow(kit, 0, SHORT))
        return;
    /* No key begins as in the second question, but that must not be a failure. */
    if (!driver_list(kit->drivers[1], slice_of("rlock-do"), note_key, &listed, &kit->answer) ||
        !driver_list(kit->drivers[1], slice_of("rlock-du"), note_key, &ignored, &kit->answer))
        report_first(kit, "unfit", "list: %s", kit->answer.said);
    else if (!listed.has_key)
        report_first(kit, "unfit", "a list lacks a key that is there");
    else if (listed.has_absent)
        report_first(kit, "unfit", "a list has a key that is not there");
    report_first(kit, "fine", "a list has the keys that there are");
}

/* Has a process get the key, for *ahead_ms: the store's time, which the answer tells, less that of
 * this process's clock. That one counts from another start, so only the difference of two such
 * numbers means something. False, and reported: the get failed. */
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
        report_first(
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
        report_first(kit, "unfit", "the store's time is %" PRId64 " ms off within %d ms", most,
                     2 * OFF_MS);
    report_first(kit, "fine", "the store's time runs as this host's does");
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
        report_first(&kit, "unfit", "%s", why.said);
    else if (i < sizeof tests / sizeof *tests)
        tests[i].try(&kit);
    else
        report_first(&kit, "note", "no such test");
    bool is_unfit = strcmp(finding->level, "unfit") == 0;
    /* There are fewer processes where the driver did not start, or try_lost() has ended some. */
    if (!finding->advice)
        finding->advice = is_unfit && kit.count == PROCESSES ? tests[i].advice : "";
    slice_free(&kit.answer.text);
    while (kit.count > 0)
        driver_end(kit.drivers[--kit.count]);
}
