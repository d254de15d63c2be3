/* FNV-1a: numbers for texts that are not chosen to collide. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#define HASH_START UINT64_C(14695981039346656037)

/* Adds bytes to a hash, which begins as HASH_START. */
static inline uint64_t hash_add(uint64_t hash, const char *bytes, size_t size)
{
    for (size_t i = 0; i < size; i++)
        hash = (hash ^ (unsigned char)bytes[i]) * UINT64_C(1099511628211);
    return hash;
}
