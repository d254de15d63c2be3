/* The clocks as base/clock.h asks the kernel for them: a test that includes this and has a
 * clock_gettime() of its own, in place of the C library's, is asked instead. */
#pragma once

#include <dlfcn.h>
#include <stdarg.h>
#include <sys/syscall.h>
#include <time.h>

/* The C library's syscall(). */
static inline long kernel_call(long number, const long words[6])
{
    static long (*call)(long number, ...);

    if (!call)
        *(void **)&call = dlsym(RTLD_NEXT, "syscall");
    return call(number, words[0], words[1], words[2], words[3], words[4], words[5]);
}

/* As the kernel has it. */
static inline int kernel_time(clockid_t clock, struct timespec *time)
{
    return (int)kernel_call(SYS_clock_gettime, (const long[6]){clock, (long)time});
}

/* In place of the C library's. How many words follow only the caller knows, so more are read. */
__attribute__((no_sanitize("address"))) long syscall(long number, ...)
{
    long words[6];
    va_list args;

    va_start(args, number);
    for (int i = 0; i < 6; i++)
        words[i] = va_arg(args, long);
    va_end(args);
    if (number == SYS_clock_gettime)
        return clock_gettime((clockid_t)words[0], (struct timespec *)words[1]);
    return kernel_call(number, words);
}
