/* The scripts of rules/, compiled by src/host/compile.c when the program is built. */
#ifndef RLOCK_HOST_BYTECODE_H
#define RLOCK_HOST_BYTECODE_H

#include <stddef.h>

struct script;

struct bytecode {
    const struct script *script; /* NULL: there are no more */
    const unsigned char *bytes;
    size_t size;
};

extern const struct bytecode bytecodes[];

#endif
