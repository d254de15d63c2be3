#include "base/arena.h"
#include "base/mem.h"

char *arena_take(struct arena *arena, char *bytes, size_t size)
{
    *MEM_APPEND(arena->all, arena->count) = (struct arena_text){bytes, size};
    return bytes;
}

char *arena_take_string(struct arena *arena, char *string)
{
    return arena_take(arena, string, strlen(string));
}

void arena_free(struct arena *arena)
{
    for (size_t i = 0; i < arena->count; i++) {
        explicit_bzero(arena->all[i].bytes, arena->all[i].size);
        free(arena->all[i].bytes);
    }
    free(arena->all);
    *arena = (struct arena){0};
}
