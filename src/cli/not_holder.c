#include "cli/not_holder.h"

#include <stdlib.h>
#include <string.h>

#include "cli/render.h"

/* How long a survey may take if only a warning depends on it. */
#define LOOK_NS (1 * NS_PER_SEC)

void not_holder_say(const struct call *call, const char *key, const struct answer *answer,
                    const struct not_holder_words *words)
{
    const struct lock_party *holder = answer->refused.holder;

    if (answer->refused.revoked)
        say_warning("%s: %s: %s", call->command->name, key,
                    PAST_REVOCATION_TEXT(answer->refused.revoked));
    else if (holder && holder->reserved)
        say_warning("%s: %s is not %s; it is %s", call->command->name, key, words->what,
                    DECISION_TEXT(holder, "reserved"));
    else if (holder)
        say_warning("%s: %s is not %s, but %s %s", call->command->name, key, words->what, words->by,
                    PARTY_TEXT(&holder->who));
    else if (answer->refused.holders > 0)
        say_warning("%s: %s is not %s, but %s others", call->command->name, key, words->what,
                    words->by);
    else
        say_warning("%s: %s is not %s", call->command->name, key, words->gone);
}

/* Reads the locks of these KEYs, with one attempt and without a message. False: the store does not
 * answer. The caller frees the list in either case. */
static bool read_locks(const struct settings *settings, const char *const *keys, size_t count,
                       struct lock_list *list)
{
    struct store_address address = settings->address;
    const char *patterns[LOCK_KEYS_MAX];
    const struct survey_request request = {
        .patterns = patterns, .pattern_count = count, .runs = QUERY_RUNS_ALL, .idle = true};
    struct answer answer;

    address.server_wait = 0;
    if (address.connect_timeout > LOOK_NS)
        address.connect_timeout = LOOK_NS;
    for (size_t i = 0; i < count; i++)
        patterns[i] = key_to_pattern(keys[i]);
    query_look(&address, &request, list, &answer);
    for (size_t i = 0; i < count; i++)
        free((char *)(uintptr_t)patterns[i]);
    return answer.verdict == VERDICT_GRANTED;
}

bool not_holder_told_reserver(const struct call *call, const char *key)
{
    struct lock_list list ENDED_BY(lock_list_free) = {0};
    bool known = read_locks(&call->settings, &key, 1, &list);
    const struct lock_party *holder =
        known && list.locks.count > 0 ? holders_reserved(list.locks.views) : NULL;

    if (holder)
        say_warning("%s: %s is not reserved by you; it is %s", call->command->name, key,
                    DECISION_TEXT(holder, "reserved"));
    return holder;
}

int not_holder_refuse_unreserved(const struct call *call, const char *key)
{
    struct lock_list list ENDED_BY(lock_list_free) = {0};
    const char *name = call->command->name;
    bool known = read_locks(&call->settings, &key, 1, &list);
    const struct lock_view *lock = known && list.locks.count > 0 ? list.locks.views : NULL;

    if (lock && lock->holder_count > 0) {
        const struct lock_party *reserved = holders_reserved(lock);
        const char *who =
            reserved ? DECISION_TEXT(reserved, "reserved") : PARTY_TEXT(&lock->holders[0].who);
        say_warning("%s: %s is not reserved by you; it is %s%s", name, key,
                    reserved ? "" : "held by ", who);
        command_hint_key("force-release", key, "");
    } else if (known) {
        say_warning("%s: %s is free; no reservation of yours", name, key);
    } else {
        say_warning("%s: %s is not reserved by you", name, key);
    }
    return STATUS_NO;
}

int not_holder_refuse_run(const struct call *call, const char *key)
{
    say_warning("%s: %s: the token of a run, whose guards count on its lease", call->command->name,
                key);
    command_hint_key("force-release", key, " asks the run to stop");
    return STATUS_NO;
}

/* Warns that the reservation by "owner" was taken away; or, if the request is for "all" KEYs that
 * it names, that it nests in the reservation. */
static void warn_of_reservation(const struct lock_view *lock, bool all, const char *owner)
{
    const struct lock_party *reserved = holders_reserved(lock);
    const struct lock_run *latest = NULL;

    if (all && reserved && strcmp(reserved->owner, owner) == 0)
        say_warning("%s: %s", lock->key, DECISION_TEXT(reserved, "nests in the reservation"));

    for (size_t i = 0; i < lock->run_count; i++)
        if (strcmp(lock->runs[i].by.owner, owner) == 0)
            latest = &lock->runs[i];
    if (latest && latest->by.revoked.known && !lock_holder_of(lock, owner))
        say_warning("%s: your reservation was %s", lock->key,
                    PAST_REVOCATION_TEXT(&latest->by.revoked));
}

void not_holder_warn_of_reservations(const struct settings *settings, const char *const *keys,
                                     size_t count, bool all, const char *owner)
{
    struct lock_list list ENDED_BY(lock_list_free) = {0};

    if (!store_can(&settings->address, STORE_MEMORY)) /* which alone tells of former holders */
        return;
    if (read_locks(settings, keys, count, &list))
        for (size_t i = 0; i < list.locks.count; i++)
            warn_of_reservation(&list.locks.views[i], all, owner);
}
