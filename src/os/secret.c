/* Reading a password file. */
#include "os/secret.h"
#include "base/mem.h"
#include "os/file.h"

#include <stdio.h>

#define PASSWORD_MAX 1024

/* The first line; NULL with why in "fault". */
static char *first_line(const struct file *file, char *fault, size_t size)
{
    size_t length = strcspn(file->text, "\r\n");

    if (length < file->size && file->text[length] == '\0')
        snprintf(fault, size, "its first line has a NUL byte in it");
    else if (length == 0)
        snprintf(fault, size, "its first line is empty");
    else
        return mem_checked(strndup(file->text, length));
    return NULL;
}

static char *read_secret(const char *path, bool again, struct file *file, char *fault, size_t size)
{
    const struct file_options options = {.limit = PASSWORD_MAX, .line = true, .again = again};
    char *secret = NULL;

    if (file_read(file, path, &options, fault, size) == 0)
        secret = first_line(file, fault, size);
    file_wipe(file);
    return secret;
}

char *secret_read(const char *path, bool *rereadable, unsigned *exposed, char *fault, size_t size)
{
    struct file file;
    char *secret = read_secret(path, false, &file, fault, size);

    *rereadable = file.rereadable;
    *exposed = secret && file.public ? file.mode : 0;
    return secret;
}

char *secret_read_again(const char *path)
{
    struct file file;
    char why[120];

    return read_secret(path, true, &file, why, sizeof why);
}
