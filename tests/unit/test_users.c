/* Which files of users make sense, and whom they admit. */
#include "serve/users.h"

#include "tap.h"

#define HASH  "$2y$04$abcdefghijklmnopqrstuu2r9OfJnfCsdneAXAGHnS4UpFFP8WIrW" /* secret */
#define OTHER "$2b$04$abcdefghijklmnopqrstuufznL8bkzdtHwLhca4To/v9Lo9bA7fR6" /* pass */
#define BAD   "not a bcrypt hash (htpasswd -B makes one)"

static const struct {
    const char *text, *fault;
    unsigned line;
} files[] = {
    {"ada:" HASH "\n", NULL, 0},
    {"ada:" HASH, NULL, 0},
    {"# users\r\n\r\nada:" HASH "\r\nbob:" OTHER "\r\n", NULL, 0},
    {"", "it has no user", 0},
    {"\n# ada:" HASH "\n", "it has no user", 0},
    {"ada\n", "not USER:HASH", 1},
    {":" HASH "\n", "not USER:HASH", 1},
    {"ada:" HASH "\nbob:secret\n", BAD, 2},
    {"ada:" HASH "x\n", BAD, 1},
    {"ada:" HASH "\nbob:\n", BAD, 2},
    {"ada:$apr1$x$y\n", BAD, 1},
    {"ada:$2x$04$abcdefghijklmnopqrstuu2r9OfJnfCsdneAXAGHnS4UpFFP8WIrW", BAD, 1},
    {"ada:$2y$0x$abcdefghijklmnopqrstuu2r9OfJnfCsdneAXAGHnS4UpFFP8WIrW", BAD, 1},
    {"ada:$2y$04$abcdefghijklmnopqrst u2r9OfJnfCsdneAXAGHnS4UpFFP8WIrW", BAD, 1},
    {"ada:$2y$15$abcdefghijklmnopqrstuu2r9OfJnfCsdneAXAGHnS4UpFFP8WIrW",
     "the cost of its hash is not from 4 to 14", 1},
    {"ada:$2y$03$abcdefghijklmnopqrstuu2r9OfJnfCsdneAXAGHnS4UpFFP8WIrW",
     "the cost of its hash is not from 4 to 14", 1},
    {"ada:" HASH "\nbob:" OTHER "\nada:" OTHER "\n", "its user stands in an earlier line", 3},
};

static const struct {
    const char *name, *password;
    bool admitted;
} visitors[] = {
    {"ada", "secret", true},  {"bob", "pass", true},    {"ada", "pass", false},
    {"bob", "secret", false}, {"eve", "secret", false}, {"", "", false},
    {"ada", "", false},       {"ad", "secret", false},  {"ada", "secretx", false},
    {"ada", "secret", true}, /* as it is known by now */
};

/* A file of users is read, or refused with a message and the number of its line. */
static void test_file(size_t number)
{
    char fault[256] = "";
    unsigned line = 99;
    struct users *users =
        users_parse(files[number].text, strlen(files[number].text), &line, fault, sizeof fault);

    tap_is(users ? NULL : fault, files[number].fault, "file", files[number].text);
    if (!users)
        tap_ok(line == files[number].line, "line %u", line);
    users_free(users);
}

/* Only the right password admits a user, who is then known by it without another computation. */
static void test_visitors(void)
{
    char fault[256];
    unsigned line;
    const char *text = "ada:" HASH "\nbob:" OTHER "\n";
    struct users *users = users_parse(text, strlen(text), &line, fault, sizeof fault);

    for (size_t i = 0; i < sizeof visitors / sizeof *visitors; i++)
        tap_ok(users_admit(users, visitors[i].name, visitors[i].password) == visitors[i].admitted,
               "%s: %s", visitors[i].name, visitors[i].password);
    tap_ok(users_know(users, "ada", "secret"), "what was right is known");
    tap_ok(!users_know(users, "ada", "pass") && !users_know(users, "eve", "secret"),
           "and nothing else");
    users_free(users);
}

int main(void)
{
    for (size_t i = 0; i < sizeof files / sizeof *files; i++)
        test_file(i);
    test_visitors();
    return tap_done();
}
