#include "lives/latch.h"

#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "cli/say.h"
#include "cmd/commands.h"
#include "lives/faults.h"
#include "lives/kernel.h"
#include "lives/network.h"
#include "lives/replication.h"
#include "lives/run.h"
#include "lives/sentences.h"
#include "lives/server.h"
#include "run/exit_status.h"

/* How many lives have one with a latch. */
#define LATCHES_EVERY 6
#define COMMANDS      10
#define KEY           "l1"
#define IDS           3

struct action {
    enum verb { SET, COUNT, WAIT, DELETE } verb;
    int64_t starts, waits; /* -w */
    int number;            /* of SET and COUNT */
    int id;                /* of COUNT: --id; 0: none */
    int64_t dies_after;    /* 0: not */
    struct proc *process;
    int status; /* as waitpid() sets it */
    int64_t ended;
};

static struct {
    struct action actions[COMMANDS];
    int count;
    /* At the server, of the latch that is there or was last: */
    bool exists;
    char word[LATCH_WORD_SIZE];
    int64_t number, left;
    unsigned sets;       /* latches that there have been */
    int64_t set, opened; /* when one last was set; when one first was open, 0: none */
    bool vanished;       /* one was deleted, or was lost */
} latch;

/* -- the program under test -------------------------------------------------------------------- */

void __wrap_say_error(const char *format, ...) __attribute__((format(printf, 1, 2)));
void __wrap_say_error(const char *format, ...)
{
    char text[500];
    va_list list;

    va_start(list, format);
    vsnprintf(text, sizeof text, format, list);
    va_end(list);
    trace("says: %s", text);
}

/* As command_execute(), but for the settings and the end. */
static int execute(char **words, int count, int64_t waits)
{
    struct call *call = calloc(1, command_latch.size);

    call->command = &command_latch;
    call->argc = count;
    call->argv = words;
    if (!args_parse(count, words, command_latch.options, &call->arguments) ||
        command_latch.check(call) != STATUS_OK)
        abort();
    call->settings.address = run_address();
    call->settings.wait = waits;
    if (command_open(call) != STATUS_OK)
        abort();
    int status = command_latch.act(call);
    query_close(&call->query);
    return status;
}

static int act(const void *arg)
{
    static const char *const verbs[] = {"set", "count-down", "wait", "delete"};
    const struct action *action = arg;
    char number[20], id[20];
    char *words[8] = {(char[]){"latch"}, strdup(verbs[action->verb]), (char[]){KEY}};
    int count = 3;

    snprintf(number, sizeof number, "%d", action->number);
    snprintf(id, sizeof id, "--id=%d", action->id);
    if (action->number)
        words[count++] = number;
    if (action->id)
        words[count++] = id;
    say_set_verbosity(SAY_QUIET); /* nothing is printed */
    return execute(words, count, action->waits);
}

static void die(void *process)
{
    if (!process_exists(process))
        return;
    trace("FAULT: KILL of rlock latch");
    signal_send(process, SIGKILL);
}

static void begin(void *arg)
{
    struct action *action = arg;

    trace("latch: %s %d, id %d, -w %.3f s",
          ((const char *[]){"set", "count-down", "wait", "delete"})[action->verb], action->number,
          action->id, (double)action->waits / 1e9);
    action->process = process_new(LATCH, 1, NULL);
    process_start(action->process, act, action);
    if (action->dies_after)
        world_at(world.now + action->dies_after, die, action->process);
}

/* Nothing hinders it. */
static bool is_calm(void)
{
    return !circumstances.network_bad && kernel.load < 2;
}

/* -- at the server ----------------------------------------------------------------------------- */

static void check_woken(void *arg)
{
    const struct action *action = arg;

    if (!process_exists(action->process) || !is_calm())
        return;
    if (latch.exists)
        BROKEN(LATCH_OPENS, "the waiter of %.3f s waits on", (double)action->waits / 1e9);
    else
        BROKEN(LATCH_VANISHES, "the waiter of %.3f s waits on", (double)action->waits / 1e9);
}

/* A message tells those who listen, which they do from their second look on. */
static void expect_waiters_to_end(void)
{
    for (int i = 0; i < latch.count; i++) {
        struct action *action = &latch.actions[i];
        bool waits = action->verb == WAIT && action->process && process_exists(action->process);
        if (waits && world.now > action->starts + SEC && world.now > latch.set + 4 * SEC)
            world_at(world.now + SEC, check_woken, action);
    }
}

static const char *text_of(const struct record *record, const char *name, char out[LATCH_WORD_SIZE])
{
    const struct record_field *field = record_find(record, piece_of(name));

    snprintf(out, LATCH_WORD_SIZE, "%.*s", field ? (int)field->value.size : 0,
             field ? field->value.at : "");
    return out;
}

void latch_on_change(const char *name, const struct record *record)
{
    char word[LATCH_WORD_SIZE], text[LATCH_WORD_SIZE];

    if (!strstr(name, KEY))
        return;
    bool existed = latch.exists;
    latch.exists = record->type != RECORD_NONE;
    latch.vanished |= existed && !latch.exists;
    if (existed && !latch.exists)
        expect_waiters_to_end();
    if (!latch.exists)
        return;
    int64_t number = atoll(text_of(record, "n", text)), left = atoll(text_of(record, "l", text));
    bool is_new = strcmp(text_of(record, "g", word), latch.word) != 0;
    bool known = existed && !circumstances.forgot;
    if (known && (is_new || number != latch.number))
        BROKEN(LATCH_STAYS, "it was set to %ld, and is set to %ld", (long)latch.number,
               (long)number);
    if (known && !is_new && latch.left == 0 && left != 0)
        BROKEN(LATCH_NOT_CLOSED, "%ld are left", (long)left);
    latch.sets += is_new;
    latch.set = is_new ? world.now : latch.set;
    if (left == 0 && latch.left > 0 && !is_new)
        expect_waiters_to_end();
    latch.number = number;
    latch.left = left;
    memcpy(latch.word, word, sizeof word);
    if (left == 0 && !latch.opened)
        latch.opened = world.now;
    trace("latch: %ld of %ld are left", (long)left, (long)number);
}

/* -- how commands end -------------------------------------------------------------------------- */

static bool has_succeeded(const struct action *action)
{
    return action->ended && WIFEXITED(action->status) && WEXITSTATUS(action->status) == STATUS_OK;
}

/* The latch may be there no more. */
static bool may_have_vanished(void)
{
    return latch.vanished || circumstances.forgot || circumstances.clock_set;
}

/* A waiter looks once in 2.5 s if no message wakes it. */
static void check_wait(const struct action *action, int status)
{
    int64_t end = action->starts + action->waits;

    if (status == STATUS_OK && !latch.opened)
        BROKEN(LATCH_ABSENT, "it has not been open, and the waiter of %.3f s ends",
               (double)action->waits / 1e9);
    if (status == STATUS_NO && !may_have_vanished())
        BROKEN(LATCH_DELETED, "it has not vanished, and the waiter of %.3f s says so",
               (double)action->waits / 1e9);
    if (status == STATUS_NOT_ACQUIRED && world.now < end)
        BROKEN(LATCH_WAITS, "the waiter of %.3f s ends sooner", (double)action->waits / 1e9);
    if (is_calm() && world.now > end + SEC)
        BROKEN(LATCH_WAITS, "the waiter of %.3f s ends late", (double)action->waits / 1e9);
    if (is_calm() && status == STATUS_NOT_ACQUIRED && latch.opened && !may_have_vanished() &&
        latch.opened + SEC < end)
        BROKEN(LATCH_OPENS, "the waiter of %.3f s has not seen it", (double)action->waits / 1e9);
}

/* As many have succeeded as there were. */
static void check_set(void)
{
    unsigned succeeded = 0;

    for (int i = 0; i < latch.count; i++)
        succeeded += latch.actions[i].verb == SET && has_succeeded(&latch.actions[i]);
    if (succeeded > latch.sets)
        BROKEN(LATCH_STAYS, "%u have set it, and there were %u", succeeded, latch.sets);
}

void latch_on_end(const struct proc *process)
{
    for (int i = 0; i < latch.count; i++) {
        struct action *action = &latch.actions[i];
        if (action->process != process)
            continue;
        action->ended = world.now;
        action->status = process->status;
        trace("latch: ends, 0x%x", (unsigned)action->status);
        if (!WIFEXITED(action->status))
            return;
        int status = WEXITSTATUS(action->status);
        if (action->verb == WAIT)
            check_wait(action, status);
        if (action->verb == SET)
            check_set();
        if (status != STATUS_OK && status != STATUS_NO && status != STATUS_NOT_ACQUIRED &&
            !circumstances.network_bad)
            fail("latch: a command fails without a reason, status %d", status);
    }
}

/* How many were counted under an id at least, and at most: once, by whichever came first. */
static void count_id(int id, int64_t *least, int64_t *most)
{
    int64_t lowest = 0, highest = 0;
    bool succeeded = false;

    for (int i = 0; i < latch.count; i++) {
        const struct action *action = &latch.actions[i];
        if (action->verb != COUNT || action->id != id || !action->process)
            continue;
        succeeded |= has_succeeded(action);
        lowest = lowest && lowest < action->number ? lowest : action->number;
        highest = highest > action->number ? highest : action->number;
    }
    *least += succeeded ? lowest : 0;
    *most += highest;
}

/* The same of all. A command that has no answer may have counted. */
static void count_all(int64_t *least, int64_t *most)
{
    *least = *most = 0;
    for (int i = 0; i < latch.count; i++) {
        const struct action *action = &latch.actions[i];
        if (action->verb != COUNT || action->id || !action->process)
            continue;
        *least += has_succeeded(action) ? action->number : 0;
        *most += action->number;
    }
    for (int id = 1; id <= IDS; id++)
        count_id(id, least, most);
}

void latch_end(void)
{
    int64_t least, most, counted = latch.number - latch.left;

    for (int i = 0; i < latch.count; i++)
        if (latch.actions[i].process && !latch.actions[i].ended)
            fail("latch: a command is stuck");
    if (!latch.sets || latch.sets > 1 || may_have_vanished())
        return;
    count_all(&least, &most);
    if (counted < least && latch.left > 0)
        BROKEN(LATCH_COUNTS, "%ld were counted, not %ld", (long)counted, (long)least);
    if (counted > most)
        BROKEN(LATCH_COUNTS_ONCE, "%ld were counted, not %ld", (long)counted, (long)most);
}

/* -- the choice -------------------------------------------------------------------------------- */

static void choose(struct action *action, enum verb verb)
{
    *action = (struct action){.verb = verb,
                              .starts = world.now + chance_below(CHOOSE(1, 100, 3000, 8000) * MS)};
    if (verb == SET)
        action->number = 1 + (int)chance_below(3);
    if (verb == COUNT)
        action->number = 1 + (int)chance_below(one_in(4) ? 3 : 1);
    if (verb == COUNT && one_in(3))
        action->id = 1 + (int)chance_below(IDS);
    if (verb == WAIT)
        action->waits = chance_below(CHOOSE(10, 3000, 20000) * MS);
    if (one_in(8))
        action->dies_after = 1 + chance_below(one_in(2) ? 3 * network.delay + 2 * MS : 10 * SEC);
    world_at(action->starts, begin, action);
}

/* rlock-latch(1): "A quorum and ZooKeeper have no latches". */
void latch_choose(void)
{
    memset(&latch, 0, sizeof latch);
    if (!one_in(LATCHES_EVERY) || server_count > 1 || replication.servers)
        return;
    latch.count = 1 + (int)chance_below(COMMANDS);
    for (int i = 0; i < latch.count; i++)
        choose(&latch.actions[i], i == 0       ? SET
                                  : one_in(12) ? (one_in(2) ? SET : DELETE)
                                  : one_in(3)  ? WAIT
                                               : COUNT);
}
