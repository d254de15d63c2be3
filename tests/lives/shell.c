#include "lives/shell.h"

#include <signal.h>
#include <sys/wait.h>

#include "lives/tty.h"

void shell_choose(struct run *run)
{
    run->place = (unsigned)CHOOSE(PLACE_NOWHERE, PLACE_SHELL, PLACE_SHELL, PLACE_ALONE, PLACE_LEFT);
    run->output_is_terminal = one_in(2);
    run->away = chance_below(one_in(2) ? 300 * MS : 3 * run->lease);
    run->in_background = one_in(4);
    run->program.reads_at = one_in(4) ? chance_below(run->program.runs + 1) : NEVER;
}

/* -- job control ------------------------------------------------------------------------------- */

/* "fg" or "bg": the job continues. The shell looks again, as in the background it may stop. */
static void carry_on(void *arg)
{
    struct proc *shell = arg;
    struct run *run = shell->run;
    const struct proc *job = run->supervisor;

    if (!process_exists(shell) || !process_exists(job) || !job->stopped)
        return;
    if (!process_can_run(shell)) {
        world_at(world.now + 10 * MS, carry_on, shell);
        return;
    }
    if (run->in_background)
        trace("the shell of run %d: bg", run->number);
    else
        trace("the shell of run %d: fg", run->number);
    if (!run->in_background)
        run->tty->foreground = job->group;
    run->in_background = false;
    group_signal(job->group, SIGCONT);
}

/* The job has stopped: the terminal is the shell's again, for a while. */
static void note_stop(struct proc *shell, struct proc *job)
{
    trace("the shell of run %d: its job is stopped", shell->run->number);
    job->stop_untold = false;
    shell->run->tty->foreground = shell->group;
    world_at(world.now + shell->run->away, carry_on, shell);
}

/* The shell hands on HUP, and ends, also when its job has ended. */
static void look(void *arg)
{
    struct proc *shell = arg, *job = shell->run->supervisor;

    if (!process_exists(shell))
        return;
    if (!process_can_run(shell)) {
        world_at(world.now + 10 * MS, look, shell);
    } else if (job->life >= ZOMBIE) {
        process_reap(job);
        shell->run->tty->foreground = shell->group;
        process_end(shell, 0);
    } else if (shell->caught & signal_bit(SIGHUP)) {
        group_signal(job->group, SIGHUP);
        group_signal(job->group, SIGCONT);
        process_end(shell, W_EXITCODE(129, 0));
    } else if (job->stopped && job->stop_untold) {
        note_stop(shell, job);
    }
}

/* The shell that has left it lives as long. */
static void wait_for_end(void *arg)
{
    struct proc *shell = arg;

    if (!process_exists(shell->run->supervisor))
        process_end(shell, 0);
    else
        world_at(world.now + 100 * MS, wait_for_end, shell);
}

/* -- places ------------------------------------------------------------------------------------ */

void shell_begin(struct run *run)
{
    struct proc *supervisor = run->supervisor, *leader = supervisor;

    trace("run %d: %s%s; its command needs it after %.3f s", run->number,
          run->place == PLACE_NOWHERE ? "no terminal"
          : run->place == PLACE_SHELL ? "on a terminal with a shell"
          : run->place == PLACE_ALONE ? "alone on a terminal"
                                      : "left in the background of a terminal",
          run->output_is_terminal ? ", its standard output" : "",
          run->program.reads_at == NEVER ? -1 : (double)run->program.reads_at / 1e9);
    if (run->place == PLACE_NOWHERE)
        return;
    if (run->place != PLACE_ALONE) {
        leader = process_new(SHELL, 1, run);
        supervisor->session = leader->session;
    }
    run->tty = tty_new(leader);
    if (run->place == PLACE_SHELL) {
        leader->acts = look;
        supervisor->parent = leader->pid;
        run->tty->foreground = supervisor->group;
    } else if (run->place == PLACE_LEFT) {
        wait_for_end(leader);
    }
    if (run->output_is_terminal)
        supervisor->output = run->tty;
}

/* Ctrl-Z came just when the command had ended, and has stopped what that left, for which
 * --wait-descendants waits. "fg" finds no job that is stopped, so the user does it by hand. */
static void continue_by_hand(void *arg)
{
    const struct run *run = arg;
    struct proc *supervisor = run_guard(run, SUPERVISOR);

    if (supervisor && process_can_run(supervisor) && run->starts_seen && !run->command_alive)
        signal_send(supervisor, SIGCONT);
}

void shell_signal(struct run *run, int signo, bool typed)
{
    struct proc *supervisor = run_guard(run, SUPERVISOR);
    const struct run *outer = run;
    bool by_key = signo == SIGINT || signo == SIGQUIT || signo == SIGTSTP;

    while (outer->outer)
        outer = outer->outer;
    struct tty *tty = outer->tty;
    if (!typed || !tty || !(by_key || signo == SIGHUP)) {
        signal_send(supervisor, signo);
    } else if (by_key) {
        trace("the key of signal %d is pressed", signo);
        tty_key(tty, signo);
        if (signo == SIGTSTP)
            world_at(world.now + run->away + 10 * SEC, continue_by_hand, run);
    } else {
        trace("the terminal is closed");
        tty_hang_up(tty);
    }
}
