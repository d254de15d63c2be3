/* rlock: run a command under a distributed lock. The table of subcommands. */
#include "cmd/commands.h"

#include <errno.h>
#include <string.h>
#include <sys/resource.h>

#include "base/similar.h"
#include "base/text.h"
#include "os/child.h"
#include "os/kernel.h"
#include "os/program.h"
#include "store/url.h"
#include "commit.h" /* the Makefile writes it */

#ifndef PACKAGE_VERSION
#define PACKAGE_VERSION "unknown"
#endif

/* Bytes; with 96 kB agents were killed, and so were those that took their place. */
#define STACK_LEAST (UINT64_C(256) << 10)

/* All commands, as `rlock help` lists them. */
static const struct {
    const struct command *command;
    const char *title; /* of the group that begins with it; NULL: it goes with the one before */
} commands[] = {
    {&command_run, "Run things"}, {&command_read, NULL},         {&command_write, NULL},
    {&command_fence, NULL},       {&command_status, "Look"},     {&command_top, NULL},
    {&command_history, NULL},     {&command_events, NULL},       {&command_check, NULL},
    {&command_metrics, NULL},     {&command_serve, NULL},        {&command_force_release, "People"},
    {&command_reserve, NULL},     {&command_extend, NULL},       {&command_pause, NULL},
    {&command_resume, NULL},      {&command_acquire, "Scripts"}, {&command_renew, NULL},
    {&command_release, NULL},     {&command_latch, NULL},        {&command_doctor, "The store"},
    {&command_config, NULL},      {&command_init, NULL},         {&command_limit, NULL},
    {&command_local, NULL},
};

#define COUNT (sizeof commands / sizeof *commands)

static const struct command *find_command(const char *name)
{
    for (size_t i = 0; i < COUNT; i++)
        if (strcmp(commands[i].command->name, name) == 0)
            return commands[i].command;
    return NULL;
}

static const char first_screen[] =
    "rlock runs a command while it holds a lock that all your hosts share.\n"
    "\n"
    "  Run things  rlock run KEY -- COMMAND         one at a time, on all hosts\n"
    "              rlock read KEY -- COMMAND        many readers, or one writer\n"
    "              rlock run --limit N KEY -- ...   at most N at a time\n"
    "  Look        rlock status [KEY]               who holds what, and who waits\n"
    "              rlock top                        the same, live\n"
    "              rlock history [KEY]              the last runs, and how they ended\n"
    "  People      rlock reserve KEY 2h -m WHY      a lock for a person\n"
    "              rlock force-release KEY          take a lock away\n"
    "  Scripts     rlock acquire KEY                a lock for a script\n"
    "  The store   rlock doctor                     is it fit to hold locks?\n"
    "\n"
    "rlock help lists all commands; rlock help COMMAND and man rlock explain them.\n";

static int print_help(void)
{
    printf("rlock runs a command while it holds a lock that all your hosts share.\n");
    for (size_t i = 0; i < COUNT; i++) {
        if (commands[i].title)
            printf("\n%s\n", commands[i].title);
        printf("  %-15s %s\n", commands[i].command->name, commands[i].command->summary);
    }
    printf("\nrlock help COMMAND explains one, rlock help options the options of all;\n"
           "rlock --version prints the version.\n"
           "Example: rlock run deploy -- ./deploy.sh production\n");
    return command_flush();
}

static int print_version(void)
{
    static const char *const programs[] = {"rlock-postgresql", "rlock-mysql", "rlock-etcd",
                                           "rlock-external",   "rlock-top",   "rlock-serve"};
    char path[4096];
    size_t count = 0;

    printf(*COMMIT ? "rlock %s (%s)\n" : "rlock %s\n", PACKAGE_VERSION, COMMIT);
    for (size_t i = 0; i < sizeof programs / sizeof *programs; i++)
        if (program_find(programs[i], path, sizeof path))
            printf(count++ ? ", %s" : "with %s", programs[i]);
    printf(count ? "\n"
                 : "without rlock-postgresql, rlock-mysql, rlock-etcd, rlock-external, "
                   "rlock-top, rlock-serve\n");
    return command_flush();
}

/* Returns the commands that go by that name in other tools, or NULL. */
static const char *commands_for_synonym(const char *name)
{
    static const struct {
        const char *name, *meant;
    } synonyms[] = {
        {"list", "'status'"},        {"ls", "'status'"},
        {"ps", "'status'"},          {"lock", "'run'"},
        {"exec", "'run'"},           {"unlock", "'release' or 'force-release'"},
        {"kill", "'force-release'"}, {"version", "'--version'"},
    };

    for (size_t i = 0; i < sizeof synonyms / sizeof *synonyms; i++)
        if (strcmp(synonyms[i].name, name) == 0)
            return synonyms[i].meant;
    return NULL;
}

/* Reports an option in front of a subcommand, and hints at the line that was meant. False: there is
 * no subcommand behind it, and nothing is said. */
static bool report_order(int argc, char **argv)
{
    struct strbuf line ENDED_BY(strbuf_free) = {0};
    int i = 2;

    while (i < argc && !find_command(argv[i]))
        i++;
    if (i == argc)
        return false;
    char *command = argv[i];
    say_error("%.*s: options come after '%s'", (int)strcspn(argv[1], "="), argv[1], command);
    memmove(argv + 2, argv + 1, (size_t)(i - 1) * sizeof *argv);
    argv[1] = command;
    args_print(argv + 1, (size_t)argc - 1, SIZE_MAX, &line);
    command_hint_line(&line, "", "COMMAND [OPTIONS] ...");
    return true;
}

/* Hints at the command whose name is similar. False: none is, and nothing is said. */
static bool hint_at_similar(const char *name)
{
    const struct command *meant = NULL;
    size_t slips = SLIPS_MANY;

    for (size_t i = 0; i < COUNT; i++)
        if (similar_is_nearer(name, strlen(name), commands[i].command->name, &slips))
            meant = commands[i].command;
    if (meant)
        say_hint("did you mean '%s'?", meant->name);
    return meant;
}

/* Reports that argv[1] is not a subcommand, and hints at what was meant; perhaps the user thinks of
 * flock(1). Returns STATUS_USAGE. */
static int refuse_word(int argc, char **argv)
{
    const char *other = commands_for_synonym(argv[1]);
    const char *const *words = (const char *const *)argv + 2;

    for (int i = 1; i < argc; i++)
        urls_blot(argv[i]); /* it may be a URL with a password */
    if (argv[1][0] == '-' && report_order(argc, argv))
        return STATUS_USAGE;
    if (argv[1][0] == '-') {
        say_error("%.*s: unknown option", (int)strcspn(argv[1], "="), argv[1]);
        say_hint("rlock run [OPTIONS] KEY -- COMMAND");
    } else {
        say_error("'%s': unknown command", argv[1]);
        if (other) {
            say_hint("did you mean %s?", other);
        } else if (hint_at_similar(argv[1])) {
            return STATUS_USAGE;
        } else if (argc > 3 && text_is_among(words, (size_t)argc - 3, "--")) {
            /* The line that was meant: the same words, quoted for a shell. */
            struct strbuf line ENDED_BY(strbuf_free) = {0};
            strbuf_puts(&line, "run ");
            args_print(argv + 1, (size_t)argc - 1, SIZE_MAX, &line);
            command_hint_line(&line, "", "run KEY -- COMMAND");
        } else {
            say_hint(argc > 2 ? "rlock run KEY -- COMMAND" : "rlock help");
        }
    }
    return STATUS_USAGE;
}

/* rlock help --complete [WORD...]: prints words that fit in place of the last one, of a line behind
 * "rlock". */
static int complete_line(int count, char **words)
{
    const struct command *command = count > 1 ? find_command(words[0]) : NULL;

    if (command)
        return complete(command, count, words);
    if (count > 2 || (count == 2 && strcmp(words[0], "help") != 0))
        return STATUS_OK;
    for (size_t i = 0; i < COUNT; i++)
        printf("%s\t%s\n", commands[i].command->name, commands[i].command->summary);
    printf(count < 2 ? "help\tthe help of a command\n--version\t\n--help\t\n"
                     : "options\tthose of all commands\n");
    return command_flush();
}

static int show_help(int argc, char **argv)
{
    const struct command *command = argc > 2 ? find_command(argv[2]) : NULL;

    if (argc > 2 && strcmp(argv[2], "--complete") == 0)
        return complete_line(argc - 3, argv + 3);
    if (argc > 3) {
        say_error("help: takes one COMMAND");
        say_hint("rlock help");
        return STATUS_USAGE;
    }
    if (argc > 2 && strcmp(argv[2], "options") == 0)
        return command_help_options();
    if (argc > 2 && !command) {
        urls_blot(argv[2]);
        say_error("help: unknown command '%s'", argv[2]);
        if (!hint_at_similar(argv[2]))
            say_hint("rlock help");
        return STATUS_USAGE;
    }
    return command ? command_help(command) : print_help();
}

int main(int argc, char **argv)
{
    struct rlimit stack;

    child_fill_standard_descriptors();
    if (argc < 2) {
        fputs(first_screen, stderr);
        return STATUS_USAGE;
    }
    const struct command *command = find_command(argv[1]);
    if (strcmp(argv[1], "help") == 0)
        return show_help(argc, argv);
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0)
        return print_help();
    if (strcmp(argv[1], "--version") == 0 || strcmp(argv[1], "-V") == 0)
        return print_version();
    if (!command)
        return refuse_word(argc, argv);
    if (getrlimit(RLIMIT_STACK, &stack) == 0 && stack.rlim_cur < STACK_LEAST) {
        say_error("a stack of %ju kB is too small: rlock needs %ju kB (ulimit -s, LimitSTACK=)",
                  (uintmax_t)stack.rlim_cur >> 10, (uintmax_t)STACK_LEAST >> 10);
        return STATUS_SYSTEM;
    }
    /* Where the kernel refuses a call that is needed, a later failure would go unnoticed. */
    const char *refused = kernel_refuses_silently();
    if (refused) {
        say_error("the operating system refuses: %s: %s", refused, strerror(errno));
        return STATUS_SYSTEM;
    }
    const char *elsewhere = kernel_forks_elsewhere();
    if (elsewhere) {
        say_error("%s: %s", command->name, elsewhere);
        return STATUS_SYSTEM;
    }
    return command_execute(command, argc - 1, argv + 1);
}
