/* The request for a lock, out of a command line. */
#include "cli/request.h"

#include "lock/key.h"
#include "tap.h"

static const struct option_spec options[] = {
    {.table = request_modes},          SETTING(NO_REENTRANT),
    {.id = OPTION_ANY, .name = "any"}, {.id = OPTION_TAKE, .name = "take", .argument = "N"},
    {.table = request_rest},           {0}};

#define TOO_MANY "only one of --read, --write and --limit"
#define NUMBER   "' is not a number from 1 to "

/* Words are separated by one space. wanted: the keys, the mode, the limit; or the fault. */
static const struct {
    const char *wanted;
    int preset;
    const char *const *lines;
} rows[] = {
    {"k exclusive 0", 0, INPUTS("k", "-x k", "--write k")},
    {"k shared 0", 0, INPUTS("-s k", "--read k", "--shared --read k")},
    {"k limit 1", 0, INPUTS("--limit 1 k")},
    {"k limit 0", 0, INPUTS("--limit k")},
    {"3x,k limit 0", 0, INPUTS("--limit 3x k")},
    {"k limit 100000", 0, INPUTS("--limit=100000 k")},
    {"k limit 5", 0, INPUTS("k --limit 3 --limit 5")},
    {"k shared 0", OPTION_SHARED, INPUTS("k", "--read k")},
    {"k exclusive 0", OPTION_EXCLUSIVE, INPUTS("k")},
    {TOO_MANY, OPTION_SHARED, INPUTS("--write k")},
    {TOO_MANY, OPTION_EXCLUSIVE, INPUTS("--read k", "--limit 2 k")},
    {TOO_MANY, 0, INPUTS("--read --write k", "--limit 3 --read k", "-x --limit 3 k")},
    {"--limit '0" NUMBER "100000", 0, INPUTS("--limit 0 k")},
    {"--limit '-1" NUMBER "100000", 0, INPUTS("--limit=-1 k")},
    {"--limit '+1" NUMBER "100000", 0, INPUTS("--limit=+1 k")},
    {"--limit '100001" NUMBER "100000", 0, INPUTS("--limit 100001 k")},
    {"--limit '4294967297" NUMBER "100000", 0, INPUTS("--limit 4294967297 k")},
    {"--limit '99999999999999999999" NUMBER "100000", 0, INPUTS("--limit 99999999999999999999 k")},
    {"--limit '3x" NUMBER "100000", 0, INPUTS("--limit=3x k")},
    {"--limit '1e3" NUMBER "100000", 0, INPUTS("--limit=1e3 k")},
    {"b,a exclusive 0", 0, INPUTS("b a", "b a b a")},
    {"a,c,b limit 2", 0, INPUTS("--no-reentrant a --limit 2 c b")},
    {"KEY 'b{c}' has a '{' or '}' in it", 0, INPUTS("a b{c}")},
    {"no KEY", 0, INPUTS("--read")},
    {"a exclusive 0", 0, INPUTS("--any a", "--any a a", "--any --mirror string:m a")},
    {"a,b exclusive 0, one of a, b", 0, INPUTS("--any a b", "--any --take 1 a b")},
    {"a,b shared 0, one of a, b", 0, INPUTS("a --any --read b")},
    {"a,b,c exclusive 0, 2 of a, b, c", 0, INPUTS("--any --take 2 a b c")},
    {"a,b,c limit 3, 2 of a, b, c", 0, INPUTS("--take=2 a b c --any --limit 3")},
    {"--take without --any", 0, INPUTS("--take 1 a b")},
    {"--take '1' does not go with one KEY", 0, INPUTS("--any --take 1 a", "--any --take 1 a a")},
    {"--take '0" NUMBER "1: at least one KEY, not all", 0, INPUTS("--any --take 0 a b")},
    {"--take '2" NUMBER "1: at least one KEY, not all", 0, INPUTS("--any --take 2 a b a")},
    {"--take 'x" NUMBER "2: at least one KEY, not all", 0, INPUTS("--any --take x a b c")},
    {"--mirror needs an exclusive lock of one KEY", 0, INPUTS("--any --mirror string:m a b")},
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
    bool fine = args_parse(count, words, options, &arguments);
    char *found = fine ? request_read(request, &arguments, preset) : NULL;

    if (found)
        snprintf(fault, size, "%s", found);
    free(found);
    args_free(&arguments);
    return fine && !found;
}

/* A command line and preset settings become that request, or are refused with that message. */
static void test_row(const char *text, int preset, const char *wanted)
{
    char line[200], got[300];
    char *words[20] = {line};
    int count = 1;
    struct request request;

    strcpy(line, text);
    for (char *word = strtok(line, " "); word; word = strtok(NULL, " "))
        words[count++] = word;
    words[count] = NULL;
    if (read_words(words, count, preset, &request, got, sizeof got))
        print_request(&request, got);
    tap_is(got, wanted, "request_read", text);
}

/* Reads a request of so many keys, each of this length. */
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

/* A request has 32 KEYs at most, and a title that fits its room whatever their number and
 * length. */
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
        EACH(line, rows[i].lines)
            test_row(*line, rows[i].preset, rows[i].wanted);
    test_many();
    return tap_done();
}
