/* Questions and news of the kernel and the network while a life continues; faults.c and oracle.c
 * answer. */
#pragma once

#include "lives/run.h"

/* The program that a process executes. */
struct program life_program(const struct proc *process, char *const *argv);
/* The process executes rlock itself: has it run that, and returns true. */
bool life_begin_within(struct proc *process, char *const *argv);
/* A copy of a struct agent_task, as fork(2) makes one of all memory. */
const void *life_copy_task(const void *task);
/* A copy of what run/agent_process.c tells a process that may outlive it. */
const void *life_copy_renewer(const void *renewer);
/* A copy of what run/notifier.c tells its process. */
const void *life_copy_work(const void *work);

/* A copy of what run/fenced.c tells its guard. */
const void *life_copy_guarded(const void *guarded);

/* Faults may strike here: before each system call; before a deed, which is one that others notice;
 * and when a request has been sent. */
void life_on_call(struct proc *process);
void life_on_deed(const struct proc *process, enum deed deed);
void life_on_request(struct run *run);
/* The guards of a run are in another state. */
void life_on_change(struct run *run);
/* Whether it is the first request of a run. */
bool life_is_first_request(struct run *run);

/* Things that a call creates. */
enum want { WANT_FILE, WANT_SOCKET, WANT_PROCESS, WANT_MEMORY, WANT_LOOK /* at /proc */ };
/* The error with which a call of the process fails for want of that; 0: it does not. */
int life_on_want(struct proc *process, enum want want);

/* The oracle's. */
void life_on_execute(struct proc *process, char *const *argv, char *const *environment);
void life_on_end(const struct proc *process);
/* Somebody sends a signal to a process. */
void life_on_signal(const struct proc *process, int signo);
/* At the server: an owner has become the holder of the lock whose record has that name. */
void life_on_granted(const char *name, const char *owner);
/* A run's own request has removed its entry, before that was over. remembered: the record tells of
 * the run, or the server is full. */
void life_on_released(const struct run *run, bool remembered);
/* A holder is asked to release. */
void life_on_asked(const char *owner);
/* An administrator's request has removed an owner's entry, which would have lasted until then. */
void life_on_taken(const char *owner, int64_t deadline);
/* The server's clock is set, and the owner, who relies on its lock, may not have it then. */
void life_on_shortened(const char *owner, struct span span);
/* The server has lost its data, and an entry that would have lasted until the end of that. */
void life_on_forgotten(const char *owner, struct span span);
/* The same at one server of a quorum, and the owner may have no majority then. */
void life_on_thinned(const char *owner, struct span span);
/* A replica has taken the master's place that lacks the entry of that owner, and must have it. */
void life_on_unreplicated(const char *owner);
/* A run still asks a master that the Sentinels name no more. */
void life_on_left(const struct run *run);
/* All that one request changes has changed. */
void life_on_commit(void);
/* A script has an answer to "rlock renew" or "rlock release". counted: it counted on the lock. */
void life_on_answered(const struct run *run, bool counted, int status);
/* Whether a script that has a lock may count on it. */
bool life_counts_on(const struct run *run);
/* A file of the disk is not locked any more. */
struct inode;
void life_on_unlocked(const struct inode *inode);
/* After each step. */
void life_check(void);
