#include "lives/errand.h"

#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>

#include "cli/say.h"
#include "cmd/commands.h"
#include "lives/run.h"
#include "lives/sentences.h"

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
int errand_execute(const struct errand *errand, const struct command *command, char **words,
                   int count)
{
    struct call *call = calloc(1, command->size);

    say_set_verbosity(SAY_QUIET); /* nothing is printed */
    call->command = command;
    call->argc = count;
    call->argv = words;
    if (!args_parse(count, words, command->options, &call->arguments) ||
        command->check(call) != STATUS_OK)
        abort();
    call->settings.address = run_address();
    if (errand->server_wait)
        call->settings.address.server_wait = errand->server_wait;
    call->settings.wait = errand->waits;
    if (!command->storeless && command_open(call) != STATUS_OK)
        abort();
    int status = command->act(call);
    query_close(&call->query);
    if (call->signal)
        process_end(kernel.current, call->signal);
    return status;
}

/* -- what is done to it ------------------------------------------------------------------------ */

static void strike(const struct errand *errand, int signo, const char *fault)
{
    if (!process_exists(errand->process))
        return;
    trace("FAULT: %s", fault);
    signal_send(errand->process, signo);
}

static void die(void *arg)
{
    strike(arg, SIGKILL, "KILL of rlock");
}

static void go_on(void *arg)
{
    signal_send(((struct errand *)arg)->process, SIGCONT);
}

static void stop(void *arg)
{
    struct errand *errand = arg;

    if (!process_exists(errand->process))
        return;
    trace("FAULT: STOP of rlock for %.3f s", (double)errand->stops_for / 1e9);
    signal_send(errand->process, SIGSTOP);
    world_at(world.now + errand->stops_for, go_on, errand);
}

static void ask(void *arg)
{
    strike(arg, SIGTERM, "TERM to rlock");
}

void errand_start(struct errand *errand, enum kind kind, int (*work)(const void *errand))
{
    errand->process = process_new(kind, 1, NULL);
    errand->process->errand = errand;
    process_start(errand->process, work, errand);
    if (errand->dies_after)
        world_at(world.now + errand->dies_after, die, errand);
    if (errand->stops_after)
        world_at(world.now + errand->stops_after, stop, errand);
    if (errand->asked_after)
        world_at(world.now + errand->asked_after, ask, errand);
}

void errand_on_call(const struct proc *process)
{
    struct errand *errand = process->errand;

    if (process != errand->process || ++errand->calls != errand->dies_at_call)
        return;
    bool outside = kernel.from_outside;
    kernel.from_outside = true;
    die(errand);
    kernel.from_outside = outside;
}

/* -- what becomes of it ------------------------------------------------------------------------ */

void errand_on_execute(struct proc *process, char *const *environment)
{
    struct errand *errand = process->errand;

    process->kind = COMMAND;
    if (errand->command)
        fail("the command of an errand is started twice");
    errand->command = process;
    errand->command_alive = true;
    if (errand->on_execute)
        errand->on_execute(errand, environment);
}

static void check_dead(void *arg)
{
    const struct errand *errand = arg;

    if (errand->command_alive)
        BROKEN(DIES_WITH_RLOCK, "the command %d lives on", errand->command->pid);
}

void errand_on_end(const struct proc *process)
{
    struct errand *errand = process->errand;

    if (process == errand->command) {
        errand->command_alive = false;
        errand->command_ended = world.now;
        errand->command_status = process->status;
    }
    if (process != errand->process)
        return;
    errand->ended = world.now;
    errand->status = process->status;
    trace("ends, 0x%x", (unsigned)errand->status);
    if (errand->command_alive)
        world_at(world.now + SEC, check_dead, errand);
    if (errand->on_end)
        errand->on_end(errand);
}

bool errand_is_killed(const struct errand *errand)
{
    return errand->ended && errand->status == SIGKILL;
}

bool errand_ends_as_command(const struct errand *errand)
{
    return !errand->command_alive && errand->status == errand->command_status;
}
