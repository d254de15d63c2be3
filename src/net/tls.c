/* Encrypts and decrypts the bytes of a connection by OpenSSL, and words what it refuses. A context
 * (SSL_CTX) has what is the same for all sessions: whom to trust, and our certificate. It reads the
 * files of the options and the system's certificates, which are in directories or in a bundle, one
 * file with all. To add a function of OpenSSL, edit net/tls_library. */
#include "net/tls.h"

#include <errno.h>
#include <stdio.h>
#include <sys/stat.h>

#include "base/ca_bundle.h"
#include "base/mem.h"
#include "net/resolve.h"
#include "net/tls_library.h"
#include "os/file.h"

/* The place among a session's own data (SSL_set_ex_data()) of the name that its certificate has to
 * be for. */
#define HOST_PLACE 0
/* The reason of a refusal with this verdict: the certificate names the host only in its subject
 * (CN). */
#define SUBJECT_ONLY X509_V_ERR_APPLICATION_VERIFICATION

static struct tls_library openssl; /* loaded with the first struct tls */

struct tls {
    struct tls_options options;
    SSL_CTX *context;
    bool has_all; /* all that the system trusts was read, or --tls-ca counts instead */
    bool reread;  /* before the next session: one came to nothing, and the files may have changed */
};

struct tls_session {
    struct tls *tls;
    SSL *ssl;
    BIO *in, *out;    /* belong to ssl */
    char name[256];   /* whose certificate it has to be */
    const char *flaw; /* why no peer can be verified; NULL: they can */
    int first;        /* byte that came, 0: none yet */
    bool asked;       /* for our certificate */
    bool received;    /* something that was encrypted came in whole */
};

/* -- OpenSSL's configuration on this host ------------------------------------------------------ */

/* Fills "fault" with the name of OpenSSL's configuration, and what is wrong with it. */
static void explain_policy(const char *why, char *fault, size_t size)
{
    char *file = openssl.CONF_get1_default_config_file();

    snprintf(fault, size, "TLS: OpenSSL's configuration %.100s: %.100s", file ? file : "", why);
    openssl.CRYPTO_free(file, __FILE__, __LINE__);
}

/* Starts OpenSSL, but leaves out what a short run would pay for and not use: the texts of errors
 * that are not those of TLS, and, unless "ciphers" asks for them, the ciphers for keys with a
 * passphrase. strictness: CONF_MFLAGS_…, as OpenSSL would by itself continue without a
 * configuration that it cannot read or does not understand. Returns whether it has started. */
static bool start_library(bool ciphers, unsigned long strictness)
{
    uint64_t options = OPENSSL_INIT_LOAD_CONFIG | OPENSSL_INIT_NO_LOAD_CRYPTO_STRINGS |
                       OPENSSL_INIT_NO_ATEXIT | (ciphers ? 0 : OPENSSL_INIT_NO_ADD_ALL_CIPHERS);
    OPENSSL_INIT_SETTINGS *settings = mem_checked(openssl.OPENSSL_INIT_new());

    openssl.OPENSSL_INIT_set_config_file_flags(settings, strictness);
    bool started = openssl.OPENSSL_init_ssl(options, settings) == 1;
    openssl.OPENSSL_INIT_free(settings);
    return started;
}

/* Starts OpenSSL, once for the process, under the configuration of this host (openssl.cnf, or the
 * file in OPENSSL_CONF): least versions, ciphers, FIPS. The host's administrator sets it for all
 * programs; one that cannot be kept is an error. "ciphers": those for keys with a passphrase may be
 * needed. False with a message in "fault" that names the file. */
static bool load_policy(bool ciphers, char *fault, size_t size)
{
    /* A file that is named has to be there; the one that is looked for by itself need not. */
    const char *named = getenv("OPENSSL_CONF");
    unsigned long optional = named && *named ? 0 : CONF_MFLAGS_IGNORE_MISSING_FILE;
    const char *wrong = NULL;
    struct stat status;

    if (named && stat(named, &status) == 0 && S_ISDIR(status.st_mode))
        wrong = strerror(EISDIR); /* which OpenSSL takes for an empty file */
    if (!wrong && !start_library(ciphers, CONF_MFLAGS_DEFAULT_SECTION | optional)) {
        /* The library's own texts are not loaded. */
        const char *about = "";
        int flags = 0;
        unsigned long why = openssl.ERR_peek_error_data(&about, &flags);
        wrong = ERR_SYSTEM_ERROR(why)                ? strerror(ERR_GET_REASON(why))
                : (flags & ERR_TXT_STRING) && *about ? about
                                                     : "OpenSSL does not take it";
    }
    if (wrong)
        explain_policy(wrong, fault, size);
    return !wrong;
}

/* Whether OpenSSL has understood its configuration. The configuration has settings for all
 * contexts. OpenSSL leaves out those that it does not understand, and says so only where they are
 * asked for by name. */
static bool is_understood(SSL_CTX *context)
{
    openssl.ERR_clear_error();
    if (openssl.SSL_CTX_config(context, "system_default") == 1)
        return true;
    return ERR_GET_REASON(openssl.ERR_peek_last_error()) == SSL_R_INVALID_CONFIGURATION_NAME;
}

/* Asks for TLS 1.2 at least, and for no less than the configuration does. Returns NULL, or why that
 * is impossible. */
static const char *raise_version(SSL_CTX *context)
{
    long least = openssl.SSL_CTX_ctrl(context, SSL_CTRL_GET_MIN_PROTO_VERSION, 0, NULL);
    long most = openssl.SSL_CTX_ctrl(context, SSL_CTRL_GET_MAX_PROTO_VERSION, 0, NULL);

    if (most != 0 && most < TLS1_2_VERSION)
        return "it allows nothing from TLS 1.2 on, which rlock asks for";
    return least >= TLS1_2_VERSION || openssl.SSL_CTX_ctrl(context, SSL_CTRL_SET_MIN_PROTO_VERSION,
                                                           TLS1_2_VERSION, NULL) == 1
               ? NULL
               : "TLS 1.2 cannot be asked for";
}

/* Makes a context under the configuration, with TLS 1.2 at least. NULL with a message in
 * "fault". */
static SSL_CTX *new_context(char *fault, size_t size)
{
    const char *wrong = NULL;

    openssl.ERR_clear_error();
    /* Not the method of clients: it would not understand what is for servers. */
    SSL_CTX *context = openssl.SSL_CTX_new(openssl.TLS_method());
    if (!context)
        wrong = "OpenSSL can do no TLS under it";
    else if (!is_understood(context))
        wrong = "OpenSSL rejects its section system_default";
    else if (!(wrong = raise_version(context)))
        return context;
    explain_policy(wrong, fault, size);
    openssl.SSL_CTX_free(context);
    return NULL;
}

/* -- PEM files --------------------------------------------------------------------------------- */

/* The content of a PEM file that was read before. */
struct pem {
    BIO *bytes;
    bool damaged;
};

/* Begins to read the text of the file, which stays until pem_end(). */
static void pem_begin(struct pem *pem, const struct tls_file *file)
{
    *pem = (struct pem){mem_checked(openssl.BIO_new_mem_buf(file->text, (int)file->size)), false};
}

/* For OpenSSL, which would ask for the passphrase of a key on the terminal: gives it none. *asked,
 * a bool: a passphrase was wanted; may be NULL. Returns -1: it failed. */
static int no_passphrase(char *buffer, int size, int writing, void *asked)
{
    (void)buffer;
    (void)size;
    (void)writing;
    if (asked)
        *(bool *)asked = true;
    return -1;
}

/* Returns the next certificate, which the caller frees, and skips what is not one. NULL: there is
 * none, or pem->damaged. */
static X509 *pem_certificate(struct pem *pem)
{
    openssl.ERR_clear_error();
    X509 *found = openssl.PEM_read_bio_X509_AUX(pem->bytes, NULL, no_passphrase, NULL);
    unsigned long why = found ? 0 : openssl.ERR_peek_last_error();
    bool over = ERR_GET_LIB(why) == ERR_LIB_PEM && ERR_GET_REASON(why) == PEM_R_NO_START_LINE;
    pem->damaged = !found && !over;
    openssl.ERR_clear_error();
    return found;
}

static void pem_end(struct pem *pem)
{
    openssl.BIO_free(pem->bytes);
}

/* -- whose certificates are trusted ------------------------------------------------------------ */

/* The directories of distributions, wherever OpenSSL was built to look. The variables are OpenSSL's
 * own: where one is set, it counts instead. */
static const char *const directories[] = {
    "/etc/ssl/certs",         /* Debian, Alpine, SUSE */
    "/etc/pki/tls/certs",     /* Fedora and its relatives */
    "/usr/local/share/certs", /* FreeBSD */
    NULL,
};

/* Whether the variable is there, and not empty. */
static bool is_set(const char *variable)
{
    const char *value = getenv(variable);

    return value && *value;
}

/* For OpenSSL: verifies the server's certificate in a handshake. Returns 1 if it is trusted, and
 * for the host; otherwise 0 or less, with the reason in "verified". If the system's directories are
 * not enough, reads the bundle and has the handshake pause, for which it returns 1, too; it is
 * called once more when the handshake continues. *arg, the bool has_all: there is no bundle left to
 * read. */
static int verify_certificate(X509_STORE_CTX *verified, void *arg)
{
    bool *has_all = arg;
    SSL *ssl =
        openssl.X509_STORE_CTX_get_ex_data(verified, openssl.SSL_get_ex_data_X509_STORE_CTX_idx());
    int verdict = openssl.X509_verify_cert(verified);

    /* A bundle has a hundred and more certificates: reading it takes ten times as long as all the
     * rest of a run. */
    if (verdict <= 0 && !*has_all) {
        *has_all = true;
        SSL_CTX *context = openssl.SSL_get_SSL_CTX(ssl);
        const char *bundle = ca_bundle_find();
        if (is_set("SSL_CERT_FILE") || !bundle)
            openssl.SSL_CTX_set_default_verify_file(context);
        else
            openssl.SSL_CTX_load_verify_locations(context, bundle, NULL);
        return openssl.SSL_ctrl(ssl, SSL_CTRL_SET_RETRY_VERIFY, 0, NULL) > 0;
    }
    int error = openssl.X509_STORE_CTX_get_error(verified);
    X509 *certificate = openssl.X509_STORE_CTX_get0_cert(verified);
    const char *host = openssl.SSL_get_ex_data(ssl, HOST_PLACE);
    /* Years ago, the name in a certificate's subject counted. One that names the host only there is
     * refused with a reason of its own. */
    if ((error == X509_V_ERR_HOSTNAME_MISMATCH || error == X509_V_ERR_IP_ADDRESS_MISMATCH) &&
        certificate && host && openssl.X509_check_host(certificate, host, 0, 0, NULL) == 1)
        openssl.X509_STORE_CTX_set_error(verified, SUBJECT_ONLY);
    return verdict;
}

/* Has a context verify by "ca"; without a path in it: by what the system trusts. *has_all: as in
 * struct tls; the context refers to it. Returns NULL, or what is wrong with the file. */
static const char *take_trust(bool *has_all, SSL_CTX *context, const struct tls_file *ca)
{
    static const char refused[] = "OpenSSL does not take it";

    *has_all = ca->path != NULL;
    openssl.SSL_CTX_set_cert_verify_callback(context, verify_certificate, has_all);
    if (!ca->path) { /* directories have a file for each certificate, found by name when wanted */
        bool taken = openssl.SSL_CTX_set_default_verify_dir(context) == 1;
        for (const char *const *one = directories; *one && !is_set("SSL_CERT_DIR"); one++)
            taken = taken && openssl.SSL_CTX_load_verify_locations(context, NULL, *one) == 1;
        return taken ? NULL : refused;
    }
    /* Each certificate in it is trusted, also one that is not a root. */
    if (openssl.X509_VERIFY_PARAM_set_flags(openssl.SSL_CTX_get0_param(context),
                                            X509_V_FLAG_PARTIAL_CHAIN) != 1)
        return refused;
    if (ca->text) {
        X509_STORE *store = openssl.SSL_CTX_get_cert_store(context);
        struct pem pem;
        X509 *certificate;
        bool any = false, taken = true;
        pem_begin(&pem, ca);
        while (taken && (certificate = pem_certificate(&pem))) {
            any = true;
            taken = openssl.X509_STORE_add_cert(store, certificate) == 1;
            openssl.X509_free(certificate);
        }
        pem_end(&pem);
        return !taken || pem.damaged ? "a certificate in it is damaged"
               : any                 ? NULL
                                     : "no certificates to trust can be read";
    }
    return openssl.SSL_CTX_load_verify_locations(context, NULL, ca->path) == 1 ? NULL : refused;
}

/* -- a context --------------------------------------------------------------------------------- */

/* The file that is wrong, and why. It has no path where the system's certificates are meant. */
struct refusal {
    const struct tls_file *file;
    const char *why; /* NULL: nothing */
};

/* Has the context use the private key in that file. Returns NULL, or what is wrong with the key. */
static const char *take_key(SSL_CTX *context, const struct tls_file *file)
{
    struct pem pem;
    bool locked = false;

    pem_begin(&pem, file);
    EVP_PKEY *key = openssl.PEM_read_bio_PrivateKey(pem.bytes, NULL, no_passphrase, &locked);
    openssl.ERR_clear_error();
    pem_end(&pem);
    if (!key)
        return locked ? "a private key with a passphrase is not supported"
                      : "no private key can be read";
    /* OpenSSL takes a key of another kind than the certificate's, and finds out by the check. */
    bool fits = openssl.SSL_CTX_use_PrivateKey(context, key) == 1 &&
                openssl.SSL_CTX_check_private_key(context) == 1;
    openssl.EVP_PKEY_free(key);
    return fits ? NULL : "the private key is not that of the certificate";
}

/* Takes the certificates that sign ours: those behind it in its file. False: one is damaged, or
 * OpenSSL does not take it. */
static bool take_chain(SSL_CTX *context, struct pem *pem)
{
    X509 *next;

    while ((next = pem_certificate(pem))) {
        if (openssl.SSL_CTX_ctrl(context, SSL_CTRL_CHAIN_CERT, 0, next) == 1)
            continue; /* it belongs to the context */
        openssl.X509_free(next);
        return false;
    }
    return !pem->damaged;
}

/* Has OpenSSL use the certificate of this client, and those behind it in the file. Returns what is
 * wrong, or NULL. */
static const char *take_certificate(SSL_CTX *context, const struct tls_file *file)
{
    const char *wrong = NULL;
    struct pem pem;

    pem_begin(&pem, file);
    X509 *own = pem_certificate(&pem);
    if (!own)
        wrong = pem.damaged ? "a certificate in it is damaged" : "no certificate can be read";
    else if (openssl.SSL_CTX_use_certificate(context, own) != 1)
        wrong = "OpenSSL does not take the certificate";
    else if (!take_chain(context, &pem))
        wrong = "OpenSSL does not take the certificates behind the first one";
    openssl.X509_free(own);
    pem_end(&pem);
    return wrong;
}

/* Gives the context the files of the options. *has_all: as in struct tls. Returns which file is
 * refused, and why; why NULL: none is. */
static struct refusal take_files(SSL_CTX *context, const struct tls_options *options, bool *has_all)
{
    const struct tls_file *ca = &options->ca, *cert = &options->cert;
    const struct tls_file *key = options->key.path ? &options->key : cert;
    const char *why = take_trust(has_all, context, ca);

    if (why || !cert->path)
        return (struct refusal){ca, why};
    if ((why = take_certificate(context, cert)))
        return (struct refusal){cert, why};
    return (struct refusal){key, take_key(context, key)};
}

/* Makes a context under OpenSSL's configuration, of the contents of the files. *has_all is set, and
 * borrowed for as long as the context lives. NULL with a message in "fault"; *status: the exit
 * status of the file that is the reason, or as it was. */
static SSL_CTX *make_context(const struct tls_options *options, bool *has_all, int *status,
                             char *fault, size_t size)
{
    SSL_CTX *context = new_context(fault, size);

    if (!context)
        return NULL;
    openssl.SSL_CTX_set_options(context, SSL_OP_NO_RENEGOTIATION);
    openssl.SSL_CTX_set_verify(context, SSL_VERIFY_PEER, NULL);
    struct refusal refusal = take_files(context, options, has_all);
    if (!refusal.why)
        return context;
    const struct tls_file *file = refusal.file;
    if (file->path) {
        *status = file->status;
        snprintf(fault, size, "%s %s: %s", file->place, file->path, refusal.why);
    } else {
        snprintf(fault, size, "TLS: OpenSSL does not find the certificates that the system trusts");
    }
    openssl.SSL_CTX_free(context);
    return NULL;
}

/* Reads the file anew, if it can be: its content is in *now, and lives in *fresh. False: it cannot
 * be read any more. */
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

/* Has further sessions trust and show what is in the files now; where they make no sense, what was
 * in them before. */
static void reload_files(struct tls *tls)
{
    struct tls_options now = tls->options;
    struct file ca = {0}, cert = {0}, key = {0};
    bool had_all = tls->has_all;
    SSL_CTX *context = NULL;
    char fault[256];
    int status;

    tls->reread = false;
    if (read_again(&now.ca, &ca) && read_again(&now.cert, &cert) && read_again(&now.key, &key))
        context = make_context(&now, &tls->has_all, &status, fault, sizeof fault);
    file_wipe(&ca);
    file_wipe(&cert);
    file_wipe(&key);
    if (context) {
        openssl.SSL_CTX_free(tls->context);
        tls->context = context;
    } else {
        tls->has_all = had_all;
    }
}

struct tls *tls_new(const struct tls_options *options, char *fault, size_t size)
{
    struct tls *tls = mem_zeroed(sizeof *tls);
    int status = options->policy_status;

    tls->options = *options;
    if (!tls_library_load(&openssl, fault, size))
        status = options->library_status;
    else if (load_policy(options->cert.path != NULL, fault, size))
        tls->context = make_context(options, &tls->has_all, &status, fault, size);
    if (tls->context)
        return tls;
    if (options->status)
        *options->status = status;
    free(tls);
    return NULL;
}

void tls_discard(struct tls *tls)
{
    if (!tls)
        return;
    openssl.SSL_CTX_free(tls->context);
    free(tls);
}

/* -- a session --------------------------------------------------------------------------------- */

/* OpenSSL's words for its latest error. */
static const char *openssl_reason(void)
{
    const char *text = openssl.ERR_reason_error_string(openssl.ERR_peek_last_error());
    return text ? text : "unknown reason";
}

/* Sets whose certificate it has to be, a host's name or address. False: no certificate can be for
 * that. Nothing here may be left out: without a name OpenSSL takes every certificate. */
static bool expect_name(struct tls_session *session, const char *name)
{
    X509_VERIFY_PARAM *expected = openssl.SSL_get0_param(session->ssl);
    size_t length = strcspn(name, "%"); /* the zone of an address is this host's business */

    if (length > 0 && name[length - 1] == '.') /* of a name that is complete */
        length--;
    if (length >= sizeof session->name)
        return false;
    memcpy(session->name, name, length);
    if (openssl.SSL_set_ex_data(session->ssl, HOST_PLACE, session->name) != 1)
        return false;
    if (host_is_address(session->name)) /* which is not sent as SNI (RFC 6066) */
        return openssl.X509_VERIFY_PARAM_set1_ip_asc(expected, session->name) == 1;
    openssl.X509_VERIFY_PARAM_set_hostflags(expected, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS |
                                                          X509_CHECK_FLAG_NEVER_CHECK_SUBJECT);
    return host_is_name(session->name) &&
           openssl.X509_VERIFY_PARAM_set1_host(expected, session->name, 0) == 1 &&
           openssl.SSL_ctrl(session->ssl, SSL_CTRL_SET_TLSEXT_HOSTNAME, TLSEXT_NAMETYPE_host_name,
                            session->name) == 1;
}

/* For OpenSSL: notes that the server asks for our certificate, be there one or not. Returns 1:
 * there is no error. */
static int on_certificate_request(SSL *ssl, void *arg)
{
    struct tls_session *session = arg;

    (void)ssl;
    session->asked = true;
    return 1;
}

struct tls_session *tls_start(struct tls *tls, const char *host)
{
    struct tls_session *session = mem_zeroed(sizeof *session);

    if (tls->reread)
        reload_files(tls);
    session->tls = tls;
    session->ssl = mem_checked(openssl.SSL_new(tls->context));
    session->in = mem_checked(openssl.BIO_new(openssl.BIO_s_mem()));
    session->out = mem_checked(openssl.BIO_new(openssl.BIO_s_mem()));
    openssl.SSL_set_bio(session->ssl, session->in, session->out);
    openssl.SSL_set_connect_state(session->ssl);
    openssl.SSL_set_cert_cb(session->ssl, on_certificate_request, session);
    if (!expect_name(session, tls->options.server_name ? tls->options.server_name : host))
        session->flaw = "there can be no certificate for a host of that name";
    return session;
}

void tls_end(struct tls_session *session)
{
    if (!session)
        return;
    session->tls->reread |= !session->received;
    openssl.SSL_free(session->ssl);
    free(session);
}

void tls_take(struct tls_session *session, const char *bytes, size_t size)
{
    if (!session->first)
        session->first = (unsigned char)*bytes;
    /* Memory takes all that is given, or the process is out of it. */
    if (openssl.BIO_write(session->in, bytes, (int)size) != (int)size)
        mem_refused();
}

/* Fills "fault" with why the server's certificate was refused. verdict: X509_V_ERR_…. */
static void explain_certificate(const struct tls_session *session, long verdict, char *fault,
                                size_t size)
{
    switch (verdict) {
    case X509_V_ERR_HOSTNAME_MISMATCH:
    case X509_V_ERR_IP_ADDRESS_MISMATCH:
        snprintf(fault, size, "TLS: the certificate there is not for %s", session->name);
        break;
    case X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT:
    case X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN:
    case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT:
    case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY:
    case X509_V_ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE:
        snprintf(fault, size, "TLS: the certificate there is not trusted: %s (see tls-ca)",
                 openssl.X509_verify_cert_error_string(verdict));
        break;
    case SUBJECT_ONLY:
        snprintf(fault, size,
                 "TLS: the certificate there names %s only in its subject (CN), which does not "
                 "count: it takes a subjectAltName",
                 session->name);
        break;
    default:
        snprintf(fault, size, "TLS: the certificate there is refused: %s",
                 openssl.X509_verify_cert_error_string(verdict));
    }
}

/* With TLS 1.3 a server judges our certificate when we are already done; its alert is lost when it
 * closes a connection that it has not read to the end. */
const char *tls_guess_refusal(const struct tls_session *session)
{
    if (session->received || !session->asked)
        return NULL;
    return session->tls->options.cert.path ? "it has asked for a certificate, and may not like ours"
                                           : "it has asked for a certificate (see tls-cert)";
}

bool tls_hears_plain(const struct tls_session *session)
{
    return session->first && (session->first < SSL3_RT_CHANGE_CIPHER_SPEC ||
                              session->first > SSL3_RT_APPLICATION_DATA);
}

/* Returns what the result of a call of OpenSSL means. TLS_FAILED: why is in "fault". */
static enum tls_state judge_result(struct tls_session *session, int result, char *fault,
                                   size_t size)
{
    switch (openssl.SSL_get_error(session->ssl, result)) {
    case SSL_ERROR_NONE:
    case SSL_ERROR_WANT_READ:
    case SSL_ERROR_WANT_WRITE: return TLS_GOING;
    case SSL_ERROR_ZERO_RETURN: return TLS_CLOSED;
    default: {
        long verdict = openssl.SSL_get_verify_result(session->ssl);
        /* The server's last word, "tlsv13 alert certificate required" for example. */
        bool is_alert = ERR_GET_REASON(openssl.ERR_peek_last_error()) > SSL_AD_REASON_OFFSET;
        if (verdict != X509_V_OK) {
            explain_certificate(session, verdict, fault, size);
        } else if (!session->first || tls_hears_plain(session)) {
            snprintf(fault, size, "TLS: the server there does not speak it");
        } else if (is_alert) {
            const char *text = openssl_reason();
            const char *word = strstr(text, "alert "), *guess = tls_guess_refusal(session);
            snprintf(fault, size, "TLS: the server says: %s%s%s",
                     word ? word + strlen("alert ") : text, guess ? "; " : "", guess ? guess : "");
        } else {
            snprintf(fault, size, "TLS: %s", openssl_reason());
        }
        return TLS_FAILED;
    }
    }
}

enum tls_state tls_handshake(struct tls_session *session, bool *done, char *fault, size_t size)
{
    int result;

    *done = false;
    if (session->flaw) {
        snprintf(fault, size, "TLS: %s", session->flaw);
        return TLS_FAILED;
    }
    do {
        openssl.ERR_clear_error();
        result = openssl.SSL_do_handshake(session->ssl);
    } while (openssl.SSL_get_error(session->ssl, result) == SSL_ERROR_WANT_RETRY_VERIFY);
    if (result != 1)
        return judge_result(session, result, fault, size);
    /* Where the policy allows ciphers that need no certificate, OpenSSL takes a server without
     * one. */
    bool shown = openssl.SSL_get0_peer_certificate(session->ssl) != NULL;
    long verdict = openssl.SSL_get_verify_result(session->ssl);
    if (!shown)
        snprintf(fault, size, "TLS: the server shows no certificate");
    else if (verdict != X509_V_OK)
        explain_certificate(session, verdict, fault, size);
    *done = shown && verdict == X509_V_OK;
    return *done ? TLS_GOING : TLS_FAILED;
}

#define DAY_S        86400
#define RENEWAL_DAYS 14

/* Notes the certificate in *expiry if it ought to be renewed before the one that is noted there. */
static void note_expiry(const X509 *certificate, const char *whose, struct tls_expiry *expiry)
{
    const ASN1_TIME *begin = openssl.X509_get0_notBefore(certificate);
    const ASN1_TIME *end = openssl.X509_get0_notAfter(certificate);
    int days, seconds;

    if (openssl.ASN1_TIME_diff(&days, &seconds, begin, end) != 1)
        return;
    int64_t quarter_s = ((int64_t)days * DAY_S + seconds) / 4, weeks_s = RENEWAL_DAYS * DAY_S;
    if (openssl.ASN1_TIME_diff(&days, &seconds, NULL, end) != 1) /* NULL: from now on */
        return;
    int64_t left_s = (int64_t)days * DAY_S + seconds,
            spare_s = left_s - (quarter_s < weeks_s ? quarter_s : weeks_s);
    if (!expiry->whose || spare_s < expiry->spare_s)
        *expiry = (struct tls_expiry){.whose = whose, .left_s = left_s, .spare_s = spare_s};
}

void tls_session_expiry(const struct tls_session *session, struct tls_expiry *expiry)
{
    const OPENSSL_STACK *chain =
        (const OPENSSL_STACK *)openssl.SSL_get0_verified_chain(session->ssl);
    const X509 *own = openssl.SSL_get_certificate(session->ssl);

    for (int i = 0; i < openssl.OPENSSL_sk_num(chain); i++)
        note_expiry(openssl.OPENSSL_sk_value(chain, i),
                    i > 0 ? "the certificate of its authority" : "the server's certificate",
                    expiry);
    if (own)
        note_expiry(own, "the certificate of tls-cert", expiry);
}

enum tls_state tls_read(struct tls_session *session, char *bytes, size_t size, size_t *got,
                        char *fault, size_t fault_size)
{
    openssl.ERR_clear_error();
    int result = openssl.SSL_read(session->ssl, bytes, (int)size);

    *got = result > 0 ? (size_t)result : 0;
    session->received |= result > 0;
    return result > 0 ? TLS_GOING : judge_result(session, result, fault, fault_size);
}

bool tls_write(struct tls_session *session, const char *bytes, size_t size)
{
    openssl.ERR_clear_error();
    return openssl.SSL_write(session->ssl, bytes, (int)size) == (int)size;
}

size_t tls_give(struct tls_session *session, char *bytes, size_t size)
{
    int got = openssl.BIO_read(session->out, bytes, (int)size);
    return got > 0 ? (size_t)got : 0;
}
