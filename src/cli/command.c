/* Executes a subcommand by its record: parses and checks its words, reads the settings, and prints
 * how it fails. It changes nothing but its struct call. To add a step that all subcommands take,
 * edit perform_call(). */
#include "cli/command.h"

#include <errno.h>
#include <time.h>

#include "base/duration.h"
#include "base/strbuf.h"
#include "base/text.h"
#include "cli/describe.h"
#include "cli/json.h"
#include "cli/screen.h"
#include "lock/key.h"
#include "net/loop.h"
#include "store/url.h"

#define MESSAGE_SIZE 1024

const struct command_action *command_find_action(const struct command *command,
                                                 const struct arguments *given)
{
    const struct command_action *action = command->actions;

    for (; action && action->name && given->word_count > 0; action++)
        if (strcmp(action->name, given->words[0]) == 0)
            return action;
    return NULL;
}

bool command_action_takes(const struct command_action *action, int option)
{
    for (const struct option_spec *row = common_options; row->name || row->same; row++)
        if ((row->name ? row->id : row->same->id) == option)
            return true;
    for (size_t i = 0; i < sizeof action->options / sizeof *action->options; i++)
        if (action->options[i] == option)
            return true;
    return false;
}

void command_error(const struct call *call, const char *fmt, ...)
{
    struct strbuf message = {0};
    va_list list;

    va_start(list, fmt);
    strbuf_vprintf(&message, fmt, list);
    va_end(list);
    say_error("%s: %s", call->command->name, message.text);
    strbuf_free(&message);
}

int command_misused(const struct call *call, const char *fmt, ...)
{
    char message[MESSAGE_SIZE] = "";
    va_list list;

    va_start(list, fmt);
    text_vappend(message, sizeof message, fmt, list);
    va_end(list);
    urls_blot(message); /* a misplaced word may be a URL with a password */
    say_error("%s: %s", call->command->name, message);
    say_hint("rlock help %s", call->command->name);
    return STATUS_USAGE;
}

int command_wrong(const struct call *call, const char *what, const char *value, const char *why)
{
    return command_misused(call, "%s '%s' %s", what, URLS_TEXT(value), why);
}

void command_hint_line(const struct strbuf *line, const char *rest, const char *instead)
{
    if (strchr(line->text, '\\'))
        say_hint("rlock %s", instead);
    else
        say_hint("rlock %s%s", line->text, rest);
}

void command_hint_key(const char *verb, const char *key, const char *rest)
{
    struct strbuf line ENDED_BY(strbuf_free) = {0}, instead ENDED_BY(strbuf_free) = {0};

    strbuf_printf(&line, "%s ", verb);
    args_print_word(key, &line);
    strbuf_printf(&instead, "%s KEY%s", verb, rest);
    command_hint_line(&line, rest, instead.text);
}

int command_need(const struct call *call, enum store_ability ability)
{
    const struct store_address *address = &call->settings.address;
    const char *instead = ability_instead(address, ability);

    if (store_can(address, ability))
        return STATUS_OK;
    if (!instead)
        return command_misused(call, "%s", LACK_TEXT(address, ability));
    command_error(call, "%s", LACK_TEXT(address, ability));
    say_hint("%s", instead);
    return STATUS_USAGE;
}

int command_refused_about(const struct call *call, const char *key, const struct answer *answer)
{
    const char *hint = hint_words(answer->cause, answer->hint);

    if (answer->said[0])
        say_detail("%s: the server said: %s", call->command->name, answer->said);
    command_error(call, "%s%s%s", key ? key : "", key ? ": " : "", answer->text);
    if (hint)
        say_hint("%s", hint);
    return status_of_cause(answer->cause);
}

int command_refused(const struct call *call, const struct answer *answer)
{
    return command_refused_about(call, NULL, answer);
}

int command_system_refused(const struct call *call)
{
    command_error(call, "the system refuses: %s", strerror(errno));
    return STATUS_SYSTEM;
}

int command_tell_misfits(const struct call *call, const struct lock_list *list)
{
    for (size_t i = 0; i < list->misfits.count; i++)
        command_error(call, "%s: %s", list->misfits.views[i].key, list->misfits.views[i].misfit);
    if (list->misfits.count == 0)
        return STATUS_OK;
    return status_of_cause(CAUSE_MISFIT);
}

const struct given_option *command_option(const struct call *call, int id)
{
    return args_option(&call->arguments, id);
}

bool command_has(const struct call *call, int id)
{
    return command_option(call, id) != NULL;
}

const char *command_value(const struct call *call, int id)
{
    const struct given_option *option = command_option(call, id);

    return option ? option->value : NULL;
}

/* Parses the command line, and checks the words by the record of the subcommand. Returns STATUS_OK,
 * or STATUS_USAGE after a message. WORDS_OTHER: the subcommand checks them by itself. */
static int parse_call(struct call *call)
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
    enum command_words words = call->command->words;
    bool fine = args_parse(call->argc, call->argv, call->command->options, &call->arguments);
    size_t count = call->arguments.word_count;
    size_t keys = words > WORDS_KEYS ? 1 : count; /* how many of them; N or DUR may follow */

    if (command_has(call, OPTION_HELP))
        return STATUS_OK;
    if (!fine)
        return command_misused(call, "%s", call->arguments.fault);
    if (words == WORDS_OTHER)
        return STATUS_OK;
    if (call->arguments.command)
        return command_misused(call, "takes no COMMAND");
    if (count > bounds[words].most)
        return command_misused(call, "takes %s", bounds[words].wants);
    if (count < bounds[words].least)
        return command_misused(call, count == 0 ? "no KEY" : "no DUR: for how long?");
    for (size_t i = 0; i < keys; i++) {
        const char *fault = key_fault(call->arguments.words[i]);
        if (fault)
            return command_wrong(call, "KEY", call->arguments.words[i], fault);
    }
    return STATUS_OK;
}

/* Reports a fault: with a pointer to the help if the status says that the command line is wrong.
 * Returns the status. */
static int report_fault(const struct call *call, int status, const char *fault)
{
    if (status == STATUS_USAGE)
        return command_misused(call, "%s", fault);
    command_error(call, "%s", fault);
    return status;
}

/* Takes a command through its steps, each of which may end it: its words, its settings, what the
 * store must be able to do, the store itself; then the command acts. */
static int perform_call(struct call *call)
{
    const struct command *command = call->command;
    int status = command->parse ? command->parse(call) : parse_call(call);

    if (status == STATUS_OK && command_has(call, OPTION_HELP))
        return command_help(command);
    settings_set_verbosity(&call->arguments);
    /* A text program may have changed the dashes of an option, or quotes. */
    for (size_t i = 0; status == STATUS_OK && i < call->arguments.word_count; i++)
        if (args_dash_length(call->arguments.words[i]) > 0)
            say_warning("%s: '%s' begins with another dash than that of an option", command->name,
                        URLS_TEXT(call->arguments.words[i]));
        else if (args_begins_with_quote(call->arguments.words[i]))
            say_warning("%s: %s begins with a quote that no shell removes", command->name,
                        URLS_TEXT(call->arguments.words[i]));
    if (status == STATUS_OK && command->check)
        status = command->check(call);
    if (status == STATUS_OK && !command->storeless) {
        char fault[MESSAGE_SIZE];
        status = settings_read(&call->settings, &call->arguments, fault, sizeof fault);
        if (status != STATUS_OK)
            status = report_fault(call, status, fault);
    }
    if (status == STATUS_OK && command->needs)
        status = command_need(call, command->needs);
    if (status == STATUS_OK && call->needs)
        status = command_need(call, call->needs);
    call->as_json |= command->json && command_has(call, command->json);
    if (status == STATUS_OK && call->as_json)
        status = command_load_json(call);
    if (status == STATUS_OK && command->asks)
        status = command_open(call);
    return status == STATUS_OK ? command->act(call) : status;
}

int command_execute(const struct command *command, int argc, char **argv)
{
    struct call *call = mem_zeroed(command->size ? command->size : sizeof *call);

    call->command = command;
    call->argc = argc;
    call->argv = argv;
    call->status = perform_call(call);
    if (command->end)
        command->end(call);
    int status = call->status, signal = call->signal;
    lock_list_free(&call->list);
    query_close(&call->query);
    settings_free(&call->settings);
    args_free(&call->arguments);
    free(call);
    return signal ? child_die_of(signal) : status;
}

void command_confirm(const struct call *call, const char *fmt, ...)
{
    char text[1024];
    va_list args;

    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    if (say_on_terminal())
        say_warning("%s: %s", call->command->name, text);
}

char *command_print_until(int64_t ns, char out[COMMAND_UNTIL_SIZE])
{
    int64_t now_ms = (int64_t)time(NULL) * 1000;
    char until[DESCRIBE_TIME_SIZE];

    snprintf(out, COMMAND_UNTIL_SIZE, "until %s (%s left)",
             describe_daytime(now_ms, now_ms + ns / NS_PER_MS, DESCRIBE_MINUTE, until),
             DURATION_TEXT(ns));
    return out;
}

int command_check_duration(const struct call *call, const char *word, int64_t *ns)
{
    if (!duration_parse(word, ns))
        return command_wrong(call, "DUR", word, duration_fault(word, DURATION_FAULT));
    if (*ns < NS_PER_SEC)
        return command_misused(call, "DUR must be at least 1s");
    return STATUS_OK;
}

int command_take_duration(const struct call *call, int id, int64_t *ns)
{
    const struct given_option *option = command_option(call, id);
    char name[40];

    if (!option || !option->value || duration_parse(option->value, ns))
        return STATUS_OK;
    snprintf(name, sizeof name, "--%s", option->name);
    return command_wrong(call, name, option->value, duration_fault(option->value, DURATION_FAULT));
}

int command_refuse_setting(const struct call *call, enum setting id, const char *why)
{
    char fault[MESSAGE_SIZE];
    int status = settings_refuse(&call->settings, id, why, fault, sizeof fault);

    return report_fault(call, status, fault);
}

int command_open(struct call *call)
{
    char fault[MESSAGE_SIZE];

    if (query_open(&call->query, &call->settings.address, call->command->name, fault, sizeof fault))
        return STATUS_OK;
    command_error(call, "%s", fault);
    return call->settings.address_status;
}

struct survey_request command_request(const struct call *call)
{
    return (struct survey_request){.patterns = (const char *const *)call->arguments.words,
                                   .pattern_count = call->arguments.word_count};
}

int command_load_json(const struct call *call)
{
    char fault[256];

    if (json_load(fault, sizeof fault))
        return STATUS_OK;
    command_error(call, "%s", fault);
    return STATUS_SYSTEM;
}

int command_catch_signals(struct call *call, struct inherited *inherited,
                          void (*on_signal)(void *owner, int signo))
{
    sigset_t caught;

    child_block_signals(inherited);
    child_choose_signals(&caught);
    return loop_signals(call->query.loop, &caught, on_signal, call) == 0
               ? STATUS_OK
               : command_system_refused(call);
}

bool command_has_color(const struct call *call)
{
    enum color_when color = call->settings.color;

    return color == COLOR_ALWAYS || (color == COLOR_AUTO && screen_is_there());
}

int command_help(const struct command *command)
{
    struct strbuf options ENDED_BY(strbuf_free) = {0};

    args_help(command->options, common_options, &options);
    for (size_t i = 0; i < 3 && command->usage[i]; i++)
        printf("%s rlock %s\n", i ? "      " : "usage:", command->usage[i]);
    printf("\n%s\n\n%s\n", command->summary, command->example);
    if (options.text)
        printf("%s\n", options.text);
    printf("Options of all commands, such as --url and -q: rlock help options\n"
           "More: man rlock-%s\n",
           command->name);
    return command_flush();
}

int command_help_options(void)
{
    struct strbuf options ENDED_BY(strbuf_free) = {0};

    args_help(common_options, NULL, &options);
    printf("Options of all commands\n\n%s\nMore: man rlock\n", options.text);
    return command_flush();
}

int command_print(struct strbuf *text)
{
    if (text->size > 0)
        fwrite(text->text, 1, text->size, stdout);
    int status = command_flush();
    strbuf_free(text);
    return status;
}

int command_flush(void)
{
    /* After an earlier write has failed, errno is still that of the last one. */
    if (fflush(stdout) == 0 && !ferror(stdout))
        return STATUS_OK;
    if (errno != EPIPE)
        say_error("cannot write to standard output: %s", strerror(errno));
    return STATUS_SYSTEM;
}
