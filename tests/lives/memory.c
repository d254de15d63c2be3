/* malloc(3) for one thread: a list of free blocks for each size, without a search and without a
 * thought of fragments: processes that are killed never free what they have. A block that is freed
 * twice, or was never allocated, ends the program. */
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#if !defined __SANITIZE_ADDRESS__ && !defined __SANITIZE_THREAD__

#define STEP    16U /* sizes up to SMALL are multiples of it, others powers of two */
#define SMALL   1024U
#define SMALLS  (SMALL / STEP)
#define SIZES   (SMALLS + 64)
#define CHUNK   ((size_t)1 << 20)
#define IN_USE  0x5ca1ab1eU
#define IS_FREE 0xdeadbeadU

/* In front of what the program gets. */
struct block {
    _Alignas(16) uint32_t use, number;
    struct block *next; /* while it is free */
};

static struct block *free_blocks[SIZES];
static char *chunk;
static size_t chunk_left;

static unsigned number_of(size_t size)
{
    if (size <= SMALL)
        return (unsigned)(size ? (size - 1) / STEP : 0);
    return SMALLS + 64 - (unsigned)__builtin_clzll(size - 1);
}

static size_t size_of(unsigned number)
{
    return number < SMALLS ? (number + 1) * STEP : (size_t)1 << (number - SMALLS);
}

void *__real_mmap64(void *at, size_t size, int protection, int flags, int fd,
                    off_t offset); /* NOLINT(bugprone-reserved-identifier) */

static struct block *cut(size_t size)
{
    if (size > chunk_left) {
        chunk_left = size > CHUNK ? size : CHUNK;
        chunk = __real_mmap64(NULL, chunk_left, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
                              -1, 0);
        if (chunk == MAP_FAILED) {
            chunk_left = 0;
            return NULL;
        }
    }
    struct block *block = (struct block *)(void *)chunk;
    chunk += size;
    chunk_left -= size;
    return block;
}

static void *take(size_t size)
{
    unsigned number = number_of(size);
    struct block *block;

    if (size > PTRDIFF_MAX / 4) {
        errno = ENOMEM;
        return NULL;
    }
    if ((block = free_blocks[number]))
        free_blocks[number] = block->next;
    else if (!(block = cut(sizeof *block + size_of(number))))
        return NULL;
    block->use = IN_USE;
    block->number = number;
    return block + 1;
}

void *malloc(size_t size)
{
    return take(size);
}

static struct block *block_of(void *memory)
{
    struct block *block = (struct block *)memory - 1;

    if (block->use != IN_USE)
        abort();
    return block;
}

void free(void *memory)
{
    if (!memory)
        return;
    struct block *block = block_of(memory);
    block->use = IS_FREE;
    block->next = free_blocks[block->number];
    free_blocks[block->number] = block;
}

void *calloc(size_t count, size_t size)
{
    size_t total;

    if (__builtin_mul_overflow(count, size, &total))
        total = SIZE_MAX;
    void *memory = take(total);
    return memory ? memset(memory, 0, total) : NULL;
}

void *realloc(void *memory, size_t size)
{
    if (!memory)
        return take(size);
    size_t room = size_of(block_of(memory)->number);
    if (size <= room && number_of(size) == block_of(memory)->number)
        return memory;
    void *other = take(size);
    if (!other)
        return NULL;
    memcpy(other, memory, size < room ? size : room);
    free(memory);
    return other;
}

#endif
