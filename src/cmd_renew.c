/* rlock renew: a lock that a script holds goes on for another lease. */
#include "tenure.h"

static const struct option_spec options[] = {
    TENURE_OPTIONS,
    {.id = SETTING_LEASE,
     .name = "lease",
     .argument = "DUR",
     .help = "from now on the lease is DUR long (default: as it was asked for when the lock was "
             "acquired; at least 1s)"},
    SETTINGS_OPTIONS,
    {0}};

static int renew(struct tenure *tenure)
{
    struct answer answer;

    /* Only what is said here: the lease in a file or a variable is for acquisitions. */
    if (command_option(&tenure->arguments, SETTING_LEASE))
        tenure->request.lease = tenure->settings.lease;
    query_renew(&tenure->query, &tenure->request, &answer);
    if (answer.verdict != VERDICT_GRANTED)
        return tenure_refused(tenure, &answer);
    if (answer.late)
        say_warning("renew: %.100s: the lease had run out, but nobody had taken the lock",
                    tenure->key);
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
