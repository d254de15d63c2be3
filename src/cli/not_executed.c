#include "cli/not_executed.h"

#include <ctype.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/strbuf.h"
#include "base/text.h"
#include "cli/args.h"
#include "cli/say.h"
#include "os/file.h"
#include "run/exit_status.h"

#define NAME_CHARACTERS "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_"

#define SHELL_CHARACTERS " $*?|&;<>`"

#define LINE_MOST 256 /* of a script's first line, as the kernel reads it */

/* Only a shell knows these words, or a program of that name would do nothing. */
static const char *const shell_words[] = {
    "!",        "(",      "((",     ".",       ":",      "[[",      "alias",    "bg",
    "builtin",  "case",   "cd",     "command", "coproc", "declare", "dirs",     "disown",
    "eval",     "exec",   "exit",   "export",  "fg",     "for",     "function", "hash",
    "history",  "if",     "jobs",   "let",     "local",  "popd",    "pushd",    "read",
    "readonly", "return", "select", "set",     "shift",  "shopt",   "source",   "time",
    "times",    "trap",   "type",   "typeset", "ulimit", "umask",   "unalias",  "unset",
    "until",    "wait",   "while",  "{"};

/* Returns the path of the file that execvp() means, or NULL. The caller frees it. */
static char *find_file(const char *command)
{
    const char *path = getenv("PATH");

    if (strchr(command, '/'))
        return access(command, F_OK) == 0 ? mem_strdup(command) : NULL;
    for (; path && *path; path += strcspn(path, ":"), path += *path == ':') {
        int length = (int)strcspn(path, ":");
        char *file = strbuf_print("%.*s/%s", length, path, command);
        if (access(file, X_OK) == 0)
            return file;
        free(file);
    }
    return NULL;
}

/* Reads the path of a script's interpreter; "" if the file has none. Returns whether its first
 * line ends as on Windows. */
static bool read_interpreter(const char *file, char line[LINE_MOST])
{
    int fd = open(file, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);

    if (file_read_small(fd, line, LINE_MOST) < 0)
        *line = '\0';
    line[strcspn(line, "\n")] = '\0';
    bool windows = strchr(line, '\r') != NULL;
    size_t start = strncmp(line, "#!", 2) == 0 ? 2 + strspn(line + 2, " \t") : strlen(line);
    size_t word = strcspn(line + start, " \t\r");
    memmove(line, line + start, word);
    line[word] = '\0';
    return windows;
}

bool is_program(const char *command)
{
    char *file FREED = find_file(command);

    return file;
}

/* Hints at why a file that is there cannot be executed. */
static void hint_at_mode(const char *command)
{
    struct strbuf shown ENDED_BY(strbuf_free) = {0};
    struct stat status;

    args_print_word(command, &shown);
    if (!strchr(command, '/') || stat(command, &status) < 0)
        return;
    if (S_ISDIR(status.st_mode))
        say_hint("%s is a directory", command);
    else if (S_ISREG(status.st_mode) && !(status.st_mode & 0111))
        say_hint("chmod +x %s makes it executable", shown.text);
}

/* Hints at what is missing, or was perhaps meant, by a command that was not found. */
static void hint_at_meaning(const char *command, const char *shell)
{
    char interpreter[LINE_MOST];
    char *file = find_file(command);
    struct strbuf shown ENDED_BY(strbuf_free) = {0};
    /* A shell takes it for NAME=VALUE, in front of a command. */
    size_t name = strspn(command, NAME_CHARACTERS);
    bool sets_variable = name > 0 && command[name] == '=' && !isdigit((unsigned char)*command);

    args_print_word(file ? file : "", &shown);
    if (file && read_interpreter(file, interpreter) && *interpreter)
        say_hint("%s has the ends of lines of Windows (CRLF): sed -i 's/[[:cntrl:]]$//' %s", file,
                 shown.text);
    else if (file && *interpreter)
        say_hint("%s needs %s, which is not there", file, interpreter);
    else if (file)
        say_hint("%s is there, but not the loader that it needs", file);
    else if (text_is_among(shell_words, sizeof shell_words / sizeof *shell_words, command))
        say_hint("%s is a word of the shell: use %s", command, shell);
    else if (sets_variable)
        say_hint("env before it sets a variable for a command; or use %s", shell);
    else if (*command == '-')
        say_hint("options come before --, and COMMAND after it");
    else if (*command == '~' || strpbrk(command, SHELL_CHARACTERS))
        say_hint("a line for the shell: use %s", shell);
    free(file);
}

void not_executed_hint(int status, const char *command, const char *shell)
{
    if (status == STATUS_NOT_FOUND)
        hint_at_meaning(command, shell);
    else if (status == STATUS_NOT_EXECUTABLE)
        hint_at_mode(command);
}
