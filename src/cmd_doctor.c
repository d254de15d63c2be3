/* rlock doctor: is this lock store fit to hold locks? */
#include "command.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "asker.h"
#include "checkup.h"
#include "query.h"
#include "render_doctor.h"

/* The lock that is taken and given back. One for all: it stays, free, for as long as others do. */
#define TRIAL_KEY "rlock-doctor"

enum { OPTION_JSON = OPTION_OTHER };

static const struct option_spec options[] = {
    {.id = OPTION_JSON, .name = "json", .help = "an object, see rlock-doctor(1)"},
    {.id = SETTING_REPLICAS,
     .name = "replicas",
     .argument = "N",
     .help = "there are to be N replicas, or a majority, or all, as for rlock run"},
    {.id = SETTING_GRACE, .name = "grace", .help = "locks are taken with --grace"},
    {.id = SETTING_LEASE,
     .name = "lease",
     .argument = "DUR",
     .help = "leases are DUR long (default 30s, at least 1s)"},
    SETTINGS_OPTIONS,
    {0}};

struct consultation {
    const struct command *command;
    struct arguments arguments;
    struct settings settings;
    struct json_library json;
    bool as_json;
    struct checkup servers;
};

/* -- a lock, for trial -------------------------------------------------------------------------- */

static int64_t took(struct moment *since)
{
    struct moment now = moment_now();
    int64_t ns = moment_until(*since, now);

    *since = now;
    return ns;
}

static void try_lock(struct query *query, const struct lock_request *request, struct trial *trial)
{
    struct moment since = moment_now();
    struct answer answer;

    query_acquire(query, request, &answer);
    trial->acquire_ns = took(&since);
    trial->held_by_other = answer.cause == CAUSE_HELD;
    if (answer.verdict == VERDICT_GRANTED) {
        query_renew(query, request, &answer);
        trial->renew_ns = took(&since);
    }
    trial->granted = answer.verdict == VERDICT_GRANTED;
    snprintf(trial->fault, sizeof trial->fault, "%s", answer.text);
    if (trial->granted || answer.maybe_done) {
        query_release(query, request, &answer);
        trial->release_ns = took(&since);
    }
}

/* Without replicas and grace: whether there are enough of them is a finding of its own, and to look must not make
 * others wait. */
static void take_trial(struct consultation *all)
{
    const char *key = TRIAL_KEY;
    struct store_address address = all->settings.address;
    char owner[OWNER_UUID_SIZE];
    struct trial trial = {0};
    struct query query;

    address.replicas = REPLICAS_NONE;
    address.grace = false;
    if (!query_open(&query, &address, trial.fault, sizeof trial.fault)) {
        /* that is why */
    } else if (!asker_uuid(owner)) {
        snprintf(trial.fault, sizeof trial.fault, "no random numbers: %s", strerror(errno));
    } else {
        struct lock_request request = {
            .keys = &key, .key_count = 1, .owner = owner, .lease = all->settings.lease, .who = ""};
        try_lock(&query, &request, &trial);
    }
    query_close(&query);
    diagnosis_of_trial(&trial, &all->servers.whole);
}

/* -- the outcome ------------------------------------------------------------------------------- */

static size_t reached(const struct consultation *all)
{
    size_t count = 0;

    for (size_t i = 0; i < all->servers.count; i++)
        count += all->servers.patients[i].facts.reached;
    return count;
}

/* Several servers are worth what they are together. */
static enum level verdict(const struct consultation *all)
{
    enum level one =
        all->servers.count == 1 ? all->servers.patients[0].diagnosis.worst : LEVEL_FINE;
    return one > all->servers.whole.worst ? one : all->servers.whole.worst;
}

/* The worst in one line, for those who do not read the table. */
static void say_unfit(const struct consultation *all)
{
    const struct diagnosis *worst = &all->servers.whole;

    if (all->servers.whole.worst < LEVEL_UNFIT)
        worst = &all->servers.patients[0].diagnosis;
    for (size_t i = 0; i < worst->count; i++) {
        if (worst->findings[i].level == LEVEL_UNFIT) {
            command_error(all->command, "not fit to hold locks: %s: %s", worst->findings[i].check,
                          worst->findings[i].text);
            return;
        }
    }
}

static int print(const struct consultation *all)
{
    struct render_style style = {.color = all->settings.color == COLOR_ALWAYS};
    const char *term = getenv("TERM");

    if (all->settings.color == COLOR_AUTO && isatty(STDOUT_FILENO))
        style.color = term && strcmp(term, "dumb") != 0;
    if (all->as_json) {
        char *text = render_doctor_json(&all->json, all->servers.patients, all->servers.count,
                                        &all->servers.whole, verdict(all));
        fputs(text, stdout);
        free(text);
    } else {
        render_doctor(stdout, all->servers.patients, all->servers.count, &all->servers.whole,
                      &style);
    }
    return command_flush();
}

static int conclude(const struct consultation *all)
{
    enum level level = verdict(all);
    int status = say_verbosity() == SAY_QUIET ? STATUS_OK : print(all);

    if (level == LEVEL_UNFIT)
        say_unfit(all);
    if (status != STATUS_OK)
        return status;
    return level < LEVEL_WARNING    ? STATUS_OK
           : level == LEVEL_WARNING ? STATUS_NO
                                    : STATUS_UNAVAILABLE;
}

/* -- the command ------------------------------------------------------------------------------- */

static int consult(struct consultation *all)
{
    char fault[256];

    all->as_json = command_option(&all->arguments, OPTION_JSON) != NULL;
    if (all->as_json && !json_load(&all->json, fault, sizeof fault)) {
        command_error(all->command, "%s", fault);
        return STATUS_SYSTEM;
    }
    if (!checkup_run(&all->settings, &all->servers, fault, sizeof fault)) {
        command_error(all->command, "%s", fault);
        return all->settings.address_status;
    }
    if (reached(all) > all->servers.count / 2)
        take_trial(all);
    return conclude(all);
}

static int run(const struct command *command, int argc, char **argv)
{
    struct consultation all = {.command = command};
    int status;

    if (command_parse(command, argc, argv, &all.arguments, &status)) {
        if (all.arguments.command)
            status = command_misused(command, "takes no COMMAND");
        else if (all.arguments.word_count > 0)
            status = command_misused(command, "takes no KEY");
        else if (command_settings(command, &all.arguments, &all.settings, &status))
            status = consult(&all);
    }
    checkup_free(&all.servers);
    settings_free(&all.settings);
    args_free(&all.arguments);
    return status;
}

const struct command command_doctor = {
    .name = "doctor",
    .summary = "is this server fit to hold locks?",
    .usage = {"doctor [OPTIONS]"},
    .example = "Example, in the check of a deployment:\n"
               "  rlock doctor -u redis://locks.example.com -q || echo 'see rlock doctor'\n",
    .options = options,
    .run = run,
};
