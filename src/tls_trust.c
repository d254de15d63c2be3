/* Whose certificates are trusted. */
#include "tls_trust.h"

#include <sys/stat.h>

static bool is_directory(const char *path)
{
    struct stat status;
    return stat(path, &status) == 0 && S_ISDIR(status.st_mode);
}

/* The system's directory has a file for each certificate, found by name. The bundle is read where that was not
 * enough: a hundred and more certificates, which takes ten times as long as all the rest of a run. The handshake
 * then stands still until it is gone on with, and asks again. */
static int verify(X509_STORE_CTX *certificate, void *arg)
{
    struct tls_trust *trust = arg;
    const struct tls_library *library = trust->library;
    int verdict = library->X509_verify_cert(certificate);

    if (verdict > 0 || trust->bundle_read)
        return verdict;
    SSL *ssl = library->X509_STORE_CTX_get_ex_data(certificate,
                                                   library->SSL_get_ex_data_X509_STORE_CTX_idx());
    trust->bundle_read = true;
    library->SSL_CTX_set_default_verify_file(library->SSL_get_SSL_CTX(ssl));
    return library->SSL_ctrl(ssl, SSL_CTRL_SET_RETRY_VERIFY, 0, NULL) > 0;
}

bool tls_trust_take(struct tls_trust *trust, const struct tls_library *library, SSL_CTX *context,
                    const char *ca)
{
    *trust = (struct tls_trust){.library = library};
    if (!ca) {
        library->SSL_CTX_set_cert_verify_callback(context, verify, trust);
        return library->SSL_CTX_set_default_verify_dir(context) == 1;
    }
    /* Whatever is in it is trusted, also where it is no root. */
    bool directory = is_directory(ca);
    library->X509_VERIFY_PARAM_set_flags(library->SSL_CTX_get0_param(context),
                                         X509_V_FLAG_PARTIAL_CHAIN);
    return library->SSL_CTX_load_verify_locations(context, directory ? NULL : ca,
                                                  directory ? ca : NULL) == 1;
}
