/* Command lines: how they are read and refused; their help. */
#include "cli/args.h"

#include "tap.h"

#include <stdint.h>

static bool is_digit(const char *word)
{
    return word[0] >= '0' && word[0] <= '9';
}

static char *list_words(char *out, size_t size)
{
    (void)size;
    return strcpy(out, "one two");
}

static const struct option_spec wait_row = {.id = 1,
                                            .name = "wait",
                                            .also = "timeout",
                                            .letter = 'w',
                                            .argument = "DUR",
                                            .help = "another help",
                                            .initial = "5s"};

static const struct option_spec common[] = {ROW(.id = 5, .name = "url", .argument = "URL",
                                                .help = "of", .list = list_words,
                                                .variable = "RLOCK_URL", .initial = "here"),
                                            {0}};

static const struct option_spec table[] = {
    {.heading = "Waiting"},
    {.same = &wait_row, .help = "w"},
    {.id = 2,
     .name = "no-wait",
     .also = "nonblock",
     .letter = 'n',
     .synonym = 'W',
     .help = "do not wait"},
    {.id = 3, .name = "watch", .argument = "DUR", .optional = is_digit, .help = "draw again"},
    {.heading = "Rest"},
    ROW(.id = 4, .name = "a-name-that-is-long-for-a-column",
        .help = "twelve words of help that do not fit into what is left of one line"),
    {.table = common},
    {0}};

/* Words are separated by one space. "wanted": "ID=VALUE " for each option, then the words, then the
 * command after " -- "; or the fault. */
static const struct {
    const char *line;
    const char *wanted;
} rows[] = {
    {"run", ""},
    {"run k", "k "},
    {"run k -- ls -n", "k -- ls -n "},
    {"run k --", "k -- "},
    {"run -n k -- a -- b", "2 k -- a -- b "},
    {"run k -n -w 5s -- a", "2 1=5s k -- a "},
    {"run -nw5s k", "2 1=5s k "},
    {"run --wait=5s --timeout 6s --wai 7s k", "1=5s 1=6s 1=7s k "},
    {"run --wait= k", "1= k "},
    {"run --nonblock - k", "2 - k "},
    {"run --wait=-- k", "1=-- k "},
    {"run --watch 5 k", "3=5 k "},
    {"run --watch k 5", "3 k 5 "},
    {"run --watch=k 5", "3=k 5 "},
    {"run k --watch", "3 k "},
    {"run --watch -- 5", "3 -- 5 "},
    {"run --url=u k", "5=u k "},
    {"run --foo k", "unknown option --foo"},
    {"run --foo=secret k", "unknown option --foo"},
    {"run -z k", "unknown option -z"},
    {"run -nz k", "unknown option -z"},
    {"run -\u00e9t\u00e9 k", "unknown option -\u00e9"},
    {"run -n\u2013wait k", "unknown option -\u2013"},
    {"run -W k -W", "2 2 k "},
    {"run k -15m", "unknown option -1 (N and DUR are never negative)"},
    {"run -n5 k", "unknown option -5"},
    {"run --watch 5 --foo k", "unknown option --foo"},
    {"run --wa 5s k", "ambiguous option --wa"},
    {"run --no-wait=1 k", "option --no-wait takes no argument"},
    {"run k --wait", "option --wait needs an argument"},
    {"run k --timeout", "option --wait needs an argument"},
    {"run k -w", "option -w needs an argument"},
    {"run k -w -- a", "option -w needs an argument"},
    {"run k --wait -- -- a", "option --wait needs an argument"},
};

static const struct {
    const char *words[4];
    size_t dashes;
    const char *wanted;
} lines[] = {
    {{"run", "k", "ls"}, 2, "run k -- ls"},
    {{"run", "k", "ls"}, SIZE_MAX, "run k ls"},
    {{"a b", "", "it's", "$x"}, SIZE_MAX, "'a b' '' 'it'\"'\"'s' '$x'"},
};

static void summarise(const struct arguments *arguments, char *out)
{
    for (size_t i = 0; i < arguments->option_count; i++) {
        const struct given_option *option = &arguments->options[i];
        out += option->value ? sprintf(out, "%d=%s ", option->id, option->value)
                             : sprintf(out, "%d ", option->id);
    }
    for (size_t i = 0; i < arguments->word_count; i++)
        out += sprintf(out, "%s ", arguments->words[i]);
    if (arguments->command)
        out += sprintf(out, "-- ");
    for (char *const *word = arguments->command; word && *word; word++)
        out += sprintf(out, "%s ", *word);
}

/* A command line is parsed as the table says. Its words have one space between them. */
static void check_line(const char *line, const char *wanted)
{
    char text[200], got[200] = "";
    char *argv[20];
    int argc = 0;
    struct arguments arguments;

    strcpy(text, line);
    for (char *word = text; word; argc++) {
        char *space = strchr(word, ' ');
        if (space)
            *space++ = '\0';
        argv[argc] = word;
        word = space;
    }
    argv[argc] = NULL;
    if (args_parse(argc, argv, table, &arguments))
        summarise(&arguments, got);
    else
        strcpy(got, arguments.fault);
    tap_is(got, wanted, "args_parse", line);
    args_free(&arguments);
}

int main(void)
{
    static const char help[] = "Waiting\n"
                               "  -w, --wait, --timeout DUR   w (default 5s)\n"
                               "  -n, -W, --no-wait, --nonblock\n"
                               "                              do not wait\n"
                               "      --watch[=DUR]           draw again\n"
                               "\n"
                               "Rest\n"
                               "      --a-name-that-is-long-for-a-column\n"
                               "                              twelve words of help that do not fit "
                               "into what is\n"
                               "                              left of one line\n";
    struct strbuf out = {0};

    for (size_t i = 0; i < COUNT(rows); i++)
        check_line(rows[i].line, rows[i].wanted);
    setenv("POSIXLY_CORRECT", "1", 1);
    check_line("run k -n", "2 k ");
    for (size_t i = 0; i < COUNT(lines); i++) {
        size_t count = lines[i].words[3] ? 4 : 3;
        char *words[4] = {NULL};
        for (size_t w = 0; w < count; w++)
            words[w] = strdup(lines[i].words[w]);
        args_print(words, count, lines[i].dashes, &out);
        tap_is(out.text, lines[i].wanted, "args_print", lines[i].wanted);
        strbuf_free(&out);
        for (size_t w = 0; w < count; w++)
            free(words[w]);
    }
    args_help(table, common, &out);
    tap_is(out.text, help, "args_help", "the table");
    strbuf_free(&out);
    args_help(common, NULL, &out);
    tap_is(out.text, "      --url URL               of one two (RLOCK_URL; default here)\n",
           "args_help", "a list, a variable, a default");
    strbuf_free(&out);
    return tap_done();
}
