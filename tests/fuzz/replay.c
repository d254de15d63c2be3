/* Runs a fuzz target over its corpus, so that every compiler and every build does. As TAP.
 *
 * fuzz_NAME [FILE...]   (default: all of tests/fuzz/corpus/NAME) */
#include "fuzz.h"

#include <dirent.h>

#define INPUT_MAX 65536

static void replay(int number, const char *path)
{
    uint8_t *data = malloc(INPUT_MAX);
    FILE *file = fopen(path, "rb");

    MUST(data && file);
    size_t size = fread(data, 1, INPUT_MAX, file);
    uint8_t *exact = (uint8_t *)fuzz_text(data, size);
    LLVMFuzzerTestOneInput(exact, size);
    printf("ok %d - %s\n", number, strrchr(path, '/') ? strrchr(path, '/') + 1 : path);
    fflush(stdout);
    fclose(file);
    free(exact);
    free(data);
}

static int is_input(const struct dirent *entry)
{
    return entry->d_name[0] != '.';
}

static int replay_corpus(const char *program)
{
    const char *top = getenv("top_srcdir"), *name = strstr(program, "fuzz_");
    char directory[1024], path[2048];
    struct dirent **entries;

    MUST(top && name);
    snprintf(directory, sizeof directory, "%s/tests/fuzz/corpus/%s", top, name + strlen("fuzz_"));
    int count = scandir(directory, &entries, is_input, alphasort);
    MUST(count > 0);
    for (int i = 0; i < count; i++) {
        snprintf(path, sizeof path, "%s/%s", directory, entries[i]->d_name);
        replay(i + 1, path);
        free(entries[i]);
    }
    free(entries);
    return count;
}

int main(int argc, char **argv)
{
    char *name = strrchr(argv[0], '/');
    int count = argc - 1;

    for (int i = 1; i < argc; i++)
        replay(i, argv[i]);
    if (argc == 1)
        count = replay_corpus(name ? name : argv[0]);
    printf("1..%d\n", count);
    return 0;
}
