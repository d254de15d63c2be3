/* shim_readdir: LD_PRELOADed, it makes each entry of a directory take a millisecond to read, as on
 * a machine that is very busy or has many processes. For the tests. */
#include <dirent.h>
#include <dlfcn.h>
#include <time.h>

/* The name in the library that programs with large files use. */
struct dirent *slow_readdir(DIR *directory) __asm__("readdir64");

struct dirent *slow_readdir(DIR *directory)
{
    static struct dirent *(*next)(DIR *);
    const struct timespec pause = {.tv_nsec = 1000000};

    if (!next)
        *(void **)&next = dlsym(RTLD_NEXT, "readdir64");
    nanosleep(&pause, NULL);
    return next(directory);
}
