/* Memory, without which the program ends. */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* The struct that has the member that "pointer" points to. */
#define MEM_CONTAINER(type, member, pointer)                                                       \
    ((type *)(void *)((char *)(uintptr_t)(pointer)-offsetof(type, member)))

/* Marks a local variable, which is set where it is declared: at the end of its block, however that
 * is left, the function is called with its address. */
#define ENDED_BY(function) __attribute__((cleanup(function)))

/* Frees memory. "pointer" is the address of a pointer to it, so that FREED can mark a variable. */
static inline void mem_free(void *pointer)
{
    void *allocated;

    memcpy(&allocated, pointer, sizeof allocated); /* whatever the pointer's type is */
    free(allocated);
}
#define FREED ENDED_BY(mem_free)

/* Ends the process for want of memory: with a message, and with status 71. */
__attribute__((noreturn, cold)) void mem_refused(void);

static inline void *mem_checked(void *p)
{
    if (!p)
        mem_refused();
    return p;
}

/* Returns memory that is all zero. size: more than 0. */
static inline void *mem_zeroed(size_t size)
{
    return mem_checked(calloc(1, size));
}

/* Adds an element, which is not set yet, to an array from malloc() and to its count. The value is a
 * pointer to it. */
#define MEM_APPEND(array, count)                                                                   \
    ((array) = mem_checked(realloc((array), ((count) + 1) * sizeof *(array))), &(array)[(count)++])

static inline char *mem_strdup(const char *text)
{
    return mem_checked(strdup(text));
}
