/* The functions of OpenSSL that tls.c uses, loaded when needed: linked, the library would cost a
 * plain `rlock run` almost half of its time again. The program `libraries` of the build is linked
 * with it, so that compiler and linker find a function that is missing, or has another type. */
#pragma once

#include <openssl/conf.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <stdbool.h>

/* Macros of OpenSSL's headers that call others are not to be used. */
/* clang-format off */
#define TLS_LIBRARY_FUNCTIONS(each)                                                                \
    each(ASN1_TIME_diff) each(BIO_free) each(BIO_new) each(BIO_new_mem_buf) each(BIO_read)         \
    each(BIO_s_mem) each(BIO_write) each(CONF_get1_default_config_file) each(CRYPTO_free)          \
    each(ERR_clear_error) each(ERR_peek_error_data) each(ERR_peek_last_error)                      \
    each(ERR_reason_error_string) each(EVP_PKEY_free) each(OPENSSL_INIT_free)                      \
    each(OPENSSL_INIT_new) each(OPENSSL_INIT_set_config_file_flags) each(OPENSSL_init_ssl)         \
    each(OPENSSL_sk_num) each(OPENSSL_sk_value) each(PEM_read_bio_PrivateKey)                      \
    each(PEM_read_bio_X509_AUX) each(SSL_CTX_check_private_key) each(SSL_CTX_config)               \
    each(SSL_CTX_ctrl) each(SSL_CTX_free) each(SSL_CTX_get0_param) each(SSL_CTX_get_cert_store)    \
    each(SSL_CTX_load_verify_locations) each(SSL_CTX_new) each(SSL_CTX_set_cert_verify_callback)   \
    each(SSL_CTX_set_default_verify_dir) each(SSL_CTX_set_default_verify_file)                     \
    each(SSL_CTX_set_options) each(SSL_CTX_set_verify) each(SSL_CTX_use_PrivateKey)                \
    each(SSL_CTX_use_certificate) each(SSL_ctrl) each(SSL_do_handshake) each(SSL_free)             \
    each(SSL_get0_param) each(SSL_get0_peer_certificate) each(SSL_get0_verified_chain)             \
    each(SSL_get_SSL_CTX) each(SSL_get_certificate) each(SSL_get_error) each(SSL_get_ex_data)      \
    each(SSL_get_ex_data_X509_STORE_CTX_idx) each(SSL_get_verify_result) each(SSL_new)             \
    each(SSL_read) each(SSL_set_bio) each(SSL_set_cert_cb) each(SSL_set_connect_state)             \
    each(SSL_set_ex_data) each(SSL_write) each(TLS_method) each(X509_STORE_CTX_get0_cert)          \
    each(X509_STORE_CTX_get_error) each(X509_STORE_CTX_get_ex_data)                                \
    each(X509_STORE_CTX_set_error) each(X509_STORE_add_cert) each(X509_VERIFY_PARAM_set1_host)     \
    each(X509_VERIFY_PARAM_set1_ip_asc) each(X509_VERIFY_PARAM_set_flags)                          \
    each(X509_VERIFY_PARAM_set_hostflags) each(X509_check_host) each(X509_free)                    \
    each(X509_get0_notAfter) each(X509_get0_notBefore) each(X509_verify_cert)                      \
    each(X509_verify_cert_error_string)
/* clang-format on */

/* NOLINTNEXTLINE(bugprone-macro-parentheses) */
#define TLS_LIBRARY_DECLARE(name) __typeof__(name) *name;
struct tls_library {
    TLS_LIBRARY_FUNCTIONS(TLS_LIBRARY_DECLARE)
};

/* False with a message in "fault" where there is none that fits. It is never unloaded. */
bool tls_library_load(struct tls_library *library, char *fault, size_t size);
