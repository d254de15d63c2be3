/* rlock-mysql: the host for MySQL and MariaDB. */
#include "host/store.h"

int main(void)
{
    return host_serve(&(const struct host){.store = &host_mysql});
}
