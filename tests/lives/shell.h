/* Where a run is: on a terminal, below a shell that does job control there, alone as the first
 * process of a window, left in the background by a shell that does not know it, or without any. */
#pragma once

#include "lives/run.h"

/* Chooses where it is. */
void shell_choose(struct run *run);
/* Gives a run's supervisor, which is not started yet, its place. */
void shell_begin(struct run *run);
/* The user sends a signal: by a key or by closing the window, where there is one and if "typed". */
void shell_signal(struct run *run, int signo, bool typed);
