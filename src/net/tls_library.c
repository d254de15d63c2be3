#include "net/tls_library.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#ifdef STATIC_BINARY

bool tls_library_load(struct tls_library *library, char *fault, size_t size)
{
    (void)fault, (void)size;
#define TAKE(name) library->name = name;
    TLS_LIBRARY_FUNCTIONS(TAKE)
    return true;
}

#else

#ifndef OPENSSL_SONAME /* configure finds it out */
#define OPENSSL_SONAME "libssl.so.3"
#endif

bool tls_library_load(struct tls_library *library, char *fault, size_t size)
{
    static const struct {
        char name[44]; /* no pointer: that would have to be relocated in every run */
        size_t place;
    } functions[] = {
#define PLACE(name) {#name, offsetof(struct tls_library, name)},
        TLS_LIBRARY_FUNCTIONS(PLACE)};
    /* Never closed: it is needed until the end. It brings libcrypto, where dlsym() looks as
     * well. */
    void *handle = dlopen(OPENSSL_SONAME, RTLD_LAZY | RTLD_LOCAL);

    for (size_t i = 0; handle && i < sizeof functions / sizeof *functions; i++) {
        void *address = dlsym(handle, functions[i].name);
        if (!address)
            handle = NULL;
        memcpy((char *)library + functions[i].place, &address, sizeof address);
    }
    if (!handle)
        snprintf(fault, size, "TLS needs the library OpenSSL (Debian's libssl3 or libssl3t64): %s",
                 dlerror());
    return handle != NULL;
}

#endif
