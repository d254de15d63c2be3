/* rlock renew: a lock that a script holds goes on for another lease. */
#include "tenure.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct option_spec options[] = {
    TENURE_OPTIONS,
    {.id = SETTING_LEASE,
     .name = "lease",
     .argument = "DUR",
     .help = "from now on the lease is DUR long (default: as it was asked for when the lock was "
             "acquired; at least 1s)"},
    SETTINGS_OPTIONS,
    {0}};

/* A number up to "most"; 0 if it is none. */
static int64_t number_in(const char *name, int64_t most)
{
    const char *text = getenv(name);
    char *end;

    if (!text || *text < '1' || *text > '9')
        return 0;
    long long number = strtoll(text, &end, 10);
    return *end || number > most ? 0 : number;
}

static bool is_in(const char *name, const char *wanted)
{
    const char *text = getenv(name);
    return text && strcmp(text, wanted) == 0;
}

/* With grace, a store that has forgotten the lock has it again: what rlock acquire --export left in the environment
 * says how it was held. Of a semaphore it does not say all. */
static void claim(struct tenure *tenure, struct answer *answer)
{
    struct lock_grant grant = {.fence = (uint64_t)number_in("RLOCK_FENCE", INT64_MAX)};
    struct lock_request request = tenure->request;
    bool shared = is_in("RLOCK_MODE", lock_mode_name(LOCK_SHARED));

    if (!request.lease)
        request.lease = number_in("RLOCK_LEASE_MS", INT64_MAX / NS_PER_MS) * NS_PER_MS;
    if (!grant.fence || !request.lease || !is_in("RLOCK_KEY", tenure->key) ||
        !is_in("RLOCK_OWNER", tenure->owner) ||
        !(shared || is_in("RLOCK_MODE", lock_mode_name(LOCK_EXCLUSIVE))))
        return;
    request.mode = shared ? LOCK_SHARED : LOCK_EXCLUSIVE;
    request.grants = &grant;
    query_renew(&tenure->query, &request, answer);
}

static int renew(struct tenure *tenure)
{
    struct answer answer;

    /* Only what is said here: the lease in a file or a variable is for acquisitions. */
    if (command_option(&tenure->arguments, SETTING_LEASE))
        tenure->request.lease = tenure->settings.lease;
    query_renew(&tenure->query, &tenure->request, &answer);
    if (answer.cause == CAUSE_NOT_HOLDER && tenure->settings.address.grace)
        claim(tenure, &answer);
    if (answer.verdict != VERDICT_GRANTED)
        return tenure_refused(tenure, &answer);
    if (answer.late)
        say_warning("renew: %.100s: the lease had run out, but nobody had taken the lock",
                    tenure->key);
    if (answer.forgotten)
        say_warning("renew: %.100s: the store had forgotten it, and has it again", tenure->key);
    say_detail("%.100s: renewed", tenure->key);
    return STATUS_OK;
}

static int run(const struct command *command, int argc, char **argv)
{
    struct tenure tenure;
    int status;

    if (tenure_begin(&tenure, command, argc, argv, &status))
        status = renew(&tenure);
    tenure_end(&tenure);
    return status;
}

const struct command command_renew = {
    .name = "renew",
    .summary = "extend the lease of a lock that rlock acquire took",
    .usage = {"renew [OPTIONS] KEY"},
    .example = "Example, a script that renews between its steps, and ends if it lost the lock:\n"
               "  rlock renew --owner \"$token\" deploy || exit\n",
    .options = options,
    .run = run,
};
