/* The functions of GSSAPI that libpq calls, which is Kerberos. It asks first whether there are
 * credentials. */
#include "absent/absent.h"

#include <stddef.h>

#define GSS_S_UNAVAILABLE (16U << 16)
#define ABSENT_GSS(name)  ABSENT(unsigned, name, GSS_S_UNAVAILABLE)

ABSENT_GSS(gss_acquire_cred)
ABSENT_GSS(gss_delete_sec_context)
ABSENT_GSS(gss_display_status)
ABSENT_GSS(gss_import_name)
ABSENT_GSS(gss_init_sec_context)
ABSENT_GSS(gss_release_buffer)
ABSENT_GSS(gss_release_cred)
ABSENT_GSS(gss_release_name)
ABSENT_GSS(gss_unwrap)
ABSENT_GSS(gss_wrap)
ABSENT_GSS(gss_wrap_size_limit)

extern const void *GSS_C_NT_HOSTBASED_SERVICE;
const void *GSS_C_NT_HOSTBASED_SERVICE = NULL;
