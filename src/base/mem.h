/* Memory for small things at the start of a run: without it the program ends. */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* The struct that has the member that "pointer" points to. */
#define MEM_CONTAINER(type, member, pointer)                                                       \
    ((type *)(void *)((char *)(uintptr_t)(pointer)-offsetof(type, member)))

static inline void *mem_checked(void *p)
{
    if (!p)
        abort();
    return p;
}

static inline void *mem_zeroed(size_t size)
{
    return mem_checked(calloc(1, size));
}

static inline char *mem_strdup(const char *text)
{
    return mem_checked(strdup(text));
}
