/* rlock-etcd. */
#include "host/store.h"

int main(void)
{
    return host_serve(&(const struct host){.store = &host_etcd});
}
