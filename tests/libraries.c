/* The build links this, and never runs it: all functions of the libraries that rlock opens at run
 * time, taken from those libraries by the linker. One that a library does not have stops the
 * build. */
#include "cli/json.h"
#include "net/tls_library.h"

int main(void)
{
    struct tls_library tls;
    char fault[256];

    return !json_load(fault, sizeof fault) || !tls_library_load(&tls, fault, sizeof fault);
}
