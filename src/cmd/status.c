/* rlock status: holders and waiters. */
#include "cmd/commands.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/duration.h"
#include "base/mem.h"
#include "cli/lock_watch.h"
#include "cli/render.h"
#include "cli/screen.h"
#include "lock/key.h"
#include "os/child.h"
#include "run/supervisor.h"
#include "store/urls.h"

#define WATCH_EVERY (2 * NS_PER_SEC)
#define WATCH_LEAST (100 * NS_PER_MS)
/* How long an answer may take before the heading says that there is none. */
#define WATCH_PATIENCE (1 * NS_PER_SEC)

enum { OPTION_ALL = OPTION_OTHER, OPTION_LONG, OPTION_JSON, OPTION_WATCH };

static bool is_duration(const char *word)
{
    int64_t ns;
    return duration_parse(word, &ns);
}

static const struct option_spec options[] = {
    {.id = OPTION_ALL, .name = "all", .help = "free locks as well, as long as they are known"},
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
    bool color;
    int64_t every; /* ns; 0: once */
    struct lock_watch locks;
};

static int take_watch(struct view *view)
{
    const struct given_option *watch = command_option(&view->arguments, OPTION_WATCH);
    char shown[URLS_SHOWN_SIZE];

    if (!watch)
        return STATUS_OK;
    view->every = WATCH_EVERY;
    if (watch->value && !duration_parse(watch->value, &view->every))
        return command_misused(view->command, "--watch '%s' is not a duration",
                               urls_show(watch->value, shown));
    if (view->every < WATCH_LEAST)
        return command_misused(view->command, "--watch must be at least 100ms");
    if (view->quiet)
        return command_misused(view->command, "either --quiet or --watch, not both");
    return STATUS_OK;
}

static int prepare(struct view *view)
{
    const struct arguments *given = &view->arguments;
    int status;

    if (!command_settings(view->command, given, &view->settings, &status))
        return status;
    view->locks.idle = command_option(given, OPTION_ALL);
    view->locks.runs = 1;
    if (view->locks.idle && !store_can(&view->settings.address, STORE_MEMORY))
        return command_lacks(view->command, &view->settings.address, STORE_MEMORY);
    view->quiet = say_verbosity() == SAY_QUIET;
    view->as_json = command_option(given, OPTION_JSON) != NULL;
    view->in_full = command_option(given, OPTION_LONG) ||
                    (given->word_count == 1 && !key_is_glob(given->words[0]));
    if ((status = take_watch(view)) != STATUS_OK)
        return status;
    if (view->as_json && !view->quiet)
        status = command_load_json(view->command, &view->json);
    view->color = command_has_color(&view->settings);
    view->locks.query = &view->query;
    view->locks.patterns = (const char *const *)given->words;
    view->locks.pattern_count = given->word_count;
    return status == STATUS_OK ? command_open(view->command, &view->settings, &view->query)
                               : status;
}

/* --watch. */
struct watch {
    struct view *view;
    bool on_screen;
    struct screen screen;
    int signal;  /* that ended it, or 0 */
    bool broken; /* standard output takes no more */
};

/* -- printing locks ---------------------------------------------------------------------------- */

/* Prints the locks in lines of so many columns (0: any). */
static void print_locks(const struct view *view, FILE *out, int columns)
{
    const struct lock_list *list = &view->locks.list;
    char text[RENDER_PAUSE_SIZE];
    struct render_style style = {
        .color = view->color, .width = columns, .cut = view->every > 0 && columns > 0};

    if (view->as_json) {
        render_json(out, &view->json, list->locks.views, list->locks.count, list->pauses.views,
                    list->pauses.count);
    } else if (list->locks.count > 0 && view->in_full) {
        render_long(out, list->locks.views, list->locks.count, &style);
    } else if (list->locks.count > 0) {
        render_table(out, list->locks.views, list->locks.count, &style);
    }
    if (!view->as_json && view->every > 0 && list->pauses.count > 0) {
        fputs(list->locks.count > 0 ? "\n" : "", out);
        for (size_t i = 0; i < list->pauses.count; i++)
            fprintf(out, "%s\n", render_glob_pause(&list->pauses.views[i], text));
    }
}

/* -- once -------------------------------------------------------------------------------------- */

static int status_of(const struct lock_list *list)
{
    for (size_t i = 0; i < list->locks.count; i++)
        if (list->locks.views[i].holder_count)
            return STATUS_NOT_ACQUIRED;
    return STATUS_OK;
}

static int columns_of_terminal(void)
{
    return screen_is_there() ? screen_window().columns : 0;
}

/* The pauses of GLOBs hold for locks that do not exist yet, so they are not among the rows. */
static void tell_pauses(const struct view *view)
{
    const struct lock_views *pauses = &view->locks.list.pauses;
    char text[RENDER_PAUSE_SIZE];

    for (size_t i = 0; i < pauses->count && !view->as_json; i++)
        fprintf(stderr, "rlock: %s\n", render_glob_pause(&pauses->views[i], text));
}

static int print_once(struct view *view)
{
    struct answer answer;
    int status = STATUS_OK;

    lock_watch_ask(&view->locks, &answer);
    bool misfits = view->locks.list.misfits.count > 0;
    if (answer.verdict != VERDICT_GRANTED && !misfits)
        return command_refused(view->command, &answer);
    if (view->locks.list.locks.count == 0 && !misfits && !view->as_json)
        say_warning("no locks");
    if (!view->quiet) {
        print_locks(view, stdout, columns_of_terminal());
        status = command_flush();
        tell_pauses(view);
    }
    if (misfits)
        return command_tell_misfits(view->command, &view->locks.list);
    return view->quiet ? status_of(&view->locks.list) : status;
}

/* -- --watch: printing ------------------------------------------------------------------------- */

/* Draws a frame: the heading stays, the rest is cut to the lines left in the window. */
static void draw_frame(struct watch *watch)
{
    struct view *view = watch->view;
    struct window window = screen_window(), below = {window.columns, window.lines - 2};
    char *heading = NULL, *text = NULL, *frame = NULL;
    size_t size;

    FILE *out = mem_checked(open_memstream(&heading, &size));
    lock_watch_heading(&view->locks, out);
    fclose(out);
    out = mem_checked(open_memstream(&text, &size));
    print_locks(view, out, window.columns);
    fclose(out);
    out = mem_checked(open_memstream(&frame, &size));
    window_fit(out, heading, &window, "");
    if (*text && below.lines > 0) {
        fputs("\n\n", out);
        window_fit(out, text, &below, view->in_full ? " lines" : "");
    }
    fclose(out);
    watch->broken |= !screen_draw(&watch->screen, frame);
    free(heading);
    free(text);
    free(frame);
}

static int print_round(const struct watch *watch)
{
    const struct view *view = watch->view;
    char summary[128], now[DESCRIBE_TIME_SIZE];

    if (!view->as_json) {
        printf("%s  %s\n", describe_local((int64_t)view->locks.seen * 1000, true, now),
               lock_watch_summary(&view->locks, summary, sizeof summary));
    }
    print_locks(view, stdout, 0);
    if (!view->as_json)
        putchar('\n');
    return command_flush();
}

/* -- --watch: an outage ------------------------------------------------------------------------ */

/* Says that an outage begins or ends, unless the heading on a screen says so. */
static void tell_outage(const struct watch *watch, bool was_away)
{
    const struct lock_watch *locks = &watch->view->locks;
    const char *name = watch->view->command->name;
    char text[DESCRIBE_TIME_SIZE];

    if (watch->on_screen || locks->away == was_away)
        return;
    if (locks->away)
        say_warning("%s: out of reach since %s: %s", name,
                    describe_local((int64_t)locks->seen * 1000, false, text), locks->why);
    else
        say_warning("%s: back after %s", name,
                    duration_print(locks->gone / NS_PER_SEC * NS_PER_SEC, text, sizeof text));
}

static void on_silence(void *arg)
{
    draw_frame(arg);
}

/* -- --watch: signals -------------------------------------------------------------------------- */

static void on_signal(void *owner, int signo)
{
    struct watch *watch = owner;
    bool started = watch->view->locks.seen > 0;

    if (signo == SIGTSTP) {
        screen_leave(&watch->screen);
        terminal_stop(SIGTSTP, false);
    }
    if (child_signal_is_fatal(signo)) {
        watch->signal = signo;
        loop_stop(watch->view->query.loop);
    } else if (started && (signo == SIGTSTP || signo == SIGCONT || signo == SIGWINCH)) {
        draw_frame(watch);
    }
}

static bool catch_signals(struct watch *watch)
{
    struct inherited inherited;
    sigset_t caught;

    child_block_signals(&inherited);
    child_choose_signals(&caught);
    return loop_signals(watch->view->query.loop, &caught, on_signal, watch) == 0;
}

/* -- --watch: the rounds ----------------------------------------------------------------------- */

/* Returns true if another round must follow. */
static bool watch_once(struct watch *watch, struct answer *answer, int *status)
{
    struct lock_watch *locks = &watch->view->locks;
    bool was_away = locks->away;
    enum lock_watch_result result = lock_watch_ask(locks, answer);

    if (watch->signal || result == LOCK_WATCH_REFUSED || locks->seen == 0)
        return false;
    tell_outage(watch, was_away);
    locks->silent = watch->on_screen ? on_silence : NULL;
    if (watch->on_screen)
        draw_frame(watch);
    else if (result == LOCK_WATCH_SEEN && (*status = print_round(watch)) != STATUS_OK)
        return false;
    if (!watch->broken)
        query_pause(&watch->view->query, watch->view->every);
    return !watch->signal && !watch->broken;
}

/* Runs until a fatal signal, and dies of it; or until the store refuses, or standard output takes
 * no more. An outage does not end it, once there was an answer. */
static int watch(struct view *view)
{
    struct watch watch = {.view = view, .on_screen = !view->as_json && screen_is_there()};
    struct answer answer = {.verdict = VERDICT_GRANTED};
    int status = STATUS_OK;

    view->locks.patience = WATCH_PATIENCE;
    view->locks.arg = &watch;
    if (watch.on_screen && !catch_signals(&watch)) {
        command_error(view->command, "the system refuses: %s", strerror(errno));
        return STATUS_SYSTEM;
    }
    bool going = true;
    while (going)
        going = watch_once(&watch, &answer, &status);
    screen_leave(&watch.screen);
    if (watch.signal)
        return supervisor_die_of(watch.signal);
    if (watch.broken)
        return STATUS_SYSTEM;
    return answer.verdict == VERDICT_GRANTED ? status : command_refused(view->command, &answer);
}

/* -- the command ------------------------------------------------------------------------------- */

static int run(const struct command *command, int argc, char **argv)
{
    struct view view = {.command = command};
    int status;

    if (command_parse(command, argc, argv, &view.arguments, &status)) {
        status = prepare(&view);
        if (status == STATUS_OK)
            status = view.every ? watch(&view) : print_once(&view);
    }
    lock_watch_free(&view.locks);
    query_close(&view.query);
    settings_free(&view.settings);
    args_free(&view.arguments);
    return status;
}

const struct command command_status = {
    .name = "status",
    .summary = "show who holds what, who waits, for how long",
    .usage = {"status [OPTIONS] [KEY|GLOB...]"},
    .example = "Status: 0; with -q, which prints nothing, 75 if one of the KEYs is held.\n"
               "\n"
               "Example, all locks of deployments, drawn again every two seconds:\n"
               "  rlock status --watch 'deploy-*'\n"
               "\n"
               "Example, who holds the lock, for a script:\n"
               "  rlock status --json deploy | jq -r '.[0].holders[].host'\n",
    .options = options,
    .words = WORDS_PATTERNS,
    .run = run,
};
