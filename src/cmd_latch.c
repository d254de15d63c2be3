/* rlock latch: count down, over many hosts, to what others wait for. */
#include "command.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "asker.h"
#include "duration.h"
#include "key.h"
#include "latch_verbs.h"

#define TTL_DEFAULT_NS (INT64_C(86400) * NS_PER_SEC)
#define TTL_LEAST_NS   (1 * NS_PER_SEC)

enum { OPTION_TTL = OPTION_OTHER, OPTION_ID, OPTION_JSON, OPTION_KEEP_CREDENTIALS };

static const struct option_spec options[] = {
    {.id = OPTION_TTL,
     .name = "ttl",
     .argument = "DUR",
     .help = "set: the latch expires after DUR, open or not (default 1d, at least 1s)"},
    {.id = OPTION_ID,
     .name = "id",
     .argument = "ID",
     .help = "count-down, run: count once for ID, however often it is asked; a word like KEY"},
    {.id = OPTION_NO_WAIT,
     .name = "no-wait",
     .also = {"nonblock"},
     .letter = 'n',
     .help = "wait: look once"},
    {.id = SETTING_WAIT,
     .name = "wait",
     .also = {"timeout"},
     .letter = 'w',
     .argument = "DUR",
     .help = "wait: at most DUR (default: for ever)"},
    {.id = OPTION_JSON, .name = "json", .help = "status: an object, see rlock-latch(1)"},
    {.id = OPTION_KEEP_CREDENTIALS,
     .name = "keep-credentials",
     .help = "run: leave RLOCK_PASSWORD, and the password in RLOCK_URL, in the command's "
             "environment"},
    SETTINGS_OPTIONS,
    {0}};

static const struct verb {
    const char *name;
    const char *wants; /* words after the verb */
    size_t least, most;
    int options[3]; /* of this command's own, those that it takes */
    bool runs;      /* a COMMAND */
    int (*act)(struct latch *);
} verbs[] = {
    {"set", "KEY N", 2, 2, {OPTION_TTL}, false, latch_set},
    {"count-down", "KEY [N]", 1, 2, {OPTION_ID}, false, latch_count_down},
    {"run", "KEY -- COMMAND", 1, 1, {OPTION_ID, OPTION_KEEP_CREDENTIALS}, true, latch_run_command},
    {"wait", "KEY", 1, 1, {SETTING_WAIT, OPTION_NO_WAIT}, false, latch_wait},
    {"status", "KEY", 1, 1, {OPTION_JSON}, false, latch_show},
    {"delete", "KEY", 1, 1, {0}, false, latch_delete},
};

/* What is to be done; NULL with a status where the user did not say. */
static const struct verb *find_verb(const struct latch *latch, int *status)
{
    const struct arguments *given = &latch->arguments;
    const char *name = given->word_count ? given->words[0] : NULL;

    for (size_t i = 0; name && i < sizeof verbs / sizeof *verbs; i++)
        if (strcmp(verbs[i].name, name) == 0)
            return &verbs[i];
    *status =
        command_misused(latch->command, "%s%.40s%sset, count-down, run, wait, status or delete?",
                        name ? "unknown '" : "", name ? name : "", name ? "': " : "");
    return NULL;
}

static const struct option_spec *spec_of(int id)
{
    const struct option_spec *spec = options;

    while (spec->id != id)
        spec++;
    return spec;
}

/* Options of another verb, which would be ignored. */
static int check_options(const struct latch *latch, const struct verb *verb)
{
    for (size_t i = 0; i < latch->arguments.option_count; i++) {
        int id = latch->arguments.options[i].id;
        bool own = id >= OPTION_OTHER || id == SETTING_WAIT || id == OPTION_NO_WAIT;
        for (size_t j = 0; j < sizeof verb->options / sizeof *verb->options; j++)
            own = own && verb->options[j] != id;
        if (own)
            return command_misused(latch->command, "%s takes no --%s", verb->name,
                                   spec_of(id)->name);
    }
    return STATUS_OK;
}

static bool read_number(const char *text, int64_t *number)
{
    char *end;

    errno = 0;
    *number = strtoll(text, &end, 10);
    return *text >= '0' && *text <= '9' && !*end && errno == 0 && *number >= 1 &&
           *number <= LATCH_NUMBER_MAX;
}

static int check_values(struct latch *latch)
{
    const struct given_option *ttl = command_option(&latch->arguments, OPTION_TTL);
    const struct given_option *id = command_option(&latch->arguments, OPTION_ID);
    const char *number = latch->arguments.word_count > 2 ? latch->arguments.words[2] : "1";
    const char *fault = key_fault(latch->key);

    latch->id = id ? id->value : NULL;
    latch->ttl = TTL_DEFAULT_NS;
    latch->json = command_option(&latch->arguments, OPTION_JSON) != NULL;
    latch->keep_credentials = command_option(&latch->arguments, OPTION_KEEP_CREDENTIALS) != NULL;
    if (fault)
        return command_misused(latch->command, "KEY '%.80s' %s", latch->key, fault);
    if (!read_number(number, &latch->number))
        return command_misused(latch->command, "N '%.30s' is not a number from 1 to %d", number,
                               LATCH_NUMBER_MAX);
    if (id && (fault = key_fault(id->value)))
        return command_misused(latch->command, "--id '%.80s' %s", id->value, fault);
    if (ttl && !duration_parse(ttl->value, &latch->ttl))
        return command_misused(latch->command, "--ttl '%.60s' is not a duration", ttl->value);
    if (latch->ttl < TTL_LEAST_NS)
        return command_misused(latch->command, "--ttl has to be at least 1s");
    return STATUS_OK;
}

static int check(struct latch *latch, const struct verb *verb)
{
    const struct arguments *given = &latch->arguments;

    if (given->word_count - 1 < verb->least || given->word_count - 1 > verb->most)
        return command_misused(latch->command, "%s takes %s", verb->name, verb->wants);
    if (!verb->runs && given->command)
        return command_misused(latch->command, "%s takes no COMMAND", verb->name);
    if (verb->runs && (!given->command || !*given->command || !**given->command))
        return command_misused(latch->command, "no COMMAND: put -- before it");
    latch->key = given->words[1];
    int status = check_options(latch, verb);
    return status == STATUS_OK ? check_values(latch) : status;
}

static int act(struct latch *latch, const struct verb *verb)
{
    char fault[256];

    if (!asker_uuid(latch->word)) {
        command_error(latch->command, "cannot get random bits: %s", strerror(errno));
        return STATUS_SYSTEM;
    }
    if (latch_session_open(&latch->session, latch->key, &latch->settings.address, fault,
                           sizeof fault))
        return verb->act(latch);
    command_error(latch->command, "%s", fault);
    return latch->settings.address_status;
}

static int run(const struct command *command, int argc, char **argv)
{
    struct latch latch = {.command = command};
    const struct verb *verb;
    int status;

    if (command_parse(command, argc, argv, &latch.arguments, &status) &&
        (verb = find_verb(&latch, &status)) && (status = check(&latch, verb)) == STATUS_OK &&
        command_settings(command, &latch.arguments, &latch.settings, &status))
        status = act(&latch, verb);
    int signo = latch.session.signal;
    latch_session_close(&latch.session);
    settings_free(&latch.settings);
    args_free(&latch.arguments);
    return signo ? supervisor_die_of(signo) : status;
}

const struct command command_latch = {
    .name = "latch",
    .summary = "count down, over many hosts, to what others wait for",
    .usage = {"latch set [--ttl DUR] KEY N",
              "latch count-down [--id ID] KEY [N] | run [--id ID] KEY -- COMMAND [ARG...]",
              "latch wait [-w DUR] KEY | status [--json] KEY | delete KEY"},
    .example =
        "Status: 0; 1 if there is no such latch (set: if there is one); wait: 75 if it is not\n"
        "open when the time is up; status: 0 if it is open, 75 if not. run ends with the\n"
        "status of COMMAND and counts only when that is 0.\n"
        "\n"
        "Example, three builds, and a job that starts when all of them have succeeded:\n"
        "  rlock latch set \"build-$VERSION\" 3\n"
        "  rlock latch run --id \"$ARCH\" \"build-$VERSION\" -- make package\n"
        "  rlock latch wait -w 2h \"build-$VERSION\" && ./publish.sh\n",
    .options = options,
    .run = run,
};
