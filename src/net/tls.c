/* TLS by OpenSSL. */
#include "net/tls.h"

#include <stdio.h>

#include "base/mem.h"
#include "net/host.h"
#include "net/tls_context.h"

struct tls {
    struct tls_library library;
    struct tls_options options;
    struct tls_trust trust;
    SSL_CTX *context;
    bool reread; /* before the next session: one came to nothing, and the files may have changed */
};

struct tls_session {
    struct tls *tls;
    const struct tls_library *library;
    SSL *ssl;
    BIO *in, *out;    /* belong to ssl */
    char name[256];   /* whose certificate it has to be */
    const char *flaw; /* why no peer can be verified; NULL: they can */
    int first;        /* byte that came, 0: none yet */
    bool asked;       /* for our certificate */
    bool received;    /* something that was encrypted came in whole */
};

static const char *reason(const struct tls_library *library)
{
    const char *text = library->ERR_reason_error_string(library->ERR_peek_last_error());
    return text ? text : "unknown reason";
}

/* Trusts and shows what is in the files now; where they make no sense, what was in them before. */
static void renew(struct tls *tls)
{
    SSL_CTX *context = tls_context_again(&tls->library, &tls->options, &tls->trust);

    tls->reread = false;
    if (!context)
        return;
    tls->library.SSL_CTX_free(tls->context);
    tls->context = context;
}

/* Returns the status that a failure means, or 0. */
static int begin(struct tls *tls, char *fault, size_t size)
{
    const struct tls_options *options = &tls->options;
    int status = options->policy_status;

    if (!tls_library_load(&tls->library, fault, size))
        return options->library_status;
    if (!tls_context_load_policy(&tls->library, options->cert.path != NULL, fault, size))
        return options->policy_status;
    tls->context = tls_context_new(&tls->library, options, &tls->trust, &status, fault, size);
    return tls->context ? 0 : status;
}

struct tls *tls_new(const struct tls_options *options, char *fault, size_t size)
{
    struct tls *tls = mem_zeroed(sizeof *tls);

    tls->options = *options;
    int status = begin(tls, fault, size);
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
    tls->library.SSL_CTX_free(tls->context);
    free(tls);
}

/* Whose certificate it has to be. Nothing here may be left out: without a name OpenSSL takes every
 * certificate. */
static bool expect(struct tls_session *session, const char *name)
{
    const struct tls_library *library = session->library;
    X509_VERIFY_PARAM *expected = library->SSL_get0_param(session->ssl);
    size_t length = strcspn(name, "%"); /* the zone of an address is this host's business */

    if (length > 0 && name[length - 1] == '.') /* of a name that is complete */
        length--;
    if (length >= sizeof session->name)
        return false;
    memcpy(session->name, name, length);
    if (library->SSL_set_ex_data(session->ssl, TLS_TRUST_HOST, session->name) != 1)
        return false;
    if (host_is_address(session->name)) /* which is not sent as SNI (RFC 6066) */
        return library->X509_VERIFY_PARAM_set1_ip_asc(expected, session->name) == 1;
    library->X509_VERIFY_PARAM_set_hostflags(expected, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS |
                                                           X509_CHECK_FLAG_NEVER_CHECK_SUBJECT);
    return host_is_name(session->name) &&
           library->X509_VERIFY_PARAM_set1_host(expected, session->name, 0) == 1 &&
           library->SSL_ctrl(session->ssl, SSL_CTRL_SET_TLSEXT_HOSTNAME, TLSEXT_NAMETYPE_host_name,
                             session->name) == 1;
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

    if (tls->reread)
        renew(tls);
    session->tls = tls;
    session->library = library;
    session->ssl = mem_checked(library->SSL_new(tls->context));
    session->in = mem_checked(library->BIO_new(library->BIO_s_mem()));
    session->out = mem_checked(library->BIO_new(library->BIO_s_mem()));
    library->SSL_set_bio(session->ssl, session->in, session->out);
    library->SSL_set_connect_state(session->ssl);
    library->SSL_set_cert_cb(session->ssl, asked, session);
    if (!expect(session, tls->options.server_name ? tls->options.server_name : host))
        session->flaw = "there can be no certificate for a host of that name";
    return session;
}

void tls_end(struct tls_session *session)
{
    if (!session)
        return;
    session->tls->reread |= !session->received;
    session->library->SSL_free(session->ssl);
    free(session);
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
        snprintf(fault, size, "TLS: the certificate there is not trusted: %s (see tls-ca)",
                 session->library->X509_verify_cert_error_string(verdict));
        break;
    case TLS_TRUST_SUBJECT_ONLY:
        snprintf(fault, size,
                 "TLS: the certificate there names %.60s only in its subject (CN), which does not "
                 "count: it takes a subjectAltName",
                 session->name);
        break;
    default:
        snprintf(fault, size, "TLS: the certificate there is refused: %s",
                 session->library->X509_verify_cert_error_string(verdict));
    }
}

/* With TLS 1.3 a server judges our certificate when we are already done; its alert is lost
 * when it closes a connection that it has not read to the end. */
const char *tls_guess_refusal(const struct tls_session *session)
{
    if (session->received || !session->asked)
        return NULL;
    return session->tls->options.cert.path ? "it has asked for a certificate, and may not like ours"
                                           : "it has asked for a certificate (see tls-cert)";
}

/* "tlsv13 alert certificate required" */
static void explain_alert(const struct tls_session *session, const char *text, char *fault,
                          size_t size)
{
    const char *word = strstr(text, "alert "), *guess = tls_guess_refusal(session);

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
        snprintf(fault, size, "TLS: the server there does not speak it");
    else if (alert)
        explain_alert(session, reason(library), fault, size);
    else
        snprintf(fault, size, "TLS: %s", reason(library));
}

/* Tells what a call that returned "result" means. */
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

/* Where the policy allows ciphers that need no certificate, OpenSSL takes a server without one. */
static bool is_verified(const struct tls_session *session, char *fault, size_t size)
{
    const struct tls_library *library = session->library;
    bool shown = library->SSL_get0_peer_certificate(session->ssl) != NULL;
    long verdict = library->SSL_get_verify_result(session->ssl);

    if (!shown)
        snprintf(fault, size, "TLS: the server shows no certificate");
    else if (verdict != X509_V_OK)
        explain_certificate(session, verdict, fault, size);
    return shown && verdict == X509_V_OK;
}

enum tls_state tls_handshake(struct tls_session *session, bool *done, char *fault, size_t size)
{
    const struct tls_library *library = session->library;
    int result;

    *done = false;
    if (session->flaw) {
        snprintf(fault, size, "TLS: %s", session->flaw);
        return TLS_FAILED;
    }
    do {
        library->ERR_clear_error();
        result = library->SSL_do_handshake(session->ssl);
    } while (library->SSL_get_error(session->ssl, result) == SSL_ERROR_WANT_RETRY_VERIFY);
    if (result != 1)
        return judge(session, result, fault, size);
    *done = is_verified(session, fault, size);
    return *done ? TLS_GOING : TLS_FAILED;
}

enum tls_state tls_read(struct tls_session *session, char *bytes, size_t size, size_t *got,
                        char *fault, size_t fault_size)
{
    session->library->ERR_clear_error();
    int result = session->library->SSL_read(session->ssl, bytes, (int)size);

    *got = result > 0 ? (size_t)result : 0;
    session->received |= result > 0;
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
