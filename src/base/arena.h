/* Strings that are freed together. Secrets are among them, so all are overwritten first. */
#pragma once

#include <stddef.h>

struct arena_text {
    char *bytes;
    size_t size;
};

struct arena {
    struct arena_text *all;
    size_t count;
};

/* Takes "size" bytes from malloc(), and returns them. */
char *arena_take(struct arena *arena, char *bytes, size_t size);
/* Takes a string from malloc(), and returns it. */
char *arena_take_string(struct arena *arena, char *string);
void arena_free(struct arena *arena);
