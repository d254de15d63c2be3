/* What the user set, from everywhere. */
#include "settings.h"
#include "rules.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "config.h"
#include "mem.h"
#include "secret.h"

#define SYSTEM_FILE   "/etc/rlock.conf"
#define FILE_SIZE_MAX 65536
#define SEVERAL_URLS  "several URLs (a quorum) are not supported yet"

/* In rising order: the later one wins. */
enum origin { ORIGIN_DEFAULT, ORIGIN_SYSTEM, ORIGIN_USER, ORIGIN_ENVIRONMENT, ORIGIN_OPTION };

/* What is said about one setting, and where. */
struct given {
    const char *value;
    enum origin origin;
    const char *file;
    int line;
};

struct collection {
    struct given given[SETTING_COUNT];
    char *user_file;
    char *fault;
    size_t size;
};

static int status_of(enum origin origin)
{
    return origin == ORIGIN_OPTION ? STATUS_USAGE : STATUS_CONFIG;
}

/* "--wait", "RLOCK_URL" or "/etc/rlock.conf:3: wait". */
static void print_place(enum setting id, const struct given *given, char *out, size_t size)
{
    const struct rule *rule = &rules[id];

    if (given->origin == ORIGIN_OPTION)
        snprintf(out, size, "--%s", rule->name);
    else if (given->file)
        snprintf(out, size, "%s:%d: %s", given->file, given->line, rule->name);
    else
        snprintf(out, size, "%s", given->origin == ORIGIN_ENVIRONMENT ? rule->variable : "default");
}

static bool several_words(const char *value)
{
    value += strspn(value, RULES_BLANKS);
    value += strcspn(value, RULES_BLANKS);
    return value[strspn(value, RULES_BLANKS)] != '\0';
}

/* Sets what is given for one setting, if anything. */
static int take(struct collection *all, struct settings *settings, enum setting id)
{
    const struct given *given = &all->given[id];
    bool several = given->value && id == SETTING_URL && several_words(given->value);
    char place[512], room[RULES_FAULT_SIZE];
    const char *why = NULL;

    if (given->value && !several)
        why = rules[id].take(settings, given->value, room);
    if (!why && !several)
        return STATUS_OK;
    print_place(id, given, place, sizeof place);
    if (several)
        snprintf(all->fault, all->size, "%s: " SEVERAL_URLS, place);
    else if (rules[id].secret)
        snprintf(all->fault, all->size, "%s %s", place, why);
    else
        snprintf(all->fault, all->size, "%s '%.60s' %s", place, given->value, why);
    return status_of(given->origin);
}

/* The text of a file, and where it ends; or NULL with errno. */
static char *read_file(const char *path, char **end)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
    if (fd < 0)
        return NULL;

    char *text = mem_checked(malloc(FILE_SIZE_MAX + 1));
    size_t used = 0;
    ssize_t n;
    while ((n = read(fd, text + used, FILE_SIZE_MAX + 1 - used)) > 0)
        used += (size_t)n;
    int error = n < 0 ? errno : used > FILE_SIZE_MAX ? EFBIG : 0;
    close(fd);
    if (error) {
        free(text);
        errno = error;
        return NULL;
    }
    *end = text + used;
    **end = '\0';
    return text;
}

static int collect_line(struct collection *all, const struct config_line *line, const char *path,
                        enum origin origin)
{
    enum setting id = rules_find(line->key);

    if (!id) {
        snprintf(all->fault, all->size, "%s:%d: unknown key '%.40s'", path, line->number,
                 line->key);
        return STATUS_CONFIG;
    }
    struct given *given = &all->given[id];
    if (id == SETTING_URL && given->file == path) {
        snprintf(all->fault, all->size, "%s:%d: " SEVERAL_URLS, path, line->number);
        return STATUS_CONFIG;
    }
    *given = (struct given){line->value, origin, path, line->number};
    /* Judged even if something else comes before it: files last, and are best mended at once. */
    struct settings scratch = {0};
    int status = take(all, &scratch, id);
    settings_free(&scratch);
    return status;
}

/* The text is cut up and has to stay. */
static int collect_text(struct collection *all, char *text, const char *end, const char *path,
                        enum origin origin)
{
    struct config_reader reader = {text, end, 0};
    struct config_line line;
    const char *why;
    int found = 0, status = STATUS_OK;

    while (status == STATUS_OK && (found = config_next(&reader, &line, &why)) == 1)
        status = collect_line(all, &line, path, origin);
    if (found < 0) {
        snprintf(all->fault, all->size, "%s:%d: %s", path, line.number, why);
        status = STATUS_CONFIG;
    }
    return status;
}

/* One of the two files that need not exist. A system's file that may not be read is an error: it may
 * name another store than the default, and two stores are no lock. That of a user is left out with
 * a warning: HOME is often still another user's for a service or under sudo. */
static int collect_usual_file(struct collection *all, const char *path, enum origin origin,
                              char **text)
{
    char *end;

    *text = read_file(path, &end);
    if (*text)
        return collect_text(all, *text, end, path, origin);
    if (errno == ENOENT || errno == ENOTDIR)
        return STATUS_OK;
    if (errno == EACCES && origin == ORIGIN_USER) {
        say_warning("%s: %s; going on without it", path, strerror(errno));
        return STATUS_OK;
    }
    snprintf(all->fault, all->size, "%s: %s", path, strerror(errno));
    return STATUS_CONFIG;
}

static char *user_file(void)
{
    const char *base = getenv("XDG_CONFIG_HOME");
    const char *home = getenv("HOME");
    char *path = NULL;
    int n = 0;

    if (base && *base == '/') /* the specification has a relative one ignored */
        n = asprintf(&path, "%s/rlock/config", base);
    else if (home && *home)
        n = asprintf(&path, "%s/.config/rlock/config", home);
    return n < 0 ? mem_checked(NULL) : path;
}

static int collect_files(struct collection *all, struct settings *settings, const char *named,
                         enum origin origin)
{
    if (named) {
        char *end;
        settings->files[0] = read_file(named, &end);
        if (settings->files[0])
            return collect_text(all, settings->files[0], end, named, ORIGIN_USER);
        bool missing = errno == ENOENT || errno == ENOTDIR;
        snprintf(all->fault, all->size, "%s %s: %s",
                 origin == ORIGIN_OPTION ? "--config" : "RLOCK_CONFIG", named, strerror(errno));
        return missing ? status_of(origin) : STATUS_CONFIG;
    }
    int status = collect_usual_file(all, SYSTEM_FILE, ORIGIN_SYSTEM, &settings->files[0]);
    if (status == STATUS_OK && (all->user_file = user_file()))
        status = collect_usual_file(all, all->user_file, ORIGIN_USER, &settings->files[1]);
    return status;
}

/* A variable that is set to nothing is not set: CI systems cannot unset one. */
static const char *variable(const char *name)
{
    const char *value = name ? getenv(name) : NULL;
    return value && *value ? value : NULL;
}

static void collect_environment(struct collection *all)
{
    for (int id = 1; id < SETTING_COUNT; id++) {
        const char *value = variable(rules[id].variable);
        if (value)
            all->given[id] = (struct given){value, ORIGIN_ENVIRONMENT, NULL, 0};
    }
    if (variable("NO_COLOR"))
        all->given[SETTING_COLOR] = (struct given){"never", ORIGIN_ENVIRONMENT, NULL, 0};
}

static int collect_options(struct collection *all, const struct arguments *arguments)
{
    for (size_t i = 0; i < arguments->option_count; i++) {
        const struct given_option *option = &arguments->options[i];
        int id = option->id == OPTION_NO_WAIT ? SETTING_WAIT : option->id;
        if (id >= SETTING_COUNT)
            continue;
        if (id == SETTING_URL && all->given[id].origin == ORIGIN_OPTION) {
            snprintf(all->fault, all->size, SEVERAL_URLS);
            return STATUS_USAGE;
        }
        const char *value = option->id == OPTION_NO_WAIT ? "0" : option->value;
        all->given[id] = (struct given){value ? value : "yes", ORIGIN_OPTION, NULL, 0};
    }
    return STATUS_OK;
}

static const char *last_option(const struct arguments *arguments, int id)
{
    for (size_t i = arguments->option_count; i > 0; i--)
        if (arguments->options[i - 1].id == id)
            return arguments->options[i - 1].value;
    return NULL;
}

static int collect(struct collection *all, struct settings *settings,
                   const struct arguments *arguments)
{
    const char *named = last_option(arguments, OPTION_CONFIG);
    enum origin origin = named ? ORIGIN_OPTION : ORIGIN_ENVIRONMENT;

    for (int id = 1; id < SETTING_COUNT; id++)
        all->given[id] = (struct given){rules[id].initial, ORIGIN_DEFAULT, NULL, 0};
    int status = collect_files(all, settings, named ? named : variable("RLOCK_CONFIG"), origin);
    if (status != STATUS_OK)
        return status;
    collect_environment(all);
    return collect_options(all, arguments);
}

static int apply(struct collection *all, struct settings *settings)
{
    int status = STATUS_OK;

    for (int id = 1; id < SETTING_COUNT && status == STATUS_OK; id++)
        status = take(all, settings, (enum setting)id);
    return status;
}

/* The URL's own comes first, then what is from the highest place. An empty one in a URL that names a
 * user gives way: it is how to name the user of a password kept elsewhere. */
static int choose_password(struct collection *all, struct settings *settings)
{
    struct store_address *address = &settings->address;
    const struct given *word = &all->given[SETTING_PASSWORD];
    const struct given *file = &all->given[SETTING_PASSWORD_FILE];
    bool from_file = file->value && (!word->value || file->origin > word->origin);
    char why[300];

    if (address->url.password && *address->url.password)
        address->password = address->password_file = NULL;
    else if (word->value || file->value)
        address->url.password = NULL;
    if (!from_file)
        address->password_file = NULL;
    if (!address->password_file)
        return STATUS_OK;

    settings->secret = secret_read(address->password_file, why, sizeof why);
    if (settings->secret && *settings->secret == '\0')
        snprintf(why, sizeof why, "%s: the first line is empty", address->password_file);
    address->password = settings->secret;
    if (settings->secret && *settings->secret)
        return STATUS_OK;
    snprintf(all->fault, all->size, "password file %s", why);
    return status_of(file->origin);
}

static void set_verbosity(const struct arguments *arguments)
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
    struct collection all = {.fault = fault, .size = size};

    *settings = (struct settings){.wait = WAIT_FOREVER};
    set_verbosity(arguments);
    int status = collect(&all, settings, arguments);
    if (status == STATUS_OK)
        status = apply(&all, settings);
    if (status == STATUS_OK)
        status = choose_password(&all, settings);
    for (size_t i = 0; i < arguments->option_count; i++)
        if (arguments->options[i].id == SETTING_URL)
            settings_blot(arguments->options[i].value);
    free(all.user_file);
    return status;
}

void settings_free(struct settings *settings)
{
    url_free(&settings->address.url);
    for (size_t i = 0; i < 2; i++)
        free(settings->files[i]);
    free(settings->secret);
    *settings = (struct settings){0};
}

void settings_blot(char *text)
{
    size_t start, length;

    if (url_password_span(text, &start, &length))
        memset(text + start, '*', length);
}
