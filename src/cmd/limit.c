/* rlock limit: show or set how many may hold a semaphore; the store keeps it. */
#include "cmd/commands.h"

#include <inttypes.h>

#include "base/decimal.h"
#include "store/url.h"

enum { OPTION_DELETE = OPTION_OTHER };

static const struct option_spec options[] = {
    OPTION(OPTION_DELETE, "delete", NULL, "forget the number that is stored"),
    SETTINGS_OPTIONS,
    {0}};

static int check_number(struct call *call)
{
    const struct arguments *given = &call->arguments;
    const char *word = given->word_count > 1 ? given->words[1] : NULL;
    int64_t number;

    if (word && command_has(call, OPTION_DELETE))
        return command_misused(call, "either N or --delete, not both");
    if (word && !decimal_parse(word, 0, LOCK_LIMIT_MAX, &number))
        return command_misused(call, "N '%s' is not a number from 0 to %d", URLS_TEXT(word),
                               LOCK_LIMIT_MAX);
    return STATUS_OK;
}

static int refuse_no_limit(const char *key)
{
    say_warning("limit: no limit is stored for %s", key);
    return STATUS_NO;
}

/* Stores the limit N of a KEY, forgets it (--delete), or prints it (KEY only). */
static int execute_limit(struct call *call)
{
    const struct arguments *given = &call->arguments;
    struct adjust_request request = {.key = given->words[0], .what = ADJUST_NO_LIMIT};
    struct answer answer;
    int64_t number;

    if (given->word_count > 1 && decimal_parse(given->words[1], 0, LOCK_LIMIT_MAX, &number)) {
        request.what = ADJUST_LIMIT;
        request.limit = (unsigned)number;
    } else if (!command_has(call, OPTION_DELETE)) {
        const struct lock_view *lock =
            query_read_lock(&call->query, request.key, &call->list, &answer);
        if (answer.verdict != VERDICT_GRANTED)
            return command_refused(call, &answer);
        if (!lock || !lock->limited)
            return refuse_no_limit(request.key);
        printf("%u\n", lock->stored_limit);
        return command_flush();
    }
    query_adjust(&call->query, &request, &answer);
    if (answer.cause == CAUSE_ABSENT)
        return refuse_no_limit(request.key);
    if (answer.verdict != VERDICT_GRANTED) {
        int status = command_refused_about(call, request.key, &answer);
        if (answer.maybe_done)
            say_warning("the limit of %s may have been changed anyway", request.key);
        return status;
    }
    if (request.what == ADJUST_LIMIT)
        command_confirm(call, "%s has a limit of %u now", request.key, request.limit);
    else
        command_confirm(call, "%s has no stored limit any more", request.key);
    return STATUS_OK;
}

const struct command command_limit = {
    .name = "limit",
    .summary = "show or set how many may hold a semaphore",
    .usage = {"limit [OPTIONS] KEY [N]", "limit [OPTIONS] --delete KEY"},
    .example = "Example, test databases; later one more, while jobs run and wait:\n"
               "  rlock limit test-databases 3\n"
               "  rlock run --limit test-databases -- make integration\n"
               "  rlock limit test-databases 4\n",
    .options = options,
    .words = WORDS_KEY_NUMBER,
    .needs = STORE_LIMITS,
    .asks = true,
    .check = check_number,
    .act = execute_limit,
};
