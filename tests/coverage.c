/* Part of the library in a build that counts executed lines: a process that ends without exit()
 * writes its counts first. The linker has the calls come here (--wrap). */
#include <signal.h>
#include <unistd.h>

void __gcov_dump(void);
void __gcov_reset(void);
void __wrap__exit(int status) __attribute__((noreturn));
void __real__exit(int status) __attribute__((noreturn));
int __wrap_raise(int signo);
int __real_raise(int signo);

/* Resets the counters, too, so that none counts twice. */
static void write_counts(void)
{
    __gcov_dump();
    __gcov_reset();
}

void __wrap__exit(int status)
{
    write_counts();
    __real__exit(status);
}

int __wrap_raise(int signo)
{
    write_counts();
    return __real_raise(signo);
}

/* A signal that ends the process is counted with it: as before, but for the counts. */
static void die_counted(int signo)
{
    signal(signo, SIG_DFL);
    write_counts();
    __real_raise(signo);
}

__attribute__((constructor)) static void catch_deadly_signals(void)
{
    static const int deadly[] = {SIGHUP, SIGINT, SIGTERM, SIGPIPE};

    for (unsigned i = 0; i < sizeof deadly / sizeof *deadly; i++) {
        struct sigaction action;
        if (sigaction(deadly[i], NULL, &action) == 0 && action.sa_handler == SIG_DFL)
            signal(deadly[i], die_counted);
    }
}
