#include "cli/args.h"

#include <getopt.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/similar.h"
#include "base/utf8.h"

#define LINE_WIDTH  79
#define HELP_INDENT 30

/* getopt_long() returns the index of the option's row, moved above all letters. */
#define ROW_BASE 256

struct getopt_tables {
    struct option longs[ARGS_OPTIONS_MAX + 1];
    char letters[2 + 2 * 3 * ARGS_OPTIONS_MAX + 1];
};

/* Words what is wrong with the arguments. Returns false, for the caller to return. */
__attribute__((format(printf, 2, 3))) static bool set_fault(struct arguments *arguments,
                                                            const char *fmt, ...)
{
    va_list list;
    va_start(list, fmt);
    vsnprintf(arguments->fault, sizeof arguments->fault, fmt, list);
    va_end(list);
    return false;
}

/* Appends the options of a table, and of the tables in it but "except", to the rows, of which there
 * are "count". The row behind them is {0}, or has the heading of the option that comes next.
 * Returns how many rows there are then. */
static size_t flatten_options(const struct option_spec *table, const struct option_spec *except,
                              struct option_row *rows, size_t count)
{
    for (; table->name || table->heading || table->same || table->table; table++) {
        if (!table->name && table->table) {
            if (table->table != except)
                count = flatten_options(table->table, except, rows, count);
        } else if (!table->name && table->heading) {
            rows[count].heading = table->heading;
        } else if (count < ARGS_OPTIONS_MAX) {
            rows[count].spec = table->name ? table : table->same;
            rows[count].help = table->help ? table->help : rows[count].spec->help;
            rows[++count] = (struct option_row){0};
        }
    }
    return count;
}

size_t args_flatten(const struct option_spec *table, const struct option_spec *except,
                    struct option_row rows[ARGS_OPTIONS_MAX + 1])
{
    rows[0] = (struct option_row){0};
    return table == except ? 0 : flatten_options(table, except, rows, 0);
}

/* Returns how many colons getopt_long() wants behind a letter, which is its word for a long option,
 * too: 0, 1 for an argument, 2 for one that may be left out. */
static int count_colons(const struct option_spec *spec)
{
    return !spec->argument ? no_argument : spec->optional ? optional_argument : required_argument;
}

/* Makes the tables of getopt_long() of the rows. A long name has ROW_BASE and the number of its row
 * as its value, and a short one its letter. */
static void make_tables(const struct option_row *rows, struct getopt_tables *tables)
{
    struct option *next = tables->longs;
    char *letter = tables->letters;

    *letter++ = '-'; /* words come in order, whatever POSIXLY_CORRECT says */
    *letter++ = ':'; /* a missing argument is told from an unknown option */
    for (int i = 0; rows[i].spec; i++) {
        const struct option_spec *spec = rows[i].spec;
        const char *names[] = {spec->name, spec->also};
        for (size_t j = 0; j < 2; j++)
            if (names[j] && next < tables->longs + ARGS_OPTIONS_MAX)
                *next++ = (struct option){names[j], count_colons(spec), NULL, ROW_BASE + i};
        const char both[] = {spec->letter, spec->synonym, '\0'};
        for (const char *one = both; *one; one++) {
            *letter++ = *one;
            for (int colons = count_colons(spec); colons > 0; colons--)
                *letter++ = ':';
        }
    }
    *next = (struct option){0};
    *letter = '\0';
}

/* Finds the option that was given, by what getopt_long() has returned: ROW_BASE and the number of a
 * row, or a letter. NULL: there is no such letter. */
static const struct option_spec *find_spec(const struct option_row *rows, int found)
{
    if (found >= ROW_BASE)
        return rows[found - ROW_BASE].spec;
    for (; rows->spec; rows++)
        if (rows->spec->letter == found || rows->spec->synonym == found)
            return rows->spec;
    return NULL;
}

/* Finds the long name that was meant; NULL if none is similar. */
static const char *find_similar(const struct option_row *rows, const char *name, size_t length)
{
    const char *nearest = NULL;
    size_t slips = SLIPS_MANY;

    for (; rows->spec; rows++) {
        const char *names[] = {rows->spec->name, rows->spec->also};
        for (size_t i = 0; i < 2; i++)
            if (names[i] && similar_is_nearer(name, length, names[i], &slips))
                nearest = names[i];
    }
    return nearest;
}

/* Moves *word, "-abc", to the first of its letters that is not an option. Returns the bytes of that
 * letter; optopt has only the first of them. */
static int find_unknown_letter(const struct option_row *rows, const char **word)
{
    const char *end = *word + 1;
    uint32_t letter;

    do {
        *word = end;
        letter = utf8_next(&end);
    } while (letter > 0 && letter < 0x80 && find_spec(rows, (int)letter));
    return (int)(end - *word);
}

/* Words why "word" has an option that getopt_long() does not take ('?'). Returns false, for the
 * caller to return. */
static bool refuse_option(const struct option_row *rows, const char *word,
                          struct arguments *arguments)
{
    if (word[1] == '-' && optopt >= ROW_BASE) /* known, but followed by "=VALUE" */
        return set_fault(arguments, "option --%s takes no argument", find_spec(rows, optopt)->name);
    if (optopt >= '0' && optopt <= '9' && word[1] == optopt)
        return set_fault(arguments, "unknown option -%c (N and DUR are never negative)", optopt);
    if (word[1] != '-') {
        int length = find_unknown_letter(rows, &word);
        return set_fault(arguments, "unknown option -%.*s", length, word);
    }
    size_t length = strcspn(word, "=");
    int matches = 0; /* a name may be cut short as long as it fits only one option */
    for (const struct option_row *row = rows; row->spec; row++) {
        const char *also = row->spec->also;
        matches += strncmp(row->spec->name, word + 2, length - 2) == 0 ||
                   (also && strncmp(also, word + 2, length - 2) == 0);
    }
    bool ambiguous = matches > 1;
    const char *meant = ambiguous ? NULL : find_similar(rows, word + 2, length - 2);
    return set_fault(arguments, "%s option %.*s%s%s%s", ambiguous ? "ambiguous" : "unknown",
                     (int)length, word, meant ? "; did you mean --" : "", meant ? meant : "",
                     meant ? "?" : "");
}

/* Words that an option lacks its argument. found: the letter by which it was given; from ROW_BASE
 * on: it was given by its long name. Returns false, for the caller to return. */
static bool refuse_without_argument(const struct option_spec *spec, int found,
                                    struct arguments *arguments)
{
    arguments->missing = spec->id;
    if (found < ROW_BASE)
        return set_fault(arguments, "option -%c needs an argument", found);
    return set_fault(arguments, "option --%s needs an argument", spec->name);
}

bool args_parse(int argc, char *const *argv, const struct option_spec *table,
                struct arguments *arguments)
{
    struct option_row rows[ARGS_OPTIONS_MAX + 1];
    size_t room = (size_t)argc + 1;

    *arguments = (struct arguments){0};
    arguments->options = mem_zeroed(room * sizeof *arguments->options);
    arguments->words = mem_zeroed(room * sizeof *arguments->words);
    args_flatten(table, NULL, rows);
    struct getopt_tables tables;
    int c, at = 1; /* where the call of getopt_long() began */
    make_tables(rows, &tables);
    opterr = 0;
    optind = 0; /* glibc and musl: forget an earlier command line */
    for (; (c = getopt_long(argc, argv, tables.letters, tables.longs, NULL)) != -1; at = optind) {
        if (c == 1) { /* not an option but a word */
            arguments->words[arguments->word_count++] = optarg;
        } else if (c == '?') {
            return refuse_option(rows, argv[at], arguments);
        } else if (c == ':') {
            return refuse_without_argument(find_spec(rows, optopt), optopt, arguments);
        } else {
            const struct option_spec *spec = find_spec(rows, c);
            /* getopt_long() would take the "--" in front of COMMAND for the argument. */
            if (optarg && optarg == argv[optind - 1] && strcmp(optarg, "--") == 0)
                return refuse_without_argument(spec, c, arguments);
            struct given_option *given = &arguments->options[arguments->option_count++];
            *given = (struct given_option){spec->id, spec->name, optarg, arguments->word_count};
            if (!optarg && spec->optional && optind < argc && spec->optional(argv[optind]))
                given->value = argv[optind++];
        }
    }
    if (at < argc) /* only "--" ends it before the last word, since words come as options */
        arguments->command = argv + optind;
    return true;
}

void args_free(struct arguments *arguments)
{
    free(arguments->options);
    free(arguments->words);
    *arguments = (struct arguments){0};
}

const struct given_option *args_option(const struct arguments *arguments, int id)
{
    for (size_t i = arguments->option_count; i > 0; i--)
        if (arguments->options[i - 1].id == id)
            return &arguments->options[i - 1];
    return NULL;
}

/* Prints words up to the width of a line, from "*column" on; further lines are indented. */
static void wrap_words(struct strbuf *out, size_t *column, const char *text)
{
    for (; *text; text += strspn(text, " ")) {
        size_t length = strcspn(text, " ");
        if (*column > HELP_INDENT && *column + 1 + length > LINE_WIDTH) {
            strbuf_printf(out, "\n%*s", HELP_INDENT, "");
            *column = HELP_INDENT;
        } else if (*column > HELP_INDENT) {
            strbuf_putc(out, ' ');
            ++*column;
        }
        strbuf_add(out, text, length);
        *column += length;
        text += length;
    }
}

/* Prints what an option does, and "(VARIABLE; default VALUE)", from the column HELP_INDENT on. */
static void print_meaning(const struct option_row *row, struct strbuf *out)
{
    const struct option_spec *spec = row->spec;
    const char *initial = /* the default that is shown */
        !spec->initial || strcmp(spec->initial, "0") == 0 || strcmp(spec->initial, "no") == 0
            ? NULL
            : spec->initial;
    size_t column = HELP_INDENT;
    char text[400];

    wrap_words(out, &column, row->help);
    if (spec->list)
        wrap_words(out, &column, spec->list(text, sizeof text));
    if (spec->variable || initial) {
        snprintf(text, sizeof text, "(%s%s%s%s)", spec->variable ? spec->variable : "",
                 spec->variable && initial ? "; " : "", initial ? "default " : "",
                 initial ? initial : "");
        wrap_words(out, &column, text);
    }
    strbuf_putc(out, '\n');
}

void args_help(const struct option_spec *table, const struct option_spec *except,
               struct strbuf *out)
{
    struct option_row rows[ARGS_OPTIONS_MAX + 1];
    size_t count = args_flatten(table, except, rows);

    for (size_t i = 0; i < count; i++) {
        const struct option_spec *spec = rows[i].spec;
        if (rows[i].heading)
            strbuf_printf(out, "%s%s\n", out->size ? "\n" : "", rows[i].heading);
        size_t start = out->size;
        if (spec->synonym)
            strbuf_printf(out, "  -%c, -%c, --%s", spec->letter, spec->synonym, spec->name);
        else if (spec->letter)
            strbuf_printf(out, "  -%c, --%s", spec->letter, spec->name);
        else
            strbuf_printf(out, "      --%s", spec->name);
        if (spec->also)
            strbuf_printf(out, ", --%s", spec->also);
        if (spec->argument)
            strbuf_printf(out, spec->optional ? "[=%s]" : " %s", spec->argument);
        size_t column = out->size - start;
        if (column + 2 > HELP_INDENT) {
            strbuf_putc(out, '\n');
            column = 0;
        }
        strbuf_printf(out, "%*s", (int)(HELP_INDENT - column), "");
        print_meaning(&rows[i], out);
    }
}

size_t args_dash_length(const char *text)
{
    const char *end = text;
    uint32_t c = utf8_next(&end);

    return (c >= 0x2010 && c <= 0x2015) || c == 0x2212 ? (size_t)(end - text) : 0;
}

bool args_begins_with_quote(const char *word)
{
    uint32_t c = utf8_next(&word);

    return (c >= 0x2018 && c <= 0x201f) || c == 0xab || c == 0xbb;
}

void args_print_word(const char *word, struct strbuf *out)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                                "_-+=./:,@%^";

    if (*word && word[strspn(word, plain)] == '\0') {
        strbuf_puts(out, word);
        return;
    }
    strbuf_putc(out, '\'');
    for (; *word; word++)
        strbuf_printf(out, *word == '\'' ? "'\"'\"'" : "%c", *word);
    strbuf_putc(out, '\'');
}

void args_print(char *const *words, size_t count, size_t dashes, struct strbuf *out)
{
    for (size_t i = 0; i < count; i++) {
        strbuf_puts(out, i ? " " : "");
        strbuf_puts(out, i == dashes ? "-- " : "");
        args_print_word(words[i], out);
    }
}
