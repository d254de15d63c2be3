/* Subcommands: one const record each, which main.c lists, and the functions that they share. */
#pragma once

#include <stdio.h>

#include "base/mem.h"
#include "cli/query.h"
#include "cli/settings.h"
#include "os/child.h"

/* The first word of a command's line, where the command has several. */
struct command_action {
    const char *name;
    const char *wants; /* the words after it */
    int options[3];    /* those of the command's own that it takes */
    bool new_key;      /* its KEY is not expected to exist */
    /* Checked by the command itself: */
    size_t least, most; /* how many words may follow */
    bool runs;          /* a COMMAND */
};

/* The words of a command line without COMMAND, which the command line is checked for. */
enum command_words {
    WORDS_OTHER, /* the command checks them, and COMMAND */
    WORDS_NONE,
    WORDS_PATTERNS, /* KEYs and GLOBs; none: all */
    WORDS_KEYS,
    WORDS_KEY,
    WORDS_KEY_NUMBER, /* N may be missing */
    WORDS_KEY_TIME
};

struct call;

struct command {
    const char *name;
    const char *summary;               /* one line of `rlock help` */
    const char *usage[3];              /* lines after "rlock ", NULL-terminated */
    const char *example;               /* lines of the help */
    const struct option_spec *options; /* args.h */
    enum command_words words;
    const struct command_action *actions; /* ended by {0}; NULL: none */

    size_t size;                 /* of its own struct, which begins with a struct call; 0: none */
    bool storeless;              /* reads no settings but the verbosity */
    enum store_ability needs;    /* of the store; 0: none */
    int json;                    /* the option that asks for JSON; 0: none */
    bool asks;                   /* "act" finds call->query open */
    int (*parse)(struct call *); /* in place of args_parse() and the check of words; or NULL */
    int (*check)(struct call *); /* checks the command line before settings are read; or NULL */
    int (*act)(struct call *);   /* does it */
    void (*end)(struct call *);  /* releases its own struct, in every case; or NULL */
};

/* A command that is executed. Each of its functions returns an exit status; the first that is not
 * STATUS_OK ends the command. */
struct call {
    const struct command *command;
    int argc;
    char **argv; /* the first is the command's name */
    struct arguments arguments;
    struct settings settings;
    struct query query;
    struct lock_list list;    /* the latest survey; freed at the end */
    enum store_ability needs; /* besides that of the command, set by "check"; 0: none */
    bool as_json;             /* the option for JSON is given, or "check" says so */
    int status;               /* the result, for "end" */
    int signal;               /* that this process must die of; 0: none */
};

/* Executes a command. Returns rlock's exit status. */
int command_execute(const struct command *command, int argc, char **argv);

/* Returns the action that the first word names, or NULL. */
const struct command_action *command_find_action(const struct command *command,
                                                 const struct arguments *given);
/* Whether the option is among the action's own, or one that every command takes. */
bool command_action_takes(const struct command_action *action, int option);

/* Says "rlock: NAME: MESSAGE". */
void command_error(const struct call *call, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
/* Says "rlock: NAME: MESSAGE" of a wrong use, without passwords, and points to the help. Returns
 * STATUS_USAGE. */
int command_misused(const struct call *call, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
/* command_misused() for a wrong value: "WHAT 'VALUE' WHY". Returns STATUS_USAGE. */
int command_wrong(const struct call *call, const char *what, const char *value, const char *why);
/* Hints at a line to paste, "rlock LINE" and "rest". Messages show a backslash escaped, so a line
 * that has one is replaced by "instead". */
void command_hint_line(const struct strbuf *line, const char *rest, const char *instead);
/* Hints at the line "rlock VERB KEY" and "rest", with the KEY quoted for sh where needed. */
void command_hint_key(const char *verb, const char *key, const char *rest);
/* Returns STATUS_OK if the store has the ability; otherwise says that it lacks it. */
int command_need(const struct call *call, enum store_ability ability);
/* Says why the store did not do it, with a hint where one helps. Returns the status for it. key:
 * named in front; NULL: none. */
int command_refused(const struct call *call, const struct answer *answer);
int command_refused_about(const struct call *call, const char *key, const struct answer *answer);
/* Says that the operating system refuses, by errno. Returns STATUS_SYSTEM. */
int command_system_refused(const struct call *call);

/* Prints a line for each KEY that was named and is not a lock. Returns the status for it, or
 * STATUS_OK if there is none. */
int command_tell_misfits(const struct call *call, const struct lock_list *list);

/* Returns STATUS_OK if the word is a time of at least 1 s, which goes to *ns; otherwise says what
 * is wrong with it, and returns STATUS_USAGE. */
int command_check_duration(const struct call *call, const char *word, int64_t *ns);
/* Takes the time, ns, that an option has as its value; if there is none, *ns stays. Returns
 * STATUS_OK, or says what is wrong with the value and returns STATUS_USAGE. */
int command_take_duration(const struct call *call, int id, int64_t *ns);
/* Confirms what was done, on a terminal and unless -q; elsewhere scripts expect silence. */
void command_confirm(const struct call *call, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
/* Prints "until 21:51 (2h00m left)", of a time that begins now. Returns out. */
#define COMMAND_UNTIL_SIZE 80
char *command_print_until(int64_t ns, char out[COMMAND_UNTIL_SIZE]);
#define UNTIL_TEXT(ns) command_print_until(ns, (char[COMMAND_UNTIL_SIZE]){""})

/* Says why a setting that was read is refused. Returns settings_status(). */
int command_refuse_setting(const struct call *call, enum setting id, const char *why);

/* query_open() in the name of a command: STATUS_OK, or says why not and returns the status for
 * it. */
int command_open(struct call *call);
/* Returns a request for the KEYs and GLOBs of the command line. */
struct survey_request command_request(const struct call *call);
/* Loads the library for JSON (cli/json.h). Returns STATUS_OK, or says why not and returns
 * STATUS_SYSTEM. */
int command_load_json(const struct call *call);
/* Blocks all signals, and has the loop of the query call on_signal() for those that end or stop a
 * job, with the call as its owner. Returns STATUS_OK, or says why not and returns a status. */
int command_catch_signals(struct call *call, struct inherited *inherited,
                          void (*on_signal)(void *owner, int signo));
/* Returns whether to print colours to standard output. */
bool command_has_color(const struct call *call);

/* Returns the option as last given, or NULL; whether it is given; its value, or NULL. */
const struct given_option *command_option(const struct call *call, int id);
bool command_has(const struct call *call, int id);
const char *command_value(const struct call *call, int id);

/* Prints the help of one command, or of the options that all have, to standard output. Returns an
 * exit status. */
int command_help(const struct command *command);
int command_help_options(void);

/* Writes the text to standard output, and frees it. Returns as command_flush(). */
int command_print(struct strbuf *text);
/* Flushes standard output. Returns STATUS_OK, or says why not and returns STATUS_SYSTEM. A reader
 * that went away is not reported. */
int command_flush(void);
