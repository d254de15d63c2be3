/* rlock: run a command under a distributed lock. The table of subcommands. */
#include "cli/command.h"

#include <stdio.h>
#include <string.h>

#include "os/child.h"
#include "os/program.h"
#include "store/urls.h"
#include "commit.h" /* the Makefile writes it */

#ifndef PACKAGE_VERSION
#define PACKAGE_VERSION "unknown"
#endif

static const struct command *const commands[] = {
    &command_run,     &command_read,    &command_write,   &command_acquire, &command_renew,
    &command_release, &command_status,  &command_history, &command_events,  &command_force_release,
    &command_check,   &command_metrics, &command_limit,   &command_reserve, &command_extend,
    &command_pause,   &command_resume,  &command_latch,   &command_init,    &command_doctor,
    &command_local,   &command_top,     &command_serve,   &command_fence,
};

#define COMMAND_COUNT (sizeof commands / sizeof *commands)

static const struct command *find(const char *name)
{
    for (size_t i = 0; i < COMMAND_COUNT; i++)
        if (strcmp(commands[i]->name, name) == 0)
            return commands[i];
    return NULL;
}

static void print_usage(FILE *out)
{
    for (size_t i = 0; i < COMMAND_COUNT; i++) {
        for (size_t u = 0; u < 3 && commands[i]->usage[u]; u++)
            fprintf(out, "%s rlock %s\n", (i + u) ? "      " : "usage:", commands[i]->usage[u]);
    }
    fprintf(out, "       rlock help [COMMAND]\n       rlock --version\n");
}

static int print_help(void)
{
    print_usage(stdout);
    printf("\n");
    for (size_t i = 0; i < COMMAND_COUNT; i++)
        printf("  %-15s %s\n", commands[i]->name, commands[i]->summary);
    printf("\nExample:\n  rlock run deploy -- ./deploy.sh production\n");
    return command_flush();
}

static bool is_installed(const char *program)
{
    char path[4096];

    return program_find(program, path, sizeof path);
}

static int print_version(void)
{
    static const char *const programs[] = {"rlock-postgresql", "rlock-mysql", "rlock-top",
                                           "rlock-serve"};
    size_t count = 0;

    printf(*COMMIT ? "rlock %s (%s)\n" : "rlock %s\n", PACKAGE_VERSION, COMMIT);
    for (size_t i = 0; i < sizeof programs / sizeof *programs; i++)
        if (is_installed(programs[i]))
            printf(count++ ? ", %s" : "with %s", programs[i]);
    printf(count ? "\n" : "without rlock-postgresql, rlock-mysql, rlock-top, rlock-serve\n");
    return command_flush();
}

/* The edit distance of two short words (Levenshtein), or "many". */
static size_t distance(const char *a, const char *b)
{
    enum { MANY = 32 };
    size_t row[MANY], length = strlen(b);

    if (length >= MANY || strlen(a) >= MANY)
        return MANY;
    for (size_t j = 0; j <= length; j++)
        row[j] = j;
    for (size_t i = 1; a[i - 1]; i++) {
        size_t corner = row[0];
        row[0] = i;
        for (size_t j = 1; j <= length; j++) {
            size_t changed = corner + (a[i - 1] != b[j - 1]);
            corner = row[j];
            size_t moved = (row[j] < row[j - 1] ? row[j] : row[j - 1]) + 1;
            row[j] = changed < moved ? changed : moved;
        }
    }
    return row[length];
}

static const struct command *similar(const char *name)
{
    for (size_t i = 0; i < COMMAND_COUNT; i++)
        if (distance(name, commands[i]->name) <= (strlen(commands[i]->name) > 4 ? 2 : 1))
            return commands[i];
    return NULL;
}

/* argv[1] is no subcommand; perhaps the user thinks of flock(1). */
static int refuse(int argc, char **argv)
{
    const struct command *meant = similar(argv[1]);

    urls_blot(argv[1]); /* it may be a URL with a password */
    if (argv[1][0] == '-') {
        say_error("unknown option %.*s", (int)strcspn(argv[1], "="), argv[1]);
        say_hint("rlock run [OPTIONS] KEY -- COMMAND");
    } else {
        say_error("unknown command '%s'", argv[1]);
        if (meant)
            say_hint("did you mean '%s'?", meant->name);
        else if (argc > 2)
            say_hint("rlock run KEY -- COMMAND");
        else
            say_hint("rlock help");
    }
    return STATUS_USAGE;
}

static int help(int argc, char **argv)
{
    const struct command *command = argc > 2 ? find(argv[2]) : NULL;

    if (argc > 3) {
        say_error("help: takes one COMMAND");
        say_hint("rlock help");
        return STATUS_USAGE;
    }
    if (argc > 2 && !command) {
        urls_blot(argv[2]);
        say_error("help: unknown command '%s'", argv[2]);
        say_hint("rlock help");
        return STATUS_USAGE;
    }
    return command ? command_help(command) : print_help();
}

int main(int argc, char **argv)
{
    child_fill_standard_descriptors();
    if (argc < 2) {
        print_usage(stderr);
        return STATUS_USAGE;
    }
    const struct command *command = find(argv[1]);
    if (command)
        return command->run(command, argc - 1, argv + 1);
    if (strcmp(argv[1], "help") == 0)
        return help(argc, argv);
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0)
        return print_help();
    if (strcmp(argv[1], "--version") == 0 || strcmp(argv[1], "-V") == 0)
        return print_version();
    return refuse(argc, argv);
}
