#include "base/mem.h"

#include <sysexits.h>
#include <unistd.h>

/* Ends the program, as there is no memory: so it calls nothing that needs some. */
void mem_refused(void)
{
    static const char why[] = "rlock: out of memory\n";
    ssize_t written = write(STDERR_FILENO, why, sizeof why - 1);

    (void)written;
    _exit(EX_OSERR);
}
