/* Commands of an administrator: force-release, pause and resume. */
#pragma once

#include "lives/run.h"

/* The server is told that it has forgotten nothing (rlock init): an event. */
void order_mark(void *unused);
/* Forces the release of the first key that the run holds or asks for. The request is sent again, as
 * by the command, until the holder has released the lock or its lease is over. */
void order_force(struct run *run, bool now);
/* An event: pauses the first key of the run, and resumes it later, as the run's choice says. */
void order_pause(void *run);

/* Asks the store, once; returns when it has answered. A process of its own calls it. */
struct answer order_ask(struct operation operation);

/* Whether no new owner is let in, for sure: between the answer to the pause and its end, or the
 * request to resume. */
bool order_has_paused(const char *record);
void orders_begin(void);
