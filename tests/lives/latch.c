#include "lives/latch.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "cmd/commands.h"
#include "lives/errand.h"
#include "lives/faults.h"
#include "lives/network.h"
#include "lives/replication.h"
#include "lives/sentences.h"
#include "lives/server.h"
#include "run/exit_status.h"

/* How many lives have one with a latch. */
#define LATCHES_EVERY 6
#define COMMANDS      10
#define KEY           "l1"
#define IDS           3
/* "A store that is away by then is retried for 30 s": rlock-latch(1). */
#define RETRIED (30 * SEC)

struct action {
    struct errand errand; /* first */
    enum verb { SET, COUNT, WAIT, DELETE, RUN } verb;
    int number; /* of SET and COUNT */
    int id;     /* of COUNT and RUN: --id; 0: none */

    unsigned set; /* of RUN: which one its command is for; 0: it is not sure */
    int64_t gone; /* when that one was; 0: it is not */
};

static const char *const verbs[] = {"set", "count-down", "wait", "delete", "run"};

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
    int64_t gone;        /* when that was last */
} latch;

/* -- the program under test -------------------------------------------------------------------- */

static int act(const void *arg)
{
    const struct action *action = arg;
    char number[20], id[20], end[] = "--", command[] = "command";
    char *words[8] = {(char[]){"latch"}, strdup(verbs[action->verb]), (char[]){KEY}};
    int count = 3;

    snprintf(number, sizeof number, "%d", action->number);
    snprintf(id, sizeof id, "--id=%d", action->id);
    if (action->number)
        words[count++] = number;
    if (action->id)
        words[count++] = id;
    if (action->verb == RUN) {
        words[count++] = end;
        words[count++] = command;
    }
    return errand_execute(&action->errand, &command_latch, words, count);
}

static void begin(void *arg)
{
    struct action *action = arg;

    trace("latch: %s %d, id %d, -w %.3f s, --server-wait %.3f s; takes %.3f s, ends with %d",
          verbs[action->verb], action->number, action->id, (double)action->errand.waits / 1e9,
          (double)action->errand.server_wait / 1e9, (double)action->errand.program.runs / 1e9,
          action->errand.program.status);
    action->set = latch.exists ? latch.sets : 0;
    errand_start(&action->errand, LATCH, act);
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

    if (!process_exists(action->errand.process) || !is_calm())
        return;
    if (latch.exists)
        BROKEN(LATCH_OPENS, "the waiter of %.3f s waits on", (double)action->errand.waits / 1e9);
    else
        BROKEN(LATCH_VANISHES, "the waiter of %.3f s waits on", (double)action->errand.waits / 1e9);
}

/* A message tells those who listen, which they do from their second look on. */
static void expect_waiters_to_end(void)
{
    for (int i = 0; i < latch.count; i++) {
        struct action *action = &latch.actions[i];
        bool waits = action->verb == WAIT && action->errand.process &&
                     process_exists(action->errand.process);
        if (waits && world.now > action->errand.starts + SEC && world.now > latch.set + 4 * SEC)
            world_at(world.now + SEC, check_woken, action);
    }
}

static const char *text_of(const struct record *record, const char *name, char out[LATCH_WORD_SIZE])
{
    const struct record_field *field = record_find(record, slice_of(name));

    snprintf(out, LATCH_WORD_SIZE, "%.*s", field ? (int)field->value.size : 0,
             field ? field->value.at : "");
    return out;
}

/* That latch is no more, or another one is in its place. */
static void note_gone(unsigned set)
{
    for (int i = 0; i < latch.count; i++)
        if (set && latch.actions[i].set == set && !latch.actions[i].gone)
            latch.actions[i].gone = world.now;
}

/* A "latch set" that came twice has made it again: rlock(7), "a latch that was deleted is there
 * again". */
static void note_remade(void)
{
    for (int i = 0; i < latch.count; i++)
        if (latch.actions[i].set == latch.sets)
            latch.actions[i].gone = 0;
}

void latch_on_change(const char *name, const struct record *record)
{
    char word[LATCH_WORD_SIZE], text[LATCH_WORD_SIZE];

    if (!strstr(name, KEY))
        return;
    bool existed = latch.exists;
    latch.exists = record->type != RECORD_NONE;
    latch.vanished |= existed && !latch.exists;
    if (existed && !latch.exists) {
        latch.gone = world.now;
        note_gone(latch.sets);
        trace("latch: it is gone");
        expect_waiters_to_end();
    }
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
    if (is_new)
        note_gone(latch.sets++);
    else if (!existed)
        note_remade();
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
    return action->errand.ended && WIFEXITED(action->errand.status) &&
           WEXITSTATUS(action->errand.status) == STATUS_OK;
}

/* The latch may be there no more. */
static bool may_have_vanished(void)
{
    return latch.vanished || circumstances.forgot || circumstances.clock_set;
}

/* A waiter looks once in 2.5 s if no message wakes it. */
static void check_wait(const struct action *action, int status)
{
    int64_t end = action->errand.starts + action->errand.waits;

    if (status == STATUS_OK && !latch.opened)
        BROKEN(LATCH_ABSENT, "it has not been open, and the waiter of %.3f s ends",
               (double)action->errand.waits / 1e9);
    if (status == STATUS_NO && !may_have_vanished())
        BROKEN(LATCH_DELETED, "it has not vanished, and the waiter of %.3f s says so",
               (double)action->errand.waits / 1e9);
    if (status == STATUS_NOT_ACQUIRED && world.now < end)
        BROKEN(LATCH_WAITS, "the waiter of %.3f s ends sooner", (double)action->errand.waits / 1e9);
    if (is_calm() && world.now > end + SEC)
        BROKEN(LATCH_WAITS, "the waiter of %.3f s ends late", (double)action->errand.waits / 1e9);
    if (is_calm() && status == STATUS_NOT_ACQUIRED && latch.opened && !may_have_vanished() &&
        latch.opened + SEC < end)
        BROKEN(LATCH_OPENS, "the waiter of %.3f s has not seen it",
               (double)action->errand.waits / 1e9);
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

/* The latch was looked for before. */
static void on_execute(struct errand *errand, char *const *environment)
{
    struct action *action = (struct action *)errand;

    (void)environment;
    if (!latch.sets || (!latch.exists && latch.gone < errand->starts && !circumstances.forgot))
        BROKEN(LATCH_NOT_RUN, "the command %d is run", errand->command->pid);
    if (action->set != latch.sets || !latch.exists)
        action->set = 0;
}

static bool command_has_succeeded(const struct errand *errand)
{
    return errand->command && !errand->command_alive && errand->command_status == 0;
}

/* That its command has succeeded may not be counted: if the latch has vanished, or the store is
 * away. */
static void check_run(const struct action *action)
{
    const struct errand *errand = &action->errand;
    int status = errand->status;

    if (!command_has_succeeded(errand)) {
        if (errand->command && !errand_is_killed(errand) && !errand_ends_as_command(errand))
            BROKEN(LATCH_RUN_ENDS, "0x%x, but 0x%x", (unsigned)status,
                   (unsigned)errand->command_status);
        return;
    }
    if (status == STATUS_OK && action->set && action->gone && action->gone < errand->command_ended)
        BROKEN(LATCH_DELETED, "the command %d is counted all the same", errand->command->pid);
    if (WIFEXITED(status) && WEXITSTATUS(status) == STATUS_NO && !may_have_vanished())
        BROKEN(LATCH_DELETED, "it has not vanished, and the command %d is not counted",
               errand->command->pid);
    if (WIFEXITED(status) && WEXITSTATUS(status) == STATUS_UNAVAILABLE &&
        world.now < errand->command_ended + RETRIED)
        BROKEN(LATCH_RUN_RETRIES, "the command %d is not counted after %.3f s",
               errand->command->pid, (double)(world.now - errand->command_ended) / 1e9);
}

static void on_end(struct errand *errand)
{
    const struct action *action = (const struct action *)errand;

    if (action->verb == RUN)
        check_run(action);
    if (!WIFEXITED(errand->status) || errand->command)
        return;
    int status = WEXITSTATUS(errand->status);
    if (action->verb == WAIT)
        check_wait(action, status);
    if (action->verb == SET)
        check_set();
    if (status != STATUS_OK && status != STATUS_NO && status != STATUS_NOT_ACQUIRED &&
        !errand->stops_for && !circumstances.network_bad)
        fail("latch: a command fails without a reason, status %d", status);
}

/* So many may be counted by it. */
static int number_of(const struct action *action)
{
    return action->verb == COUNT                                           ? action->number
           : action->verb == RUN && command_has_succeeded(&action->errand) ? 1
                                                                           : 0;
}

/* How many were counted under an id at least, and at most: once, by whichever came first. */
static void count_id(int id, int64_t *least, int64_t *most)
{
    int64_t lowest = 0, highest = 0;
    bool succeeded = false;

    for (int i = 0; i < latch.count; i++) {
        const struct action *action = &latch.actions[i];
        int64_t number = number_of(action);
        if (!number || action->id != id || !action->errand.process)
            continue;
        succeeded |= has_succeeded(action);
        lowest = lowest && lowest < number ? lowest : number;
        highest = highest > number ? highest : number;
    }
    *least += succeeded ? lowest : 0;
    *most += highest;
}

/* The same for all ids, and for counts without one. A command that has no answer may have
 * counted. */
static void count_all(int64_t *least, int64_t *most)
{
    *least = *most = 0;
    for (int i = 0; i < latch.count; i++) {
        const struct action *action = &latch.actions[i];
        if (action->id || !action->errand.process)
            continue;
        *least += has_succeeded(action) ? number_of(action) : 0;
        *most += number_of(action);
    }
    for (int id = 1; id <= IDS; id++)
        count_id(id, least, most);
}

void latch_end(void)
{
    int64_t least, most, counted = latch.number - latch.left;

    for (int i = 0; i < latch.count; i++)
        if (latch.actions[i].errand.process && !latch.actions[i].errand.ended)
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

static void choose_command(struct errand *errand)
{
    struct program *program = &errand->program;
    int64_t length = CHOOSE(5, 300, 3000, 8000) * MS;

    program->runs = chance_below(length);
    program->status = one_in(4) ? (int)chance_below(256) : 0;
    errand->on_execute = on_execute;
    errand->server_wait = one_in(2) ? chance_below(10 * SEC) : 0;
    if (one_in(6)) {
        errand->stops_after = 1 + chance_below(2 * length);
        errand->stops_for = chance_below(2 * length);
    }
    if (one_in(6)) {
        errand->asked_after = 1 + chance_below(2 * length);
        program->on_term = (unsigned)chance_below(3);
        program->cleans = chance_below(length);
    }
}

static void choose(struct action *action, enum verb verb, int64_t starts)
{
    *action = (struct action){.verb = verb, .errand = {.starts = starts, .on_end = on_end}};
    if (verb == SET)
        action->number = 1 + (int)chance_below(3);
    if (verb == COUNT)
        action->number = 1 + (int)chance_below(one_in(4) ? 3 : 1);
    if (verb == RUN)
        choose_command(&action->errand);
    if ((verb == COUNT || verb == RUN) && one_in(3))
        action->id = 1 + (int)chance_below(IDS);
    if (verb == WAIT)
        action->errand.waits = chance_below(CHOOSE(10, 3000, 20000) * MS);
    if (one_in(8))
        action->errand.dies_after =
            1 + chance_below(one_in(2) ? 3 * network.delay + 2 * MS : 10 * SEC);
    world_at(action->errand.starts, begin, action);
}

/* Another latch takes the place while the first command runs whose success counts. */
static void choose_remake(void)
{
    const struct action *run = latch.actions;
    struct action *remade = &latch.actions[latch.count];

    while (run < remade && run->verb != RUN)
        run++;
    if (run == remade || latch.count + 2 > COMMANDS)
        return;
    latch.count += 2;
    choose(&remade[0], DELETE, run->errand.starts + chance_below(run->errand.program.runs));
    choose(&remade[1], SET, remade[0].errand.starts + chance_below(100 * MS));
}

/* The latch opens, or vanishes, when a waiter has looked at it twice, and so listens. */
static void choose_news(void)
{
    struct action *wait = &latch.actions[latch.count], *news = wait + 1;

    if (latch.count + 2 > COMMANDS)
        return;
    latch.count += 2;
    choose(wait, WAIT, world.now + chance_below(3 * SEC));
    wait->errand.waits = chance_below(20 * SEC);
    choose(news, one_in(2) ? COUNT : DELETE, world.now + 4 * SEC + chance_below(3 * SEC));
    news->id = 0;
    if (news->verb == COUNT)
        news->number = 3;
}

/* rlock-latch(1): "A quorum and ZooKeeper have no latches". */
void latch_choose(void)
{
    memset(&latch, 0, sizeof latch);
    if (!one_in(LATCHES_EVERY) || server_count > 1 || replication.servers)
        return;
    latch.count = 1 + (int)chance_below(COMMANDS);
    for (int i = 0; i < latch.count; i++) {
        int64_t starts = world.now + chance_below(CHOOSE(1, 100, 3000, 8000) * MS);
        enum verb verb = i == 0       ? SET
                         : one_in(12) ? (one_in(2) ? SET : DELETE)
                         : one_in(3)  ? WAIT
                         : one_in(3)  ? RUN
                                      : COUNT;
        choose(&latch.actions[i], verb, starts);
    }
    if (one_in(4))
        choose_remake();
    if (one_in(3))
        choose_news();
}
