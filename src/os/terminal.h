/* The controlling terminal and job control: whose foreground it is, handing it to the command and
 * taking it back, stopping this job as a shell expects it.
 *
 * The command has a process group of its own, so a command that uses the terminal has to be its
 * foreground. It is put there at once when standard output is the terminal, as with an editor or a
 * shell; otherwise only when it is stopped because it needs the terminal: in "rlock run k -- make |
 * less", only less needs it. Nothing happens where this job is not in the foreground itself. */
#pragma once

#include <stdbool.h>
#include <sys/types.h>
#include <termios.h>

struct terminal {
    int fd;              /* the controlling terminal, -1: not opened yet, or there is none */
    pid_t job;           /* the process group of this process */
    bool given;          /* the command's group is, or is about to be, the foreground */
    struct termios mode; /* as it was when it was given */
};

/* Opens nothing yet. */
void terminal_init(struct terminal *terminal);
/* Opens the controlling terminal, if there is one. 0; -1 with errno for want of descriptors or
 * memory: later, the terminal would seem to be missing. */
int terminal_open(struct terminal *terminal);
/* True if there is a controlling terminal, and so perhaps a shell with job control. */
bool terminal_exists(struct terminal *terminal);
/* True if this job is in the foreground of its terminal. */
bool terminal_is_ours(struct terminal *terminal);
/* To be called before the command is started: true if its process must make its group the
 * foreground, with SIGTTOU blocked, and "given" is set. */
bool terminal_offer(struct terminal *terminal);
/* Makes "group" the foreground, unless it is that already; false if the foreground is another job,
 * or that failed. */
bool terminal_give(struct terminal *terminal, pid_t group);
/* Makes this job the foreground again if the command was it. */
void terminal_take(struct terminal *terminal);
/* Makes this job the foreground again if the command was it, and puts back the terminal's settings
 * from before, for a command that was killed and could not. */
void terminal_restore(struct terminal *terminal);

enum terminal_stopped {
    TERMINAL_STOPS_PROCESS, /* this one */
    TERMINAL_STOPS_JOB,     /* with it a script around rlock, or its neighbours in a pipeline */
};

/* Stops this process or its job as the terminal's "signo" (SIGTSTP, SIGTTIN or SIGTTOU) does.
 * Returns true when it has been continued; false if the kernel did not stop it, as no process could
 * continue it (an orphaned process group). */
bool terminal_stop(int signo, enum terminal_stopped what);
