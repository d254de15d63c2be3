/* Command lines: each command has one const table of options, from which they are parsed and their
 * help and completions are printed. Options may stand anywhere before "--"; the words after it are
 * not touched. Pure. */
#pragma once

#include <stdbool.h>

#include "base/strbuf.h"

#define ARGS_OPTIONS_MAX 80 /* rows, and long names, in one table */

/* A row of a table: an option, or without a name one of three other kinds. {0} ends a table. */
struct option_spec {
    int id;               /* any positive number */
    char letter;          /* 0 if none */
    char synonym;         /* another letter; 0 if none */
    const char *name;     /* the long name, without its dashes */
    const char *also;     /* another long name; NULL: none */
    const char *argument; /* its name in the help; NULL: takes none */
    /* The argument may be left out; as a word of its own it is taken only if this agrees. */
    bool (*optional)(const char *word);
    const char *help; /* one sentence; wrapped when printed, and followed by "list", "variable" */
    /* Prints further words that it may be. NULL: there are none. Returns out. */
    char *(*list)(char *out, size_t size);
    union {
        struct {
            const char *variable; /* of the environment, with the same meaning; NULL: none */
            const char *initial;  /* the value without it, NULL: none; "0" and "no" are not shown */
            const char *values;   /* words that it may be, separated by blanks; NULL: any */
        };
        struct {
            const char *heading;             /* a title for the rows that follow */
            const struct option_spec *same;  /* that row, but for the help where this one has it */
            const struct option_spec *table; /* the rows of that table */
        };
    };
};

/* A row of an option, perhaps with further members. ARGUMENT, NULL: none. */
#define OPTION(ID, NAME, ARGUMENT, HELP, ...)                                                      \
    {                                                                                              \
        .id = (ID), .name = NAME, .argument = ARGUMENT, .help = HELP, __VA_ARGS__                  \
    }

/* An option of a table, as it is when all its rows are resolved. */
struct option_row {
    const struct option_spec *spec;
    const char *help;
    const char *heading; /* above it; NULL: none */
};

struct given_option {
    int id;
    const char *name; /* the long one of its row */
    char *value;      /* NULL if none */
    size_t words;     /* so many stand before it */
};

struct arguments {
    struct given_option *options; /* in the order given */
    size_t option_count;
    char **words; /* before "--", no options; NULL-terminated */
    size_t word_count;
    char *const *command; /* the words after "--", NULL-terminated; NULL when there is no "--" */
    char fault[256];
    int missing; /* the option at the end that lacks its argument; 0: none */
};

/* Parses argv[1] to argv[argc - 1]. Returns false with arguments->fault ("unknown option --foo",
 * "option --wait needs an argument", …) and the options and words before that. Values and words
 * point into argv; release with args_free() in either case. */
bool args_parse(int argc, char *const *argv, const struct option_spec *table,
                struct arguments *arguments);
void args_free(struct arguments *arguments);
/* Returns the option as last given, or NULL. */
const struct given_option *args_option(const struct arguments *arguments, int id);

/* Lists the options of a table, {0} behind them, without those of the tables at "except", which may
 * be NULL. Returns the number of options. */
size_t args_flatten(const struct option_spec *table, const struct option_spec *except,
                    struct option_row rows[ARGS_OPTIONS_MAX + 1]);

/* Prints the table's help, "  -n, --no-wait, --nonblock   do not wait" and so on, to the end of
 * out, without the rows of the table "except", which may be NULL. */
void args_help(const struct option_spec *table, const struct option_spec *except,
               struct strbuf *out);

/* Returns the length of the dash that a text begins with and that a text program has made of "-" or
 * "--"; 0: the text begins otherwise. */
size_t args_dash_length(const char *text);
/* Whether a word begins with a quote that a text program has made of " or '. */
bool args_begins_with_quote(const char *word);

/* Prints a word for a reader who may paste it, quoted for sh where needed. */
void args_print_word(const char *word, struct strbuf *out);

/* Prints a command line, its words as above. The word at "dashes" is preceded by "--"; SIZE_MAX for
 * none. */
void args_print(char *const *words, size_t count, size_t dashes, struct strbuf *out);
