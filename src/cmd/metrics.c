/* rlock metrics: locks as Prometheus text. */
#include "cmd/commands.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/metrics.h"
#include "os/file.h"

enum { OPTION_OUTPUT = OPTION_OTHER };

static const struct option_spec options[] = {{.id = OPTION_OUTPUT,
                                              .name = "output",
                                              .argument = "FILE",
                                              .help = "replace FILE at once, and print nothing"},
                                             SETTINGS_OPTIONS,
                                             {0}};

struct metrics {
    const struct command *command;
    struct arguments arguments;
    struct settings settings;
    struct query query;
    struct lock_list list;
    const char *output; /* NULL: standard output */
};

static int prepare(struct metrics *all)
{
    const struct given_option *output = command_option(&all->arguments, OPTION_OUTPUT);
    int status;

    if (!command_settings(all->command, &all->arguments, &all->settings, &status))
        return status;
    all->output = output ? output->value : NULL;
    if (all->output && !*all->output)
        return command_misused(all->command, "--output '' names no file");
    return command_open(all->command, &all->settings, &all->query);
}

static int deliver(const struct metrics *all, const char *text, size_t length)
{
    if (!all->output) {
        fwrite(text, 1, length, stdout);
        return command_flush();
    }
    int error = file_replace(all->output, text, length);
    if (error == EINVAL)
        command_error(all->command, "%s: not a regular file", all->output);
    else if (error)
        command_error(all->command, "cannot write %s: %s", all->output, strerror(error));
    return error ? STATUS_SYSTEM : STATUS_OK;
}

/* Tells the readers of the metrics, too, that the store is away. */
static int collect(struct metrics *all)
{
    const struct arguments *given = &all->arguments;
    struct answer answer;
    size_t length;

    bool memory = store_can(&all->settings.address, STORE_MEMORY);
    query_memory(&all->query, (const char *const *)given->words, given->word_count, 0, memory,
                 &all->list, &answer);
    bool up = answer.verdict == VERDICT_GRANTED || all->list.misfits.count > 0;
    const struct metrics_source source = {
        .up = up,
        .locks = all->list.locks.views,
        .count = all->list.locks.count,
        .pauses = all->list.pauses.views,
        .pause_count = all->list.pauses.count,
        .memory = memory,
    };
    char *text = metrics_render(&source, &length);
    int status = deliver(all, text, length);
    free(text);
    if (!up) {
        int refused = command_refused(all->command, &answer);
        return status == STATUS_OK ? refused : status;
    }
    int misfits = command_tell_misfits(all->command, &all->list);
    return status == STATUS_OK ? misfits : status;
}

static int run(const struct command *command, int argc, char **argv)
{
    struct metrics all = {.command = command};
    int status;

    if (command_parse(command, argc, argv, &all.arguments, &status)) {
        status = prepare(&all);
        if (status == STATUS_OK)
            status = collect(&all);
    }
    lock_list_free(&all.list);
    query_close(&all.query);
    settings_free(&all.settings);
    args_free(&all.arguments);
    return status;
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
    .run = run,
};
