/* Subcommands: one const record each, which main.c lists, and the functions that they share. */
#ifndef RLOCK_CLI_COMMAND_H
#define RLOCK_CLI_COMMAND_H

#include "cli/json.h"
#include "cli/query.h"
#include "cli/settings_read.h"
#include "run/exit_status.h"

/* The first word of a command's line, where the command has several. */
struct command_action {
    const char *name;
    const char *wants; /* the words after it */
    int options[3];    /* those of the command's own that it takes */
    bool new_key;      /* its KEY is not expected to exist */
};

/* The words of a command line without COMMAND, which command_parse() checks. */
enum command_words {
    WORDS_OTHER, /* the command checks them, and COMMAND */
    WORDS_NONE,
    WORDS_PATTERNS, /* KEYs and GLOBs; none: all */
    WORDS_KEYS,
    WORDS_KEY,
    WORDS_KEY_NUMBER, /* N may be missing */
    WORDS_KEY_TIME
};

struct command {
    const char *name;
    const char *summary;               /* one line of `rlock help` */
    const char *usage[3];              /* lines after "rlock ", NULL-terminated */
    const char *example;               /* lines of the help */
    const struct option_spec *options; /* args.h */
    enum command_words words;
    const struct command_action *actions; /* ended by {0}; NULL: none */
    /* argv[0] is the command's name. Returns rlock's exit status. */
    int (*run)(const struct command *command, int argc, char **argv);
};

/* Whether the option is among the action's own, or one that every command takes. */
bool command_action_takes(const struct command_action *action, int option);

/* Says "rlock: NAME: MESSAGE". */
void command_error(const struct command *command, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
/* The same, and points to the help. Returns STATUS_USAGE. */
int command_misused(const struct command *command, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
/* The same for a store that lacks an ability, before anything is sent. */
int command_lacks(const struct command *command, const struct store_address *address,
                  enum store_ability ability);
/* Says why the store did not do it, with a hint where one helps. Returns the status for it. */
int command_refused(const struct command *command, const struct answer *answer);
int command_refused_about(const struct command *command, const char *key,
                          const struct answer *answer);

/* Prints a line for each KEY that was named and is not a lock. Returns the status for it, or
 * STATUS_OK if there is none. */
int command_tell_misfits(const struct command *command, const struct lock_list *list);

/* args_parse() for a command, and checks its words. Prints help that is asked for, reports faults,
 * and then returns false with the exit status in *status. args_free() in either case. */
bool command_parse(const struct command *command, int argc, char **argv,
                   struct arguments *arguments, int *status);
/* Returns STATUS_OK if the word is a time of at least 1 s, which goes to *ns; otherwise says what
 * is wrong with it. */
int command_check_duration(const struct command *command, const char *word, int64_t *ns);
/* Confirms what was done, on a terminal and unless -q; elsewhere scripts expect silence. */
void command_confirm(const struct command *command, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
/* Prints "until 21:51 (2h00m left)", of a time that begins now. Returns out. */
#define COMMAND_UNTIL_SIZE 80
char *command_print_until(int64_t ns, char out[COMMAND_UNTIL_SIZE]);
/* settings_read() for a command; as command_parse(), settings_free() in either case. */
bool command_settings(const struct command *command, const struct arguments *arguments,
                      struct settings *settings, int *status);

/* Says why a setting that was read is refused. Returns settings_status(). */
int command_refuse_setting(const struct command *command, const struct settings *settings,
                           enum setting id, const char *why);

/* query_open() in the name of a command: STATUS_OK, or says why not and returns the status for
 * it. */
int command_open(const struct command *command, const struct settings *settings,
                 struct query *query);
/* json_load() for a command; the same. */
int command_load_json(const struct command *command, struct json_library *json);
/* Returns whether to print colours to standard output. */
bool command_has_color(const struct settings *settings);

/* Returns the option as last given, or NULL. */
const struct given_option *command_option(const struct arguments *arguments, int id);

/* Prints the help of one command, or of the options that all have, to standard output. Returns an
 * exit status. */
int command_help(const struct command *command);
int command_help_options(void);

/* Flushes standard output. Returns STATUS_OK, or says why not and returns STATUS_SYSTEM. A reader
 * that went away is not reported. */
int command_flush(void);

#endif
