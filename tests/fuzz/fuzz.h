/* Shared by the fuzz targets. Each is one function that takes any bytes; clang's libFuzzer calls
 * it with those that it thinks up, replay.c with those of the corpus. A broken invariant ends the
 * process. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define MUST(condition)                                                                            \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #condition);                \
            abort();                                                                               \
        }                                                                                          \
    } while (0)

/* A string of its own size, so that whoever reads beyond it is caught. The caller frees. */
static inline char *fuzz_text(const uint8_t *data, size_t size)
{
    char *text = malloc(size + 1);

    MUST(text);
    if (size > 0)
        memcpy(text, data, size);
    text[size] = '\0';
    return text;
}
