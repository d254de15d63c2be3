/* Collects the settings from options, environment and files, and judges them together. Functions
 * that return an int return STATUS_OK, or the exit status for what is wrong, which is worded in
 * collection->fault then. */
#include "cli/settings.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>

#include "base/mem.h"
#include "base/text.h"
#include "cli/config.h"
#include "cli/describe.h"
#include "lock/own_identity.h"
#include "os/file.h"
#include "run/environment.h"
#include "store/url.h"

#define SYSTEM_FILE   "/etc/rlock.conf"
#define SYSTEM_FOLDER "/etc/rlock.conf.d"
#define FILE_SIZE_MAX 65536
#define LOCAL         "local:"
#define PATH_SHOWN    300 /* bytes of one in a message, which then has room for what is wrong */

/* The value of an option that has no argument. */
static const char set[] = "yes";

struct collection {
    struct settings *settings; /* only their "given" and "arena" while collecting */
    const char *urls;          /* those of all --url options; NULL: none so far */
    char *fault;               /* for the user */
    size_t size;
};

/* Returns the exit status for a wrong value that came from there. */
static int status_of(enum origin origin)
{
    return origin == ORIGIN_OPTION ? STATUS_USAGE : STATUS_CONFIG;
}

int settings_status(const struct settings *settings, enum setting id)
{
    return status_of(settings->given[id].origin);
}

char *settings_print_origin(const struct settings *settings, enum setting id, char *out,
                            size_t size)
{
    const struct given *given = &settings->given[id];

    if (given->origin == ORIGIN_OPTION && !given->source)
        snprintf(out, size, "--%s", setting_rows[id].option.name);
    else if (given->line)
        snprintf(out, size, "%s:%d", given->source, given->line);
    else
        snprintf(out, size, "%s", given->source ? given->source : "default");
    return out;
}

/* Prints where a setting was set: "--wait", "RLOCK_URL" or "/etc/rlock.conf:3: wait". Returns
 * out. */
static char *print_place(const struct settings *settings, enum setting id, char *out, size_t size)
{
    settings_print_origin(settings, id, out, size);
    if (settings->given[id].line)
        text_append(out, size, ": %s", setting_rows[id].option.name);
    return out;
}

int settings_refuse(const struct settings *settings, enum setting id, const char *why, char *fault,
                    size_t size)
{
    const struct given *given = &settings->given[id];
    char place[512];

    print_place(settings, id, place, sizeof place);
    if (setting_rows[id].use == SETTING_SECRET || given->value == set) {
        snprintf(fault, size, "%s %s", place, why);
    } else {
        snprintf(fault, size, "%s '%s' %s", place, URLS_TEXT(given->value), why);
    }
    return status_of(given->origin);
}

/* Words into the fault what is wrong with the value of a setting. Returns the status. */
__attribute__((format(printf, 3, 4))) static int
refuse_value(const struct collection *collection, enum setting id, const char *format, ...)
{
    char why[300];
    va_list values;

    va_start(values, format);
    vsnprintf(why, sizeof why, format, values);
    va_end(values);
    return settings_refuse(collection->settings, id, why, collection->fault, collection->size);
}

/* Words into the fault what is wrong elsewhere than with a setting. Returns the status. */
__attribute__((format(printf, 3, 4))) static int fail_with(const struct collection *collection,
                                                           int status, const char *format, ...)
{
    va_list values;

    va_start(values, format);
    vsnprintf(collection->fault, collection->size, format, values);
    va_end(values);
    return status;
}

/* Takes the value that is given for one setting, if there is one. Returns STATUS_OK, or the status
 * for what is wrong with it. */
static int take_setting(const struct collection *collection, struct settings *settings,
                        enum setting id)
{
    const char *value = collection->settings->given[id].value;
    char message[SETTING_FAULT_SIZE];
    const char *why = value ? setting_take(id, settings, value, message) : NULL;

    return why ? refuse_value(collection, id, "%s", why) : STATUS_OK;
}

/* -- files ----------------------------------------------------------------------------------- */

/* A configuration file while it is read. */
struct source {
    const char *path;
    const char *shown; /* in messages */
    enum origin origin;
    bool rereadable; /* not a pipe, so that a path can be relative to it */
    bool secret;     /* there is a password in it */
};

/* Returns the record of a file that will be read. Messages show its path cut, and without a
 * password, as it may be an address in the wrong place. */
static struct source source_of(const struct collection *collection, const char *path,
                               enum origin origin)
{
    char *clean FREED = mem_strdup(path), *shown;

    urls_blot(clean);
    shown = mem_strdup(BRIEF_TEXT(clean, PATH_SHOWN));
    return (struct source){.path = path,
                           .shown = arena_take_string(&collection->settings->arena, shown),
                           .origin = origin};
}

/* Completes *value, a path that stands in a file, where it begins with '~' or is relative to that
 * file. Returns NULL, or what is wrong with it. */
static const char *settle_path(const struct collection *collection, const struct source *source,
                               const char **value)
{
    const char *home = getenv("HOME"), *slash = strrchr(source->path, '/');
    bool from_home = **value == '~';
    const int folder = slash ? (int)(slash - source->path) + 1 : 0;

    if (**value == '/' || **value == '\0' || (!from_home && !(slash && source->rereadable)))
        return NULL;
    if (from_home && (*value)[1] && (*value)[1] != '/')
        return "begins with ~USER, which is not supported: write ~/... or a full path";
    if (from_home && (!home || !*home))
        return "begins with '~', and HOME is not set";
    *value = arena_take_string(&collection->settings->arena,
                               from_home ? strbuf_print("%s%s", home, *value + 1)
                                         : strbuf_print("%.*s%s", folder, source->path, *value));
    return NULL;
}

/* Whether the value of that setting tells a password, which others could read in a file. */
static bool has_password(enum setting id, const char *value)
{
    size_t at = 0, start, length;

    if (id != SETTING_URL)
        return (id == SETTING_PASSWORD || id == SETTING_SENTINEL_PASSWORD) && *value;
    for (; urls_password_span(value, at, &start, &length); at = start + length)
        if (length > 0)
            return true;
    return false;
}

/* Takes a line of a configuration file. Returns STATUS_OK, also for an unknown key, or a status
 * with a fault. */
static int collect_line(struct collection *collection, const struct config_reader *line,
                        struct source *source)
{
    enum setting id = setting_find(line->key);

    /* The hosts of a fleet share one file, and may have different versions. */
    if (!id) {
        const char *meant = setting_find_similar(line->key);
        say_warning("%s:%d: unknown key '%s'; it is ignored", source->shown, line->number,
                    URLS_TEXT(line->key));
        if (meant)
            say_hint("did you mean '%s'?", meant);
        return STATUS_OK;
    }
    struct given *given = &collection->settings->given[id];
    bool was_here = given->source == source->shown; /* an earlier line of this file has set it */
    if (id == SETTING_URL && was_here)
        return fail_with(collection, STATUS_CONFIG,
                         "%s:%d: a second url (those of a quorum stand on one line)", source->shown,
                         line->number);
    *given = (struct given){line->value, source->origin, source->shown, line->number};
    source->secret |= has_password(id, line->value);
    const char *why = NULL;
    char first = *line->value;
    bool quoted = (first == '"' || first == '\'') && line->value[1] &&
                  line->value[strlen(line->value) - 1] == first;
    if (quoted && id != SETTING_NOTIFY && id != SETTING_STOP) /* those may end with a quote, too */
        why = "is quoted; values are not quoted here";
    else if (setting_rows[id].use == SETTING_PATH)
        why = settle_path(collection, source, &given->value);
    if (why)
        return refuse_value(collection, id, "%s", why);
    /* Checked even if another value overrides it: a file stays, and is best corrected at once. */
    struct settings scratch ENDED_BY(settings_free) = {0};
    return take_setting(collection, &scratch, id);
}

/* Takes all lines of a configuration file. Returns STATUS_OK, or the status for what is wrong in
 * them, with a fault. *error: 0, or the errno of reading the file, with a message in "fault" that
 * follows its path, for the caller to judge. */
static int collect_file(struct collection *collection, struct source *source, int *error,
                        char *fault, size_t size)
{
    static const struct file_options options = {.limit = FILE_SIZE_MAX};
    struct file file;

    *error = file_read(&file, source->path, &options, fault, size);
    if (*error)
        return STATUS_OK;
    arena_take(&collection->settings->arena, file.text, file.size);
    /* Another process may have read it, or none has written it: ignoring it may lead to another
     * store. */
    if (file.pipe && file.size == 0) {
        snprintf(fault, size, "the pipe is empty; was it read before?");
        *error = ENODATA;
        return STATUS_OK;
    }
    source->rereadable = file.rereadable;
    struct config_reader reader = {.rest = file.text, .end = file.text + file.size};
    int status = STATUS_OK;
    while (status == STATUS_OK && config_next(&reader))
        status = collect_line(collection, &reader, source);
    if (reader.fault)
        return fail_with(collection, STATUS_CONFIG, "%s:%d: %s", source->shown, reader.number,
                         reader.fault);
    if (status == STATUS_OK && source->secret && file.public)
        say_warning("%s: every user of this host can read the password in it (mode %04o)",
                    source->shown, file.mode);
    return status;
}

/* Reads one of the files that need not exist. If a system's file cannot be read, that is an error:
 * it may name another store than the default, and two stores do not make a lock. The user's file
 * is then left out with a warning: under sudo or in a service, HOME is often another user's. */
static int collect_usual_file(struct collection *collection, const char *path, enum origin origin)
{
    struct source source = source_of(collection, path, origin);
    char why[120];
    int error, status = collect_file(collection, &source, &error, why, sizeof why);

    if (error == 0 || file_is_missing(path))
        return status;
    if (error == EACCES && origin == ORIGIN_USER) {
        say_warning("%s: %s; it is ignored", source.shown, why);
        return STATUS_OK;
    }
    return fail_with(collection, STATUS_CONFIG, "%s: %s", source.shown, why);
}

/* The user's own file of settings; NULL: they have no home. */
static const char *user_file(const struct collection *collection)
{
    const char *base = getenv("XDG_CONFIG_HOME");
    const char *home = getenv("HOME");
    char *path;

    if (base && *base == '/') /* the specification has a relative one ignored */
        path = strbuf_print("%s/rlock/config", base);
    else if (home && *home)
        path = strbuf_print("%s/.config/rlock/config", home);
    else
        return NULL;
    return arena_take_string(&collection->settings->arena, path);
}

/* For scandir(): whether the file of a directory is one of settings. */
static int is_conf(const struct dirent *entry)
{
    size_t length = strlen(entry->d_name);

    return entry->d_name[0] != '.' && length > 5 &&
           strcmp(entry->d_name + length - 5, ".conf") == 0;
}

/* Reads the files of SYSTEM_FOLDER in the order of their names. */
static int collect_folder(struct collection *collection)
{
    struct dirent **entries;
    int status = STATUS_OK;

    if (file_is_missing(SYSTEM_FOLDER))
        return STATUS_OK;
    int count = scandir(SYSTEM_FOLDER, &entries, is_conf, alphasort);
    if (count < 0)
        return fail_with(collection, STATUS_CONFIG, "%s: %s", SYSTEM_FOLDER, strerror(errno));
    for (int i = 0; i < count; i++) {
        char *path = strbuf_print("%s/%s", SYSTEM_FOLDER, entries[i]->d_name);
        arena_take_string(&collection->settings->arena, path);
        if (status == STATUS_OK)
            status = collect_usual_file(collection, path, ORIGIN_SYSTEM);
        free(entries[i]);
    }
    free(entries);
    return status;
}

/* Reads the file that was named, which must be there; or the usual ones, as far as they are. */
static int collect_files(struct collection *collection, const char *named, enum origin origin)
{
    if (named) {
        const char *place = origin == ORIGIN_OPTION ? "--config" : "RLOCK_CONFIG";
        struct source source = source_of(collection, named, ORIGIN_USER);
        char why[120];
        if (!*named)
            return fail_with(collection, status_of(origin), "%s is empty", place);
        int error, status = collect_file(collection, &source, &error, why, sizeof why);
        if (!error)
            return status;
        /* There is no such file, or nothing comes from that pipe: the name is wrong. */
        bool nothing =
            error == ENOENT || error == ENOTDIR || error == ETIMEDOUT || error == ENODATA;
        return fail_with(collection, nothing ? status_of(origin) : STATUS_CONFIG, "%s %s: %s",
                         place, source.shown, why);
    }
    int status = collect_usual_file(collection, SYSTEM_FILE, ORIGIN_SYSTEM);
    if (status == STATUS_OK)
        status = collect_folder(collection);
    const char *own = user_file(collection);
    return status == STATUS_OK && own ? collect_usual_file(collection, own, ORIGIN_USER) : status;
}

/* -- environment and options ----------------------------------------------------------------- */

/* Returns the value of a variable, or NULL. An empty one counts as not set: CI systems cannot unset
 * one. */
static const char *variable_text(const char *name)
{
    const char *value = name ? getenv(name) : NULL;
    return value && *value ? value : NULL;
}

/* Adds a URL to collection->urls: several --url mean the same as one with several URLs in it. */
static void add_url(struct collection *collection, const char *url)
{
    const char *before = collection->urls ? collection->urls : "";

    collection->urls = arena_take_string(&collection->settings->arena,
                                         strbuf_print("%s%s%s", before, *before ? " " : "", url));
}

/* Notes the values that options give, and their origin. The value of all --url and --local is
 * collection->urls by now. */
static int collect_options(struct collection *collection, const struct arguments *arguments)
{
    bool local = args_option(arguments, OPTION_LOCAL), url = args_option(arguments, SETTING_URL);

    for (size_t i = 0; i < arguments->option_count; i++) {
        const struct given_option *option = &arguments->options[i];
        struct given given = {option->value ? option->value : set, ORIGIN_OPTION, NULL, 0};
        int id = option->id;
        size_t length;
        if (id == OPTION_NO_WAIT) {
            id = SETTING_WAIT;
            given.value = "0";
        } else if (id == OPTION_LOCAL || id == SETTING_URL) {
            id = SETTING_URL;
            given.value = collection->urls;
            given.source = !local ? NULL : url ? "--url with --local" : "--local";
        }
        if (id < SETTING_COUNT)
            collection->settings->given[id] = given;
        /* An empty URL among several would go unnoticed. */
        if (option->id == SETTING_URL && !urls_word(option->value, &length))
            return refuse_value(collection, SETTING_URL, "is empty");
    }
    return STATUS_OK;
}

/* Collects all values, those of a later source in place of an earlier one's: defaults, files,
 * environment, options. Overwrites the passwords among the arguments. Warns of unknown keys in
 * files, and of files with a password that every user may read. Returns STATUS_OK, or a status with
 * a fault. */
static int collect_values(struct collection *collection, const struct arguments *arguments)
{
    const struct given_option *config = args_option(arguments, OPTION_CONFIG);
    const char *named = config ? config->value : NULL;
    enum origin origin = named ? ORIGIN_OPTION : ORIGIN_ENVIRONMENT;

    for (int id = 1; id < SETTING_COUNT; id++)
        collection->settings->given[id] =
            (struct given){setting_rows[id].option.initial, ORIGIN_DEFAULT, NULL, 0};
    /* Moves the URLs out of the arguments, where ps would show their passwords. */
    for (size_t i = 0; i < arguments->option_count; i++) {
        const struct given_option *option = &arguments->options[i];
        if (option->id == OPTION_LOCAL &&
            !(collection->urls && strcmp(collection->urls, LOCAL) == 0))
            add_url(collection, LOCAL);
        if (option->id != SETTING_URL)
            continue;
        add_url(collection, option->value);
        urls_blot(option->value);
    }
    int status = collect_files(collection, named ? named : variable_text("RLOCK_CONFIG"), origin);
    if (status != STATUS_OK)
        return status;
    for (int id = 1; id < SETTING_COUNT; id++) {
        const char *name = setting_rows[id].option.variable, *value = variable_text(name);
        if (value)
            collection->settings->given[id] = (struct given){value, ORIGIN_ENVIRONMENT, name, 0};
    }
    if (variable_text("NO_COLOR"))
        collection->settings->given[SETTING_COLOR] =
            (struct given){"never", ORIGIN_ENVIRONMENT, "NO_COLOR", 0};
    status = collect_options(collection, arguments);
    if (!collection->settings->given[SETTING_SERVER_WAIT].value) /* its default */
        collection->settings->given[SETTING_SERVER_WAIT].value =
            collection->settings->given[SETTING_CONNECT_TIMEOUT].value;
    return status;
}

/* -- the way to the store ---------------------------------------------------------------------- */

/* Judges the URLs. Several make a quorum, of which each node must be a single server: a store that
 * fails over may forget a lock. */
static int settle_urls(const struct collection *collection, const struct store_address *address)
{
    const struct url *urls = address->urls;
    char name[200];

    if (address->url_count > QUORUM_NODES_MAX)
        return refuse_value(collection, SETTING_URL, "names more than 16 servers");
    for (size_t i = 0; address->url_count > 1 && i < address->url_count; i++) {
        if (!urls[i].kind->open_member)
            return refuse_value(
                collection, SETTING_URL,
                "has %s beside another store, but a quorum is made of single servers",
                url_print(&urls[i], name, sizeof name));
        for (size_t j = 0; j < i; j++) {
            if (!urls_same_server(&urls[i], &urls[j]))
                continue;
            refuse_value(collection, SETTING_URL, "names the same node twice: %s",
                         url_print(&urls[i], name, sizeof name));
            return STATUS_CONFIG; /* as for a server by two names, which only its answer shows */
        }
    }
    return STATUS_OK;
}

/* Refuses a setting for which the store lacks the ability. */
static int settle_abilities(const struct collection *collection, const struct settings *settings)
{
    const struct store_address *address = &settings->address;
    const struct {
        enum setting id;
        bool wanted;
        enum store_ability ability;
    } requirements[] = {
        {SETTING_GRACE, address->grace, STORE_GRACE},
        {SETTING_REPLICAS, address->replicas != REPLICAS_NONE, STORE_REPLICAS},
        {SETTING_AT_LEAST, settings->at_least > 0, STORE_AT_LEAST},
    };

    for (size_t i = 0; i < sizeof requirements / sizeof *requirements; i++) {
        const struct given *given = &collection->settings->given[requirements[i].id];
        if (!requirements[i].wanted || store_can(address, requirements[i].ability))
            continue;
        const char *lack = LACK_TEXT(address, requirements[i].ability);
        int status = status_of(given->origin);
        return given->line
                   ? fail_with(collection, status, "%s:%d: %s", given->source, given->line, lack)
                   : fail_with(collection, status, "%s", lack);
    }
    return STATUS_OK;
}

/* Chooses between the setting "id", a password, and the next setting, the file of one: that of the
 * higher origin. *password is the password then, and *path its file, NULL for a pipe, which cannot
 * be read again. Both are NULL unless one is wanted. */
static int settle_password(const struct collection *collection, struct settings *settings,
                           bool wanted, enum setting id, const char **password, const char **path)
{
    const enum setting file_id = (enum setting)(id + 1);
    const struct given *word = &collection->settings->given[id],
                       *file = &collection->settings->given[file_id];
    bool from_file = file->value && (!word->value || file->origin > word->origin);
    bool rereadable;
    unsigned exposed = 0;
    char why[120];

    if (!wanted || from_file)
        *password = NULL;
    if (!wanted || !from_file)
        *path = NULL;
    if (!*path)
        return STATUS_OK;

    char *secret = secret_read(*path, &rereadable, &exposed, why, sizeof why);
    if (!secret)
        return refuse_value(collection, file_id, "cannot be read: %s", why);
    if (exposed)
        say_warning("password file %s: every user of this host can read it (mode %04o)", *path,
                    exposed);
    *password = arena_take_string(&settings->arena, secret);
    if (!rereadable)
        *path = NULL;
    return STATUS_OK;
}

/* Chooses the passwords of the servers, of which that of a URL comes first, and that of the
 * Sentinels. */
static int settle_passwords(const struct collection *collection, struct settings *settings)
{
    struct store_address *address = &settings->address;
    const struct given *given = collection->settings->given;
    bool wanted = false;

    for (size_t i = 0; i < address->url_count; i++) {
        struct url *url = &settings->urls[i];
        if ((url->password && *url->password) || url->kind->no_password)
            continue;
        wanted = true;
        /* An empty one, as in redis://user:@host, names the user of a password that is here. */
        if (given[SETTING_PASSWORD].value || given[SETTING_PASSWORD_FILE].value)
            url->password = NULL;
    }
    int status = settle_password(collection, settings, wanted, SETTING_PASSWORD, &address->password,
                                 &address->password_file);
    if (status != STATUS_OK)
        return status;
    bool has_sentinels = settings->urls->master; /* their URL names a master */
    return settle_password(collection, settings, has_sentinels, SETTING_SENTINEL_PASSWORD,
                           &address->sentinel_password, &address->sentinel_password_file);
}

/* Applies a setting of TLS, if it is given, to the URLs. One whose origin is that of the URLs, or
 * higher, is meant for them: it turns TLS on where the scheme leaves that open, and is refused
 * where the scheme says no. One of a lower origin is a default for URLs with TLS. */
static int demand_tls(const struct collection *collection, struct settings *settings,
                      enum setting id)
{
    const struct given *given = &collection->settings->given[id];
    char name[200];
    bool any = false;

    if (!given->value || given->origin < collection->settings->given[SETTING_URL].origin)
        return STATUS_OK;
    for (size_t i = 0; i < settings->address.url_count; i++) {
        struct url *url = &settings->urls[i];
        url->tls |= url->kind->tls_by_settings;
        if (!url->tls && url->kind->secure)
            return refuse_value(collection, id, "needs TLS, but %s is plain; use %s://",
                                url_print(url, name, sizeof name), url->kind->secure);
        any |= url->tls;
    }
    return any ? STATUS_OK
               : refuse_value(collection, id, "needs TLS, but %s is plain; use rediss://",
                              url_print(settings->urls, name, sizeof name));
}

/* Reads a file of TLS, if its path is set, at once: a pipe can be read only once, and a file may be
 * gone later. */
static int read_tls_file(const struct collection *collection, struct settings *settings,
                         enum setting id, struct tls_file *tls)
{
    const struct file_options options = {.limit = TLS_FILE_SIZE_MAX,
                                         .directory = id == SETTING_TLS_CA};
    struct file file;
    char why[120], place[512];

    if (!tls->path)
        return STATUS_OK;
    if (file_read(&file, tls->path, &options, why, sizeof why) != 0)
        return refuse_value(collection, id, "cannot be read: %s", why);
    if (file.text)
        tls->text = arena_take(&settings->arena, file.text, file.size);
    tls->size = file.size;
    tls->rereadable = file.rereadable;
    tls->status = settings_status(collection->settings, id);
    print_place(settings, id, place, sizeof place);
    tls->place = arena_take_string(&settings->arena, mem_strdup(place));
    return STATUS_OK;
}

/* Checks the settings of TLS against the URLs, and reads the files if a URL asks for TLS. */
static int settle_tls(const struct collection *collection, struct settings *settings)
{
    struct tls_options *tls = &settings->address.tls;
    struct tls_file *const files[] = {&tls->ca, &tls->cert, &tls->key}; /* as their settings */
    int status = STATUS_OK;
    bool any = false;

    tls->status = &settings->address_status;
    tls->library_status = STATUS_SYSTEM;
    tls->policy_status = STATUS_CONFIG;
    for (int id = SETTING_TLS_CA; id <= SETTING_TLS_SERVER_NAME && status == STATUS_OK; id++)
        status = demand_tls(collection, settings, (enum setting)id);
    for (size_t i = 0; i < settings->address.url_count; i++)
        any |= settings->urls[i].tls;
    if (any && status == STATUS_OK && tls->key.path && !tls->cert.path)
        return refuse_value(collection, SETTING_TLS_KEY, "requires tls-cert");
    for (int i = 0; any && i < 3 && status == STATUS_OK; i++)
        status = read_tls_file(collection, settings, (enum setting)(SETTING_TLS_CA + i), files[i]);
    return status;
}

/* Completes settings->address, of which the single settings are set. */
static int settle_address(const struct collection *collection, struct settings *settings)
{
    const char *owner = getenv("RLOCK_OWNER");
    int status = settle_urls(collection, &settings->address);

    settings->address_status = settings_status(collection->settings, SETTING_URL);
    /* A store that fails gives a hint by these: to say where the store is, and that an outer rlock
     * may have taken the password out of the environment. */
    settings->address.assumed = collection->settings->given[SETTING_URL].origin == ORIGIN_DEFAULT;
    settings->address.nested = owner && *owner;
    if (status == STATUS_OK)
        status = settle_abilities(collection, settings);
    if (status == STATUS_OK)
        status = settle_passwords(collection, settings);
    if (status == STATUS_OK)
        status = settle_tls(collection, settings);
    return status;
}

void settings_set_verbosity(const struct arguments *arguments)
{
    for (size_t i = 0; i < arguments->option_count; i++) {
        if (arguments->options[i].id == OPTION_QUIET)
            say_set_verbosity(SAY_QUIET);
        if (arguments->options[i].id == OPTION_VERBOSE)
            say_set_verbosity(SAY_VERBOSE);
    }
}

int settings_read(struct settings *settings, const struct arguments *arguments, char *fault,
                  size_t size)
{
    struct collection collection = {.settings = settings, .fault = fault, .size = size};

    *settings = (struct settings){.wait = WAIT_FOREVER};
    settings_set_verbosity(arguments);
    environment_hide(environ);
    int status = collect_values(&collection, arguments);
    for (int id = 1; id < SETTING_COUNT && status == STATUS_OK; id++)
        status = take_setting(&collection, settings, (enum setting)id);
    if (status == STATUS_OK)
        status = settle_address(&collection, settings);
    own_identity_client(settings->address.client, sizeof settings->address.client,
                        settings->no_identity);
    settings->conflict_expected =
        settings->wait == 0 || settings->given[SETTING_CONFLICT_EXIT_CODE].origin != ORIGIN_DEFAULT;
    if (status != STATUS_OK)
        urls_blot(fault);
    return status;
}
