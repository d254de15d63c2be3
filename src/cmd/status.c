/* rlock status: holders and waiters. */
#include "cmd/commands.h"

#include <errno.h>

#include "base/duration.h"
#include "cli/lock_watch.h"
#include "cli/render.h"
#include "cli/screen.h"
#include "net/loop.h"
#include "store/url.h"

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
    OPTION(OPTION_ALL, "all", NULL, "free locks as well, as long as they are known"),
    OPTION(OPTION_LONG, "long", NULL,
           "every holder and the queue in order (default with exactly one KEY)"),
    OPTION(OPTION_JSON, "json", NULL, "an array of objects, see rlock-status(1)"),
    OPTION(OPTION_WATCH, "watch", "DUR", "draw again every DUR (default 2s) until interrupted",
           .optional = is_duration),
    SETTINGS_OPTIONS,
    {0}};

struct view {
    struct call call;
    bool in_full, quiet; /* a line for each holder and waiter; only the exit status */
    int64_t every;       /* ns; 0: once */
    struct lock_watch locks;

    /* --watch. */
    bool on_screen;
    struct screen screen;
    bool broken; /* standard output takes no more */
};

/* Checks and notes the options, before anything is opened. With -q only the exit status tells, so
 * --json has no effect. */
static int check_status(struct call *call)
{
    struct view *view = (struct view *)call;
    const struct arguments *given = &call->arguments;

    view->locks = (struct lock_watch){.query = &call->query, .request = command_request(call)};
    view->locks.request.runs = 1;
    view->locks.request.idle = command_has(call, OPTION_ALL);
    call->needs = view->locks.request.idle ? STORE_MEMORY : 0;
    view->quiet = say_verbosity() == SAY_QUIET;
    call->as_json = command_has(call, OPTION_JSON) && !view->quiet;
    view->in_full =
        command_has(call, OPTION_LONG) || (given->word_count == 1 && !key_is_glob(given->words[0]));
    if (!command_has(call, OPTION_WATCH))
        return STATUS_OK;
    view->every = WATCH_EVERY;
    int status = command_take_duration(call, OPTION_WATCH, &view->every);
    if (status != STATUS_OK)
        return status;
    if (view->every < WATCH_LEAST)
        return command_misused(call, "--watch must be at least 100ms");
    if (view->quiet)
        return command_misused(call, "either --quiet or --watch, not both");
    return STATUS_OK;
}

/* -- printing locks ---------------------------------------------------------------------------- */

/* Prints the locks in lines of so many columns (0: any). */
static void print_locks(const struct view *view, struct strbuf *out, int columns)
{
    const struct lock_list *list = &view->locks.list;
    struct render_style style = {.color = command_has_color(&view->call), .width = columns};

    if (view->call.as_json) {
        render_json(out, &list->locks, &list->pauses);
    } else if (list->locks.count > 0 && view->in_full) {
        render_long(out, list->locks.views, list->locks.count, &style);
    } else if (list->locks.count > 0) {
        render_table(out, list->locks.views, list->locks.count, &style);
    }
    /* Without --watch, print_once() says these. */
    if (!view->call.as_json && view->every > 0 && list->pauses.count > 0) {
        strbuf_puts(out, list->locks.count > 0 ? "\n" : "");
        for (size_t i = 0; i < list->pauses.count; i++)
            render_line(out, "%s: %s", list->pauses.views[i].key,
                        DECISION_TEXT(&list->pauses.views[i].pause, "paused"));
    }
}

/* Tells which GLOBs match nothing, as they may be mistyped; or else that there are no locks.
 * Misfits are told otherwise. */
static void tell_unmatched(const struct view *view)
{
    const struct arguments *given = &view->call.arguments;
    const struct lock_list *list = &view->locks.list;
    bool told = false;

    for (size_t i = 0; i < given->word_count; i++) {
        const char *glob = given->words[i];
        if (!key_is_glob(glob) || lock_views_match(&list->locks, glob) ||
            lock_views_match(&list->misfits, glob))
            continue;
        say_warning("status: nothing matches %s", glob);
        told = true;
    }
    if (!told && list->locks.count == 0 && list->misfits.count == 0)
        say_warning("no locks");
}

/* Asks the store and prints the locks once. The status is about locks that cannot be read; with -q,
 * about whether one is held. */
static int print_once(struct view *view)
{
    struct strbuf out = {0};
    struct answer answer;
    int status = STATUS_OK;

    lock_watch_ask(&view->locks, &answer);
    bool misfits = view->locks.list.misfits.count > 0;
    if (answer.verdict != VERDICT_GRANTED && !misfits)
        return command_refused(&view->call, &answer);
    if (!view->call.as_json)
        tell_unmatched(view);
    if (!view->quiet) {
        print_locks(view, &out, screen_is_there() ? screen_window().columns : 0);
        status = command_print(&out);
        /* The pauses of GLOBs hold for locks that do not exist yet, so they are not among the
         * rows. */
        const struct lock_views *pauses = &view->locks.list.pauses;
        for (size_t i = 0; i < pauses->count && !view->call.as_json; i++)
            say_warning("%s: %s", pauses->views[i].key,
                        DECISION_TEXT(&pauses->views[i].pause, "paused"));
    }
    if (misfits)
        return command_tell_misfits(&view->call, &view->locks.list);
    for (size_t i = 0; view->quiet && i < view->locks.list.locks.count; i++)
        if (view->locks.list.locks.views[i].holder_count)
            return STATUS_NOT_ACQUIRED;
    return status;
}

/* -- --watch: printing ------------------------------------------------------------------------- */

/* Draws a frame: the heading and an empty line stay, the rest is cut to the lines left in the
 * window. "arg" is the view (lock_watch.silent). */
static void draw_frame(void *arg)
{
    struct view *view = arg;
    struct window window = screen_window(), below = {window.columns, window.lines - 2};
    struct strbuf heading ENDED_BY(strbuf_free) = {0}, text ENDED_BY(strbuf_free) = {0};
    struct strbuf frame ENDED_BY(strbuf_free) = {0};

    lock_watch_heading(&view->locks, &heading);
    print_locks(view, &text, window.columns);
    window_fit(&frame, heading.text, &window, "");
    if (text.size > 0 && below.lines > 0) {
        strbuf_puts(&frame, "\n\n");
        window_fit(&frame, text.text, &below, view->in_full ? " lines" : "");
    }
    view->broken |= !screen_draw(&view->screen, frame.text);
}

/* Prints the locks of a round where there is no screen to draw on. */
static int print_round(const struct view *view)
{
    struct strbuf out = {0};

    if (!view->call.as_json) {
        strbuf_printf(&out, "%s  ", LOCAL_TEXT((int64_t)view->locks.seen * 1000));
        lock_watch_summary(&view->locks, &out);
        strbuf_putc(&out, '\n');
    }
    print_locks(view, &out, 0);
    strbuf_puts(&out, view->call.as_json ? "" : "\n");
    return command_print(&out);
}

/* -- --watch: signals -------------------------------------------------------------------------- */

/* Ends on a signal that asks for it. Around a stop the screen is left; it is drawn again when the
 * terminal is another one. */
static void on_signal(void *owner, int signo)
{
    struct view *view = owner;

    if (signo == SIGTSTP) {
        screen_leave(&view->screen);
        terminal_stop(SIGTSTP, TERMINAL_STOPS_PROCESS);
    }
    if (child_signal_is_fatal(signo)) {
        view->call.signal = signo;
        loop_stop(view->call.query.loop);
    } else if (view->locks.seen > 0 &&
               (signo == SIGTSTP || signo == SIGCONT || signo == SIGWINCH)) {
        draw_frame(view);
    }
}

/* -- --watch: the rounds ----------------------------------------------------------------------- */

/* Asks the store, shows the locks, and waits until the next round is due. Returns true if another
 * round must follow. *status: that of printing. */
static bool watch_once(struct view *view, struct answer *answer, int *status)
{
    struct lock_watch *locks = &view->locks;
    bool was_away = locks->away;
    enum lock_watch_result result = lock_watch_ask(locks, answer);

    if (view->call.signal || result == LOCK_WATCH_REFUSED || locks->seen == 0)
        return false;
    /* The heading on a screen says so itself. */
    if (!view->on_screen && locks->away != was_away) {
        if (locks->away)
            say_warning("status: out of reach since %s: %s",
                        LOCAL_TIME_TEXT((int64_t)locks->seen * 1000), locks->why);
        else
            say_warning("status: back after %s",
                        DURATION_TEXT(locks->gone / NS_PER_SEC * NS_PER_SEC));
    }
    locks->silent = view->on_screen ? draw_frame : NULL; /* once there is something to draw */
    if (view->on_screen)
        draw_frame(view);
    else if (result == LOCK_WATCH_SEEN && (*status = print_round(view)) != STATUS_OK)
        return false;
    if (!view->broken)
        loop_run_for(view->call.query.loop, view->every);
    return !view->call.signal && !view->broken;
}

/* Shows the status once. With --watch, continues until a fatal signal, and dies of it; or until the
 * store refuses, or standard output takes no more. An outage does not end it, once there was an
 * answer. */
static int execute_status(struct call *call)
{
    struct view *view = (struct view *)call;
    struct answer answer = {.verdict = VERDICT_GRANTED};
    struct inherited inherited;
    int status = STATUS_OK;

    if (!view->every)
        return print_once(view);
    view->locks.patience = WATCH_PATIENCE;
    view->locks.arg = view;
    view->on_screen = !view->call.as_json && screen_is_there();
    if (view->on_screen)
        status = command_catch_signals(&view->call, &inherited, on_signal);
    bool going = status == STATUS_OK;
    while (going)
        going = watch_once(view, &answer, &status);
    screen_leave(&view->screen);
    if (view->broken || view->call.signal) /* a signal counts before this status */
        return STATUS_SYSTEM;
    return answer.verdict == VERDICT_GRANTED ? status : command_refused(&view->call, &answer);
}

static void end_status(struct call *call)
{
    lock_list_free(&((struct view *)call)->locks.list);
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
    .size = sizeof(struct view),
    .asks = true,
    .check = check_status,
    .act = execute_status,
    .end = end_status,
};
