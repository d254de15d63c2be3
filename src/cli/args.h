/* Command lines: one const table of options a command, from which they are parsed and their help is
 * printed. Options may stand anywhere before "--"; what follows it is left alone. Pure. */
#ifndef RLOCK_CLI_ARGS_H
#define RLOCK_CLI_ARGS_H

#include <stdbool.h>
#include <stddef.h>

#define ARGS_OPTIONS_MAX 64 /* long names in one table */

/* One option. A table ends with one without a name. */
struct option_spec {
    int id;               /* any positive number */
    const char *name;     /* the long name, without its dashes */
    const char *also[2];  /* other long names, NULL if none */
    char letter;          /* 0 if none */
    const char *argument; /* its name in the help; NULL: takes none */
    /* The argument may be left out; as a word of its own it is taken only if this agrees. */
    bool (*optional)(const char *word);
    const char *help; /* one sentence; wrapped when printed */
};

struct given_option {
    int id;
    char *value; /* NULL if none */
};

struct arguments {
    struct given_option *options; /* in the order given */
    size_t option_count;
    char **words; /* before "--", no options; NULL-terminated */
    size_t word_count;
    char *const *command; /* what follows "--", NULL-terminated; NULL when there is no "--" */
    char fault[256];
};

/* Parses argv[1] to argv[argc - 1]. False with arguments->fault ("unknown option --foo", "option
 * --wait needs an argument", …) and what was understood up to there. Values and words point into
 * argv; give back with args_free() in either case. False with fault "out of memory" too. */
bool args_parse(int argc, char *const *argv, const struct option_spec *table,
                struct arguments *arguments);
void args_free(struct arguments *arguments);

/* Prints the table's help, "  -n, --no-wait, --nonblock   …" and so on, into out. Returns its
 * length as snprintf does. */
size_t args_help(const struct option_spec *table, char *out, size_t size);

/* Prints a command line for a reader who may paste it: words quoted for sh where needed. The word
 * at "dashes" is preceded by "--"; SIZE_MAX for none. Cut at size. Returns out. */
char *args_print(char *const *words, size_t count, size_t dashes, char *out, size_t size);

#endif
