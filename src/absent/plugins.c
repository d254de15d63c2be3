/* The functions that load plugins. Each fails: plugins of the host are made for another C library
 * than the one in a static file. */
#include "absent/absent.h"

#include <stddef.h>

ABSENT(void *, dlopen, NULL)
ABSENT(void *, dlsym, NULL)
ABSENT(int, dlclose, -1)
ABSENT(const char *, dlerror, "a static file opens no library")
