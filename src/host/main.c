/* rlock-postgresql, and rlock-mysql for MySQL and MariaDB. */
#include "host/store.h"

int main(void)
{
    return host_serve(&(const struct host){.store = &host_database});
}
