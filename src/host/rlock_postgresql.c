/* rlock-postgresql: the host for PostgreSQL. */
#include "host/store.h"

int main(void)
{
    return host_serve(&(const struct host){.store = &host_postgresql});
}
