/* What the user set, from everywhere. */
#include "settings.h"
#include "address.h"
#include "collection.h"
#include "rules.h"

#include <stdlib.h>
#include <string.h>

#include "urls.h"

static int apply(const struct collection *all, struct settings *settings)
{
    int status = STATUS_OK;

    for (int id = 1; id < SETTING_COUNT && status == STATUS_OK; id++)
        status = collection_take(all, settings, (enum setting)id);
    return status;
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
    int status = collection_make(&all, arguments);
    if (status == STATUS_OK)
        status = apply(&all, settings);
    if (status == STATUS_OK)
        status = address_settle(&all, settings);
    for (size_t i = 0; i < arguments->option_count; i++)
        if (arguments->options[i].id == SETTING_URL)
            settings_blot(arguments->options[i].value);
    collection_end(&all, settings->files);
    return status;
}

void settings_free(struct settings *settings)
{
    for (size_t i = 0; i < settings->address.url_count; i++)
        url_free(&settings->urls[i]);
    free(settings->urls);
    for (size_t i = 0; i < 2; i++)
        free(settings->files[i]);
    free(settings->secret);
    *settings = (struct settings){0};
}

void settings_blot(char *text)
{
    size_t start, length;

    for (size_t from = 0; urls_password_span(text, from, &start, &length); from = start + length)
        memset(text + start, '*', length);
}
