/* shim_clone: LD_PRELOADed, it refuses clone(), as valgrind and qemu do where it would give a
 * process the memory of another one. For the tests. */
#define clone real_clone /* has a variable number of arguments */
#include <errno.h>
#include <sched.h>
#undef clone

int clone(void);

int clone(void)
{
    errno = EINVAL;
    return -1;
}
