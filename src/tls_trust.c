/* Whose certificates are trusted. */
#include "tls_trust.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static bool is_directory(const char *path)
{
    struct stat status;
    return stat(path, &status) == 0 && S_ISDIR(status.st_mode);
}

/* Whether there is a certificate in it, by the look of it. */
static bool looks_well(const char *path)
{
    FILE *file = fopen(path, "re");
    char *line = NULL;
    size_t room = 0;
    bool well = false;

    while (file && !well && getline(&line, &room, file) >= 0)
        well = strncmp(line, "-----BEGIN ", 11) == 0 && strstr(line, "CERTIFICATE-----");
    free(line);
    if (file)
        fclose(file);
    return well;
}

static bool load(const struct tls_library *library, SSL_CTX *context, const char *ca)
{
    bool directory = is_directory(ca);

    return library->SSL_CTX_load_verify_locations(context, directory ? NULL : ca,
                                                  directory ? ca : NULL) == 1;
}

void tls_trust_read(struct tls_trust *trust, SSL_CTX *context)
{
    if (trust->unread)
        trust->useless = !load(trust->library, context, trust->unread);
    trust->unread = NULL;
}

/* The system's directory has a file for each certificate, found by name. The bundle is read where that was not
 * enough: a hundred and more certificates, which takes ten times as long as all the rest of a run. The handshake
 * then stands still until it is gone on with, and asks again. */
static int verify(X509_STORE_CTX *certificate, void *arg)
{
    struct tls_trust *trust = arg;
    const struct tls_library *library = trust->library;
    SSL *ssl = library->X509_STORE_CTX_get_ex_data(certificate,
                                                   library->SSL_get_ex_data_X509_STORE_CTX_idx());

    tls_trust_read(trust, library->SSL_get_SSL_CTX(ssl));
    if (trust->useless) {
        library->X509_STORE_CTX_set_error(certificate, X509_V_ERR_APPLICATION_VERIFICATION);
        return 0;
    }
    int verdict = library->X509_verify_cert(certificate);
    if (verdict > 0 || trust->complete)
        return verdict;
    trust->complete = true;
    library->SSL_CTX_set_default_verify_file(library->SSL_get_SSL_CTX(ssl));
    return library->SSL_ctrl(ssl, SSL_CTRL_SET_RETRY_VERIFY, 0, NULL) > 0;
}

bool tls_trust_take(struct tls_trust *trust, const struct tls_library *library, SSL_CTX *context,
                    const char *ca, bool soon)
{
    *trust =
        (struct tls_trust){.library = library, .unread = soon ? ca : NULL, .complete = ca != NULL};
    library->SSL_CTX_set_cert_verify_callback(context, verify, trust);
    if (!ca)
        return library->SSL_CTX_set_default_verify_dir(context) == 1;
    /* Whatever is in it is trusted, also where it is no root. */
    library->X509_VERIFY_PARAM_set_flags(library->SSL_CTX_get0_param(context),
                                         X509_V_FLAG_PARTIAL_CHAIN);
    return soon ? is_directory(ca) || looks_well(ca) : load(library, context, ca);
}
