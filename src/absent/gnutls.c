/* The functions of GnuTLS that libmicrohttpd calls. But for the first two, that is for a daemon
 * with TLS. */
#include "absent/absent.h"

#include <stddef.h>

#define ABSENT_TLS(name) ABSENT(int, name, -1)

ABSENT(int, gnutls_global_init, 0)
ABSENT(int, gnutls_global_deinit, 0)
/* A pointer to a function. */
extern void *(*gnutls_malloc)(size_t);
void *(*gnutls_malloc)(size_t) = NULL;
ABSENT(const char *, gnutls_strerror, "no GnuTLS in a static file")
ABSENT_TLS(gnutls_alpn_set_protocols)
ABSENT_TLS(gnutls_bye)
ABSENT_TLS(gnutls_certificate_allocate_credentials)
ABSENT_TLS(gnutls_certificate_free_credentials)
ABSENT_TLS(gnutls_certificate_server_set_request)
ABSENT_TLS(gnutls_certificate_set_dh_params)
ABSENT_TLS(gnutls_certificate_set_retrieve_function2)
ABSENT_TLS(gnutls_certificate_set_retrieve_function3)
ABSENT_TLS(gnutls_certificate_set_x509_key_mem)
ABSENT_TLS(gnutls_certificate_set_x509_key_mem2)
ABSENT_TLS(gnutls_certificate_set_x509_trust_mem)
ABSENT_TLS(gnutls_cipher_get)
ABSENT_TLS(gnutls_credentials_set)
ABSENT_TLS(gnutls_deinit)
ABSENT_TLS(gnutls_dh_params_deinit)
ABSENT_TLS(gnutls_dh_params_import_pkcs3)
ABSENT_TLS(gnutls_dh_params_init)
ABSENT_TLS(gnutls_handshake)
ABSENT_TLS(gnutls_init)
ABSENT_TLS(gnutls_priority_deinit)
ABSENT_TLS(gnutls_priority_init)
ABSENT_TLS(gnutls_priority_init2)
ABSENT_TLS(gnutls_priority_set)
ABSENT_TLS(gnutls_protocol_get_version)
ABSENT_TLS(gnutls_psk_allocate_server_credentials)
ABSENT_TLS(gnutls_psk_free_server_credentials)
ABSENT_TLS(gnutls_psk_set_server_credentials_function)
ABSENT_TLS(gnutls_record_check_pending)
ABSENT_TLS(gnutls_record_get_direction)
ABSENT_TLS(gnutls_record_recv)
ABSENT_TLS(gnutls_record_send)
ABSENT_TLS(gnutls_session_get_ptr)
ABSENT_TLS(gnutls_session_set_ptr)
ABSENT_TLS(gnutls_transport_set_int2)
