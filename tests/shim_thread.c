/* shim_thread: LD_PRELOADed, it is a library that has a thread in a process from its start, as
 * those that watch programs do. Programs that the process executes are without it. For the
 * tests. */
#include <pthread.h>
#include <stddef.h>
#include <stdlib.h>
#include <unistd.h>

static void *rest(void *arg)
{
    for (;;)
        pause();
    return arg;
}

__attribute__((constructor)) static void begin(void)
{
    pthread_t thread;
    unsetenv("LD_PRELOAD");
    pthread_create(&thread, NULL, rest, NULL);
}
