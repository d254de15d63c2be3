/* What there is in place of the clock, and of a database driver's process and socket (ld --wrap),
 * below a real store/sql/driver.c. */
#ifndef DRIVER_WRAPS_H
#define DRIVER_WRAPS_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>
#include <time.h>

struct loop;
struct helper_process;

int __real_clock_gettime(clockid_t clock, struct timespec *time);
int __wrap_clock_gettime(clockid_t clock, struct timespec *time);
ssize_t __wrap_send(int fd, const void *bytes, size_t size, int flags);
ssize_t __wrap_recv(int fd, void *bytes, size_t size, int flags);
bool __wrap_program_find(const char *name, char *path, size_t size);
struct helper_process *__wrap_helper_process_execute(struct loop *loop, const char *path,
                                                     int *socket);
void __wrap_helper_process_leave(struct helper_process *process);
void __wrap_helper_process_stop(struct helper_process *process);

#endif
