/* Libraries that are opened at run time are made for another C library than the one in here. */
#include "absent/absent.h"

#include <stddef.h>

ABSENT(void *, dlopen, NULL)
ABSENT(void *, dlsym, NULL)
ABSENT(int, dlclose, -1)
ABSENT(const char *, dlerror, "a static file opens no library")
