/* The parts that subcommands share. */
#include "cli/command.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/duration.h"
#include "cli/describe.h"
#include "cli/hints.h"
#include "cli/screen.h"
#include "lock/key.h"
#include "store/urls.h"

#define MESSAGE_SIZE 1024

bool command_action_takes(const struct command_action *action, int option)
{
    for (const struct option_spec *row = common_options; row->id || row->same; row++)
        if ((row->same ? row->same->id : row->id) == option)
            return true;
    for (size_t i = 0; i < sizeof action->options / sizeof *action->options; i++)
        if (action->options[i] == option)
            return true;
    return false;
}

void command_error(const struct command *command, const char *fmt, ...)
{
    char message[MESSAGE_SIZE];
    va_list list;

    va_start(list, fmt);
    vsnprintf(message, sizeof message, fmt, list);
    va_end(list);
    say_error("%s: %s", command->name, message);
}

/* A misplaced word may be a URL with a password. */
int command_misused(const struct command *command, const char *fmt, ...)
{
    char message[MESSAGE_SIZE];
    va_list list;

    va_start(list, fmt);
    vsnprintf(message, sizeof message, fmt, list);
    va_end(list);
    urls_blot(message);
    say_error("%s: %s", command->name, message);
    say_hint("rlock help %s", command->name);
    return STATUS_USAGE;
}

int command_lacks(const struct command *command, const struct store_address *address,
                  enum store_ability ability)
{
    const char *instead = ability_instead(address, ability);
    char lack[ABILITY_LACK_SIZE];

    ability_print_lack(address, ability, lack);
    if (!instead)
        return command_misused(command, "%s", lack);
    say_error("%s: %s", command->name, lack);
    say_hint("%s", instead);
    return STATUS_USAGE;
}

int command_refused_about(const struct command *command, const char *key,
                          const struct answer *answer)
{
    const char *hint = hint_words(answer->cause, answer->hint);

    if (answer->said[0])
        say_detail("%s: the server said: %s", command->name, answer->said);
    command_error(command, "%s%s%s", key ? key : "", key ? ": " : "", answer->text);
    if (hint)
        say_hint("%s", hint);
    return status_of_cause(answer->cause);
}

int command_refused(const struct command *command, const struct answer *answer)
{
    return command_refused_about(command, NULL, answer);
}

int command_tell_misfits(const struct command *command, const struct lock_list *list)
{
    for (size_t i = 0; i < list->misfits.count; i++)
        command_error(command, "%s: %s", list->misfits.views[i].key, list->misfits.views[i].misfit);
    if (list->misfits.count > 0)
        return status_of_cause(CAUSE_MISFIT);
    return STATUS_OK;
}

const struct given_option *command_option(const struct arguments *arguments, int id)
{
    for (size_t i = arguments->option_count; i > 0; i--)
        if (arguments->options[i - 1].id == id)
            return &arguments->options[i - 1];
    return NULL;
}

/* Returns STATUS_OK if the word can be a KEY or a GLOB; otherwise says what is wrong with it. */
static int check_key(const struct command *command, const char *word)
{
    const char *fault = key_fault(word);
    char shown[URLS_SHOWN_SIZE];

    return fault ? command_misused(command, "KEY '%s' %s", urls_show(word, shown), fault)
                 : STATUS_OK;
}

static int check_words(const struct command *command, const struct arguments *arguments)
{
    static const struct {
        size_t least, most;
        const char *wants;
    } bounds[] = {
        [WORDS_NONE] = {0, 0, "no KEY"},
        [WORDS_PATTERNS] = {0, SIZE_MAX, NULL},
        [WORDS_KEYS] = {1, SIZE_MAX, NULL},
        [WORDS_KEY] = {1, 1, "one KEY"},
        [WORDS_KEY_NUMBER] = {1, 2, "one KEY and one N"},
        [WORDS_KEY_TIME] = {2, 2, "one KEY and one DUR"},
    };
    size_t count = arguments->word_count, keys = count;
    int status = STATUS_OK;

    if (command->words == WORDS_OTHER)
        return STATUS_OK;
    if (arguments->command)
        return command_misused(command, "takes no COMMAND");
    if (count > bounds[command->words].most)
        return command_misused(command, "takes %s", bounds[command->words].wants);
    if (count < bounds[command->words].least)
        return command_misused(command, count == 0 ? "no KEY" : "no DUR: for how long?");
    if (command->words > WORDS_KEYS)
        keys = 1;
    for (size_t i = 0; i < keys && status == STATUS_OK; i++)
        status = check_key(command, arguments->words[i]);
    return status;
}

bool command_parse(const struct command *command, int argc, char **argv,
                   struct arguments *arguments, int *status)
{
    bool fine = args_parse(argc, argv, command->options, arguments);

    if (command_option(arguments, OPTION_HELP))
        *status = command_help(command);
    else if (!fine)
        *status = command_misused(command, "%s", arguments->fault);
    else
        *status = check_words(command, arguments);
    return fine && !command_option(arguments, OPTION_HELP) && *status == STATUS_OK;
}

void command_confirm(const struct command *command, const char *fmt, ...)
{
    char text[1024];
    va_list args;

    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    if (say_on_terminal())
        say_warning("%s: %s", command->name, text);
}

char *command_print_until(int64_t ns, char out[COMMAND_UNTIL_SIZE])
{
    int64_t now_ms = (int64_t)time(NULL) * 1000;
    char until[DESCRIBE_TIME_SIZE], left[32];

    snprintf(out, COMMAND_UNTIL_SIZE, "until %s (%s left)",
             describe_daytime(now_ms, now_ms + ns / NS_PER_MS, false, until),
             duration_print(ns, left, sizeof left));
    return out;
}

int command_check_duration(const struct command *command, const char *word, int64_t *ns)
{
    char shown[URLS_SHOWN_SIZE];

    if (!duration_parse(word, ns))
        return command_misused(command, "DUR '%s' is not a duration, such as 30m or 2h",
                               urls_show(word, shown));
    if (*ns < NS_PER_SEC)
        return command_misused(command, "DUR must be at least 1s");
    return STATUS_OK;
}

bool command_settings(const struct command *command, const struct arguments *arguments,
                      struct settings *settings, int *status)
{
    char fault[MESSAGE_SIZE];

    *status = settings_read(settings, arguments, fault, sizeof fault);
    if (*status == STATUS_USAGE)
        command_misused(command, "%s", fault);
    else if (*status != STATUS_OK)
        command_error(command, "%s", fault);
    return *status == STATUS_OK;
}

int command_refuse_setting(const struct command *command, const struct settings *settings,
                           enum setting id, const char *why)
{
    char fault[MESSAGE_SIZE];
    int status = settings_refuse(settings, id, why, fault, sizeof fault);

    if (status == STATUS_USAGE)
        return command_misused(command, "%s", fault);
    command_error(command, "%s", fault);
    return status;
}

int command_open(const struct command *command, const struct settings *settings,
                 struct query *query)
{
    char fault[256];

    if (query_open(query, &settings->address, command->name, fault, sizeof fault))
        return STATUS_OK;
    command_error(command, "%s", fault);
    return settings->address_status;
}

int command_load_json(const struct command *command, struct json_library *json)
{
    char fault[256];

    if (json_load(json, fault, sizeof fault))
        return STATUS_OK;
    command_error(command, "%s", fault);
    return STATUS_SYSTEM;
}

bool command_has_color(const struct settings *settings)
{
    return settings->color == COLOR_ALWAYS || (settings->color == COLOR_AUTO && screen_is_there());
}

int command_help(const struct command *command)
{
    struct strbuf options = {0};

    args_help(command->options, common_options, &options);
    for (size_t i = 0; i < 3 && command->usage[i]; i++)
        printf("%s rlock %s\n", i ? "      " : "usage:", command->usage[i]);
    printf("\n%s\n\n%s\n", command->summary, command->example);
    if (options.text)
        printf("%s\n", options.text);
    printf("Options of all commands, such as --url and -q: rlock help options\n"
           "More: man rlock-%s\n",
           command->name);
    strbuf_free(&options);
    return command_flush();
}

int command_help_options(void)
{
    struct strbuf options = {0};

    args_help(common_options, NULL, &options);
    printf("Options of all commands\n\n%s\nMore: man rlock\n", options.text);
    strbuf_free(&options);
    return command_flush();
}

int command_flush(void)
{
    errno = 0;
    if (fflush(stdout) == 0 && !ferror(stdout))
        return STATUS_OK;
    if (errno == 0) /* an earlier write has failed, whose errno is gone */
        say_error("cannot write to standard output");
    else if (errno != EPIPE)
        say_error("cannot write to standard output: %s", strerror(errno));
    return STATUS_SYSTEM;
}
