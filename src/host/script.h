/* The scripts of rules/, run over a unit, in the one Lua of a process. It has neither files nor
 * programs there, and a script that runs for too long is ended. */
#pragma once

#include "host/commands.h"
#include "host/resp.h"

struct script;

/* The scripts of rules/, compiled by compile.c when the program is built. */
struct bytecode {
    const struct script *script; /* NULL: there are no more */
    const unsigned char *bytes;
    size_t size;
};

extern const struct bytecode bytecodes[];

#define SHA1_HEX_SIZE 41 /* 40 digits and the 0 */

/* extra: see command_run(). */
void scripts_begin(const struct command_extra *extra);
void scripts_end(void);

/* Makes a script of that text known by its digest. False with an error as the reply. */
bool script_load(struct slice text, char hex[SHA1_HEX_SIZE]);
/* Whether there is a script with that digest, which script_run() can run then: it was loaded, or is
 * one of the program's own. */
bool script_is_known(const char *hex);

/* A script to run, or one command. */
struct script_call {
    const char *hex; /* NULL: a command, the words of which are the arguments */
    const struct slice *keys, *arguments;
    size_t key_count, argument_count;
};

enum script_outcome {
    SCRIPT_DONE,
    SCRIPT_AGAIN, /* the unit says why */
    SCRIPT_FAILED /* nothing that it has written may be kept */
};

/* Runs it. The reply stays until the next call; an error is one as well. */
enum script_outcome script_run(const struct script_call *call, struct unit *unit);
/* Whether the latest reply is a list that begins with that word. */
bool script_replied(const char *word);
/* Adds the latest reply. */
void script_reply(struct strbuf *out);
