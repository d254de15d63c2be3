#include "cli/not_holder.h"

#include <stdlib.h>
#include <string.h>

#include "cli/render.h"

/* How long a survey may take if only a warning depends on it. */
#define LOOK_NS (1 * NS_PER_SEC)

void not_holder_say(const struct call *call, const char *key, const struct answer *answer,
                    const struct not_holder_words *words)
{
    const struct lock_party *holder = answer->holder;

    if (answer->revoked)
        say_warning("%s: %.100s: %s", call->command->name, key,
                    PAST_REVOCATION_TEXT(answer->revoked));
    else if (holder && holder->reserved)
        say_warning("%s: %.100s is not %s; it is %s", call->command->name, key, words->what,
                    DECISION_TEXT(holder, "reserved"));
    else if (holder)
        say_warning("%s: %.100s is not %s, but %s %s", call->command->name, key, words->what,
                    words->by, PARTY_TEXT(&holder->who));
    else if (answer->holders > 0)
        say_warning("%s: %.100s is not %s, but %s others", call->command->name, key, words->what,
                    words->by);
    else
        say_warning("%s: %.100s is not %s", call->command->name, key, words->gone);
}

/* Reads the locks, with one attempt and without a message. */
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

bool not_holder_say_reserved(const struct call *call, const char *key)
{
    struct lock_list list ENDED_BY(lock_list_free) = {0};
    bool known = read_locks(&call->settings, &key, 1, &list);
    const struct lock_party *holder =
        known && list.locks.count > 0 ? holders_reserved(list.locks.views) : NULL;

    if (holder)
        say_warning("%s: %.100s is not reserved by you; it is %s", call->command->name, key,
                    DECISION_TEXT(holder, "reserved"));
    return holder;
}

static void warn_of(const struct lock_view *lock, const char *owner)
{
    const struct lock_run *latest = NULL;

    for (size_t i = 0; i < lock->run_count; i++)
        if (strcmp(lock->runs[i].by.owner, owner) == 0)
            latest = &lock->runs[i];
    if (latest && latest->by.revoked.known && !lock_is_held_by(lock, owner))
        say_warning("%.100s: your reservation was %s", lock->key,
                    PAST_REVOCATION_TEXT(&latest->by.revoked));
}

void not_holder_warn(const struct settings *settings, const char *const *keys, size_t count,
                     const char *owner)
{
    struct lock_list list ENDED_BY(lock_list_free) = {0};

    if (!store_can(&settings->address, STORE_MEMORY))
        return;
    if (read_locks(settings, keys, count, &list))
        for (size_t i = 0; i < list.locks.count; i++)
            warn_of(&list.locks.views[i], owner);
}
