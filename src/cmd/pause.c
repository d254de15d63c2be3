/* rlock pause and rlock resume: no new owner gets a lock for a while. */
#include "cmd/commands.h"

#include <string.h>

#include "cli/describe.h"
#include "lock/key.h"
#include "lock/own_identity.h"

enum { OPTION_MESSAGE = OPTION_OTHER };

#define PAUSE_MAX_NS (7 * 24 * 3600 * NS_PER_SEC)

struct pause {
    struct call call;
    struct adjust_request request;
};

/* Notes what the command changes: the pause of one lock, or that of a GLOB, which needs a store
 * that has them. */
static void choose_change(struct pause *pausing, enum adjustment what)
{
    pausing->request.what = what;
    pausing->request.glob = key_is_glob(pausing->call.arguments.words[0]);
    pausing->call.needs = pausing->request.glob ? STORE_GLOB_PAUSES : 0;
}

/* Warns before a pause of one that it replaces, and of a KEY that was never used. */
static void tell_present(struct pause *pausing)
{
    const char *name = pausing->call.command->name, *key = pausing->request.key;
    const struct survey_request of_glob = {.patterns = &key, .pattern_count = 1};
    struct lock_list *list = &pausing->call.list;
    struct answer answer;

    if (pausing->request.glob)
        query_survey(&pausing->call.query, &of_glob, list, &answer);
    else
        query_read_lock(&pausing->call.query, key, &pausing->call.list, &answer);
    const struct lock_views *views = pausing->request.glob ? &list->pauses : &list->locks;
    for (size_t i = 0; i < views->count; i++) {
        const struct lock_view *one = &views->views[i];
        if (strcmp(one->key, key) == 0 && lock_has_own_pause(one))
            say_warning("%s: replaces: %s: %s", name, key, DECISION_TEXT(&one->pause, "paused"));
    }
    const struct lock_view *lock = views->views;
    bool unused = views->count == 0 || (lock->fence == 0 && lock->waiter_count == 0 &&
                                        !lock->limited && !lock->pause.owner[0]);
    if (answer.verdict == VERDICT_GRANTED && !pausing->request.glob && unused)
        say_warning("%s: %s was never used, or not for a week: is it spelt right?", name, key);
}

/* Pauses or resumes the KEY, or the locks of a GLOB. A KEY that has no pause of its own may still
 * be kept by that of a GLOB: the user is told of which. */
static int change_pause(struct call *call)
{
    struct pause *pausing = (struct pause *)call;
    const char *word = call->arguments.words[0];
    char *key FREED = pausing->request.glob ? mem_strdup(word) : key_from_pattern(word);
    struct answer answer;

    pausing->request.key = key;
    if (pausing->request.what == ADJUST_PAUSE)
        tell_present(pausing);
    query_adjust(&call->query, &pausing->request, &answer);
    if (answer.verdict == VERDICT_GRANTED) {
        if (pausing->request.what == ADJUST_RESUME)
            command_confirm(&pausing->call, "%s is not paused any more", pausing->request.key);
        else
            command_confirm(&pausing->call, "%s is paused %s", pausing->request.key,
                            UNTIL_TEXT(pausing->request.duration));
        return STATUS_OK;
    }
    if (answer.cause == CAUSE_ABSENT) {
        const char *name = pausing->call.command->name;
        const struct lock_view *lock = NULL;
        if (!pausing->request.glob)
            lock = query_read_lock(&pausing->call.query, key, &pausing->call.list, &answer);
        if (lock && lock->pause_glob[0])
            say_warning("%s: %s is paused as all of %s: resume that", name, key, lock->pause_glob);
        else
            say_warning("%s: %s is not paused", name, key);
        return STATUS_NO;
    }
    int status = command_refused_about(call, pausing->request.key, &answer);
    if (answer.maybe_done)
        say_warning("%s may have been %s anyway", pausing->request.key,
                    pausing->request.what == ADJUST_PAUSE ? "paused" : "resumed");
    return status;
}

/* -- pause ------------------------------------------------------------------------------------- */

static const struct option_spec pause_options[] = {
    OPTION(OPTION_MESSAGE, "message", "TEXT", "why; shown to others (required)", .letter = 'm'),
    SETTINGS_OPTIONS,
    {0}};

static int check_pause(struct call *call)
{
    struct pause *pausing = (struct pause *)call;
    const char *message = command_value(call, OPTION_MESSAGE);
    int status = command_check_duration(call, call->arguments.words[1], &pausing->request.duration);

    if (status != STATUS_OK)
        return status;
    if (pausing->request.duration > PAUSE_MAX_NS)
        return command_misused(call, "DUR can be 7d at most");
    if (!message || !*message)
        return command_misused(call, "-m TEXT is required: say why");
    choose_change(pausing, ADJUST_PAUSE);
    return STATUS_OK;
}

static int pause_key(struct call *call)
{
    struct pause *pausing = (struct pause *)call;
    char *who FREED =
        own_identity_person(call->settings.no_identity, command_value(call, OPTION_MESSAGE));

    pausing->request.who = who;
    return change_pause(call);
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
    .size = sizeof(struct pause),
    .needs = STORE_PAUSES,
    .asks = true,
    .check = check_pause,
    .act = pause_key,
};

/* -- resume ------------------------------------------------------------------------------------ */

static int check_resume(struct call *call)
{
    choose_change((struct pause *)call, ADJUST_RESUME);
    return STATUS_OK;
}

const struct command command_resume = {
    .name = "resume",
    .summary = "end a pause",
    .usage = {"resume [OPTIONS] KEY|GLOB"},
    .example = "Example:\n"
               "  rlock resume deploy\n"
               "\n"
               "Example, with the same GLOB as the pause:\n"
               "  rlock resume 'deploy-*'\n",
    .options = common_options,
    .words = WORDS_KEY,
    .size = sizeof(struct pause),
    .needs = STORE_PAUSES,
    .asks = true,
    .check = check_resume,
    .act = change_pause,
};
