/* rlock renew and rlock release: what a script does with a lock that it has acquired. */
#include "cmd/commands.h"

#include <string.h>

#include "cli/describe.h"
#include "cli/not_holder.h"
#include "cli/reservation.h"
#include "store/url.h"

enum { OPTION_TOKEN = OPTION_OTHER };

static const struct option_spec renew_release_options[] = {
    OPTION(OPTION_TOKEN, "owner", "TOKEN",
           "the owner token that rlock acquire printed (RLOCK_OWNER)"),
    SETTING_AS(REPLICAS, "as at acquisition: N replicas, a majority or all must have it"),
    SETTING_AS(GRACE, "as at acquisition: the store may have forgotten the lock"),
    SETTINGS_OPTIONS,
    {0}};

struct renew_release {
    struct call call;
    const char *key, *owner;
    char reserved[OWNER_SIZE];   /* the owner, if the user has reserved the key */
    int64_t until_ms;            /* reserved: its end, ms since 1970 */
    char holder[OWNER_SIZE];     /* the owner or its ancestor that holds the key */
    struct acquire_request lock; /* of the owner, or of its ancestor that holds the key */
};

/* Makes the owner of this user's reservation of the key the one that is acted for. False: the user
 * has not reserved it. */
static bool take_reservation(struct renew_release *action)
{
    bool found =
        reservation_find(&action->call.settings, action->key, action->reserved, &action->until_ms);

    if (found)
        action->owner = action->reserved;
    return found;
}

/* Finds the owner: --owner, else RLOCK_OWNER, else the user's own reservation of the KEY. Returns
 * STATUS_OK; or the status of a refusal, which says who has reserved the KEY, or has the lock. */
static int take_owner(struct renew_release *action)
{
    const char *option = command_value(&action->call, OPTION_TOKEN);
    const char *owner = option ? option : getenv("RLOCK_OWNER");

    action->owner = owner;
    if (!option && (!owner || !*owner)) {
        if (take_reservation(action))
            return STATUS_OK;
        if (action->call.command == &command_release)
            return not_holder_refuse_unreserved(&action->call, action->key);
        if (not_holder_told_reserver(&action->call, action->key))
            return STATUS_NO;
        command_error(&action->call, "no owner token");
        say_hint("--owner TOKEN or RLOCK_OWNER; rlock acquire prints it");
        return STATUS_USAGE;
    }
    const char *why = owner_fault(owner);
    if (!why)
        return STATUS_OK;
    if (option)
        return command_wrong(&action->call, "--owner", owner, why);
    command_error(&action->call, "RLOCK_OWNER '%s' %s", URLS_TEXT(owner), why);
    return STATUS_CONFIG;
}

/* Whether a run in which the owner nests holds the lock. lock: NULL if it is free. */
static bool is_inside_run(const struct lock_view *lock, const char *owner)
{
    for (size_t i = 0; lock && i < lock->holder_count; i++) {
        const struct lock_party *holder = &lock->holders[i];
        if (owner_nests_in(owner, holder->owner) && !owner_is_acquired(holder->owner) &&
            !holder->reserved)
            return true;
    }
    return false;
}

/* Opens the store, and finds which owner the request is for: the one that is named or reserved; or
 * its nearest ancestor that has acquired the lock, which is action->lock.owner then. */
static int find_holder(struct renew_release *action)
{
    struct answer answer;

    action->key = action->call.arguments.words[0];
    int status = take_owner(action);
    action->lock = (struct acquire_request){
        .keys = &action->key, .key_count = 1, .owner = action->owner, .who = ""};
    if (status == STATUS_OK)
        status = command_open(&action->call);
    if (status != STATUS_OK)
        return status;
    bool acquired = owner_is_acquired(action->owner);
    bool has_ancestors = strchr(action->owner, '.');

    /* Where a lock ends with its session, a request continues with the session of its owner, which
     * it must not take from one that waits. */
    bool is_plain =
        acquired && !has_ancestors && store_can(&action->call.settings.address, STORE_DETACHED);
    if (is_plain || action->owner == action->reserved)
        return STATUS_OK;
    const struct lock_view *lock =
        query_read_lock(&action->call.query, action->key, &action->call.list, &answer);
    if (answer.verdict != VERDICT_GRANTED)
        return command_refused(&action->call, &answer);
    char *holder = action->holder;
    const struct lock_party *party; /* the holder's entry; NULL: none of them holds the lock */
    strcpy(holder, action->owner);
    do {
        party = lock ? lock_holder_of(lock, holder) : NULL;
    } while (!party && owner_acquired_in(holder, holder));
    bool is_of_run = party ? !acquired && !party->reserved : is_inside_run(lock, action->owner);
    if (is_of_run)
        return not_holder_refuse_run(&action->call, action->key);
    if (!party && lock && lock_waiter_of(lock, action->owner)) {
        say_warning("%s is not held by that owner, which waits for it", action->key);
        return STATUS_NO;
    }
    /* RLOCK_OWNER is that of a run of other KEYs, so the reservation is meant. */
    if (!party && !acquired && !command_has(&action->call, OPTION_TOKEN))
        take_reservation(action);
    action->lock.owner = party ? holder : action->owner;
    return STATUS_OK;
}

/* Reports a REFUSED or UNKNOWN answer. Returns the exit status. */
static int report_refusal(const struct renew_release *action, const struct answer *answer)
{
    if (answer->cause != CAUSE_NOT_HOLDER)
        return command_refused_about(&action->call, action->key, answer);
    static const struct not_holder_words words = {
        .what = "held by that owner",
        .by = "by",
        .gone = "held: it was released, or its lease has run out"};
    not_holder_say(&action->call, action->key, answer, &words);
    if (answer->refused.holders > 0 && !answer->refused.revoked &&
        !command_has(&action->call, OPTION_TOKEN))
        say_hint("RLOCK_OWNER names another holder; --owner TOKEN");
    return STATUS_NO;
}

/* -- renew ------------------------------------------------------------------------------------- */

static const struct option_spec renew_options[] = {
    OPTION(SETTING_LEASE, "lease", "DUR",
           "from now on the lease is DUR long, at least 1s (default: as asked for when the lock "
           "was acquired)"),
    {.table = renew_release_options},
    {0}};

/* Renews the lock; one whose lease has ended is lost, even if no other owner has it
 * (strict). */
static int renew_lock(struct call *call)
{
    struct renew_release *action = (struct renew_release *)call;
    int status = find_holder(action);
    const struct renew_request request = {.lock = &action->lock, .strict = true};
    struct answer answer;

    if (status != STATUS_OK)
        return status;
    if (command_has(call, SETTING_LEASE)) /* one in a file or a variable is for acquisitions */
        action->lock.lease = call->settings.lease;
    query_renew(&call->query, &request, &answer);
    if (answer.verdict != VERDICT_GRANTED)
        return report_refusal(action, &answer);
    say_detail("%s: renewed", action->key);
    return STATUS_OK;
}

const struct command command_renew = {
    .name = "renew",
    .summary = "extend the lease of a lock that rlock acquire took",
    .usage = {"renew [OPTIONS] KEY"},
    .example = "Example, a script that renews between its steps, and ends if it lost the lock:\n"
               "  rlock renew --owner \"$token\" deploy || exit\n",
    .options = renew_options,
    .words = WORDS_KEY,
    .size = sizeof(struct renew_release),
    .act = renew_lock,
};

/* -- release ----------------------------------------------------------------------------------- */

/* Releases the lock, and forgets the file of a reservation unless the answer is unknown. */
static int release_lock(struct call *call)
{
    struct renew_release *action = (struct renew_release *)call;
    int status = find_holder(action);
    struct release_request request = {.lock = &action->lock, .strict = true};
    struct answer answer;

    if (status != STATUS_OK)
        return status;
    action->lock.lease = call->settings.lease; /* so long others wait, if it was forgotten */
    /* The owner of a reservation acquires again: a late release must not end a later one. */
    request.in_time = !owner_is_acquired(action->lock.owner);
    query_release(&call->query, &request, &answer);
    /* The file of a reservation that was taken away stays, so that this is reported each time. */
    if (action->owner == action->reserved && answer.verdict != VERDICT_UNKNOWN &&
        !answer.refused.revoked)
        reservation_forget(&call->settings, action->key, action->until_ms);
    if (answer.verdict == VERDICT_GRANTED) {
        say_detail("%s: released", action->key);
        return STATUS_OK;
    }
    status = report_refusal(action, &answer);
    if (answer.maybe_done)
        say_warning("%s may have been released anyway", action->key);
    return status;
}

const struct command command_release = {
    .name = "release",
    .summary = "release a lock that rlock acquire took",
    .usage = {"release [OPTIONS] KEY"},
    .example = "Example:\n"
               "  token=$(rlock acquire --keep $$ deploy) || exit\n"
               "  ./deploy.sh production\n"
               "  rlock release --owner \"$token\" deploy\n",
    .options = renew_release_options,
    .words = WORDS_KEY,
    .size = sizeof(struct renew_release),
    .act = release_lock,
};
