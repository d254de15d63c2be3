/* rlock metrics: locks as Prometheus text. */
#include "cmd/commands.h"

#include <errno.h>
#include <string.h>

#include "cli/metrics.h"
#include "os/file.h"

enum { OPTION_OUTPUT = OPTION_OTHER };

static const struct option_spec options[] = {
    OPTION(OPTION_OUTPUT, "output", "FILE", "replace FILE at once, and print nothing"),
    SETTINGS_OPTIONS,
    {0}};

/* Prints the text, or replaces the file of --output by it. */
static int write_metrics(const struct call *call, struct strbuf *text)
{
    const char *output = command_value(call, OPTION_OUTPUT);

    if (!output)
        return command_print(text);
    int error = file_replace(output, text->text, text->size);
    if (error == EINVAL)
        command_error(call, "%s: not a regular file", output);
    else if (error)
        command_error(call, "cannot write %s: %s", output, strerror(error));
    return error ? STATUS_SYSTEM : STATUS_OK;
}

static int check_metrics(struct call *call)
{
    const char *output = command_value(call, OPTION_OUTPUT);

    if (output && !*output)
        return command_misused(call, "--output '' names no file");
    return STATUS_OK;
}

/* Prints the metrics of the locks; also when the store is away, as their readers must learn it. */
static int execute_metrics(struct call *call)
{
    bool memory = store_can(&call->settings.address, STORE_MEMORY);
    struct survey_request request = command_request(call);
    struct strbuf text ENDED_BY(strbuf_free) = {0};
    struct answer answer;

    request.idle = memory;
    query_survey(&call->query, &request, &call->list, &answer);
    bool up = answer.verdict == VERDICT_GRANTED || call->list.misfits.count > 0;
    metrics_render(&text, up ? &call->list : NULL, memory);
    int status = write_metrics(call, &text);
    int refused = up ? command_tell_misfits(call, &call->list) : command_refused(call, &answer);
    return status == STATUS_OK ? refused : status;
}

const struct command command_metrics = {
    .name = "metrics",
    .summary = "print locks as metrics for Prometheus",
    .usage = {"metrics [OPTIONS] [KEY|GLOB...]"},
    .example = "Status: 0; 69 and rlock_up 0, in FILE as well, if the store cannot be reached.\n"
               "\n"
               "Example, for the textfile collector of node_exporter:\n"
               "  rlock metrics --output /var/lib/prometheus/node-exporter/rlock.prom 'deploy-*'\n",
    .options = options,
    .words = WORDS_PATTERNS,
    .asks = true,
    .check = check_metrics,
    .act = execute_metrics,
};
