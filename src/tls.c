/* TLS by OpenSSL. */
#include "tls.h"
#include "mem.h"

#include <arpa/inet.h>
#include <dlfcn.h>
#include <netinet/in.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <stdio.h>
#include <sys/stat.h>

#ifndef OPENSSL_SONAME /* configure finds it out */
#define OPENSSL_SONAME "libssl.so.3"
#endif

/* What is used of it. Macros of OpenSSL's headers that call others are not to be used. */
#define FUNCTIONS(each)                                                                            \
    each(BIO_ctrl) each(BIO_new) each(BIO_read) each(BIO_s_mem) each(BIO_write)                    \
    each(ERR_clear_error) each(ERR_peek_last_error) each(ERR_reason_error_string)                  \
    each(OPENSSL_init_ssl) each(SSL_CTX_check_private_key) each(SSL_CTX_ctrl) each(SSL_CTX_free)   \
    each(SSL_CTX_load_verify_locations) each(SSL_CTX_new)                                          \
    each(SSL_CTX_set_default_passwd_cb) each(SSL_CTX_set_default_verify_paths)                     \
    each(SSL_CTX_set_verify) each(SSL_CTX_use_PrivateKey_file)                                     \
    each(SSL_CTX_use_certificate_chain_file) each(SSL_ctrl) each(SSL_do_handshake) each(SSL_free)  \
    each(SSL_get0_param) each(SSL_get_error) each(SSL_get_verify_result) each(SSL_new)             \
    each(SSL_read) each(SSL_set_bio) each(SSL_set_connect_state) each(SSL_write)                   \
    each(TLS_client_method) each(X509_VERIFY_PARAM_set1_host)                                      \
    each(X509_VERIFY_PARAM_set1_ip_asc) each(X509_VERIFY_PARAM_set_hostflags)                      \
    each(X509_verify_cert_error_string)

#define DECLARE(name) __typeof__(name) *name;
struct library {
    FUNCTIONS(DECLARE)
};

struct tls {
    struct library library;
    SSL_CTX *context;
    const char *server_name;
};

struct tls_session {
    const struct library *library;
    SSL *ssl;
    BIO *in, *out; /* belong to ssl */
};

static bool load(struct library *library, char *fault, size_t size)
{
    static const struct {
        const char *name;
        size_t place;
    } functions[] = {
#define PLACE(name) {#name, offsetof(struct library, name)},
        FUNCTIONS(PLACE)};
    /* Never closed: it is needed until the end. It brings libcrypto, where dlsym() looks as well. */
    void *handle = dlopen(OPENSSL_SONAME, RTLD_LAZY | RTLD_LOCAL);

    for (size_t i = 0; handle && i < sizeof functions / sizeof *functions; i++) {
        void *address = dlsym(handle, functions[i].name);
        if (!address)
            handle = NULL;
        memcpy((char *)library + functions[i].place, &address, sizeof address);
    }
    if (!handle)
        snprintf(fault, size, "TLS needs the library OpenSSL: %s", dlerror());
    return handle != NULL;
}

static const char *reason(const struct library *library)
{
    const char *text = library->ERR_reason_error_string(library->ERR_peek_last_error());
    return text ? text : "unknown reason";
}

/* A key with a passphrase would have OpenSSL ask for it on the terminal. */
static int no_passphrase(char *buffer, int size, int writing, void *arg)
{
    (void)buffer;
    (void)size;
    (void)writing;
    (void)arg;
    return -1;
}

static bool is_directory(const char *path)
{
    struct stat status;
    return stat(path, &status) == 0 && S_ISDIR(status.st_mode);
}

static bool take_ca(struct tls *tls, const char *ca)
{
    const struct library *library = &tls->library;

    if (!ca)
        return library->SSL_CTX_set_default_verify_paths(tls->context) == 1;
    bool directory = is_directory(ca);
    return library->SSL_CTX_load_verify_locations(tls->context, directory ? NULL : ca,
                                                  directory ? ca : NULL) == 1;
}

static bool configure(struct tls *tls, const struct tls_options *options, char *fault, size_t size)
{
    const struct library *library = &tls->library;
    const char *key = options->key ? options->key : options->cert;
    const char *what = NULL, *file = "";

    library->SSL_CTX_ctrl(tls->context, SSL_CTRL_SET_MIN_PROTO_VERSION, TLS1_2_VERSION, NULL);
    library->SSL_CTX_set_verify(tls->context, SSL_VERIFY_PEER, NULL);
    library->SSL_CTX_set_default_passwd_cb(tls->context, no_passphrase);
    if (!take_ca(tls, options->ca)) {
        what = "no certificates to trust can be read from";
        file = options->ca ? options->ca : "the system";
    } else if (options->cert &&
               library->SSL_CTX_use_certificate_chain_file(tls->context, options->cert) != 1) {
        what = "no certificate can be read from";
        file = options->cert;
    } else if (key && library->SSL_CTX_use_PrivateKey_file(tls->context, key,
                                                           SSL_FILETYPE_PEM) != 1) {
        what = "no private key without a passphrase can be read from";
        file = key;
    } else if (key && library->SSL_CTX_check_private_key(tls->context) != 1) {
        what = "the certificate has another key than";
        file = key;
    }
    if (what)
        snprintf(fault, size, "%s %.200s: %s", what, file, reason(library));
    return !what;
}

struct tls *tls_new(const struct tls_options *options, char *fault, size_t size)
{
    struct tls *tls = mem_zeroed(sizeof *tls);

    tls->server_name = options->server_name;
    if (!load(&tls->library, fault, size)) {
        free(tls);
        return NULL;
    }
    /* The system's openssl.cnf is for servers and tools; reading it takes as long as the rest. */
    tls->library.OPENSSL_init_ssl(OPENSSL_INIT_NO_LOAD_CONFIG | OPENSSL_INIT_NO_ATEXIT, NULL);
    tls->library.ERR_clear_error();
    tls->context = mem_checked(tls->library.SSL_CTX_new(tls->library.TLS_client_method()));
    if (configure(tls, options, fault, size))
        return tls;
    tls_free(tls);
    return NULL;
}

void tls_free(struct tls *tls)
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
    const struct library *library = session->library;
    X509_VERIFY_PARAM *expected = library->SSL_get0_param(session->ssl);

    if (is_numeric(name)) {
        library->X509_VERIFY_PARAM_set1_ip_asc(expected, name);
        return;
    }
    library->X509_VERIFY_PARAM_set_hostflags(expected, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
    library->X509_VERIFY_PARAM_set1_host(expected, name, 0);
    library->SSL_ctrl(session->ssl, SSL_CTRL_SET_TLSEXT_HOSTNAME, TLSEXT_NAMETYPE_host_name,
                      (void *)(uintptr_t)name);
}

struct tls_session *tls_start(struct tls *tls, const char *host)
{
    const struct library *library = &tls->library;
    struct tls_session *session = mem_zeroed(sizeof *session);

    session->library = library;
    session->ssl = mem_checked(library->SSL_new(tls->context));
    session->in = mem_checked(library->BIO_new(library->BIO_s_mem()));
    session->out = mem_checked(library->BIO_new(library->BIO_s_mem()));
    library->SSL_set_bio(session->ssl, session->in, session->out);
    library->SSL_set_connect_state(session->ssl);
    expect(session, tls->server_name ? tls->server_name : host);
    return session;
}

void tls_end(struct tls_session *session)
{
    if (!session)
        return;
    session->library->SSL_free(session->ssl);
    free(session);
}

void tls_take(struct tls_session *session, const char *bytes, size_t size)
{
    /* Memory takes all that is given, or the process is out of it. */
    if (session->library->BIO_write(session->in, bytes, (int)size) != (int)size)
        abort();
}

/* What a call that returned "result" means. */
static enum tls_state judge(struct tls_session *session, int result, char *fault, size_t size)
{
    const struct library *library = session->library;

    switch (library->SSL_get_error(session->ssl, result)) {
    case SSL_ERROR_NONE:
    case SSL_ERROR_WANT_READ:
    case SSL_ERROR_WANT_WRITE: return TLS_GOING;
    case SSL_ERROR_ZERO_RETURN: return TLS_CLOSED;
    default: break;
    }
    long verdict = library->SSL_get_verify_result(session->ssl);
    if (verdict != X509_V_OK)
        snprintf(fault, size, "TLS: the server's certificate is refused: %s",
                 library->X509_verify_cert_error_string(verdict));
    else
        snprintf(fault, size, "TLS: %s", reason(library));
    return TLS_FAILED;
}

enum tls_state tls_shake_hands(struct tls_session *session, bool *done, char *fault, size_t size)
{
    session->library->ERR_clear_error();
    int result = session->library->SSL_do_handshake(session->ssl);

    *done = result == 1;
    return *done ? TLS_GOING : judge(session, result, fault, size);
}

enum tls_state tls_read(struct tls_session *session, char *bytes, size_t size, size_t *got,
                        char *fault, size_t fault_size)
{
    session->library->ERR_clear_error();
    int result = session->library->SSL_read(session->ssl, bytes, (int)size);

    *got = result > 0 ? (size_t)result : 0;
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
