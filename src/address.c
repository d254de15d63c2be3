/* The way to the store. */
#include "address.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "secret.h"
#include "urls.h"

/* Refuses a setting for the sake of a URL. */
static int refuse(const struct collection *all, enum setting id, const char *before,
                  const struct url *url, const char *after)
{
    char name[200], why[sizeof name + 100];

    snprintf(why, sizeof why, "%s%s%s", before, url_print(url, name, sizeof name), after);
    return collection_refuse(all, id, why);
}

static int settle_urls(const struct collection *all, const struct store_address *address)
{
    const struct url *urls = address->urls;

    for (size_t i = 1; i < address->url_count; i++) {
        for (size_t j = 0; j < i; j++)
            if (urls_same_server(&urls[i], &urls[j]))
                return refuse(all, SETTING_URL, "names the same node twice: ", &urls[i], "");
        if (strcmp(urls[i].scheme, "local") == 0 || strcmp(urls[0].scheme, "local") == 0)
            return collection_refuse(all, SETTING_URL, "has local: beside another store");
    }
    return STATUS_OK;
}

/* A URL's own password comes first, then what is from the highest place. An empty one in a URL that names
 * a user gives way: it is how to name the user of a password kept elsewhere. The local server has none. */
static int settle_passwords(const struct collection *all, struct settings *settings)
{
    struct store_address *address = &settings->address;
    const struct given *word = &all->given[SETTING_PASSWORD];
    const struct given *file = &all->given[SETTING_PASSWORD_FILE];
    bool from_file = file->value && (!word->value || file->origin > word->origin);
    bool wanted = false;
    char why[300];

    for (size_t i = 0; i < address->url_count; i++) {
        struct url *url = &settings->urls[i];
        if ((url->password && *url->password) || strcmp(url->scheme, "local") == 0)
            continue;
        wanted = true;
        if (word->value || file->value)
            url->password = NULL;
    }
    if (!wanted || from_file)
        address->password = NULL;
    if (!wanted || !from_file)
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
    return collection_status(all, SETTING_PASSWORD_FILE);
}

/* What is set about TLS where the URLs are, or above, is meant for them: it turns TLS on where the scheme
 * leaves that open. Below, it is a default for URLs that have TLS. */
static int demand_tls(const struct collection *all, struct settings *settings, enum setting id)
{
    const struct given *given = &all->given[id];
    bool any = false;

    if (!given->value || given->origin < all->given[SETTING_URL].origin)
        return STATUS_OK;
    for (size_t i = 0; i < settings->address.url_count; i++) {
        struct url *url = &settings->urls[i];
        if (strcmp(url->scheme, "sentinel") == 0 || strcmp(url->scheme, "cluster") == 0)
            url->tls = true;
        if (!url->tls && strcmp(url->scheme, "redis") == 0)
            return refuse(all, id, "is for TLS, but ", url, " is without (write rediss://)");
        any |= url->tls;
    }
    return any ? STATUS_OK
               : refuse(all, id, "is for TLS, but ", settings->urls,
                        " is without (rediss:// has it)");
}

/* Files are only tried here: the process that speaks to the store reads them. */
static int settle_tls(const struct collection *all, struct settings *settings)
{
    const struct tls_options *tls = &settings->address.tls;
    const char *const files[] = {tls->ca, tls->cert, tls->key};
    char why[100];
    bool any = false;

    for (int id = SETTING_TLS_CA; id <= SETTING_TLS_SERVER_NAME; id++) {
        int status = demand_tls(all, settings, (enum setting)id);
        if (status != STATUS_OK)
            return status;
    }
    for (size_t i = 0; i < settings->address.url_count; i++)
        any |= settings->urls[i].tls;
    for (int i = 0; any && i < 3; i++) {
        if (!files[i] || access(files[i], R_OK) == 0)
            continue;
        snprintf(why, sizeof why, "cannot be read: %s", strerror(errno));
        return collection_refuse(all, (enum setting)(SETTING_TLS_CA + i), why);
    }
    if (any && tls->key && !tls->cert)
        return collection_refuse(all, SETTING_TLS_KEY, "comes without a certificate (tls-cert)");
    return STATUS_OK;
}

int address_settle(const struct collection *all, struct settings *settings)
{
    int status = settle_urls(all, &settings->address);

    settings->address_status = collection_status(all, SETTING_URL);
    for (int id = SETTING_TLS_CA; id <= SETTING_TLS_SERVER_NAME; id++)
        if (collection_status(all, (enum setting)id) == STATUS_USAGE)
            settings->address_status = STATUS_USAGE;
    if (status == STATUS_OK)
        status = settle_passwords(all, settings);
    if (status == STATUS_OK)
        status = settle_tls(all, settings);
    return status;
}
