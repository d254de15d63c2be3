/* rlock reserve and rlock extend: a lock for a person. No process stays; a file keeps the owner
 * token (cli/reservation.h). */
#include "cmd/commands.h"

#include <string.h>
#include <unistd.h>

#include "cli/not_holder.h"
#include "cli/render.h"
#include "cli/reservation.h"
#include "cli/run_messages.h"
#include "lock/own_identity.h"
#include "run/ancestor.h"
#include "run/printer.h"

enum { OPTION_MESSAGE = OPTION_OTHER };

struct reserve {
    struct call call;
    const char *key;
    int64_t length; /* ns */
    char owner[OWNER_SIZE];
};

static int check_reservation(struct call *call)
{
    struct reserve *reserve = (struct reserve *)call;

    reserve->key = call->arguments.words[0];
    return command_check_duration(call, call->arguments.words[1], &reserve->length);
}

/* Reports that the user's file of the reservation cannot be kept. */
static int refuse_file(const struct reserve *reserve, const char *fault)
{
    command_error(&reserve->call, "%s: %s", reserve->key, fault);
    return STATUS_SYSTEM;
}

/* -- reserve ----------------------------------------------------------------------------------- */

static const struct option_spec reserve_options[] = {
    OPTION(OPTION_MESSAGE, "message", "TEXT", "what it is for; shown to others (required)",
           .letter = 'm'),
    NO_WAIT,
    SETTING(WAIT),
    SETTINGS_OPTIONS,
    {0}};

static int check_with_message(struct call *call)
{
    const char *message = command_value(call, OPTION_MESSAGE);
    int status = check_reservation(call);

    if (status == STATUS_OK && (!message || !*message))
        return command_misused(call, "-m TEXT is required: say what it is for");
    return status;
}

/* Acquires the lock for the reservation. had: it was reserved before, and stays so if the store
 * does not answer. */
static void acquire_reservation(struct reserve *reserve, bool had, struct printer_outcome *outcome)
{
    char *person FREED = own_identity_person(reserve->call.settings.no_identity,
                                             command_value(&reserve->call, OPTION_MESSAGE));
    char *who FREED = identity_note(person, LOCK_NOTE_RESERVED, 1);
    const struct acquire_request wanted = {
        .keys = &reserve->key, .key_count = 1, .owner = reserve->owner, .had = had, .who = who};
    struct run_messages messages;
    struct printer_plan plan = {.compose = NULL}; /* the file has the token */

    reserve->call.settings.lease = reserve->length;
    run_messages_init(&messages, reserve->key, NULL);
    run_messages_of_request(&messages, &plan.agent.keeper.request, &reserve->call.settings);
    request_plan(&wanted, &reserve->call.settings, &messages.events, &plan.agent);
    plan.agent.keeper.renew = false;
    plan.agent.keeper.reused = true; /* all reservations of the user have one owner */
    printer_run(&plan, outcome);
}

/* True if "owner" is "other" or nests in it. */
static bool is_within(const char *owner, const char *other)
{
    return strcmp(owner, other) == 0 || owner_nests_in(owner, other);
}

/* Whether this command runs inside the holder's run: by RLOCK_OWNER, or, if that got lost on the
 * way, by the processes. */
static bool runs_inside(const struct reserve *reserve, const struct lock_party *holder)
{
    const char *outer = getenv("RLOCK_OWNER");

    /* The run of a holder that is kept has ended. */
    bool is_ours = is_within(holder->owner, reserve->owner); /* the reservation, or a run in it */
    if (holder->kept || is_ours)
        return false;
    return (outer && !owner_fault(outer) && is_within(outer, holder->owner)) ||
           ancestor_is(&holder->who, holder->age_ms * NS_PER_MS);
}

/* Refuses a reservation that would wait for the run that waits for it. Returns STATUS_OK for any
 * other; also if the store does not answer now, as the acquisition reports that. */
static int check_outside(struct reserve *reserve)
{
    const struct lock_view *lock = NULL;
    struct answer answer;
    struct query query;
    char fault[256];

    if (query_open(&query, &reserve->call.settings.address, NULL, fault, sizeof fault))
        lock = query_read_lock(&query, reserve->key, &reserve->call.list, &answer);
    query_close(&query);
    for (size_t i = 0; lock && i < lock->holder_count; i++)
        if (runs_inside(reserve, &lock->holders[i])) {
            command_error(&reserve->call,
                          "%s: it would wait for itself: it runs inside %s, which holds it",
                          reserve->key, PARTY_TEXT(&lock->holders[i].who));
            say_hint("reserve KEY before the run: runs of the same user nest in a reservation");
            return STATUS_CONFIG;
        }
    return STATUS_OK;
}

/* Tells until when the key is reserved. was_left: ns that an earlier reservation had left; 0: there
 * was none. An end that is sooner than before is told to scripts, too: perhaps DUR was meant to be
 * added. */
static void confirm_end(const struct reserve *reserve, int64_t was_left)
{
    int64_t now_ms = clock_wall() / NS_PER_MS;
    char was[DESCRIBE_TIME_SIZE];

    if (was_left > reserve->length + NS_PER_SEC)
        say_warning("%s: %s ends sooner: %s, not %s", reserve->call.command->name, reserve->key,
                    UNTIL_TEXT(reserve->length),
                    describe_daytime(now_ms, now_ms + was_left / NS_PER_MS, DESCRIBE_MINUTE, was));
    else
        command_confirm(&reserve->call, "%s is reserved by you %s", reserve->key,
                        UNTIL_TEXT(reserve->length));
}

/* Reserves the key. The token is saved before the lock is asked for, so no reservation is ever
 * without one. */
static int make_reservation(struct call *call)
{
    struct reserve *reserve = (struct reserve *)call;
    struct printer_outcome outcome;
    char fault[256];
    int64_t fresh; /* until when, if the user had not reserved the key before; or 0 */

    /* A wait may be long, and must not keep a lock of flock(1) among the inherited descriptors. */
    say_let_go();
    child_close_inherited();
    if (!reservation_begin(&call->settings, reserve->key, reserve->length, reserve->owner, &fresh,
                           fault, sizeof fault))
        return refuse_file(reserve, fault);
    outcome = (struct printer_outcome){.status = check_outside(reserve)};
    if (outcome.status == STATUS_OK)
        acquire_reservation(reserve, !fresh, &outcome);
    if (outcome.status == STATUS_OK && !outcome.signal) {
        /* The store said before what was left of the user's reservation; 0: there was none. */
        const struct lock_view *before = call->list.locks.views;
        const struct lock_party *old = call->list.locks.count > 0 ? holders_reserved(before) : NULL;
        bool ours = old && strcmp(old->owner, reserve->owner) == 0;
        confirm_end(reserve, ours ? old->left_ms * NS_PER_MS : 0);
    } else if (fresh) {
        reservation_forget(&call->settings, reserve->key, fresh);
    } else if (outcome.status == STATUS_UNAVAILABLE) {
        say_warning("%s: it stays reserved if it was, until its old end or the new one",
                    reserve->key);
    }
    call->signal = outcome.signal;
    return outcome.status;
}

const struct command command_reserve = {
    .name = "reserve",
    .summary = "take a lock for a person, for a while and with a reason",
    .usage = {"reserve [OPTIONS] KEY DUR -m TEXT"},
    .example = "Example, two hours for oneself; own commands still run in it:\n"
               "  rlock reserve staging 2h -m 'load test'\n"
               "  rlock run staging -- ./deploy.sh staging\n"
               "  rlock release staging\n",
    .options = reserve_options,
    .words = WORDS_KEY_TIME,
    .size = sizeof(struct reserve),
    .needs = STORE_DETACHED,
    .check = check_with_message,
    .act = make_reservation,
};

/* -- extend ------------------------------------------------------------------------------------ */

static const struct not_holder_words words = {
    .what = "reserved by you",
    .by = "held by",
    .gone = "reserved by you: it was released, or its time is over"};

/* Asks the store whether this command runs inside a run that holds KEY: the guards of that count on
 * the lease. */
static bool is_inside_run(struct reserve *reserve)
{
    const char *owner = getenv("RLOCK_OWNER");
    const struct lock_view *lock;
    struct answer answer;

    if (!owner || owner_fault(owner))
        return false;
    lock = query_read_lock(&reserve->call.query, reserve->key, &reserve->call.list, &answer);
    for (size_t i = 0; lock && i < lock->holder_count; i++) {
        const struct lock_party *holder = &lock->holders[i];
        if (is_within(owner, holder->owner) && !holder->reserved &&
            !owner_is_acquired(holder->owner))
            return true;
    }
    return false;
}

/* Has the reservation last for its new length from now on, and saves that in the user's file.
 * old_end_ms: when it would have ended (ms since 1970). */
static int renew_reservation(struct reserve *reserve, int64_t old_end_ms)
{
    const struct acquire_request lock = {.keys = &reserve->key,
                                         .key_count = 1,
                                         .owner = reserve->owner,
                                         .who = "",
                                         .lease = reserve->length};
    const struct renew_request request = {.lock = &lock, .strict = true};
    struct answer answer;
    char fault[256];

    query_renew(&reserve->call.query, &request, &answer);
    if (answer.verdict == VERDICT_GRANTED) {
        if (!reservation_save(&reserve->call.settings, reserve->key, reserve->owner,
                              reserve->length, fault, sizeof fault))
            return refuse_file(reserve, fault);
        confirm_end(reserve, old_end_ms * NS_PER_MS - clock_wall());
        return STATUS_OK;
    }
    if (answer.cause == CAUSE_NOT_HOLDER) {
        not_holder_say(&reserve->call, reserve->key, &answer, &words);
        return STATUS_NO;
    }
    return command_refused_about(&reserve->call, reserve->key, &answer);
}

/* Extends this user's reservation. Inside a run of the lock it is the run's owner that counts, and
 * its lease is not for this command to change. */
static int extend_reservation(struct call *call)
{
    struct reserve *reserve = (struct reserve *)call;
    int64_t old_end_ms = 0;
    int status = command_open(call);

    if (status != STATUS_OK)
        return status;
    if (is_inside_run(reserve))
        return not_holder_refuse_run(call, reserve->key);
    if (!reservation_find(&call->settings, reserve->key, reserve->owner, &old_end_ms))
        return not_holder_refuse_unreserved(call, reserve->key);
    return renew_reservation(reserve, old_end_ms);
}

const struct command command_extend = {
    .name = "extend",
    .summary = "extend a reservation, for a time from now",
    .usage = {"extend [OPTIONS] KEY DUR"},
    .example = "Example, one more hour from now on:\n"
               "  rlock extend staging 1h\n",
    .options = common_options,
    .words = WORDS_KEY_TIME,
    .size = sizeof(struct reserve),
    .needs = STORE_DETACHED,
    .check = check_reservation,
    .act = extend_reservation,
};
