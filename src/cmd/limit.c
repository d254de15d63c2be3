/* rlock limit: how many may hold a semaphore, kept by the store. */
#include "cmd/commands.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/decimal.h"
#include "store/urls.h"

enum { OPTION_DELETE = OPTION_OTHER };

static const struct option_spec options[] = {
    {.id = OPTION_DELETE, .name = "delete", .help = "forget the number that is stored"},
    SETTINGS_OPTIONS,
    {0}};

struct limit {
    const struct command *command;
    struct arguments arguments;
    struct settings settings;
    struct query query;
    const char *key;
    bool change; /* "request" says what; else the number is shown */
    struct adjust_request request;
};

static int take_number(struct limit *all, const char *word)
{
    char shown[URLS_SHOWN_SIZE];
    int64_t number;

    if (!decimal_parse(word, 0, LOCK_LIMIT_MAX, &number))
        return command_misused(all->command, "N '%s' is not a number from 0 to %d",
                               urls_show(word, shown), LOCK_LIMIT_MAX);
    all->request.what = ADJUST_LIMIT;
    all->request.limit = (unsigned)number;
    return STATUS_OK;
}

static int check(struct limit *all)
{
    const struct arguments *given = &all->arguments;
    bool forget = command_option(given, OPTION_DELETE) != NULL;

    if (forget && given->word_count > 1)
        return command_misused(all->command, "either N or --delete, not both");
    all->key = given->words[0];
    all->change = forget || given->word_count > 1;
    all->request = (struct adjust_request){.key = all->key, .what = ADJUST_NO_LIMIT};
    return given->word_count > 1 ? take_number(all, given->words[1]) : STATUS_OK;
}

static int no_limit(const struct limit *all)
{
    say_warning("%s: no limit is stored for %s", all->command->name, all->key);
    return STATUS_NO;
}

static int show(struct limit *all)
{
    struct lock_list list;
    struct answer answer;
    int status;

    query_read_lock(&all->query, all->key, &list, &answer);
    const struct lock_view *lock = list.locks.count ? &list.locks.views[0] : NULL;
    if (answer.verdict != VERDICT_GRANTED) {
        status = command_refused(all->command, &answer);
    } else if (lock && lock->limited) {
        printf("%u\n", lock->stored_limit);
        status = command_flush();
    } else {
        status = no_limit(all);
    }
    lock_list_free(&list);
    return status;
}

static int change(struct limit *all)
{
    struct answer answer;

    query_ask(&all->query, (struct operation){.verb = VERB_ADJUST, .adjust = &all->request},
              &answer);
    if (answer.verdict == VERDICT_GRANTED) {
        if (all->request.what == ADJUST_LIMIT)
            command_confirm(all->command, "%s has a limit of %u now", all->key, all->request.limit);
        else
            command_confirm(all->command, "%s has no stored limit any more", all->key);
        return STATUS_OK;
    }
    if (answer.cause == CAUSE_ABSENT)
        return no_limit(all);
    return command_refused_about(all->command, all->key, &answer);
}

static int perform(struct limit *all)
{
    if (!store_can(&all->settings.address, STORE_LIMITS))
        return command_lacks(all->command, &all->settings.address, STORE_LIMITS);
    int status = command_open(all->command, &all->settings, &all->query);
    if (status != STATUS_OK)
        return status;
    return all->change ? change(all) : show(all);
}

static int run(const struct command *command, int argc, char **argv)
{
    struct limit all = {.command = command};
    int status;

    if (command_parse(command, argc, argv, &all.arguments, &status) &&
        (status = check(&all)) == STATUS_OK &&
        command_settings(command, &all.arguments, &all.settings, &status))
        status = perform(&all);
    query_close(&all.query);
    settings_free(&all.settings);
    args_free(&all.arguments);
    return status;
}

const struct command command_limit = {
    .name = "limit",
    .summary = "how many may hold a semaphore, kept by the store",
    .usage = {"limit [OPTIONS] KEY [N]", "limit [OPTIONS] --delete KEY"},
    .example = "Example, test databases; later one more, while jobs run and wait:\n"
               "  rlock limit test-databases 3\n"
               "  rlock run --limit test-databases -- make integration\n"
               "  rlock limit test-databases 4\n",
    .options = options,
    .words = WORDS_KEY_NUMBER,
    .run = run,
};
