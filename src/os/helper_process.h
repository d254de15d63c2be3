/* Work that may block, done by a process of its own while the loop continues: a name that is looked
 * up, a server that is started. The finding comes back whole through a pipe. Or a program that this
 * process talks to over a socket, for as long as it is needed. */
#pragma once

#include <stddef.h>

/* Bytes of a finding: a pipe takes as many in one piece (PIPE_BUF). */
#define HELPER_PROCESS_MAX 4096
/* The words for a user where there was no finding. */
#define HELPER_PROCESS_SILENT "it ended without an answer"

struct loop;
struct helper_process;

/* Forks a process in which "work" fills in a finding of "size" bytes, zeroed at first. "done" is
 * called once, later: with the finding, which is valid during the call, or NULL if the process
 * ended without one. NULL with errno if no process could be started. */
struct helper_process *helper_process_start(struct loop *loop,
                                            void (*work)(const void *question, void *finding),
                                            const void *question, size_t size,
                                            void (*done)(void *owner, const void *finding),
                                            void *owner);
/* Executes the program "path", with one end of a socket pair as its standard input and nothing as
 * its output. The socket is its standard error as well, and so tells why a program cannot be
 * started: in words of the system's, or of the dynamic linker's. environment: NULL: empty. It
 * ends by itself when *socket, the other end, is closed. *socket is for the caller to read and
 * write, without blocking, until helper_process_stop() closes it. NULL with errno if no process
 * could be started. */
struct helper_process *helper_process_execute(struct loop *loop, const char *path,
                                              char *const *environment, int *socket);
/* Closes the socket, leaves the process to end by itself, and frees the record of it. */
void helper_process_leave(struct helper_process *helper_process);
/* Kills the process, without waiting for its end, and frees the record of it; "done" is not called
 * any more. Also to be called after "done", or from within it. */
void helper_process_stop(struct helper_process *helper_process);
