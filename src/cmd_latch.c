/* rlock latch: count down, over many hosts, to what others wait for. */
#include "command.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "asker.h"
#include "duration.h"
#include "environment.h"
#include "key.h"
#include "latch_run.h"
#include "latch_session.h"
#include "render_latch.h"

#define TTL_DEFAULT_NS (INT64_C(86400) * NS_PER_SEC)
#define TTL_LEAST_NS   (1 * NS_PER_SEC)
/* How long a success is tried to be counted with a store that is out of reach. */
#define COUNT_PATIENCE_NS (30 * NS_PER_SEC)

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

struct latch {
    const struct command *command;
    struct arguments arguments;
    struct settings settings;
    struct latch_session session;
    struct json_library json;
    const char *key;
    int64_t number, ttl;
    const char *id;             /* of the user's, or NULL */
    char word[OWNER_UUID_SIZE]; /* a fresh one */
};

/* -- what is said about how it ended --------------------------------------------------------- */

static int refused(const struct latch *latch, const struct answer *answer, bool plain)
{
    if (answer->cause == CAUSE_ABSENT && !plain) {
        command_error(latch->command, "%s: no such latch", latch->key);
        say_hint("rlock latch set %s N", latch->key);
    } else if (status_of_cause(answer->cause) == STATUS_NO && plain) {
        say_warning("%s: %s: %s", latch->command->name, latch->key, answer->text);
    } else {
        command_error(latch->command, "%s: %s", latch->key, answer->text);
    }
    return status_of_cause(answer->cause);
}

static int closed(const struct latch *latch, const struct answer *answer)
{
    const struct latch_state *state = &answer->latch;

    if (answer->verdict == VERDICT_GRANTED)
        say_warning("%s: %s: not open: %" PRId64 " of %" PRId64 " left", latch->command->name,
                    latch->key, state->left, state->number);
    else
        say_warning("%s: %s: not open: no such latch was set", latch->command->name, latch->key);
    return STATUS_NOT_ACQUIRED;
}

/* plain: a latch that is not there, or is, is a plain no, which the status tells to who asked for
 * quiet. */
static int judge(const struct latch *latch, bool plain)
{
    const struct errand_end *end = &latch->session.end;

    switch (end->ending) {
    case ERRAND_DONE: return STATUS_OK;
    case ERRAND_REFUSED: return refused(latch, &end->answer, plain);
    case ERRAND_CLOSED: return closed(latch, &end->answer);
    case ERRAND_VANISHED:
        command_error(latch->command, "%s: vanished: deleted, expired or lost while waited for",
                      latch->key);
        return STATUS_NO;
    case ERRAND_FAILED: break;
    }
    return command_refused(latch->command, &end->answer);
}

/* -- the verbs ------------------------------------------------------------------------------- */

static struct errand_plan plan_of(const struct latch *latch, enum latch_verb verb)
{
    return (struct errand_plan){
        .request = {.key = latch->key, .verb = verb, .word = NULL, .number = latch->number},
        .connect_timeout = latch->settings.address.connect_timeout};
}

static struct errand_plan plan_count(const struct latch *latch)
{
    struct errand_plan plan = plan_of(latch, LATCH_COUNT);

    plan.request.id = latch->id ? latch->id : latch->word;
    plan.request.unnamed = !latch->id;
    return plan;
}

static int set(struct latch *latch)
{
    struct errand_plan plan = plan_of(latch, LATCH_SET);

    plan.request.word = latch->word;
    plan.request.ttl = latch->ttl;
    latch_session_do(&latch->session, &plan);
    int status = judge(latch, true);
    if (status == STATUS_OK)
        say_detail("%s: set to %" PRId64, latch->key, latch->number);
    return status;
}

static int count_down(struct latch *latch)
{
    struct errand_plan plan = plan_count(latch);
    const struct latch_state *state = &latch->session.end.answer.latch;

    latch_session_do(&latch->session, &plan);
    int status = judge(latch, false);
    if (status != STATUS_OK) {
        if (latch->session.end.answer.maybe_done)
            say_warning("%s: it may have been counted all the same", latch->key);
        return status;
    }
    if (!state->counted)
        say_detail("%s: nothing was counted: %s", latch->key,
                   state->left ? "that id was counted before" : "it is open already");
    if (say_verbosity() != SAY_QUIET)
        printf("%" PRId64 "\n", state->left);
    return command_flush();
}

static int delete (struct latch *latch)
{
    struct errand_plan plan = plan_of(latch, LATCH_DELETE);

    latch_session_do(&latch->session, &plan);
    return judge(latch, true);
}

static int show(struct latch *latch)
{
    struct latch_ids ids = {0};
    struct errand_plan plan = plan_of(latch, LATCH_LIST);
    const struct latch_state *state = &latch->session.end.answer.latch;
    bool json = command_option(&latch->arguments, OPTION_JSON) != NULL;
    char fault[256];

    if (json && !json_load(&latch->json, fault, sizeof fault)) {
        command_error(latch->command, "%s", fault);
        return STATUS_SYSTEM;
    }
    plan.request.each = latch_ids_add;
    plan.request.each_arg = &ids;
    latch_session_do(&latch->session, &plan);
    int status = judge(latch, true);
    if (status == STATUS_OK && say_verbosity() != SAY_QUIET) {
        if (json)
            render_latch_json(stdout, &latch->json, latch->key, state, &ids);
        else
            render_latch(stdout, latch->key, state, &ids);
        status = command_flush();
    }
    latch_ids_free(&ids);
    return status == STATUS_OK && state->left ? STATUS_NOT_ACQUIRED : status;
}

static int catch_signals(struct latch *latch)
{
    if (latch_session_catch(&latch->session))
        return STATUS_OK;
    command_error(latch->command, "the system refuses: %s", strerror(errno));
    return STATUS_SYSTEM;
}

static int wait_for(struct latch *latch)
{
    struct errand_plan plan = plan_of(latch, LATCH_LOOK);
    int64_t wait = latch->settings.wait;
    int status = catch_signals(latch);

    plan.until_open = true;
    plan.wait = wait != 0;
    plan.wait_until = wait == WAIT_FOREVER ? MOMENT_NEVER : moment_plus(moment_now(), wait);
    if (status != STATUS_OK || !latch_session_do(&latch->session, &plan))
        return status;
    return judge(latch, false);
}

/* Only on the latch that was there before. */
static int count_success(struct latch *latch, const char *word)
{
    struct errand_plan plan = plan_count(latch);
    struct answer *answer = &latch->session.end.answer;

    plan.request.word = word;
    plan.patience = COUNT_PATIENCE_NS;
    if (!latch_session_do(&latch->session, &plan)) {
        command_error(latch->command, "%s: told to end before it was counted", latch->key);
        return STATUS_OK;
    }
    if (answer->cause == CAUSE_ABSENT) {
        answer->cause = CAUSE_CHANGED;
        snprintf(answer->text, sizeof answer->text, "the latch vanished while the command ran");
    }
    int status = judge(latch, false);
    if (status == STATUS_OK)
        say_detail("%s: %" PRId64 " of %" PRId64 " left", latch->key, answer->latch.left,
                   answer->latch.number);
    else
        say_warning("%s: the command succeeded, but %s", latch->key,
                    answer->maybe_done ? "may not have been counted" : "was not counted");
    return status;
}

static int perform(struct latch *latch, const char *word)
{
    struct environment environment;
    struct latch_run run = {.command = latch->arguments.command};

    environment_make(&environment, environ, NULL,
                     command_option(&latch->arguments, OPTION_KEEP_CREDENTIALS) != NULL);
    run.environment = &environment;
    latch_run(&run, &latch->session);
    environment_free(&environment);
    latch->session.signal = run.signal;
    if (run.typed)
        kill(0, run.typed);
    if (run.signal == 0 && run.status == 0)
        return count_success(latch, word);
    return run.status;
}

/* Whether there is such a latch is found out before the command is run. */
static int run_command(struct latch *latch)
{
    struct errand_plan plan = plan_of(latch, LATCH_LOOK);
    char word[LATCH_WORD_SIZE];
    int status = catch_signals(latch);

    if (status != STATUS_OK || !latch_session_do(&latch->session, &plan))
        return status;
    if ((status = judge(latch, false)) != STATUS_OK)
        return status;
    memcpy(word, latch->session.end.answer.latch.word, sizeof word);
    return perform(latch, word);
}

/* -- the command line ------------------------------------------------------------------------ */

static const struct verb {
    const char *name;
    const char *wants; /* words after the verb */
    size_t least, most;
    int options[3]; /* of this command's own, those that it takes */
    bool runs;      /* a COMMAND */
    int (*act)(struct latch *);
} verbs[] = {
    {"set", "KEY N", 2, 2, {OPTION_TTL}, false, set},
    {"count-down", "KEY [N]", 1, 2, {OPTION_ID}, false, count_down},
    {"run", "KEY -- COMMAND", 1, 1, {OPTION_ID, OPTION_KEEP_CREDENTIALS}, true, run_command},
    {"wait", "KEY", 1, 1, {SETTING_WAIT, OPTION_NO_WAIT}, false, wait_for},
    {"status", "KEY", 1, 1, {OPTION_JSON}, false, show},
    {"delete", "KEY", 1, 1, {0}, false, delete},
};

static const struct verb *find_verb(const char *name)
{
    for (size_t i = 0; i < sizeof verbs / sizeof *verbs; i++)
        if (strcmp(verbs[i].name, name) == 0)
            return &verbs[i];
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

static int check(struct latch *latch, const struct verb **found)
{
    const struct arguments *given = &latch->arguments;
    const char *name = given->word_count ? given->words[0] : NULL;
    const struct verb *verb = *found = name ? find_verb(name) : NULL;

    if (!verb)
        return command_misused(latch->command,
                               "%s%.40s%sset, count-down, run, wait, status or delete?",
                               name ? "unknown '" : "", name ? name : "", name ? "': " : "");
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
        (status = check(&latch, &verb)) == STATUS_OK &&
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
