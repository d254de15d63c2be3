#include "lives/fence.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "cmd/commands.h"
#include "lives/disk.h"
#include "lives/errand.h"
#include "lives/life.h"
#include "lives/sentences.h"
#include "run/exit_status.h"

/* How many lives have some. */
#define FENCES_EVERY 12
#define FENCES       5

struct fence {
    struct errand errand; /* first */
    int64_t token;
    bool by_option; /* --token; false: RLOCK_FENCE */
    bool bare;      /* there is no command */

    const struct inode *inode; /* whose lock its process got last */
    bool written;              /* its token was in the file when that was unlocked */
};

static struct {
    struct fence all[FENCES];
    int count;
    int64_t highest; /* of the tokens that were let through, at any file */
    bool fills;      /* the disk is full for a time */
} fences;

/* -- the program under test -------------------------------------------------------------------- */

static int act(const void *arg)
{
    const struct fence *fence = arg;
    char token[40], value[24], wait[40] = "-n", end[] = "--", command[] = "command";
    char *words[8] = {(char[]){"fence"}, (char[]){DISK_PATH}};
    int count = 2;

    snprintf(value, sizeof value, "%ld", (long)fence->token);
    snprintf(token, sizeof token, "--token=%s", value);
    if (fence->errand.waits)
        snprintf(wait, sizeof wait, "--wait=%ldms", (long)(fence->errand.waits / MS));
    setenv("RLOCK_FENCE", value, 1);
    if (fence->by_option)
        words[count++] = token;
    if (fence->errand.waits != NEVER)
        words[count++] = wait;
    if (!fence->bare) {
        words[count++] = end;
        words[count++] = command;
    }
    return errand_execute(&fence->errand, &command_fence, words, count);
}

static void begin(void *arg)
{
    struct fence *fence = arg;

    trace("fence: token %ld%s, -w %.3f s, takes %.3f s", (long)fence->token,
          fence->bare ? ", no command" : "",
          fence->errand.waits == NEVER ? -1 : (double)fence->errand.waits / 1e9,
          (double)fence->errand.program.runs / 1e9);
    errand_start(&fence->errand, FENCE, act);
}

/* -- how it is judged -------------------------------------------------------------------------- */

/* A file that is replaced while it is locked by one may be locked by another at its path. */
static bool may_be_apart(const struct inode *one, const struct inode *other)
{
    return one != other && (one->locked_at < one->left || other->locked_at < other->left);
}

static void check_alone(const struct fence *fence)
{
    for (int i = 0; i < fences.count; i++) {
        const struct fence *other = &fences.all[i];
        if (other != fence && other->errand.command_alive &&
            !may_be_apart(fence->inode, other->inode))
            BROKEN(FENCE_LOCKED, "the command of token %ld starts beside that of %ld",
                   (long)fence->token, (long)other->token);
    }
}

/* While it has the file locked, its process may have been killed just now. */
static void on_execute(struct errand *errand, char *const *environment)
{
    struct fence *fence = (struct fence *)errand;
    const struct inode *inode = disk_of(errand->process);
    char told[40];

    if (!inode)
        return;
    fence->inode = inode;
    check_alone(fence);
    if (inode->left < inode->locked_at)
        BROKEN(FENCE_WRITES, "the command of token %ld starts, and another file is there",
               (long)fence->token);
    if (atoll(inode->text) != fence->token)
        BROKEN(FENCE_WRITES, "the command of token %ld starts, and there is %.*s",
               (long)fence->token, (int)inode->size, inode->text);
    snprintf(told, sizeof told, "RLOCK_FENCE=%ld", (long)fence->token);
    while (*environment && strcmp(*environment, told) != 0)
        environment++;
    if (!*environment)
        BROKEN(FENCE_TELLS, "the command of token %ld is not told of it", (long)fence->token);
}

static bool group_is_left(const struct proc *command)
{
    for (int i = 0; i < kernel.process_count; i++) {
        const struct proc *process = kernel.processes[i];
        if (process->group == command->pid && process->errand == command->errand &&
            process_exists(process))
            return true;
    }
    return false;
}

void life_on_unlocked(const struct inode *inode)
{
    struct errand *errand = inode->locker->errand;
    struct fence *fence = (struct fence *)errand;
    int64_t number = atoll(inode->text);

    if (errand->command_alive)
        BROKEN(FENCE_LOCKED, "the command of token %ld continues without it", (long)fence->token);
    bool is_first = errand_is_killed(errand) && errand->command_ended >= errand->ended;
    if (is_first && errand->command && group_is_left(errand->command))
        BROKEN(FENCE_KILLS, "token %ld: its command's group is left", (long)fence->token);
    fence->written = number == fence->token;
    if (!fence->written && number != inode->before)
        BROKEN(FENCE_WHOLE, "token %ld leaves %.*s, where %ld was", (long)fence->token,
               (int)inode->size, inode->text, (long)inode->before);
    if (fence->written && number < inode->before)
        BROKEN(FENCE_REFUSES, "token %ld comes behind %ld", (long)number, (long)inode->before);
    if (number > fences.highest)
        fences.highest = number;
}

static void check_status(const struct fence *fence, int status)
{
    const struct errand *errand = &fence->errand;

    switch (status) {
    case STATUS_OK:
        if (!fence->written)
            BROKEN(FENCE_WRITES, "token %ld is not there", (long)fence->token);
        break;
    case STATUS_LOST:
        if (fence->token >= fences.highest)
            BROKEN(FENCE_REFUSES, "token %ld is refused behind %ld", (long)fence->token,
                   (long)fences.highest);
        break;
    case STATUS_NOT_ACQUIRED:
        if (errand->waits == NEVER || world.now < errand->starts + errand->waits)
            BROKEN(FENCE_WAITS, "token %ld waits %.3f s", (long)fence->token,
                   (double)(world.now - errand->starts) / 1e9);
        break;
    default:
        if (status != STATUS_SYSTEM || !fences.fills)
            fail("fence: token %ld fails without a reason, status %d", (long)fence->token, status);
    }
}

static void on_end(struct errand *errand)
{
    const struct fence *fence = (const struct fence *)errand;

    if (errand_is_killed(errand))
        return;
    if (errand->command && !errand_ends_as_command(errand))
        BROKEN(FENCE_ENDS, "token %ld: 0x%x, but 0x%x", (long)fence->token,
               (unsigned)errand->status, (unsigned)errand->command_status);
    else if (!errand->command && WIFEXITED(errand->status))
        check_status(fence, WEXITSTATUS(errand->status));
}

void fence_end(void)
{
    for (int i = 0; i < fences.count; i++)
        if (fences.all[i].errand.process && !fences.all[i].errand.ended)
            fail("fence: token %ld is stuck", (long)fences.all[i].token);
}

/* -- the choice -------------------------------------------------------------------------------- */

static void replace(void *unused)
{
    (void)unused;
    disk_replace();
}

static void fill(void *unused)
{
    (void)unused;
    trace("FAULT: the disk is full");
    disk_fill(true);
}

static void empty(void *unused)
{
    (void)unused;
    disk_fill(false);
}

static void choose(struct fence *fence)
{
    static const int64_t tokens[] = {1, 2, 9, 10, 99, 1000};
    int64_t length = CHOOSE(5, 100, 3000) * MS;
    struct errand *errand = &fence->errand;
    struct program *program = &errand->program;

    *fence =
        (struct fence){.token = tokens[chance_below(6)],
                       .by_option = one_in(2),
                       .bare = one_in(4),
                       .errand = {.starts = world.now + chance_below(CHOOSE(1, 100, 3000) * MS),
                                  .waits = !one_in(3)  ? NEVER
                                           : one_in(3) ? 0
                                                       : MS * chance_below(3000),
                                  .on_execute = on_execute,
                                  .on_end = on_end}};
    program->runs = chance_below(length);
    program->status = one_in(3) ? (int)chance_below(256) : 0;
    if (one_in(2)) {
        program->child = one_in(3) ? CHILD_IN_SESSION : CHILD_IN_GROUP;
        program->child_at = chance_below(program->runs + 1);
        program->child_runs = chance_below(2 * length);
        program->child_ignores_term = one_in(2);
    }
    if (!fences.fills && one_in(3))
        errand->dies_after = 1 + chance_below(one_in(2) ? 2 * MS : 2 * length);
    if (!fences.fills && one_in(4))
        errand->dies_at_call = 1 + (unsigned)chance_below(60);
    if (one_in(6)) {
        errand->stops_after = 1 + chance_below(one_in(2) ? 2 * MS : 2 * length);
        errand->stops_for = chance_below(2 * length);
    }
    if (one_in(6)) {
        errand->asked_after = 1 + chance_below(2 * length);
        program->on_term = (unsigned)chance_below(3);
        program->cleans = chance_below(length);
    }
    world_at(errand->starts, begin, fence);
}

void fence_choose(void)
{
    memset(&fences, 0, sizeof fences);
    if (!one_in(FENCES_EVERY))
        return;
    fences.count = 1 + (int)chance_below(FENCES);
    fences.fills = one_in(6);
    for (int i = 0; i < fences.count; i++)
        choose(&fences.all[i]);
    if (one_in(4))
        world_at(world.now + chance_below(3 * SEC), replace, NULL);
    if (!fences.fills)
        return;
    int64_t from = world.now + chance_below(2 * SEC);
    world_at(from, fill, NULL);
    world_at(from + chance_below(2 * SEC), empty, NULL);
}
