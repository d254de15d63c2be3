/* Starts drivers, and speaks their protocol: a question is a line, and behind that of a put a text;
 * an answer is a line of words, and behind "value" a text. No answer is believed that is not of the
 * protocol: it counts as "unknown". To change a frame, change docs/drivers.md as well; both are
 * frozen for version 1. */
#include "host/driver.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/decimal.h"
#include "base/mem.h"
#include "base/percent.h"
#include "base/strbuf.h"
#include "base/text.h"
#include "os/program.h"

#define HELLO      "hello 1"
#define PROGRAM    "rlock-store-"
#define LINE_MAX_  8192
#define TEXT_MAX   (64 * 1024 * 1024)
#define POLL_LEAST 50 /* ms */
#define POLL_MOST  60000
#define WORDS_MAX  4
/* As large as a pipe of any user may be. */
#define PIPE_SIZE (1024 * 1024)

struct driver {
    pid_t pid;
    int to; /* -1: its input has ended */
    FILE *from;
    int errors;     /* a file with what it has written to its standard error */
    bool has_dates; /* its answers end with the store's time */
    int poll_ms;    /* for so long a waiter need not ask again; 0: the driver does not say */
    bool puts;      /* the latest question was a put */
};

/* -- words ------------------------------------------------------------------------------------- */

/* Adds the key behind a space, as letters, digits, '.', '_', '-' and %XX. */
static void add_word(struct strbuf *out, struct slice key)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-";

    strbuf_putc(out, ' ');
    for (size_t i = 0; i < key.size; i++) {
        if (key.at[i] && strchr(plain, key.at[i]))
            strbuf_putc(out, key.at[i]);
        else
            strbuf_printf(out, "%%%02X", (unsigned char)key.at[i]);
    }
}

/* Splits a line at its spaces, in place. Returns how many words it has; WORDS_MAX + 1: more. */
static size_t split_words(char *line, const char *words[WORDS_MAX])
{
    size_t count = 0;

    for (char *at = line; at; count++) {
        char *word = strsep(&at, " ");
        if (count == WORDS_MAX)
            return WORDS_MAX + 1;
        words[count] = word;
    }
    return count;
}

/* Whether the word can be a version: printable, not too long, and not the word for no key. */
static bool is_version(const char *word)
{
    size_t length = 0;

    while (word[length] > ' ' && word[length] < 0x7f)
        length++;
    return length > 0 && !word[length] && length < DRIVER_WORD_SIZE &&
           strcmp(word, DRIVER_NO_KEY) != 0;
}

/* Sets the verdict, and the driver's words for it, which become a part of a message: so without the
 * full stop of a sentence. */
static void set_verdict(struct driver_answer *answer, enum driver_verdict verdict,
                        const char *words)
{
    size_t length = strlen(words);

    if (length > 0 && words[length - 1] == '.')
        length--;
    answer->verdict = verdict;
    snprintf(answer->said, sizeof answer->said, "%.*s", (int)length, words);
}

/* Takes the line "failed TEXT" as the answer. False: the line is something else. */
static bool take_failed(struct driver_answer *answer, const char *line)
{
    const char *text = text_behind("failed ", line);

    if (!text)
        return false;
    set_verdict(answer, DRIVER_FAILED, text);
    return true;
}

/* Makes the answer UNKNOWN, as the driver gave none. The reason is the latest line of its standard
 * error, or "words" if there is none. */
static void set_silent(const struct driver *driver, struct driver_answer *answer, const char *words)
{
    char text[2048];
    off_t end = lseek(driver->errors, 0, SEEK_END);
    off_t from = end > (off_t)sizeof text - 1 ? end - (off_t)sizeof text + 1 : 0;
    ssize_t got = pread(driver->errors, text, sizeof text - 1, from);

    while (got > 0 && (unsigned char)text[got - 1] <= ' ')
        got--;
    text[got > 0 ? got : 0] = '\0';
    const char *line = strrchr(text, '\n');
    line = line ? line + 1 : text;
    set_verdict(answer, DRIVER_UNKNOWN, *line ? line : words);
}

/* Makes the answer UNKNOWN, as the line is not of the protocol: what became of the request is not
 * known. */
static void set_strange(struct driver_answer *answer, const char *line)
{
    char words[sizeof answer->said];

    snprintf(words, sizeof words, "no answer of the protocol: %.*s", (int)sizeof words - 40, line);
    set_verdict(answer, DRIVER_UNKNOWN, words);
}

/* -- starting and ending ----------------------------------------------------------------------- */

/* Executes the driver: from this program's directory or its libexec, or else by PATH. */
__attribute__((noreturn)) static void execute_driver(const char *name, const char *rest)
{
    char program[sizeof PROGRAM + DRIVER_WORD_SIZE], path[4096];
    char *const argv[] = {program, (char *)(uintptr_t)rest, NULL};

    snprintf(program, sizeof program, PROGRAM "%s", name);
    signal(SIGPIPE, SIG_DFL);
    if (program_find(program, path, sizeof path))
        execv(path, argv);
    execvp(program, argv);
    dprintf(STDERR_FILENO, "the program %s cannot be started: %s\n", program, strerror(errno));
    _exit(errno == ENOENT ? 127 : 126);
}

/* Opens what connects to the driver: two pipes, to its input and from its output; and a file,
 * *errors, for its standard error, which no process has to read in time. False with errno. */
static bool open_ends(int to[2], int from[2], int *errors)
{
    if (pipe2(to, O_CLOEXEC) != 0)
        return false;
    fcntl(to[1], F_SETPIPE_SZ, PIPE_SIZE);
    if (pipe2(from, O_CLOEXEC) == 0) {
        *errors = memfd_create("errors", MFD_CLOEXEC);
        if (*errors >= 0 && fcntl(*errors, F_SETFL, O_APPEND) == 0)
            return true;
        close(from[0]);
        close(from[1]);
    }
    close(to[0]);
    close(to[1]);
    return false;
}

/* Starts the driver of that name in a child process, with pipes to its standard input, output and
 * error. rest: of the URL, its argument. Returns NULL, with errno, if it could not be started. */
static struct driver *start_driver(const char *name, const char *rest)
{
    int to[2], from[2], errors;

    if (!open_ends(to, from, &errors))
        return NULL;
    pid_t pid = fork();
    if (pid == 0) {
        if (dup2(to[0], STDIN_FILENO) >= 0 && dup2(from[1], STDOUT_FILENO) >= 0 &&
            dup2(errors, STDERR_FILENO) >= 0)
            execute_driver(name, rest);
        _exit(126);
    }
    close(to[0]);
    close(from[1]);
    if (pid < 0) {
        close(to[1]);
        close(from[0]);
        close(errors);
        return NULL;
    }
    struct driver *driver = mem_zeroed(sizeof *driver);
    *driver = (struct driver){
        .pid = pid, .to = to[1], .from = mem_checked(fdopen(from[0], "r")), .errors = errors};
    return driver;
}

/* Sends a question to the driver. Its pipe is empty, as the driver has answered the one before:
 * what fits into it goes there at once, even if this process is killed meanwhile. Otherwise a
 * driver could take half of a put for the whole. */
static void send_bytes(struct driver *driver, struct slice bytes)
{
    size_t sent = 0;

    while (sent < bytes.size) {
        ssize_t count = write(driver->to, bytes.at + sent, bytes.size - sent);
        if (count < 0 && errno != EINTR)
            break; /* the driver has ended, which is reported when there is no answer */
        sent += count > 0 ? (size_t)count : 0;
    }
}

/* Closes the driver's input, once. */
static void end_input(struct driver *driver)
{
    if (driver->to >= 0)
        close(driver->to);
    driver->to = -1;
}

/* Closes what connects to the driver, which ends by itself when its input does, and frees it. */
static void drop_driver(struct driver *driver)
{
    end_input(driver);
    fclose(driver->from);
    close(driver->errors);
    free(driver);
}

/* Ends the driver. A driver that has not ended yet is reaped when this process ends. */
void driver_end(struct driver *driver)
{
    pid_t pid = driver->pid;

    drop_driver(driver);
    if (pid > 0)
        waitpid(pid, NULL, WNOHANG);
}

void driver_kill(struct driver *driver)
{
    if (driver->pid > 0) {
        kill(driver->pid, SIGKILL);
        waitpid(driver->pid, NULL, 0);
    }
    drop_driver(driver);
}

/* Reads a line without its end. False: there is none, or a longer one than the protocol has. */
static bool read_line(struct driver *driver, char line[LINE_MAX_])
{
    if (!fgets(line, LINE_MAX_, driver->from))
        return false;
    size_t length = strcspn(line, "\n");
    bool whole = line[length] == '\n';
    line[length] = '\0';
    return whole;
}

/* Takes the greeting "ok 1" and the words behind it, "date" and "poll=MS"; others are of later
 * versions. False: the line is not a greeting. */
static bool take_hello(struct driver *driver, const char *line)
{
    const char *at = text_behind("ok 1", line);
    int64_t ms;

    if (!at || !strchr(" ", *at)) /* the '\0' that ends the line, or a space */
        return false;
    for (at = strchr(at, ' '); at; at = strchr(at, ' ')) {
        size_t length = strcspn(++at, " ");
        const char *poll = text_behind("poll=", at);
        driver->has_dates |= length == strlen("date") && text_behind("date", at);
        if (poll && decimal_read(poll, length - strlen("poll="), POLL_MOST, &ms) &&
            ms >= POLL_LEAST)
            driver->poll_ms = (int)ms;
    }
    return true;
}

/* Words why the driver did not begin as the protocol says. line: its first one; NULL: none came. */
static void explain_start(struct driver *driver, const char *line, struct host_error *why)
{
    struct driver_answer answer;
    int status = 0;

    if (!line)
        set_silent(driver, &answer, "the driver ended before it said a word");
    else if (!take_failed(&answer, line))
        set_strange(&answer, line);
    host_error_set(why, WIRE_UNREACHABLE, answer.said);
    if (!line && waitpid(driver->pid, &status, 0) == driver->pid)
        driver->pid = 0;
    bool absent = WIFEXITED(status) && WEXITSTATUS(status) >= 126; /* execute_driver() says so */
    if (absent || (line && answer.verdict == DRIVER_UNKNOWN))
        why->error = WIRE_DRIVER;
}

struct driver *driver_start(const char *name, const char *rest, struct host_error *why)
{
    struct driver *driver = start_driver(name, rest);
    char line[LINE_MAX_];

    if (!driver) {
        host_error_set(why, WIRE_UNREACHABLE, strerror(errno));
        return NULL;
    }
    struct strbuf hello = {0};
    strbuf_printf(&hello, HELLO " %s\n", rest);
    send_bytes(driver, (struct slice){hello.text, hello.size});
    strbuf_free(&hello);
    bool spoke = read_line(driver, line);
    if (spoke && take_hello(driver, line))
        return driver;
    explain_start(driver, spoke ? line : NULL, why);
    driver_end(driver);
    return NULL;
}

bool driver_has_dates(const struct driver *driver)
{
    return driver->has_dates;
}

int driver_poll_ms(const struct driver *driver)
{
    return driver->poll_ms;
}

/* -- questions and answers --------------------------------------------------------------------- */

/* Sends a request, and frees its text. */
static void send_request(struct driver *driver, struct strbuf *request)
{
    driver->puts = text_behind("put ", request->text);
    /* The words on the driver's standard error are about this request from now on. */
    if (ftruncate(driver->errors, 0) == 0)
        lseek(driver->errors, 0, SEEK_SET);
    send_bytes(driver, (struct slice){request->text, request->size});
    strbuf_free(request);
}

void driver_ask_get(struct driver *driver, struct slice key)
{
    struct strbuf request = {0};

    strbuf_puts(&request, "get");
    add_word(&request, key);
    strbuf_putc(&request, '\n');
    send_request(driver, &request);
}

/* The request to put a text, if the key has that version. The caller frees. */
static struct strbuf put_request(struct slice key, const char *version, const char *text)
{
    struct strbuf request = {0};
    size_t size = strlen(text);

    strbuf_puts(&request, "put");
    add_word(&request, key);
    strbuf_printf(&request, " %s %zu\n", version, size);
    strbuf_add(&request, text, size);
    return request;
}

void driver_ask_put(struct driver *driver, struct slice key, const char *version, const char *text)
{
    struct strbuf request = put_request(key, version, text);

    send_request(driver, &request);
}

void driver_break_off(struct driver *driver, struct slice key, const char *version,
                      const char *text)
{
    struct strbuf request = put_request(key, version, text);

    strbuf_cut(&request, request.size - strlen(text) / 2);
    send_request(driver, &request);
    end_input(driver);
}

/* Takes the last word of an answer, the store's time, if the driver tells that. before: how many
 * words come before it. False: the answer has fewer words, or more. */
static bool take_date(const struct driver *driver, const char *const *words, size_t count,
                      size_t before, struct driver_answer *answer)
{
    const int64_t most_ms = INT64_MAX / 1000000; /* which has room in us, too */

    if (!driver->has_dates)
        return count == before;
    return count == before + 1 && decimal_parse(words[before], 1, most_ms, &answer->date_ms);
}

/* Takes "value VERSION SIZE" and the text behind that line. The answer owns the text. False: it is
 * not of the protocol, or the text is shorter. */
static bool take_value(struct driver *driver, const char *const *words,
                       struct driver_answer *answer)
{
    int64_t size;

    if (!is_version(words[1]) || !decimal_parse(words[2], 0, TEXT_MAX, &size))
        return false;
    strcpy(answer->version, words[1]);
    char *text = mem_zeroed((size_t)size + 1);
    answer->text = (struct slice){text, (size_t)size};
    answer->verdict = DRIVER_VALUE;
    return fread(text, 1, (size_t)size, driver->from) == (size_t)size;
}

/* Takes the driver's line, which it splits into words, as the answer to the latest question: that
 * of a put is done or conflict, that of a get value or none. Returns false if it is not an answer
 * of the protocol to that; then *answer has no meaning. */
static bool take_answer(struct driver *driver, char *line, struct driver_answer *answer)
{
    const char *words[WORDS_MAX], *unknown = text_behind("unknown ", line);

    if (take_failed(answer, line))
        return true;
    if (driver->puts && unknown) {
        set_verdict(answer, DRIVER_UNKNOWN, unknown);
        return true;
    }
    size_t count = split_words(line, words);
    if (strcmp(words[0], "value") == 0)
        return !driver->puts && count >= 3 && take_date(driver, words, count, 3, answer) &&
               take_value(driver, words, answer);
    if (strcmp(words[0], "none") == 0) {
        strcpy(answer->version, DRIVER_NO_KEY);
        answer->verdict = DRIVER_NONE;
        return !driver->puts && take_date(driver, words, count, 1, answer);
    }
    if (strcmp(words[0], "done") == 0) {
        answer->verdict = DRIVER_DONE;
        if (!driver->puts || count < 2 || !is_version(words[1]))
            return false;
        strcpy(answer->version, words[1]);
        return take_date(driver, words, count, 2, answer);
    }
    answer->verdict = DRIVER_CONFLICT;
    return strcmp(words[0], "conflict") == 0 && driver->puts &&
           take_date(driver, words, count, 1, answer);
}

void driver_hear(struct driver *driver, struct driver_answer *answer)
{
    char line[LINE_MAX_], said[sizeof answer->said];

    *answer = (struct driver_answer){.verdict = DRIVER_UNKNOWN};
    if (!read_line(driver, line)) {
        set_silent(driver, answer, "the driver has ended");
        return;
    }
    snprintf(said, sizeof said, "%.*s", (int)sizeof said - 1, line); /* take_answer() splits it */
    if (!take_answer(driver, line, answer)) {
        slice_free(&answer->text);
        set_strange(answer, said);
    }
}

/* Takes "key KEY", which is decoded in the line itself: *key points there. False: it is not so. */
static bool take_key(char *line, struct slice *key)
{
    char *name = line + strlen("key ");

    if (!text_behind("key ", line))
        return false;
    size_t size = strlen(name);
    if (percent_decode(name, size, name, size + 1) != PERCENT_FINE)
        return false;
    *key = slice_of(name);
    return true;
}

bool driver_list(struct driver *driver, struct slice prefix,
                 void (*each)(void *arg, struct slice key), void *arg, struct driver_answer *answer)
{
    struct strbuf request = {0};
    char line[LINE_MAX_];
    struct slice key;

    *answer = (struct driver_answer){.verdict = DRIVER_DONE};
    strbuf_puts(&request, "list");
    add_word(&request, prefix);
    strbuf_putc(&request, '\n');
    send_request(driver, &request);
    while (read_line(driver, line)) {
        if (strcmp(line, "end") == 0)
            return true;
        if (take_failed(answer, line))
            return false;
        if (!take_key(line, &key))
            break;
        if (key.size >= prefix.size && memcmp(key.at, prefix.at, prefix.size) == 0)
            each(arg, key);
    }
    set_silent(driver, answer, "the driver has ended, or its list makes no sense");
    return false;
}
