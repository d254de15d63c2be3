/* rlock config: every setting, its value and where it comes from. */
#include "cmd/commands.h"

#include "store/url.h"

#define ORIGIN_COLUMN 40
#define HIDDEN        "***"

/* Prints the value of a setting, without its password; nothing for NULL. Returns the number of
 * bytes. */
static int print_value(enum setting id, const char *value)
{
    size_t length;
    int printed = 0;

    if (!value)
        return 0;
    if (id != SETTING_URL)
        return printf("%s", setting_rows[id].use == SETTING_SECRET ? HIDDEN : value);
    for (const char *word = value; (word = urls_word(word, &length)); word += length) {
        char *url FREED = mem_checked(strndup(word, length));
        size_t start, secret;
        printed += printf("%s", printed ? " " : "");
        printed += url_password_span(url, &start, &secret)
                       ? printf("%.*s" HIDDEN "%s", (int)start, url, url + start + secret)
                       : printf("%s", url);
        explicit_bzero(url, length);
    }
    return printed;
}

static int check_config(struct call *call)
{
    const struct arguments *given = &call->arguments;

    if (given->command || given->word_count > 1)
        return command_misused(call, "takes one NAME");
    if (!given->word_count || setting_find(given->words[0]))
        return STATUS_OK;
    const char *meant = setting_find_similar(given->words[0]);
    if (!meant)
        return command_wrong(call, "NAME", given->words[0], "is not a setting");
    command_error(call, "NAME '%s' is not a setting", URLS_TEXT(given->words[0]));
    say_hint("did you mean '%s'?", meant);
    return STATUS_USAGE;
}

static int execute_config(struct call *call)
{
    if (call->arguments.word_count) {
        enum setting setting = setting_find(call->arguments.words[0]);
        print_value(setting, call->settings.given[setting].value);
        putchar('\n');
        return command_flush();
    }
    for (int id = 1; id < SETTING_COUNT; id++) {
        enum setting setting = (enum setting)id;
        const char *value = call->settings.given[setting].value;
        char origin[512];
        int column = printf("%s =%s", setting_rows[setting].option.name, value ? " " : "");
        column += print_value(setting, value);
        printf("%*s # %s\n", column < ORIGIN_COLUMN ? ORIGIN_COLUMN - column : 0, "",
               value ? settings_print_origin(&call->settings, setting, origin, sizeof origin)
                     : "not set");
    }
    return command_flush();
}

const struct command command_config = {
    .name = "config",
    .summary = "print every setting, its value and where it comes from",
    .usage = {"config [OPTIONS] [NAME]"},
    .example = "With NAME: only its value, an empty line where there is none. Passwords are\n"
               "shown as ***. Status: 78 if a file or a variable makes no sense.\n"
               "\n"
               "Example, which server is used here, and why:\n"
               "  rlock config | grep '^url'\n"
               "\n"
               "Example, the lease in a script:\n"
               "  lease=$(rlock config lease)\n",
    .options = common_options,
    .check = check_config,
    .act = execute_config,
};
