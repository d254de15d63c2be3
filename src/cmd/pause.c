/* rlock pause and rlock resume: no new owner gets a lock for a while. */
#include "cmd/commands.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "cli/describe.h"
#include "lock/key.h"
#include "lock/own_identity.h"

enum { OPTION_MESSAGE = OPTION_OTHER };

#define PAUSE_MAX_NS (7 * 24 * 3600 * NS_PER_SEC)

struct pause {
    const struct command *command;
    struct arguments arguments;
    struct settings settings;
    struct query query;
    struct adjust_request request;
};

static void take_key(struct pause *all, enum adjustment what)
{
    all->request.what = what;
    all->request.key = all->arguments.words[0];
    all->request.glob = key_is_glob(all->request.key);
}

/* The KEY may be paused by a GLOB. */
static void tell_absent(struct pause *all)
{
    const char *name = all->command->name, *key = all->request.key;
    struct lock_list list = {0};
    struct answer answer;

    if (!all->request.glob)
        query_read_lock(&all->query, key, &list, &answer);
    if (list.locks.count && list.locks.views->pause_glob[0])
        say_warning("%s: %s is paused as all of %s: resume that", name, key,
                    list.locks.views->pause_glob);
    else
        say_warning("%s: %s is not paused", name, key);
    lock_list_free(&list);
}

static bool is_unused(const struct lock_view *lock)
{
    return lock->fence == 0 && lock->waiter_count == 0 && !lock->limited && !lock->pause.owner[0];
}

/* Says whose pause is replaced, and whether the KEY was ever used. */
static void tell_present(struct pause *all)
{
    const char *name = all->command->name, *key = all->request.key;
    struct lock_list list = {0};
    struct answer answer;
    char text[DESCRIBE_DECISION_SIZE];

    if (all->request.glob)
        query_survey(&all->query, &key, 1, &list, &answer);
    else
        query_read_lock(&all->query, key, &list, &answer);
    const struct lock_views *views = all->request.glob ? &list.pauses : &list.locks;
    for (size_t i = 0; i < views->count; i++) {
        const struct lock_view *one = &views->views[i];
        if (strcmp(one->key, key) == 0 && lock_has_own_pause(one))
            say_warning("%s: replaces: %s: %s", name, key,
                        describe_decision(&one->pause, "paused", 0, text, sizeof text));
    }
    bool unused = views->count == 0 || is_unused(views->views);
    if (answer.verdict == VERDICT_GRANTED && !all->request.glob && unused)
        say_warning("%s: %s was never used, or not for a week: is it spelt right?", name, key);
    lock_list_free(&list);
}

static void confirm(const struct pause *all)
{
    char until[COMMAND_UNTIL_SIZE];

    if (all->request.what == ADJUST_RESUME)
        command_confirm(all->command, "%s is not paused any more", all->request.key);
    else
        command_confirm(all->command, "%s is paused %s", all->request.key,
                        command_print_until(all->request.duration, until));
}

static int change(struct pause *all)
{
    const struct store_address *address = &all->settings.address;
    struct answer answer;

    if (!store_can(address, STORE_PAUSES))
        return command_lacks(all->command, address, STORE_PAUSES);
    if (all->request.glob && !store_can(address, STORE_GLOB_PAUSES))
        return command_lacks(all->command, address, STORE_GLOB_PAUSES);
    int status = command_open(all->command, &all->settings, &all->query);
    if (status != STATUS_OK)
        return status;
    if (all->request.what == ADJUST_PAUSE)
        tell_present(all);
    query_ask(&all->query, (struct operation){.verb = VERB_ADJUST, .adjust = &all->request},
              &answer);
    if (answer.verdict == VERDICT_GRANTED) {
        confirm(all);
        return STATUS_OK;
    }
    if (answer.cause != CAUSE_ABSENT)
        return command_refused_about(all->command, all->request.key, &answer);
    tell_absent(all);
    return STATUS_NO;
}

static void end(struct pause *all)
{
    query_close(&all->query);
    settings_free(&all->settings);
    args_free(&all->arguments);
}

/* -- pause ------------------------------------------------------------------------------------- */

static const struct option_spec pause_options[] = {{.id = OPTION_MESSAGE,
                                                    .name = "message",
                                                    .letter = 'm',
                                                    .argument = "TEXT",
                                                    .help = "why; shown to others (required)"},
                                                   SETTINGS_OPTIONS,
                                                   {0}};

static int take_pause(struct pause *all)
{
    const struct arguments *given = &all->arguments;
    const struct given_option *message = command_option(given, OPTION_MESSAGE);
    int status;

    take_key(all, ADJUST_PAUSE);
    status = command_check_duration(all->command, given->words[1], &all->request.duration);
    if (status != STATUS_OK)
        return status;
    if (all->request.duration > PAUSE_MAX_NS)
        return command_misused(all->command, "DUR can be 7d at most");
    if (!message || !*message->value)
        return command_misused(all->command, "-m TEXT is required: say why");
    return STATUS_OK;
}

static char *sign(const struct pause *all)
{
    struct identity who;

    own_identity_person(&who, all->settings.no_identity,
                        command_option(&all->arguments, OPTION_MESSAGE)->value);
    return mem_checked(identity_print(&who));
}

static int run_pause(const struct command *command, int argc, char **argv)
{
    struct pause all = {.command = command};
    int status;

    if (command_parse(command, argc, argv, &all.arguments, &status) &&
        (status = take_pause(&all)) == STATUS_OK &&
        command_settings(command, &all.arguments, &all.settings, &status)) {
        char *who = sign(&all);
        all.request.who = who;
        status = change(&all);
        free(who);
    }
    end(&all);
    return status;
}

const struct command command_pause = {
    .name = "pause",
    .summary = "let no new owner take a lock for a while, with a reason",
    .usage = {"pause [OPTIONS] KEY|GLOB DUR -m TEXT"},
    .example = "Example, no deployment begins during the maintenance; one that runs continues:\n"
               "  rlock pause deploy 2h -m 'database upgrade'\n"
               "  rlock resume deploy\n"
               "\n"
               "Example, the same for all of them, including those to come:\n"
               "  rlock pause 'deploy-*' 2h -m 'database upgrade'\n"
               "  rlock resume 'deploy-*'\n",
    .options = pause_options,
    .words = WORDS_KEY_TIME,
    .run = run_pause,
};

/* -- resume ------------------------------------------------------------------------------------ */

static const struct option_spec resume_options[] = {SETTINGS_OPTIONS, {0}};

static int run_resume(const struct command *command, int argc, char **argv)
{
    struct pause all = {.command = command};
    int status;

    if (command_parse(command, argc, argv, &all.arguments, &status) &&
        command_settings(command, &all.arguments, &all.settings, &status)) {
        take_key(&all, ADJUST_RESUME);
        status = change(&all);
    }
    end(&all);
    return status;
}

const struct command command_resume = {
    .name = "resume",
    .summary = "end a pause",
    .usage = {"resume [OPTIONS] KEY|GLOB"},
    .example = "Example:\n"
               "  rlock resume deploy\n"
               "\n"
               "Example, with the words of the pause:\n"
               "  rlock resume 'deploy-*'\n",
    .options = resume_options,
    .words = WORDS_KEY,
    .run = run_resume,
};
