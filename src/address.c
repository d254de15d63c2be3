/* The way to the store. */
#include "address.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "quorum.h"
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

/* What several URLs have to be; they are a quorum. Each must be all there is of a node: one that fails over, or
 * hands on, may forget. */
static int settle_urls(const struct collection *all, const struct store_address *address)
{
    const struct url *urls = address->urls;

    if (address->url_count > QUORUM_NODES_MAX)
        return collection_refuse(all, SETTING_URL, "names more than 16 servers");
    for (size_t i = 0; address->url_count > 1 && i < address->url_count; i++) {
        if (strcmp(urls[i].scheme, "redis") != 0 && strcmp(urls[i].scheme, "unix") != 0)
            return refuse(all, SETTING_URL, "has ", &urls[i],
                          " beside another store, but a quorum is made of single servers");
        for (size_t j = 0; j < i; j++) {
            if (!urls_same_server(&urls[i], &urls[j]))
                continue;
            refuse(all, SETTING_URL, "names the same node twice: ", &urls[i], "");
            return STATUS_CONFIG;
        }
    }
    return STATUS_OK;
}

/* What is not to be had of a quorum is refused as what is not to be had of a key. */
static int settle_promises(const struct collection *all, const struct store_address *address)
{
    static const char why[] = "is for one server, and not for a quorum";

    if (address->url_count < 2 || (address->replicas == REPLICAS_NONE && !address->grace))
        return STATUS_OK;
    collection_refuse(all, address->grace ? SETTING_GRACE : SETTING_REPLICAS, why);
    return STATUS_CONFIG;
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
        status = settle_promises(all, &settings->address);
    if (status == STATUS_OK)
        status = settle_passwords(all, settings);
    if (status == STATUS_OK)
        status = settle_tls(all, settings);
    return status;
}
