/* rlock status: who holds what, who waits. */
#include "command.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "duration.h"
#include "key.h"
#include "query.h"
#include "render.h"
#include "render_json.h"

#define WATCH_EVERY (2 * NS_PER_SEC)
#define WATCH_LEAST (100 * NS_PER_MS)

enum { OPTION_LONG = OPTION_OTHER, OPTION_JSON, OPTION_WATCH };

static bool is_duration(const char *word)
{
    int64_t ns;
    return duration_parse(word, &ns);
}

static const struct option_spec options[] = {
    {.id = OPTION_LONG,
     .name = "long",
     .help = "every holder and the queue in order (default with exactly one KEY)"},
    {.id = OPTION_JSON, .name = "json", .help = "an array of objects, see rlock-status(1)"},
    {.id = OPTION_WATCH,
     .name = "watch",
     .argument = "DUR",
     .optional = is_duration,
     .help = "draw again every DUR (default 2s) until interrupted"},
    SETTINGS_OPTIONS,
    {0}};

struct view {
    const struct command *command;
    struct arguments arguments;
    struct settings settings;
    struct query query;
    struct json_library json;
    bool as_json, in_full, quiet;
    int64_t every; /* ns; 0: once */
    struct render_style style;
};

static int check_patterns(const struct view *view)
{
    for (size_t i = 0; i < view->arguments.word_count; i++) {
        const char *fault = key_fault(view->arguments.words[i]);
        if (fault)
            return command_misused(view->command, "KEY '%.80s' %s", view->arguments.words[i],
                                   fault);
    }
    return STATUS_OK;
}

static int take_watch(struct view *view)
{
    const struct given_option *watch = command_option(&view->arguments, OPTION_WATCH);

    if (!watch)
        return STATUS_OK;
    view->every = WATCH_EVERY;
    if (watch->value && !duration_parse(watch->value, &view->every))
        return command_misused(view->command, "--watch '%.60s' is not a duration", watch->value);
    if (view->every < WATCH_LEAST)
        return command_misused(view->command, "--watch has to be at least 100ms");
    if (view->quiet)
        return command_misused(view->command, "either --quiet or --watch, not both");
    return STATUS_OK;
}

static void choose_style(struct view *view)
{
    const char *term = getenv("TERM");
    bool terminal = isatty(STDOUT_FILENO);
    struct winsize size;

    view->style.color =
        view->settings.color == COLOR_ALWAYS ||
        (view->settings.color == COLOR_AUTO && terminal && term && strcmp(term, "dumb") != 0);
    if (terminal && ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0)
        view->style.width = size.ws_col;
}

static int prepare(struct view *view)
{
    const struct arguments *given = &view->arguments;
    char fault[256];
    int status = check_patterns(view);

    if (status != STATUS_OK || !command_settings(view->command, given, &view->settings, &status))
        return status;
    view->quiet = say_verbosity() == SAY_QUIET;
    view->as_json = command_option(given, OPTION_JSON) != NULL;
    view->in_full = command_option(given, OPTION_LONG) ||
                    (given->word_count == 1 && !key_is_glob(given->words[0]));
    if ((status = take_watch(view)) != STATUS_OK)
        return status;
    if (view->as_json && !view->quiet && !json_load(&view->json, fault, sizeof fault)) {
        command_error(view->command, "%s", fault);
        return STATUS_SYSTEM;
    }
    choose_style(view);
    if (query_open(&view->query, &view->settings.address, fault, sizeof fault))
        return STATUS_OK;
    command_error(view->command, "%s", fault);
    return view->settings.address_status;
}

static int print(const struct view *view, const struct lock_list *list)
{
    if (view->every && !view->as_json && isatty(STDOUT_FILENO))
        fputs("\033[H\033[2J", stdout);
    if (view->as_json) {
        char *text = render_json(&view->json, list->locks, list->count);
        fputs(text, stdout);
        free(text);
    } else if (list->count == 0) {
        say_warning("no locks");
    } else if (view->in_full) {
        render_long(stdout, list->locks, list->count, &view->style);
    } else {
        render_table(stdout, list->locks, list->count, &view->style);
    }
    return command_flush();
}

static int judge(const struct lock_list *list)
{
    for (size_t i = 0; i < list->count; i++)
        if (list->locks[i].holder_count)
            return STATUS_NOT_ACQUIRED;
    return STATUS_OK;
}

static int look(struct view *view)
{
    const struct arguments *given = &view->arguments;
    struct lock_list list;
    struct answer answer;
    int status;

    query_survey(&view->query, (const char *const *)given->words, given->word_count, &list,
                 &answer);
    if (answer.verdict != VERDICT_GRANTED)
        status = command_refused(view->command, &answer);
    else if (view->quiet)
        status = judge(&list);
    else
        status = print(view, &list);
    lock_list_free(&list);
    return status;
}

/* A server that is away for a while does not end a watch that has begun. */
static int watch(struct view *view)
{
    int status = look(view);

    while (status == STATUS_OK) {
        query_pause(&view->query, view->every);
        status = look(view);
        if (status == STATUS_UNAVAILABLE)
            status = STATUS_OK;
    }
    return status;
}

static int run(const struct command *command, int argc, char **argv)
{
    struct view view = {.command = command};
    int status;

    if (command_parse(command, argc, argv, &view.arguments, &status)) {
        if (view.arguments.command)
            status = command_misused(command, "takes no COMMAND");
        else
            status = prepare(&view);
        if (status == STATUS_OK)
            status = view.every ? watch(&view) : look(&view);
    }
    query_close(&view.query);
    settings_free(&view.settings);
    args_free(&view.arguments);
    return status;
}

const struct command command_status = {
    .name = "status",
    .summary = "show who holds what, who waits, for how long",
    .usage = {"status [OPTIONS] [KEY|GLOB...]"},
    .example = "Example:\n  rlock status --watch 'deploy-*'\n",
    .options = options,
    .run = run,
};
