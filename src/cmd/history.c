/* rlock history: the last runs of locks. */
#include "cmd/commands.h"

#include "base/duration.h"
#include "cli/screen.h"
#include "cli/timeline.h"
#include "store/url.h"

enum { OPTION_JSON = OPTION_OTHER, OPTION_SINCE, OPTION_FAILED, OPTION_PLOT };

static const struct option_spec options[] = {
    OPTION(OPTION_JSON, "json", NULL, "an array of objects, see rlock-history(1)"),
    OPTION(OPTION_SINCE, "since", "DUR", "runs that ended since then"),
    OPTION(OPTION_FAILED, "failed", NULL, "runs that did not end with exit 0"),
    OPTION(OPTION_PLOT, "plot", NULL, "draw the runs of one KEY on a line of time"),
    SETTINGS_OPTIONS,
    {0}};

struct history {
    struct call call;
    int64_t since; /* ns; 0: all */
};

static int take_options(struct call *call)
{
    struct history *history = (struct history *)call;
    const struct arguments *given = &call->arguments;
    int status = command_take_duration(call, OPTION_SINCE, &history->since);

    if (status != STATUS_OK)
        return status;
    if (command_has(call, OPTION_SINCE) && history->since == 0)
        return command_misused(call, "--since must be more than 0");
    bool plot = command_has(call, OPTION_PLOT);
    if (plot && command_has(call, OPTION_JSON))
        return command_misused(call, "--plot and --json exclude each other");
    if (plot && (given->word_count != 1 || key_is_glob(given->words[0])))
        return command_misused(call, "--plot takes one KEY");
    return STATUS_OK;
}

/* Prints the runs of all locks that match, oldest first: as JSON, as a plot, or as a table. */
static int print_history(struct call *call)
{
    const struct render_style style = {.color = command_has_color(call),
                                       .width = screen_is_there() ? screen_window().columns : 0};
    struct survey_request request = command_request(call);
    struct strbuf out = {0};
    struct answer answer;
    size_t count;

    request.runs = QUERY_RUNS_ALL;
    request.idle = true;
    query_survey(&call->query, &request, &call->list, &answer);
    if (answer.verdict != VERDICT_GRANTED)
        return command_refused(call, &answer);
    struct past_run *runs FREED = past_runs_collect(&call->list.locks, &count);
    int64_t since = ((const struct history *)call)->since;
    size_t kept = 0;
    for (size_t i = 0; i < count; i++)
        if ((!since || runs[i].run->ended_ago_ms <= since / NS_PER_MS) &&
            (!command_has(call, OPTION_FAILED) || run_has_failed(&runs[i].run->by.end)))
            runs[kept++] = runs[i];
    count = kept;
    if (call->as_json) {
        render_history_json(&out, runs, count);
    } else if (command_has(call, OPTION_PLOT) && count > 0) {
        /* As wide as the window, or 80 columns if there is none. */
        int columns = screen_window().columns;
        const struct timeline_style plot = {.width =
                                                columns > TIMELINE_LEAST ? columns : TIMELINE_LEAST,
                                            .color = command_has_color(call),
                                            .ascii = !screen_shows_utf8()};
        timeline_print(&out, runs[0].key, runs, count, &plot);
    } else if (count > 0) {
        render_history(&out, runs, count, &style);
    } else {
        say_warning("no runs");
    }
    int status = command_print(&out);
    return status == STATUS_OK ? command_tell_misfits(call, &call->list) : status;
}

const struct command command_history = {
    .name = "history",
    .summary = "show who had a lock, when, for how long, how it ended",
    .usage = {"history [OPTIONS] [KEY|GLOB...]", "history --plot [OPTIONS] KEY"},
    .example = "Example, the runs of the last day that failed:\n"
               "  rlock history --since 1d --failed\n"
               "\n"
               "Example, how the last deployment ended, for a script:\n"
               "  rlock history --json deploy | jq -r '.[-1].result'\n",
    .options = options,
    .words = WORDS_PATTERNS,
    .size = sizeof(struct history),
    .needs = STORE_MEMORY,
    .json = OPTION_JSON,
    .asks = true,
    .check = take_options,
    .act = print_history,
};
