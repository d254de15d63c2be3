/* What is said about settings, and where. */
#include "collection.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "config.h"
#include "mem.h"

#define SYSTEM_FILE   "/etc/rlock.conf"
#define FILE_SIZE_MAX 65536
#define LOCAL         "local:"

static int status_of(enum origin origin)
{
    return origin == ORIGIN_OPTION ? STATUS_USAGE : STATUS_CONFIG;
}

int collection_status(const struct collection *all, enum setting id)
{
    return status_of(all->given[id].origin);
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

int collection_refuse(const struct collection *all, enum setting id, const char *why)
{
    const struct given *given = &all->given[id];
    char place[512];

    print_place(id, given, place, sizeof place);
    if (rules[id].secret)
        snprintf(all->fault, all->size, "%s %s", place, why);
    else
        snprintf(all->fault, all->size, "%s '%.60s' %s", place, given->value, why);
    return status_of(given->origin);
}

int collection_take(const struct collection *all, struct settings *settings, enum setting id)
{
    const struct given *given = &all->given[id];
    char room[RULES_FAULT_SIZE];
    const char *why = given->value ? rules[id].take(settings, given->value, room) : NULL;

    return why ? collection_refuse(all, id, why) : STATUS_OK;
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
        snprintf(all->fault, all->size, "%s:%d: a second url (a quorum's stand on one line)", path,
                 line->number);
        return STATUS_CONFIG;
    }
    *given = (struct given){line->value, origin, path, line->number};
    /* Judged even if something else comes before it: files last, and are best mended at once. */
    struct settings scratch = {0};
    int status = collection_take(all, &scratch, id);
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

static int collect_files(struct collection *all, const char *named, enum origin origin)
{
    if (named) {
        char *end;
        all->files[0] = read_file(named, &end);
        if (all->files[0])
            return collect_text(all, all->files[0], end, named, ORIGIN_USER);
        bool missing = errno == ENOENT || errno == ENOTDIR;
        snprintf(all->fault, all->size, "%s %s: %s",
                 origin == ORIGIN_OPTION ? "--config" : "RLOCK_CONFIG", named, strerror(errno));
        return missing ? status_of(origin) : STATUS_CONFIG;
    }
    int status = collect_usual_file(all, SYSTEM_FILE, ORIGIN_SYSTEM, &all->files[0]);
    if (status == STATUS_OK && (all->user_file = user_file()))
        status = collect_usual_file(all, all->user_file, ORIGIN_USER, &all->files[1]);
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

/* Several --url are as one with several words. */
static const char *add_url(struct collection *all, const char *url)
{
    size_t used = all->urls ? strlen(all->urls) : 0;
    char *joined = mem_zeroed(used + strlen(url) + 2);

    if (used) {
        sprintf(joined, "%s ", all->urls);
        explicit_bzero(all->urls, used);
    }
    strcat(joined, url);
    free(all->urls);
    return all->urls = joined;
}

static const char *option_value(struct collection *all, const struct given_option *option)
{
    switch (option->id) {
    case OPTION_NO_WAIT: return "0";
    case OPTION_LOCAL:
        return all->urls && strcmp(all->urls, LOCAL) == 0 ? all->urls : add_url(all, LOCAL);
    case SETTING_URL: return add_url(all, option->value);
    default: return option->value ? option->value : "yes";
    }
}

static void collect_options(struct collection *all, const struct arguments *arguments)
{
    for (size_t i = 0; i < arguments->option_count; i++) {
        const struct given_option *option = &arguments->options[i];
        int id = option->id == OPTION_NO_WAIT ? SETTING_WAIT
                 : option->id == OPTION_LOCAL ? SETTING_URL
                                              : option->id;
        if (id < SETTING_COUNT)
            all->given[id] = (struct given){option_value(all, option), ORIGIN_OPTION, NULL, 0};
    }
}

static const char *last_option(const struct arguments *arguments, int id)
{
    for (size_t i = arguments->option_count; i > 0; i--)
        if (arguments->options[i - 1].id == id)
            return arguments->options[i - 1].value;
    return NULL;
}

int collection_make(struct collection *all, const struct arguments *arguments)
{
    const char *named = last_option(arguments, OPTION_CONFIG);
    enum origin origin = named ? ORIGIN_OPTION : ORIGIN_ENVIRONMENT;

    for (int id = 1; id < SETTING_COUNT; id++)
        all->given[id] = (struct given){rules[id].initial, ORIGIN_DEFAULT, NULL, 0};
    int status = collect_files(all, named ? named : variable("RLOCK_CONFIG"), origin);
    if (status != STATUS_OK)
        return status;
    collect_environment(all);
    collect_options(all, arguments);
    return STATUS_OK;
}

void collection_end(struct collection *all, char *files[2])
{
    if (all->urls)
        explicit_bzero(all->urls, strlen(all->urls));
    free(all->urls);
    free(all->user_file);
    memcpy(files, all->files, sizeof all->files);
}
