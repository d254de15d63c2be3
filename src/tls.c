/* TLS by OpenSSL. */
#include "tls.h"
#include "mem.h"
#include "tls_trust.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>

struct tls {
    struct tls_library library;
    struct tls_options options;
    struct tls_trust trust;
    SSL_CTX *context;
    bool doubtful; /* a session came to nothing: the files may have changed */
};

struct tls_session {
    struct tls *tls;
    const struct tls_library *library;
    SSL *ssl;
    BIO *in, *out;  /* belong to ssl */
    char name[256]; /* whose certificate it has to be */
    int first;      /* byte that came, 0: none yet */
    bool asked;     /* for our certificate */
    bool heard;     /* something that was encrypted came in whole */
};

static const char *reason(const struct tls_library *library)
{
    const char *text = library->ERR_reason_error_string(library->ERR_peek_last_error());
    return text ? text : "unknown reason";
}

/* A key with a passphrase would have OpenSSL ask for it on the terminal. */
static int no_passphrase(char *buffer, int size, int writing, void *asked)
{
    (void)buffer;
    (void)size;
    (void)writing;
    *(bool *)asked = true;
    return -1;
}

/* NULL, or what is wrong with the key. */
static const char *take_key(struct tls *tls, const char *key)
{
    const struct tls_library *library = &tls->library;
    bool asked = false;

    library->SSL_CTX_set_default_passwd_cb(tls->context, no_passphrase);
    library->SSL_CTX_set_default_passwd_cb_userdata(tls->context, &asked);
    bool taken = library->SSL_CTX_use_PrivateKey_file(tls->context, key, SSL_FILETYPE_PEM) == 1;
    library->SSL_CTX_set_default_passwd_cb_userdata(tls->context, NULL);
    if (taken)
        return NULL;
    int why = ERR_GET_REASON(library->ERR_peek_error());
    return asked ? "a private key with a passphrase is not supported"
           : why == X509_R_KEY_VALUES_MISMATCH || why == X509_R_KEY_TYPE_MISMATCH
               ? "the private key is not that of the certificate"
               : "no private key can be read";
}

static const char *take_certificate(struct tls *tls, const char *cert)
{
    return tls->library.SSL_CTX_use_certificate_chain_file(tls->context, cert) == 1
               ? NULL
               : "no certificate can be read";
}

static bool configure(struct tls *tls, bool first, char *fault, size_t size)
{
    const struct tls_library *library = &tls->library;
    const struct tls_options *options = &tls->options;
    const char *file = options->ca ? options->ca : "the system", *wrong = NULL;

    library->ERR_clear_error();
    library->SSL_CTX_ctrl(tls->context, SSL_CTRL_SET_MIN_PROTO_VERSION, TLS1_2_VERSION, NULL);
    library->SSL_CTX_set_options(tls->context, SSL_OP_NO_RENEGOTIATION);
    library->SSL_CTX_set_verify(tls->context, SSL_VERIFY_PEER, NULL);
    if (!tls_trust_take(&tls->trust, library, tls->context, options->ca, first))
        wrong = "no certificates to trust can be read";
    else if (options->cert && !(wrong = take_certificate(tls, file = options->cert)))
        wrong = take_key(tls, file = options->key ? options->key : options->cert);
    if (wrong)
        snprintf(fault, size, "TLS: %s: %s", file, wrong);
    return !wrong;
}

/* Reads the files. Where that fails, what was read before stays. */
static bool read_files(struct tls *tls, char *fault, size_t size)
{
    const struct tls_library *library = &tls->library;
    SSL_CTX *before = tls->context;

    if (before)
        tls_trust_read(&tls->trust, before);
    struct tls_trust trusted = tls->trust;
    tls->context = mem_checked(library->SSL_CTX_new(library->TLS_client_method()));
    bool fine = configure(tls, !before, fault, size);
    library->SSL_CTX_free(fine ? before : tls->context);
    if (!fine) {
        tls->context = before;
        tls->trust = trusted;
    }
    tls->doubtful = false;
    return fine;
}

/* Without what a short run would pay for and not use: the system's openssl.cnf is for servers and tools; the texts
 * are of errors that are not those of TLS; the names of ciphers are only for keys with a passphrase. */
static void start_library(const struct tls *tls)
{
    uint64_t spared =
        OPENSSL_INIT_NO_LOAD_CONFIG | OPENSSL_INIT_NO_LOAD_CRYPTO_STRINGS | OPENSSL_INIT_NO_ATEXIT;

    if (!tls->options.cert)
        spared |= OPENSSL_INIT_NO_ADD_ALL_CIPHERS;
    tls->library.OPENSSL_init_ssl(spared, NULL);
}

struct tls *tls_new(const struct tls_options *options, char *fault, size_t size)
{
    struct tls *tls = mem_zeroed(sizeof *tls);

    tls->options = *options;
    if (tls_library_load(&tls->library, fault, size)) {
        start_library(tls);
        if (read_files(tls, fault, size))
            return tls;
    }
    free(tls);
    return NULL;
}

void tls_discard(struct tls *tls)
{
    if (!tls)
        return;
    tls->library.SSL_CTX_free(tls->context);
    free(tls);
}

static bool is_numeric(const char *host)
{
    struct in6_addr address;
    return inet_pton(AF_INET, host, &address) == 1 || inet_pton(AF_INET6, host, &address) == 1;
}

/* Whose certificate it has to be. A numeric address is not sent as SNI (RFC 6066). */
static void expect(struct tls_session *session, const char *name)
{
    const struct tls_library *library = session->library;
    X509_VERIFY_PARAM *expected = library->SSL_get0_param(session->ssl);
    size_t length = strcspn(name, "%"); /* the zone of an address is this host's business */

    if (length > 0 && name[length - 1] == '.') /* of a name that is complete */
        length--;
    snprintf(session->name, sizeof session->name, "%.*s", (int)length, name);
    if (is_numeric(session->name)) {
        library->X509_VERIFY_PARAM_set1_ip_asc(expected, session->name);
        return;
    }
    library->X509_VERIFY_PARAM_set_hostflags(expected, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
    library->X509_VERIFY_PARAM_set1_host(expected, session->name, 0);
    library->SSL_ctrl(session->ssl, SSL_CTRL_SET_TLSEXT_HOSTNAME, TLSEXT_NAMETYPE_host_name,
                      session->name);
}

/* The server asks for our certificate, whether there is one or not. */
static int asked(SSL *ssl, void *arg)
{
    struct tls_session *session = arg;

    (void)ssl;
    session->asked = true;
    return 1;
}

struct tls_session *tls_start(struct tls *tls, const char *host)
{
    const struct tls_library *library = &tls->library;
    struct tls_session *session = mem_zeroed(sizeof *session);
    char fault[256];

    if (tls->doubtful)
        read_files(tls, fault, sizeof fault);
    session->tls = tls;
    session->library = library;
    session->ssl = mem_checked(library->SSL_new(tls->context));
    session->in = mem_checked(library->BIO_new(library->BIO_s_mem()));
    session->out = mem_checked(library->BIO_new(library->BIO_s_mem()));
    library->SSL_set_bio(session->ssl, session->in, session->out);
    library->SSL_set_connect_state(session->ssl);
    library->SSL_set_cert_cb(session->ssl, asked, session);
    expect(session, tls->options.server_name ? tls->options.server_name : host);
    return session;
}

void tls_end(struct tls_session *session)
{
    if (!session)
        return;
    session->tls->doubtful |= !session->heard;
    session->library->SSL_free(session->ssl);
    free(session);
}

void tls_meanwhile(struct tls_session *session)
{
    tls_trust_read(&session->tls->trust, session->tls->context);
}

void tls_take(struct tls_session *session, const char *bytes, size_t size)
{
    if (!session->first)
        session->first = (unsigned char)*bytes;
    /* Memory takes all that is given, or the process is out of it. */
    if (session->library->BIO_write(session->in, bytes, (int)size) != (int)size)
        abort();
}

static void explain_certificate(const struct tls_session *session, long verdict, char *fault,
                                size_t size)
{
    switch (verdict) {
    case X509_V_ERR_HOSTNAME_MISMATCH:
    case X509_V_ERR_IP_ADDRESS_MISMATCH:
        snprintf(fault, size, "TLS: the certificate there is not for %.60s", session->name);
        break;
    case X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT:
    case X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN:
    case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT:
    case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY:
    case X509_V_ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE:
        snprintf(fault, size, "TLS: the certificate there is not trusted: %s (see --tls-ca)",
                 session->library->X509_verify_cert_error_string(verdict));
        break;
    case X509_V_ERR_APPLICATION_VERIFICATION:
        snprintf(fault, size, "TLS: %s: no certificates to trust can be read",
                 session->tls->options.ca);
        break;
    default:
        snprintf(fault, size, "TLS: the certificate there is refused: %s",
                 session->library->X509_verify_cert_error_string(verdict));
    }
}

/* With TLS 1.3 a server judges our certificate when we are already done; what it says then is lost when it
 * closes a connection that it has not read to the end. */
const char *tls_suspicion(const struct tls_session *session)
{
    if (session->heard || !session->asked)
        return NULL;
    return session->tls->options.cert ? "it has asked for a certificate, and may not like ours"
                                      : "it has asked for a certificate (--tls-cert)";
}

/* "tlsv13 alert certificate required" */
static void explain_alert(const struct tls_session *session, const char *text, char *fault,
                          size_t size)
{
    const char *word = strstr(text, "alert "), *guess = tls_suspicion(session);

    snprintf(fault, size, "TLS: the server says: %s%s%s", word ? word + strlen("alert ") : text,
             guess ? "; " : "", guess ? guess : "");
}

static void explain(const struct tls_session *session, char *fault, size_t size)
{
    const struct tls_library *library = session->library;
    long verdict = library->SSL_get_verify_result(session->ssl);
    bool alert = ERR_GET_REASON(library->ERR_peek_last_error()) > SSL_AD_REASON_OFFSET;

    if (verdict != X509_V_OK)
        explain_certificate(session, verdict, fault, size);
    else if (session->first < SSL3_RT_CHANGE_CIPHER_SPEC ||
             session->first > SSL3_RT_APPLICATION_DATA)
        snprintf(fault, size, "TLS: what answers there does not speak it");
    else if (alert)
        explain_alert(session, reason(library), fault, size);
    else
        snprintf(fault, size, "TLS: %s", reason(library));
}

/* What a call that returned "result" means. */
static enum tls_state judge(struct tls_session *session, int result, char *fault, size_t size)
{
    switch (session->library->SSL_get_error(session->ssl, result)) {
    case SSL_ERROR_NONE:
    case SSL_ERROR_WANT_READ:
    case SSL_ERROR_WANT_WRITE: return TLS_GOING;
    case SSL_ERROR_ZERO_RETURN: return TLS_CLOSED;
    default: explain(session, fault, size); return TLS_FAILED;
    }
}

enum tls_state tls_shake_hands(struct tls_session *session, bool *done, char *fault, size_t size)
{
    const struct tls_library *library = session->library;
    int result;

    do {
        library->ERR_clear_error();
        result = library->SSL_do_handshake(session->ssl);
    } while (library->SSL_get_error(session->ssl, result) == SSL_ERROR_WANT_RETRY_VERIFY);
    *done = result == 1 && library->SSL_get_verify_result(session->ssl) == X509_V_OK;
    if (result != 1)
        return judge(session, result, fault, size);
    if (!*done)
        explain(session, fault, size);
    return *done ? TLS_GOING : TLS_FAILED;
}

enum tls_state tls_read(struct tls_session *session, char *bytes, size_t size, size_t *got,
                        char *fault, size_t fault_size)
{
    session->library->ERR_clear_error();
    int result = session->library->SSL_read(session->ssl, bytes, (int)size);

    *got = result > 0 ? (size_t)result : 0;
    session->heard |= result > 0;
    return result > 0 ? TLS_GOING : judge(session, result, fault, fault_size);
}

bool tls_write(struct tls_session *session, const char *bytes, size_t size)
{
    session->library->ERR_clear_error();
    return session->library->SSL_write(session->ssl, bytes, (int)size) == (int)size;
}

size_t tls_give(struct tls_session *session, char *bytes, size_t size)
{
    int got = session->library->BIO_read(session->out, bytes, (int)size);
    return got > 0 ? (size_t)got : 0;
}
