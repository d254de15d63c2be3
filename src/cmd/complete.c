/* rlock help --complete WORD...: the completions of shells (completions/) ask what fits in place of
 * the last word. Prints a word a line, a tab and its meaning; or ":files" or ":command" where the
 * shell knows better. */
#include "cmd/commands.h"

#include "lock/key.h"

#define PATIENCE_NS (1 * NS_PER_SEC) /* a user waits for it */

struct completion {
    const struct command *command;
    struct arguments arguments;          /* the words before */
    const struct command_action *action; /* NULL: none, or none yet */
    const char *word;                    /* the one to complete; "" */
    struct option_row rows[ARGS_OPTIONS_MAX + 1];
};

static void offer_word(const char *word, const char *meaning)
{
    printf("%s\t%s\n", word, meaning ? meaning : "");
}

/* Offers words that are separated by blanks, each behind "before" ("--option=" or ""). */
static void offer_words(const char *words, const char *before)
{
    for (; *words; words += strspn(words, " ")) {
        int length = (int)strcspn(words, " ");
        printf("%s%.*s\t\n", before, length, words);
        words += length;
    }
}

/* Offers the values that the option can have, each behind "before". */
static void offer_values(const struct option_spec *spec, const char *before)
{
    char words[400];

    if (spec->list)
        offer_words(spec->list(words, sizeof words), before);
    else if (spec->values)
        offer_words(spec->values, before);
    else if (strcmp(spec->argument, "DUR") == 0)
        offer_words("1s 5s 10s 30s 1m 5m 10m 1h 1d", before);
    else if (strcmp(spec->argument, "FILE") == 0)
        printf(":files\n");
}

/* The option with that name, of so many bytes; NULL: there is none. */
static const struct option_spec *find_option(const struct completion *completion, const char *name,
                                             size_t length)
{
    for (const struct option_row *row = completion->rows; row->spec; row++) {
        const char *names[] = {row->spec->name, row->spec->also};
        for (size_t i = 0; i < 2 && names[i]; i++)
            if (strlen(names[i]) == length && strncmp(names[i], name, length) == 0)
                return row->spec;
    }
    return NULL;
}

/* Offers options in place of a word that begins with '-'; or values, if it has "=". */
static void offer_options(const struct completion *completion)
{
    const char *equals = strchr(completion->word, '=');
    char name[80];

    if (equals) {
        size_t length = (size_t)(equals - completion->word);
        const struct option_spec *spec =
            length > 2 ? find_option(completion, completion->word + 2, length - 2) : NULL;
        snprintf(name, sizeof name, "%.*s=", (int)length, completion->word);
        if (spec && spec->argument)
            offer_values(spec, name);
        return;
    }
    for (const struct option_row *row = completion->rows; row->spec; row++) {
        const char *names[] = {row->spec->name, row->spec->also};
        if (completion->action && !command_action_takes(completion->action, row->spec->id))
            continue;
        for (size_t i = 0; i < 2 && names[i]; i++) {
            snprintf(name, sizeof name, "--%s", names[i]);
            offer_word(name, row->help);
        }
    }
}

/* Offers what may come next by the usage: verbs, "--", files, settings, KEYs. The store is asked
 * for KEYs quietly, and not for long. */
static void offer_operands(const struct completion *completion)
{
    const char *usage =
        completion->action ? completion->action->wants : completion->command->usage[0];
    const struct command_action *actions = completion->command->actions;
    size_t given = completion->arguments.word_count - !!completion->action; /* beside the verb */
    bool any_number = strstr(usage, "KEY...") || strstr(usage, "GLOB...");
    bool takes_key = any_number || (given == 0 && strstr(usage, "KEY"));

    if (actions && !completion->action) { /* the verb comes first */
        for (; given == 0 && actions->name; actions++)
            offer_word(actions->name, actions->wants);
        return;
    }
    if (given > 0 && !*completion->word && strstr(usage, "-- COMMAND"))
        offer_word("--", "COMMAND follows");
    if (given == 0 && strstr(usage, "PATH"))
        printf(":files\n");
    for (int id = 1; given == 0 && strstr(usage, "[NAME]") && id < SETTING_COUNT; id++)
        offer_word(setting_rows[id].option.name, setting_rows[id].option.help);
    if (takes_key && !(completion->action && completion->action->new_key)) {
        struct settings settings;
        struct lock_list list ENDED_BY(lock_list_free) = {0};
        struct answer answer;
        char fault[256];
        say_set_verbosity(SAY_QUIET);
        if (settings_read(&settings, &completion->arguments, fault, sizeof fault) == STATUS_OK) {
            /* The verbs that take a KEY are those of `rlock latch`. */
            const struct survey_request request = {.latches = completion->action};
            if (settings.address.connect_timeout > PATIENCE_NS)
                settings.address.connect_timeout = PATIENCE_NS;
            settings.address.server_wait = 0;
            query_look(&settings.address, &request, &list, &answer);
        }
        for (size_t i = 0; i < list.locks.count; i++)
            if (!key_fault(list.locks.views[i].key))
                offer_word(list.locks.views[i].key, NULL);
        settings_free(&settings);
    }
}

int complete(const struct command *command, int count, char **words)
{
    struct completion completion = {.command = command, .word = words[count - 1]};
    bool fine = args_parse(count - 1, words, command->options, &completion.arguments);
    int missing = completion.arguments.missing;

    args_flatten(command->options, NULL, completion.rows);
    completion.action = command_find_action(command, &completion.arguments);
    if (fine && completion.arguments.command)
        printf(":command\n");
    else if (fine && *completion.word == '-')
        offer_options(&completion);
    else if (fine)
        offer_operands(&completion);
    /* The word is the argument of the option before it. */
    for (const struct option_row *row = completion.rows; missing && row->spec; row++)
        if (row->spec->id == missing)
            offer_values(row->spec, "");
    args_free(&completion.arguments);
    return command_flush();
}
