/* Terminals and job control: whose foreground a terminal is, its keys, and what happens to those
 * who use it in the background. A terminal is that of a session, or of none any more. */
#pragma once

#include "lives/kernel.h"

struct tty {
    struct tty *next;
    int session;    /* 0: none, as it was hung up, or the leader has ended */
    int leader;     /* of the session that has or had it; 0: it has ended */
    int foreground; /* a process group */
};

/* Ends those of the life before. */
void tty_begin(void);
/* Gives a session's leader a terminal, of which its group is the foreground. */
struct tty *tty_new(const struct proc *leader);
/* The controlling terminal of a process; NULL: it has none. */
struct tty *tty_of(const struct proc *process);
/* Somebody presses the key of that signal. */
void tty_key(const struct tty *tty, int signo);
/* The window is closed, or the line is cut. */
void tty_hang_up(struct tty *tty);
/* A process ends: the terminal of its session may lose its leader. */
void tty_on_end(const struct proc *process);
/* A process reads (TTIN) or changes (TTOU) its terminal: 0, or with which error it may not; EINTR:
 * its group has been sent that signal, and then it tries again. */
int tty_use(const struct proc *process, const struct tty *tty, int signo);
/* Makes a group the foreground; returns 0 or an error. */
int tty_give(const struct proc *process, struct tty *tty, int group);
