/* The request for a lock, out of a command line. */
#include "cli/request.h"

#include "lock/key.h"
#include "tap.h"

static const struct option_spec options[] = {
    {.table = request_modes},          SETTING(NO_REENTRANT),
    {.id = OPTION_ANY, .name = "any"}, {.id = OPTION_TAKE, .name = "take", .argument = "N"},
    {.table = request_rest},           {0}};

/* Words are separated by one space. wanted: the keys, the mode, the limit; or the fault. */
static const struct {
    const char *line;
    int preset;
    const char *wanted;
} rows[] = {
    {"k", 0, "k exclusive 0"},
    {"-x k", 0, "k exclusive 0"},
    {"--write k", 0, "k exclusive 0"},
    {"-s k", 0, "k shared 0"},
    {"--read k", 0, "k shared 0"},
    {"--shared --read k", 0, "k shared 0"},
    {"--limit 1 k", 0, "k limit 1"},
    {"--limit k", 0, "k limit 0"},
    {"--limit 3x k", 0, "3x,k limit 0"},
    {"--limit=100000 k", 0, "k limit 100000"},
    {"k --limit 3 --limit 5", 0, "k limit 5"},
    {"k", OPTION_SHARED, "k shared 0"},
    {"k", OPTION_EXCLUSIVE, "k exclusive 0"},
    {"--read k", OPTION_SHARED, "k shared 0"},
    {"--write k", OPTION_SHARED, "only one of --read, --write and --limit"},
    {"--read k", OPTION_EXCLUSIVE, "only one of --read, --write and --limit"},
    {"--limit 2 k", OPTION_EXCLUSIVE, "only one of --read, --write and --limit"},
    {"--read --write k", 0, "only one of --read, --write and --limit"},
    {"--limit 3 --read k", 0, "only one of --read, --write and --limit"},
    {"-x --limit 3 k", 0, "only one of --read, --write and --limit"},
    {"--limit 0 k", 0, "--limit '0' is not a number from 1 to 100000"},
    {"--limit=-1 k", 0, "--limit '-1' is not a number from 1 to 100000"},
    {"--limit=+1 k", 0, "--limit '+1' is not a number from 1 to 100000"},
    {"--limit 100001 k", 0, "--limit '100001' is not a number from 1 to 100000"},
    {"--limit 4294967297 k", 0, "--limit '4294967297' is not a number from 1 to 100000"},
    {"--limit 99999999999999999999 k", 0,
     "--limit '99999999999999999999' is not a number from 1 to 100000"},
    {"--limit=3x k", 0, "--limit '3x' is not a number from 1 to 100000"},
    {"--limit=1e3 k", 0, "--limit '1e3' is not a number from 1 to 100000"},
    {"b a", 0, "b,a exclusive 0"},
    {"b a b a", 0, "b,a exclusive 0"},
    {"--no-reentrant a --limit 2 c b", 0, "a,c,b limit 2"},
    {"a b{c}", 0, "KEY 'b{c}' has a '{' or '}' in it"},
    {"--read", 0, "no KEY"},
    {"--any a", 0, "a exclusive 0"},
    {"--any a a", 0, "a exclusive 0"},
    {"--any a b", 0, "a,b exclusive 0, one of a, b"},
    {"a --any --read b", 0, "a,b shared 0, one of a, b"},
    {"--any --take 1 a b", 0, "a,b exclusive 0, one of a, b"},
    {"--any --take 2 a b c", 0, "a,b,c exclusive 0, 2 of a, b, c"},
    {"--take=2 a b c --any --limit 3", 0, "a,b,c limit 3, 2 of a, b, c"},
    {"--take 1 a b", 0, "--take without --any"},
    {"--any --take 1 a", 0, "--take '1' does not go with one KEY"},
    {"--any --take 1 a a", 0, "--take '1' does not go with one KEY"},
    {"--any --take 0 a b", 0,
     "--take '0' is not a number from 1 to 1, one less than there are KEYs"},
    {"--any --take 2 a b a", 0,
     "--take '2' is not a number from 1 to 1, one less than there are KEYs"},
    {"--any --take x a b c", 0,
     "--take 'x' is not a number from 1 to 2, one less than there are KEYs"},
    {"--any --mirror string:m a b", 0, "--mirror needs an exclusive lock of one KEY"},
    {"--any --mirror string:m a", 0, "a exclusive 0"},
};

static void print_request(const struct request *request, char *out)
{
    for (size_t i = 0; i < request->wanted.key_count; i++)
        out += sprintf(out, "%s%s", i ? "," : "", request->keys[i]);
    out += sprintf(out, " %s %u", lock_mode_name(request->wanted.mode), request->wanted.limit);
    if (request->wanted.take)
        sprintf(out, ", %s", request->title);
}

static bool read_words(char **words, int count, int preset, struct request *request, char *fault,
                       size_t size)
{
    struct arguments arguments;
    bool fine = args_parse(count, words, options, &arguments) &&
                request_read(request, &arguments, preset, fault, size);

    args_free(&arguments);
    return fine;
}

static void test_row(size_t i)
{
    char line[200], got[300];
    char *words[20] = {line};
    int count = 1;
    struct request request;

    strcpy(line, rows[i].line);
    for (char *word = strtok(line, " "); word; word = strtok(NULL, " "))
        words[count++] = word;
    words[count] = NULL;
    if (read_words(words, count, rows[i].preset, &request, got, sizeof got))
        print_request(&request, got);
    tap_is(got, rows[i].wanted, "request_read", rows[i].line);
}

/* As many keys as there may be, each of this length. */
static bool read_many(size_t keys, size_t length, struct request *request, char *fault, size_t size)
{
    static char text[LOCK_KEYS_MAX + 1][KEY_MAX_BYTES + 1];
    char run[] = "run", *words[LOCK_KEYS_MAX + 3] = {run};

    for (size_t i = 0; i < keys; i++) {
        memset(text[i], 'a' + (int)i % 26, length);
        text[i][length] = '\0';
        text[i][0] = (char)('A' + i / 26);
        words[i + 1] = text[i];
    }
    return read_words(words, (int)keys + 1, 0, request, fault, size);
}

static void test_many(void)
{
    struct request request;
    char fault[300];
    bool whole = true;

    tap_ok(read_many(LOCK_KEYS_MAX, 20, &request, fault, sizeof fault) &&
               request.wanted.key_count == LOCK_KEYS_MAX,
           "as many keys as there may be");
    tap_ok(!read_many(LOCK_KEYS_MAX + 1, 20, &request, fault, sizeof fault) &&
               strcmp(fault, "more than 32 KEYs") == 0,
           "and no more");
    for (size_t length = 2; length <= KEY_MAX_BYTES; length++) {
        for (size_t keys = 1; keys <= LOCK_KEYS_MAX; keys++) {
            whole = whole && read_many(keys, length, &request, fault, sizeof fault) &&
                    strlen(request.title) < sizeof request.title;
        }
    }
    tap_ok(whole, "a title of keys of any length and number");
    read_many(3, 2, &request, fault, sizeof fault);
    tap_is(request.title, "Aa, Ab, Ac", "title", "three");
    read_many(32, 8, &request, fault, sizeof fault);
    tap_ok(strstr(request.title, ", Aiiiiiii and 23 more") != NULL, "title: %s", request.title);
}

int main(void)
{
    for (size_t i = 0; i < COUNT(rows); i++)
        test_row(i);
    test_many();
    return tap_done();
}
