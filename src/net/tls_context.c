/* Shared by all sessions: the host's policy, trusted certificates, and the own one. */
#include "net/tls_context.h"

#include <errno.h>
#include <stdio.h>
#include <sys/stat.h>

#include "base/ca_bundle.h"
#include "base/mem.h"
#include "os/file.h"

/* -- OpenSSL's configuration on this host ------------------------------------------------------ */

/* Describes its last error: the library's texts are not loaded. */
static const char *last_error(const struct tls_library *library)
{
    const char *about = "";
    int flags = 0;
    unsigned long why = library->ERR_peek_error_data(&about, &flags);

    if (ERR_SYSTEM_ERROR(why))
        return strerror(ERR_GET_REASON(why));
    return (flags & ERR_TXT_STRING) && *about ? about : "OpenSSL does not take it";
}

static void explain_policy(const struct tls_library *library, const char *why, char *fault,
                           size_t size)
{
    char *file = library->CONF_get1_default_config_file();

    snprintf(fault, size, "TLS: OpenSSL's configuration %.100s: %.100s", file ? file : "", why);
    library->CRYPTO_free(file, __FILE__, __LINE__);
}

/* Without what a short run would pay for and not use: the texts are of errors that are not those of
 * TLS. By itself OpenSSL would continue without a configuration that it cannot read or does not
 * understand. */
static bool start_library(const struct tls_library *library, bool ciphers, unsigned long strictness)
{
    uint64_t options = OPENSSL_INIT_LOAD_CONFIG | OPENSSL_INIT_NO_LOAD_CRYPTO_STRINGS |
                       OPENSSL_INIT_NO_ATEXIT | (ciphers ? 0 : OPENSSL_INIT_NO_ADD_ALL_CIPHERS);
    OPENSSL_INIT_SETTINGS *settings = mem_checked(library->OPENSSL_INIT_new());

    library->OPENSSL_INIT_set_config_file_flags(settings, strictness);
    bool started = library->OPENSSL_init_ssl(options, settings) == 1;
    library->OPENSSL_INIT_free(settings);
    return started;
}

bool tls_context_load_policy(const struct tls_library *library, bool ciphers, char *fault,
                             size_t size)
{
    /* A file that is named has to be there; the one that is looked for by itself need not. */
    const char *named = getenv("OPENSSL_CONF");
    unsigned long optional = named && *named ? 0 : CONF_MFLAGS_IGNORE_MISSING_FILE;
    const char *wrong = NULL;
    struct stat status;

    if (named && stat(named, &status) == 0 && S_ISDIR(status.st_mode))
        wrong = strerror(EISDIR); /* which OpenSSL takes for an empty file */
    else if (!start_library(library, ciphers, CONF_MFLAGS_DEFAULT_SECTION | optional))
        wrong = last_error(library);
    if (wrong)
        explain_policy(library, wrong, fault, size);
    return !wrong;
}

/* It has settings for all contexts, of which OpenSSL leaves out those that it does not understand.
 * Asked for by name, it says so. */
static bool is_kept(const struct tls_library *library, SSL_CTX *context)
{
    library->ERR_clear_error();
    if (library->SSL_CTX_config(context, "system_default") == 1)
        return true;
    return ERR_GET_REASON(library->ERR_peek_last_error()) == SSL_R_INVALID_CONFIGURATION_NAME;
}

/* TLS 1.2 at least, and no less than it asks for. NULL, or why it cannot be. */
static const char *raise_version(const struct tls_library *library, SSL_CTX *context)
{
    long least = library->SSL_CTX_ctrl(context, SSL_CTRL_GET_MIN_PROTO_VERSION, 0, NULL);
    long most = library->SSL_CTX_ctrl(context, SSL_CTRL_GET_MAX_PROTO_VERSION, 0, NULL);

    if (most != 0 && most < TLS1_2_VERSION)
        return "it allows nothing from TLS 1.2 on, which rlock asks for";
    return least >= TLS1_2_VERSION || library->SSL_CTX_ctrl(context, SSL_CTRL_SET_MIN_PROTO_VERSION,
                                                            TLS1_2_VERSION, NULL) == 1
               ? NULL
               : "TLS 1.2 cannot be asked for";
}

/* A context under it, with TLS 1.2 at least. NULL with a message in "fault". */
static SSL_CTX *new_context(const struct tls_library *library, char *fault, size_t size)
{
    const char *wrong = NULL;

    library->ERR_clear_error();
    /* Not the method of clients: it would not understand what is for servers. */
    SSL_CTX *context = library->SSL_CTX_new(library->TLS_method());
    if (!context)
        wrong = "OpenSSL can do no TLS under it";
    else if (!is_kept(library, context))
        wrong = "OpenSSL does not understand what it says for all connections (system_default)";
    else if (!(wrong = raise_version(library, context)))
        return context;
    explain_policy(library, wrong, fault, size);
    library->SSL_CTX_free(context);
    return NULL;
}

/* -- PEM files --------------------------------------------------------------------------------- */

/* The content of a PEM file that was read before. */
struct pem {
    const struct tls_library *library;
    BIO *bytes;
    bool damaged;
};

/* Begins with the file, which has a text and stays as long. */
static void pem_begin(struct pem *pem, const struct tls_library *library,
                      const struct tls_file *file)
{
    *pem = (struct pem){.library = library};
    pem->bytes = mem_checked(library->BIO_new_mem_buf(file->text, (int)file->size));
}

/* A key with a passphrase would have OpenSSL ask for it on the terminal. */
static int no_passphrase(char *buffer, int size, int writing, void *asked)
{
    (void)buffer;
    (void)size;
    (void)writing;
    if (asked)
        *(bool *)asked = true;
    return -1;
}

/* The next certificate, which the caller frees; others than these are passed over. NULL: there is
 * none, or "damaged". */
static X509 *pem_certificate(struct pem *pem)
{
    const struct tls_library *library = pem->library;

    library->ERR_clear_error();
    X509 *found = library->PEM_read_bio_X509_AUX(pem->bytes, NULL, no_passphrase, NULL);
    unsigned long why = found ? 0 : library->ERR_peek_last_error();
    bool over = ERR_GET_LIB(why) == ERR_LIB_PEM && ERR_GET_REASON(why) == PEM_R_NO_START_LINE;
    pem->damaged = !found && !over;
    library->ERR_clear_error();
    return found;
}

/* The next private key, which the caller frees. NULL: there is none, or *locked: it has a
 * passphrase. */
static EVP_PKEY *pem_key(struct pem *pem, bool *locked)
{
    *locked = false;
    EVP_PKEY *found =
        pem->library->PEM_read_bio_PrivateKey(pem->bytes, NULL, no_passphrase, locked);
    pem->library->ERR_clear_error();
    return found;
}

static void pem_end(struct pem *pem)
{
    pem->library->BIO_free(pem->bytes);
}

/* -- whose certificates are trusted ------------------------------------------------------------ */

/* Whether the certificate would be for the host that is expected if its subject counted, as it did
 * once. */
static bool names_by_subject(const struct tls_library *library, X509_STORE_CTX *verified,
                             const char *host)
{
    int error = library->X509_STORE_CTX_get_error(verified);
    X509 *certificate = library->X509_STORE_CTX_get0_cert(verified);

    return (error == X509_V_ERR_HOSTNAME_MISMATCH || error == X509_V_ERR_IP_ADDRESS_MISMATCH) &&
           certificate && host && library->X509_check_host(certificate, host, 0, 0, NULL) == 1;
}

/* Where distributions have what they trust, wherever OpenSSL was built to look. The variables are
 * OpenSSL's own: what one names is looked for instead. */
static const char *const directories[] = {
    "/etc/ssl/certs",         /* Debian, Alpine, SUSE */
    "/etc/pki/tls/certs",     /* Fedora and its relatives */
    "/usr/local/share/certs", /* FreeBSD */
    NULL,
};

static bool is_set(const char *variable)
{
    const char *value = getenv(variable);

    return value && *value;
}

/* Directories have a file for each certificate, found by name when it is wanted. */
static bool trust_directories(const struct tls_library *library, SSL_CTX *context)
{
    bool taken = library->SSL_CTX_set_default_verify_dir(context) == 1;

    for (const char *const *one = directories; *one && !is_set("SSL_CERT_DIR"); one++)
        taken = taken && library->SSL_CTX_load_verify_locations(context, NULL, *one) == 1;
    return taken;
}

static void trust_bundle(const struct tls_library *library, SSL_CTX *context)
{
    const char *bundle = ca_bundle_find();

    if (is_set("SSL_CERT_FILE") || !bundle)
        library->SSL_CTX_set_default_verify_file(context);
    else
        library->SSL_CTX_load_verify_locations(context, bundle, NULL);
}

/* The bundle is read where the directories were not enough: a hundred and more certificates, which
 * takes ten times as long as all the rest of a run. The handshake then stands still until it is
 * gone on with, and asks again. */
static int verify(X509_STORE_CTX *verified, void *arg)
{
    struct tls_trust *trust = arg;
    const struct tls_library *library = trust->library;
    SSL *ssl = library->X509_STORE_CTX_get_ex_data(verified,
                                                   library->SSL_get_ex_data_X509_STORE_CTX_idx());
    int verdict = library->X509_verify_cert(verified);

    if (verdict <= 0 && !trust->complete) {
        trust->complete = true;
        trust_bundle(library, library->SSL_get_SSL_CTX(ssl));
        return library->SSL_ctrl(ssl, SSL_CTRL_SET_RETRY_VERIFY, 0, NULL) > 0;
    }
    if (names_by_subject(library, verified, library->SSL_get_ex_data(ssl, TLS_TRUST_HOST)))
        library->X509_STORE_CTX_set_error(verified, TLS_TRUST_SUBJECT_ONLY);
    return verdict;
}

static const char *trust_text(const struct tls_library *library, SSL_CTX *context,
                              const struct tls_file *ca)
{
    X509_STORE *store = library->SSL_CTX_get_cert_store(context);
    struct pem pem;
    X509 *certificate;
    bool any = false, taken = true;

    pem_begin(&pem, library, ca);
    while (taken && (certificate = pem_certificate(&pem))) {
        any = true;
        taken = library->X509_STORE_add_cert(store, certificate) == 1;
        library->X509_free(certificate);
    }
    pem_end(&pem);
    return !taken || pem.damaged ? "a certificate in it is damaged"
           : any                 ? NULL
                                 : "no certificates to trust can be read";
}

/* Has a context verify by "ca"; without a path in it: by what the system trusts. NULL, or what is
 * wrong with it. */
static const char *take_trust(struct tls_trust *trust, const struct tls_library *library,
                              SSL_CTX *context, const struct tls_file *ca)
{
    static const char refused[] = "OpenSSL does not take it";

    *trust = (struct tls_trust){.library = library, .complete = ca->path != NULL};
    library->SSL_CTX_set_cert_verify_callback(context, verify, trust);
    if (!ca->path)
        return trust_directories(library, context) ? NULL : refused;
    /* Each certificate in it is trusted, also one that is not a root. */
    if (library->X509_VERIFY_PARAM_set_flags(library->SSL_CTX_get0_param(context),
                                             X509_V_FLAG_PARTIAL_CHAIN) != 1)
        return refused;
    if (ca->text)
        return trust_text(library, context, ca);
    return library->SSL_CTX_load_verify_locations(context, NULL, ca->path) == 1 ? NULL : refused;
}

/* -- a context --------------------------------------------------------------------------------- */

/* Says what is wrong, and in which file; that has no path where the system's certificates are
 * meant. */
struct refusal {
    const struct tls_file *file;
    const char *why; /* NULL: nothing */
};

static void explain_file(const struct refusal *refusal, int *status, char *fault, size_t size)
{
    const struct tls_file *file = refusal->file;

    if (file->path) {
        *status = file->status;
        snprintf(fault, size, "%s %s: %s", file->place, file->path, refusal->why);
    } else {
        snprintf(fault, size, "TLS: OpenSSL does not find the certificates that the system trusts");
    }
}

/* NULL, or what is wrong with the key. */
static const char *take_key(const struct tls_library *library, SSL_CTX *context,
                            const struct tls_file *file)
{
    struct pem pem;
    bool locked;

    pem_begin(&pem, library, file);
    EVP_PKEY *key = pem_key(&pem, &locked);
    pem_end(&pem);
    if (!key)
        return locked ? "a private key with a passphrase is not supported"
                      : "no private key can be read";
    /* One of another kind is taken, and found out only when all is there. */
    bool fits = library->SSL_CTX_use_PrivateKey(context, key) == 1 &&
                library->SSL_CTX_check_private_key(context) == 1;
    library->EVP_PKEY_free(key);
    return fits ? NULL : "the private key is not that of the certificate";
}

/* The certificates that sign ours. */
static bool take_chain(const struct tls_library *library, SSL_CTX *context, struct pem *pem)
{
    X509 *next;

    while ((next = pem_certificate(pem))) {
        if (library->SSL_CTX_ctrl(context, SSL_CTRL_CHAIN_CERT, 0, next) == 1)
            continue; /* it belongs to the context */
        library->X509_free(next);
        return false;
    }
    return !pem->damaged;
}

static const char *take_certificate(const struct tls_library *library, SSL_CTX *context,
                                    const struct tls_file *file)
{
    const char *wrong = NULL;
    struct pem pem;

    pem_begin(&pem, library, file);
    X509 *own = pem_certificate(&pem);
    if (!own)
        wrong = pem.damaged ? "a certificate in it is damaged" : "no certificate can be read";
    else if (library->SSL_CTX_use_certificate(context, own) != 1)
        wrong = "OpenSSL does not take the certificate";
    else if (!take_chain(library, context, &pem))
        wrong = "OpenSSL does not take the certificates behind the first one";
    library->X509_free(own);
    pem_end(&pem);
    return wrong;
}

static struct refusal take_files(const struct tls_library *library, SSL_CTX *context,
                                 const struct tls_options *options, struct tls_trust *trust)
{
    const struct tls_file *ca = &options->ca, *cert = &options->cert;
    const struct tls_file *key = options->key.path ? &options->key : cert;
    const char *why = take_trust(trust, library, context, ca);

    if (why || !cert->path)
        return (struct refusal){ca, why};
    if ((why = take_certificate(library, context, cert)))
        return (struct refusal){cert, why};
    return (struct refusal){key, take_key(library, context, key)};
}

SSL_CTX *tls_context_new(const struct tls_library *library, const struct tls_options *options,
                         struct tls_trust *trust, int *status, char *fault, size_t size)
{
    SSL_CTX *context = new_context(library, fault, size);

    if (!context)
        return NULL;
    library->SSL_CTX_set_options(context, SSL_OP_NO_RENEGOTIATION);
    library->SSL_CTX_set_verify(context, SSL_VERIFY_PEER, NULL);
    struct refusal refusal = take_files(library, context, options, trust);
    if (!refusal.why)
        return context;
    explain_file(&refusal, status, fault, size);
    library->SSL_CTX_free(context);
    return NULL;
}

/* Puts into *now what is in the file by now; "fresh" is what that lives in. */
static bool read_again(struct tls_file *now, struct file *fresh)
{
    static const struct file_options options = {
        .limit = TLS_FILE_SIZE_MAX, .again = true, .directory = true};
    char fault[128];

    if (!now->path || !now->rereadable)
        return true;
    if (file_read(fresh, now->path, &options, fault, sizeof fault) != 0)
        return false;
    now->text = fresh->text;
    now->size = fresh->size;
    return true;
}

SSL_CTX *tls_context_again(const struct tls_library *library, const struct tls_options *options,
                           struct tls_trust *trust)
{
    struct tls_options now = *options;
    struct tls_trust before = *trust;
    struct file ca = {0}, cert = {0}, key = {0};
    SSL_CTX *context = NULL;
    char fault[256];
    int status;

    if (read_again(&now.ca, &ca) && read_again(&now.cert, &cert) && read_again(&now.key, &key))
        context = tls_context_new(library, &now, trust, &status, fault, sizeof fault);
    file_wipe(&ca);
    file_wipe(&cert);
    file_wipe(&key);
    if (!context)
        *trust = before;
    return context;
}
