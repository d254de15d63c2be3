/* rlock init: marks a new server as one that has forgotten nothing; makes the tables of a
 * database; sets the version of rlock that a store asks for. */
#include "cmd/commands.h"

#include "base/decimal.h"

enum { OPTION_FORCE = OPTION_OTHER, OPTION_PRINT, OPTION_GRANT, OPTION_MINIMUM };

#define PART_MAX 99999 /* of a version, as in minimum.lua */

static const struct option_spec options[] = {
    OPTION(OPTION_FORCE, "force", NULL,
           "even if it may have forgotten locks, or the version is above one's own"),
    OPTION(OPTION_GRANT, "grant", "USER", "give USER of the database the rights that rlock needs"),
    OPTION(OPTION_PRINT, "print", NULL,
           "print the SQL (or for --grant on Redis the ACL), and do nothing"),
    OPTION(OPTION_MINIMUM, "minimum-version", "X.Y.Z",
           "only let this rlock or a later one acquire (0.0.0: any), and do no more"),
    SETTINGS_OPTIONS,
    {0}};

/* Marks the servers, or makes the tables, with rights for the user (--grant; NULL: none). A server
 * that is within its grace is not marked without --force. */
static int mark_servers(struct call *call, const char *user)
{
    struct mark_request request = {.force = command_has(call, OPTION_FORCE), .user = user};
    struct answer answer;

    query_ask(&call->query, (struct operation){.verb = VERB_MARK, .mark = &request}, &answer);
    if (answer.cause == CAUSE_GRACE) {
        command_error(call, "%s", answer.text);
        say_hint("--force ends that, if no command can be holding a lock");
        return STATUS_NO;
    }
    if (answer.verdict != VERDICT_GRANTED)
        return command_refused(call, &answer);
    say_detail("marked");
    command_confirm(call, "%s is ready for locks", store_kind_of(&call->settings.address)->name);
    return STATUS_OK;
}

/* Takes X.Y.Z from the front of *text and returns it as one number, which is larger for a later
 * version. -1: it is not a version. */
static int64_t take_version(const char **text)
{
    int64_t number = 0, part;

    for (int i = 0; i < 3; i++) {
        if (i > 0 && *(*text)++ != '.')
            return -1;
        if (!decimal_take(text, PART_MAX, &part))
            return -1;
        number = number * (PART_MAX + 1) + part;
    }
    return number;
}

/* Sets the minimum version of all locks. A version that would shut out this rlock needs --force. */
static int set_minimum(struct call *call, const char *version)
{
    const struct adjust_request request = {
        .key = "*", .glob = true, .what = ADJUST_MINIMUM, .version = version};
    const char *own = PACKAGE_VERSION, *rest = version;
    int64_t read = take_version(&rest), minimum = *rest ? -1 : read;
    bool too_old = take_version(&own) < minimum;
    struct answer answer;

    /* The options of this command but this one, and --force where there is something to force. */
    for (int id = OPTION_FORCE; id < OPTION_MINIMUM; id++)
        if (command_has(call, id) && !(id == OPTION_FORCE && too_old))
            return command_misused(call, "--minimum-version does nothing else: give the "
                                         "other options in a second call");
    if (minimum < 0)
        return command_wrong(call, "--minimum-version", version, "is not a version X.Y.Z");
    if (too_old && !command_has(call, OPTION_FORCE)) {
        command_error(call, "%s would shut out this rlock, which is %s", version, PACKAGE_VERSION);
        say_hint("--force, if that is meant");
        return STATUS_USAGE;
    }
    int status = command_need(call, STORE_MINIMUM);
    if (status == STATUS_OK)
        status = command_open(call);
    if (status != STATUS_OK)
        return status;
    query_adjust(&call->query, &request, &answer);
    if (answer.verdict != VERDICT_GRANTED)
        return command_refused(call, &answer);
    if (too_old)
        say_warning("init: this rlock is %s, and cannot acquire any more", PACKAGE_VERSION);
    if (minimum > 0)
        command_confirm(call, "locks are acquired only by rlock %s or newer", version);
    else
        command_confirm(call, "locks are acquired by any rlock");
    return STATUS_OK;
}

/* Prints what an administrator would execute, or has the store do it. */
static int init_store(struct call *call)
{
    const struct store_kind *kind = store_kind_of(&call->settings.address);
    const char *minimum = command_value(call, OPTION_MINIMUM);
    const char *user = command_value(call, OPTION_GRANT);

    if (minimum)
        return set_minimum(call, minimum);
    if (user && !*user) {
        command_error(call, "--grant: the name of a user is empty");
        return STATUS_USAGE;
    }
    if (command_has(call, OPTION_PRINT)) {
        const struct store_address *address = &call->settings.address;
        char *text = kind->schema ? kind->schema(address, user, 0) : NULL;
        if (!text) {
            command_error(call, "--print: %s has no tables%s", kind->name,
                          kind->schema ? "" : ", and no rights to print");
            if (kind->schema)
                say_hint("--grant USER --print shows the rights that USER needs");
            return STATUS_USAGE;
        }
        for (size_t i = 1; text; i++) {
            printf("%s%s\n", text, kind->grants ? ";" : ""); /* SQL, or a shell's commands */
            free(text);
            text = kind->schema(address, user, i);
        }
        return command_flush();
    }
    int status = command_need(call, STORE_MARK);
    if (status != STATUS_OK)
        return status;
    if (user && !kind->grants) {
        command_error(call, "--grant: rlock changes no users of %s", kind->name);
        say_hint("--grant USER --print shows the command for an administrator");
        return STATUS_USAGE;
    }
    status = command_open(call);
    return status == STATUS_OK ? mark_servers(call, user) : status;
}

const struct command command_init = {
    .name = "init",
    .summary = "prepare a server for --grace, or make the tables of a database",
    .usage = {"init [OPTIONS]", "init --minimum-version X.Y.Z"},
    .example = "Examples, for a server and a database that were just set up:\n"
               "  rlock init -u redis://locks.example.com\n"
               "  rlock init -u postgresql://admin@db.example.com/locks --grant rlock\n"
               "\n"
               "Example, an older rlock acquires no lock there any more:\n"
               "  rlock init --minimum-version 1.0.0\n",
    .options = options,
    .words = WORDS_NONE,
    .act = init_store,
};
