/* Records of a store that a driver moves (driver.h). Such a store can compare and set one key, and
 * need not have a clock: "known" is what this process knows of how old lines are (clockless.h). A
 * unit reads one key after the other, and changes one at most: the features that would take more
 * are not among the abilities of the store. It tells no messages: a waiter asks again and again. */
#include <stdio.h>

#include "base/mem.h"
#include "host/clockless.h"
#include "host/driver.h"
#include "host/driver_kit.h"
#include "host/own_clock.h"
#include "host/store.h"

/* By how much the clocks of a store's servers may differ, us. */
#define MARGIN_US (10 * US_PER_S)
#define US_PER_MS INT64_C(1000)

static const char *name, *rest_of_url; /* the driver's, and its argument */
static struct driver *driver;
static struct clockless known = {.margin_us = MARGIN_US};
static int poll_ms; /* driver_poll_ms() */
static struct own_clock own_clock;

/* The keys of a unit, in its order, as they were loaded. */
static struct loaded {
    char version[DRIVER_WORD_SIZE];
    struct clockless_reading reading;
} loaded[UNIT_KEYS_MAX];

/* -- failures ---------------------------------------------------------------------------------- */

/* Fills the fault with the driver's failure. A driver that does not know what became of a request
 * counts as a connection that broke: this host ends, and the next one has another driver. Returns
 * false. */
static bool fail_by(struct host_fault *fault, const struct driver_answer *answer)
{
    return host_fail(fault, answer->verdict == DRIVER_FAILED ? WIRE_FAILED : WIRE_UNREACHABLE,
                     answer->said);
}

/* -- units ------------------------------------------------------------------------------------- */

/* Has the driver read a key into its record, and notes in *as its version, and when the driver was
 * asked and answered: between the two the value is true. False, with the fault: the driver failed,
 * or the key has other data. */
static bool load_key(struct unit_key *key, struct loaded *as, struct host_fault *fault)
{
    struct driver_answer answer;

    as->reading.asked_us = own_clock_now(&own_clock);
    driver_ask_get(driver, key->name);
    driver_hear(driver, &answer);
    if (answer.verdict != DRIVER_VALUE && answer.verdict != DRIVER_NONE)
        return fail_by(fault, &answer);
    as->reading.read_us = own_clock_now(&own_clock);
    as->reading.date_us = answer.date_ms * US_PER_MS;
    strcpy(as->version, answer.version);
    if (answer.verdict == DRIVER_NONE)
        return true;
    key->record.version = 1; /* it is there; as->version is what counts */
    bool sound = clockless_read(&known, key, answer.text.at, answer.text.size, &as->reading);
    slice_free(&answer.text);
    return sound || host_fail(fault, WIRE_DRIVER, "a key of rlock's holds other data");
}

/* Reads the keys of a unit, one after the other. The unit's clock is read behind its last key, for
 * the script. The lines that it writes count from when their own key was read, which is not later,
 * so no deadline is too early for others. */
static enum host_outcome load_unit(struct unit *unit, struct host_fault *fault)
{
    bool done = true;

    unit->now_us = own_clock_now(&own_clock);
    for (size_t i = 0; done && i < unit->count; i++) {
        done = load_key(&unit->keys[i], &loaded[i], fault);
        unit->now_us = loaded[i].reading.read_us;
    }
    return done ? HOST_DONE : HOST_FAILED;
}

/* For struct host_store: there is no transaction to end. */
static void abandon_unit(void)
{
}

/* Returns the last key with changes; NULL: there is none. *count: how many there are. */
static struct unit_key *changed_key(struct unit *unit, size_t *count)
{
    struct unit_key *found = NULL;

    *count = 0;
    for (size_t i = 0; i < unit->count; i++) {
        if (unit->keys[i].record.changed) {
            found = &unit->keys[i];
            *count += 1;
        }
    }
    return found;
}

/* Has the driver write the one record that has changed, if it is still the version that was read.
 * HOST_AGAIN: it is another one by now. */
static enum host_outcome commit_unit(struct unit *unit, struct host_fault *fault)
{
    size_t count;
    struct unit_key *key = changed_key(unit, &count);
    struct driver_answer answer;

    if (!key)
        return HOST_DONE; /* it has messages only */
    /* Without transactions, one of them might stay as it was. */
    if (count > 1)
        return host_fail(fault, WIRE_DRIVER, "it cannot change several keys at once"), HOST_FAILED;
    const struct loaded *as = &loaded[key - unit->keys];
    char *text = clockless_print(&known, key, &as->reading);
    driver_ask_put(driver, key->name, as->version, text);
    driver_hear(driver, &answer);
    if (answer.verdict == DRIVER_DONE)
        clockless_wrote(&known, key, text, &as->reading);
    free(text);
    if (answer.verdict == DRIVER_DONE)
        return HOST_DONE;
    if (answer.verdict == DRIVER_CONFLICT)
        return HOST_AGAIN;
    fail_by(fault, &answer);
    fault->why.maybe_done = answer.verdict == DRIVER_UNKNOWN;
    return HOST_FAILED;
}

/* Calls "each" for every key that begins so, also for one that has expired. False, with the fault:
 * the driver failed. */
static bool list_names(struct slice prefix, void (*each)(void *arg, struct slice name), void *arg,
                       struct host_fault *fault)
{
    struct driver_answer answer;

    return driver_list(driver, prefix, each, arg, &answer) || fail_by(fault, &answer);
}

/* -- the driver -------------------------------------------------------------------------------- */

/* Reads a key that may not be there, which shows that the driver works. *date_ms: the store's time,
 * since 1970, or 0. False, with the fault: it failed. */
static bool ping_driver(int64_t *date_ms, struct host_fault *fault)
{
    struct driver_answer answer;

    driver_ask_get(driver, slice_of(DRIVER_TRIAL_KEY));
    driver_hear(driver, &answer);
    slice_free(&answer.text);
    *date_ms = answer.date_ms;
    return answer.verdict == DRIVER_VALUE || answer.verdict == DRIVER_NONE ||
           fail_by(fault, &answer);
}

/* Starts the driver, whose name and argument are the host and the database of the URL, and asks it
 * for the store's time, if it tells that. False, with the fault: it cannot serve. */
static bool open_driver(const struct host_target *target, const char *table,
                        struct host_fault *fault)
{
    (void)table;
    *fault = (struct host_fault){.broken = false};
    name = target->host;
    rest_of_url = target->database;
    driver = driver_start(name, rest_of_url, &fault->why);
    if (!driver) {
        fault->broken = wire_error_breaks(fault->why.error);
        return false;
    }
    poll_ms = driver_poll_ms(driver);
    /* The clock begins with the store's time, for the sake of times that are shown to hosts whose
     * clocks are wrong. */
    int64_t date_ms = 0;
    if (driver_has_dates(driver) && !ping_driver(&date_ms, fault))
        return false;
    own_clock_begin(&own_clock, date_ms * US_PER_MS);
    return true;
}

/* No messages come from a driver: nothing is waited for. */
static int no_fd(enum host_ears ears, int *ms)
{
    (void)ears;
    *ms = -1;
    return -1;
}

/* For struct host_store: no message has come, and nothing is broken. */
static bool no_messages(void)
{
    return true;
}

/* Replies to the doctor: to "ping" with "ok", and to the name of a test of drivers with the finding
 * of that. False, with the fault: the driver does not answer the ping. */
static bool answer_doctor(const char *what, struct strbuf *out, struct host_fault *fault)
{
    struct driver_finding finding;
    int64_t date_ms;

    if (strcmp(what, "ping") != 0) {
        driver_kit_try(name, rest_of_url, what, &finding);
        host_find(out, finding.level, finding.text, finding.advice);
        return true;
    }
    if (!ping_driver(&date_ms, fault))
        return false;
    resp_array(out, 1);
    resp_bulk(out, slice_of("ok"));
    return true;
}

/* For struct host_store: there are no tables to make. Returns false, with the fault. */
static bool refuse_to_make(const char *user, struct host_fault *fault)
{
    (void)user;
    return host_fail(fault, WIRE_DRIVER, "it has nothing to prepare");
}

int main(void)
{
    static const struct host_store external = {.open = open_driver,
                                               .load = load_unit,
                                               .commit = commit_unit,
                                               .abandon = abandon_unit,
                                               .list = list_names,
                                               .poll_fd = no_fd,
                                               .read_messages = no_messages,
                                               .ask = answer_doctor,
                                               .make = refuse_to_make,
                                               .poll_ms = &poll_ms};

    return host_serve(&(const struct host){.store = &external});
}
