/* Reads a request from the command line, RLOCK_OWNER and the user's reservations, fills in struct
 * request, and makes a keeper's plan of it. To add an option that the scripts read, edit the tables
 * here, request_read(), struct acquire_request (store/store.h) and rules/arguments.c. Functions
 * that take an option return NULL, or a fault for the user, which the caller frees. */
#include "cli/request.h"

#include <string.h>

#include "base/decimal.h"
#include "base/text.h"
#include "cli/not_holder.h"
#include "cli/reservation.h"
#include "lock/own_identity.h"
#include "store/url.h"

/* Whether the word behind --limit is its number: all digits. */
static bool is_limit(const char *word)
{
    return *word && word[strspn(word, "0123456789")] == '\0';
}

const struct option_spec request_modes[] = {
    OPTION(OPTION_EXCLUSIVE, "exclusive", NULL, "one holder (default)", .also = "write",
           .letter = 'x', .synonym = 'e'),
    OPTION(OPTION_SHARED, "shared", NULL, "many readers, or one writer", .also = "read",
           .letter = 's'),
    OPTION(OPTION_LIMIT, "limit", "N",
           "at most N holders, each with a slot from 1 to N; without N, as rlock limit has stored",
           .optional = is_limit, .values = "2 3 4 5 6 7 8 9"),
    {0}};

const struct option_spec request_waiting[] = {
    {.heading = "Waiting"},
    NO_WAIT,
    SETTING(WAIT),
    SETTING(CONFLICT_EXIT_CODE),
    SETTING(PRIORITY),
    OPTION(OPTION_LATEST, "latest", NULL,
           "send away those that wait already with --latest, in the same group"),
    OPTION(OPTION_GROUP, "group", "NAME", "the group that --latest is about (default: KEY)"),
    OPTION(OPTION_REPLACE, "replace", NULL,
           "ask the holder to stop its command and release the lock; those that wait already "
           "come first"),
    {0}};

const struct option_spec request_rest[] = {
    {.heading = "Who am I"},
    SETTING(LABEL),
    SETTING(NO_IDENTITY),
    {.heading = "The store"},
    SETTING(REPLICAS),
    SETTING(GRACE),
    OPTION(OPTION_MIRROR, "mirror", "KIND[:NAME]",
           "hold another library's lock as well (default NAME: KEY): string:NAME for redis-py, "
           "redsync and Spring, redisson:NAME, shedlock:NAME in a database",
           .values = "string: redisson: shedlock:"),
    {0}};

/* -- another program's lock -------------------------------------------------------------------- */

#define SHEDLOCK_NAME_MAX 64 /* the width of a column of its table */

const char *mirror_read(const char *value, const char *key, char out[MIRROR_SIZE])
{
    static const char *const kinds[] = {"string", "redisson", "shedlock"};
    const char *colon = strchrnul(value, ':'), *name = *colon ? colon + 1 : key;
    const char *kind = NULL;
    bool controls = false;
    size_t characters = 0;

    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (strncmp(kinds[i], value, (size_t)(colon - value)) == 0 &&
            kinds[i][colon - value] == '\0')
            kind = kinds[i];
    if (!kind || !*name)
        return "is none of string:NAME, redisson:NAME and shedlock:NAME";
    for (const char *c = name; *c; c++) {
        controls |= (unsigned char)*c < ' ' || *c == 0x7f;
        characters += (*c & 0xc0) != 0x80; /* the first byte of one in UTF-8 */
    }
    if (strlen(name) > KEY_MAX_BYTES || controls)
        return "has a NAME that is too long or has controls";
    if (strcmp(kind, "shedlock") == 0 && characters > SHEDLOCK_NAME_MAX)
        return "has a NAME of more than 64 characters";
    snprintf(out, MIRROR_SIZE, "%s:%s", kind, name);
    return NULL;
}

int mirror_judge(const char *mirror, const char *key, const struct call *call)
{
    const struct store_address *address = &call->settings.address;
    const struct store_kind *store = store_kind_of(address);
    const char *name = strchr(mirror, ':') + 1;
    size_t length = (size_t)(name - mirror); /* of "KIND:" */

    int status = command_need(call, STORE_MIRROR);
    if (status != STATUS_OK)
        return status;
    /* The addresses of several servers are of the same kind. */
    const char *const *mirrored = address->urls->kind->mirrors;
    while (*mirrored &&
           (strncmp(*mirrored, mirror, length - 1) != 0 || strlen(*mirrored) != length - 1))
        mirrored++;
    if (!*mirrored)
        return command_misused(call, "%s has no --mirror %.*s", store->name, (int)length, mirror);
    if (address->grace)
        return command_misused(call, "--mirror does not go with --grace, of which other "
                                     "programs know nothing");
    if (!store->beside || store->beside(address->prefix, key, name))
        return STATUS_OK;
    command_error(call,
                  "--mirror: the keys %s and %s are in different slots of the "
                  "Cluster",
                  key, name);
    say_hint("take what is between the braces of NAME for KEY, or else the whole NAME");
    return STATUS_USAGE;
}

/* -- the command line -------------------------------------------------------------------------- */

static char *wrong_value(const char *what, const char *value, const char *why)
{
    return strbuf_print("%s '%s' %s", what, URLS_TEXT(value), why);
}

/* Takes the KEYs of the command line, each once. */
static char *take_keys(struct request *request, const struct arguments *arguments)
{
    for (size_t i = 0; i < arguments->word_count; i++) {
        const char *key = arguments->words[i], *why = key_fault(key);
        if (why)
            return wrong_value("KEY", key, why);
        if (text_is_among(request->keys, request->wanted.key_count, key))
            continue;
        if (request->wanted.key_count == LOCK_KEYS_MAX)
            return strbuf_print("more than %d KEYs", LOCK_KEYS_MAX);
        request->keys[request->wanted.key_count++] = key;
    }
    return request->wanted.key_count > 0 ? NULL : strbuf_print("no KEY");
}

#define TITLE_TAIL 32

void request_title(const char *const *keys, size_t count, char out[REQUEST_TITLE_SIZE])
{
    const size_t room = REQUEST_TITLE_SIZE - TITLE_TAIL;
    size_t used = strnlen(keys[0], room);

    memcpy(out, keys[0], used);
    out[used] = '\0';
    for (size_t i = 1; i < count; i++) {
        if (used + 2 + strlen(keys[i]) > room) {
            snprintf(out + used, TITLE_TAIL, " and %zu more", count - i);
            return;
        }
        used += (size_t)sprintf(out + used, ", %s", keys[i]);
    }
}

/* Takes the value of --limit; NULL: there is none, and the stored limit counts. */
static char *take_limit(struct request *request, const char *value)
{
    int64_t number = 0;

    if (value && !decimal_parse(value, 1, LOCK_LIMIT_MAX, &number))
        return strbuf_print("--limit '%s' is not a number from 1 to %d", URLS_TEXT(value),
                            LOCK_LIMIT_MAX);
    request->wanted.limit = (unsigned)number;
    return NULL;
}

/* Takes the value of --mirror, after the mode and the KEYs: other programs' locks are exclusive, of
 * one key. */
static char *take_mirror(struct request *request, const char *value)
{
    const char *why = mirror_read(value, request->keys[0], request->mirror);

    if (why)
        return wrong_value("--mirror", value, why);
    request->wanted.mirror = request->mirror;
    if (request->wanted.mode == LOCK_EXCLUSIVE && request->wanted.key_count == 1)
        return NULL;
    return strbuf_print("--mirror needs an exclusive lock of one KEY");
}

/* Notes the mode that an option asks for. False: another option has asked for another one. */
static bool note_mode(struct request *request, int id)
{
    enum lock_mode mode = id == OPTION_SHARED  ? LOCK_SHARED
                          : id == OPTION_LIMIT ? LOCK_LIMIT
                                               : LOCK_EXCLUSIVE;
    bool fits = !request->mode_given || request->wanted.mode == mode;

    request->wanted.mode = mode;
    request->mode_given = true;
    return fits;
}

/* Takes the options --any and --take, each of which may be NULL, after the KEYs: how many of them
 * are enough is wanted.take then, or 0 for all, as with one KEY. */
static char *take_some(struct request *request, const struct given_option *any,
                       const struct given_option *take)
{
    int64_t number = 1;

    if (take && !any)
        return strbuf_print("--take without --any");
    if (take && request->wanted.key_count == 1)
        return wrong_value("--take", take->value, "does not go with one KEY");
    if (take && !decimal_parse(take->value, 1, (int64_t)request->wanted.key_count - 1, &number))
        return strbuf_print("--take '%s' is not a number from 1 to %zu: at least one KEY, not all",
                            URLS_TEXT(take->value), request->wanted.key_count - 1);
    if (any && request->wanted.key_count > 1)
        request->wanted.take = (size_t)number;
    return NULL;
}

/* Takes the options --latest and --group, each of which may be NULL: wanted.group is NULL without
 * --latest, and "" is the group of the KEY. */
static char *take_group(struct request *request, const struct given_option *latest,
                        const struct given_option *group)
{
    const char *why = group ? key_fault(group->value) : NULL;

    if (why)
        return wrong_value("--group", group->value, why);
    if (group && !latest)
        return strbuf_print("--group without --latest");
    if (latest)
        request->wanted.group = group ? group->value : "";
    return NULL;
}

char *request_read(struct request *request, const struct arguments *arguments, int preset)
{
    char *fault = NULL;

    *request = (struct request){.wanted = {.keys = request->keys, .owner = request->owner}};
    if (preset)
        note_mode(request, preset);
    for (size_t i = 0; i < arguments->option_count; i++) {
        const struct given_option *option = &arguments->options[i];
        bool of_mode = option->id == OPTION_EXCLUSIVE || option->id == OPTION_SHARED ||
                       option->id == OPTION_LIMIT;
        if (of_mode && !note_mode(request, option->id))
            return strbuf_print("only one of --read, --write and --limit");
        if (option->id == OPTION_LIMIT && (fault = take_limit(request, option->value)))
            return fault;
        request->wanted.replace |= option->id == OPTION_REPLACE;
    }
    if ((fault = take_group(request, args_option(arguments, OPTION_LATEST),
                            args_option(arguments, OPTION_GROUP))) ||
        (fault = take_keys(request, arguments)) ||
        (fault = take_some(request, args_option(arguments, OPTION_ANY),
                           args_option(arguments, OPTION_TAKE))))
        return fault;
    /* The mode and the number of KEYs are known now, on which a mirror depends. */
    for (size_t i = 0; i < arguments->option_count; i++) {
        const struct given_option *option = &arguments->options[i];
        if (option->id == OPTION_MIRROR && (fault = take_mirror(request, option->value)))
            return fault;
    }
    /* Makes "a, b, c", or of some of the keys "one of a, b, c" or "2 of a, b, c". */
    char all[REQUEST_TITLE_SIZE];
    request_title(request->keys, request->wanted.key_count, all);
    if (request->wanted.take > 1)
        snprintf(request->title, sizeof request->title, "%zu of %s", request->wanted.take, all);
    else
        snprintf(request->title, sizeof request->title, "%s%s",
                 request->wanted.take ? "one of " : "", all);
    return NULL;
}

int request_take(struct request *request, const struct call *call, int preset)
{
    char *fault FREED = request_read(request, &call->arguments, preset);

    return fault ? command_misused(call, "%s", fault) : STATUS_OK;
}

int request_judge(const struct request *request, const struct call *call)
{
    const struct settings *settings = &call->settings;
    const struct acquire_request *wanted = &request->wanted;
    const struct {
        bool asked;
        enum store_ability ability;
        enum setting id; /* that asks for it; 0: an option that is not a setting */
    } requirements[] = {
        {wanted->mode == LOCK_SHARED, STORE_READERS, 0},
        {wanted->mode == LOCK_LIMIT, STORE_SEMAPHORES, 0},
        {wanted->mode == LOCK_LIMIT && !wanted->limit, STORE_LIMITS, 0},
        {wanted->take > 0, STORE_ANY, 0},
        {wanted->key_count > 1, STORE_SEVERAL_KEYS, 0},
        {wanted->group, STORE_GROUPS, 0},
        {wanted->unless_done > 0, STORE_MEMORY, SETTING_UNLESS_DONE},
        {wanted->unless_done > 0 && wanted->key_count > 1, STORE_TOGETHER, SETTING_UNLESS_DONE},
        {settings->priority, STORE_PRIORITIES, SETTING_PRIORITY},
        {wanted->replace, STORE_REPLACE, 0},
    };

    for (size_t i = 0; i < sizeof requirements / sizeof *requirements; i++) {
        if (requirements[i].asked && command_need(call, requirements[i].ability) != STATUS_OK)
            return requirements[i].id ? settings_status(settings, requirements[i].id)
                                      : STATUS_USAGE;
    }
    return wanted->mirror ? mirror_judge(wanted->mirror, request->keys[0], call) : STATUS_OK;
}

/* Makes the owner token. The new owner nests in the one of RLOCK_OWNER; or else in this user's
 * reservation of one of the KEYs. Returns STATUS_OK, or a status after a message. */
static int take_owner(struct request *request, const struct call *call)
{
    const char *outer = getenv("RLOCK_OWNER");
    char reserved[OWNER_SIZE];
    bool found = false;

    if (outer && !*outer)
        outer = NULL;
    const char *why = outer ? owner_fault(outer) : NULL;
    bool looks_up = !outer && !call->settings.no_reentrant;
    /* The first will do: the same owner has reserved all that this user has reserved. */
    for (size_t i = 0; looks_up && i < request->wanted.key_count && !found; i++)
        found = reservation_find(&call->settings, request->keys[i], reserved, NULL);
    if (found) {
        bool wants_all = request->wanted.take == 0;
        not_holder_warn_of_reservations(&call->settings, request->keys, request->wanted.key_count,
                                        wants_all, reserved);
        outer = reserved;
    }
    char uuid[OWNER_UUID_SIZE];

    own_identity_uuid(uuid);
    if (request->acquired)
        owner_mark(uuid);
    if (!why && owner_nest(outer, uuid, request->owner))
        return STATUS_OK;
    if (!why && request->acquired) { /* too deep: it stands beside the outer one (request.h) */
        owner_beside(outer, uuid, request->owner);
        return STATUS_OK;
    }
    command_error(call, "RLOCK_OWNER '%s' %s", URLS_TEXT(outer), why ? why : "is nested too deep");
    if (why)
        say_hint("only rlock sets it; unset it and retry");
    else
        say_hint("at most %d levels nest", OWNER_DEPTH);
    return STATUS_CONFIG;
}

int request_sign(struct request *request, const struct call *call, const char *program, pid_t pid)
{
    const struct settings *settings = &call->settings;
    struct identity who = {0};
    int status = take_owner(request, call);

    if (status != STATUS_OK)
        return status;
    if (!settings->no_identity)
        own_identity_fill(&who, program, pid);
    if (settings->label)
        identity_set(who.label, settings->label);
    else
        own_identity_label(&who);
    request->who = identity_print(&who);
    /* A note tells others that this owner hears a request to release the lock. */
    if (request->can_be_asked && store_can(&settings->address, STORE_ASK)) {
        char *line FREED = request->who;
        request->who = identity_note(line, LOCK_NOTE_HEARS, 1);
    }
    request->wanted.who = request->who;
    return STATUS_OK;
}

void request_plan(const struct acquire_request *wanted, const struct settings *settings,
                  const struct run_events *events, struct agent_plan *plan)
{
    struct keeper_plan *keeper = &plan->keeper;

    *plan = (struct agent_plan){.address = settings->address,
                                .address_status = &settings->address_status,
                                .keeper = {.request = *wanted,
                                           .wait = settings->wait != 0,
                                           .wait_until = MOMENT_NEVER,
                                           .renew = true,
                                           .connect_timeout = settings->address.connect_timeout,
                                           .server_wait = settings->address.server_wait},
                                .conflict_status = settings->conflict_status,
                                .events = events};
    keeper->request.no_nesting = settings->no_reentrant;
    keeper->request.priority = settings->priority;
    keeper->request.priority_bound = settings->priority_bound;
    keeper->request.lease = settings->lease;
    if (settings->wait > 0)
        keeper->wait_until = moment_plus(moment_now(), settings->wait);
}
