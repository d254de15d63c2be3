#include "lives/tty.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>

static struct tty *ttys;

void tty_begin(void)
{
    for (struct tty *tty = ttys, *next; tty; tty = next) {
        next = tty->next;
        free(tty);
    }
    ttys = NULL;
}

struct tty *tty_new(const struct proc *leader)
{
    struct tty *tty = malloc(sizeof *tty);

    *tty = (struct tty){.next = ttys,
                        .session = leader->session,
                        .leader = leader->pid,
                        .foreground = leader->group};
    return ttys = tty;
}

struct tty *tty_of(const struct proc *process)
{
    struct tty *tty = ttys;

    while (tty && tty->session != process->session)
        tty = tty->next;
    return tty;
}

/* A terminal keeps the group itself, not its number: a group of another session has got that since.
 */
static void signal_foreground(const struct tty *tty, int signo)
{
    for (int i = 0; i < kernel.process_count; i++) {
        struct proc *process = kernel.processes[i];
        if (process->group == tty->foreground && process->session == tty->leader &&
            process->life != REAPED)
            signal_send(process, signo);
    }
}

void tty_key(const struct tty *tty, int signo)
{
    if (tty->session)
        signal_foreground(tty, signo);
}

void tty_hang_up(struct tty *tty)
{
    struct proc *leader = process_find(tty->session);

    tty->session = 0;
    if (!leader)
        return;
    signal_send(leader, SIGHUP);
    signal_send(leader, SIGCONT);
}

/* The leader of a session that has lost its terminal wakes who is stopped, too. */
void tty_on_end(const struct proc *process)
{
    struct tty *tty = ttys;

    if (process->session != process->pid)
        return;
    while (tty && tty->leader != process->pid)
        tty = tty->next;
    if (!tty)
        return;
    bool outside = kernel.from_outside;
    kernel.from_outside = true;
    signal_foreground(tty, SIGHUP);
    if (!tty->session)
        signal_foreground(tty, SIGCONT);
    kernel.from_outside = outside;
    tty->session = tty->leader = 0;
}

int tty_use(const struct proc *process, const struct tty *tty, int signo)
{
    bool blocked = process->blocked & signal_bit(signo);

    if (tty_of(process) != tty || tty->foreground == process->group ||
        (blocked && signo == SIGTTOU))
        return 0;
    if (blocked || group_is_orphaned(process->group))
        return EIO;
    group_signal(process->group, signo);
    return EINTR;
}

int tty_give(const struct proc *process, struct tty *tty, int group)
{
    int error = tty_use(process, tty, SIGTTOU), session = 0;

    if (error)
        return error == EIO ? ENOTTY : error;
    if (tty_of(process) != tty)
        return ENOTTY;
    for (int i = 0; i < kernel.process_count; i++)
        if (kernel.processes[i]->group == group && kernel.processes[i]->life != REAPED)
            session = kernel.processes[i]->session;
    if (session != process->session)
        return session ? EPERM : ESRCH;
    tty->foreground = group;
    return 0;
}
