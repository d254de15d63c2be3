/* The functions of LDAP that libpq calls, for a service whose parameters are in a directory. */
#include "absent/absent.h"

#include <stddef.h>

/* Without a handle nothing else is called. */
ABSENT(void *, ldap_init, NULL)
ABSENT(int, ldap_count_entries, -1)
ABSENT(const char *, ldap_err2string, "no LDAP in a static file")
ABSENT(void *, ldap_first_entry, NULL)
ABSENT(void *, ldap_get_values_len, NULL)
ABSENT(int, ldap_msgfree, -1)
ABSENT(int, ldap_result, -1)
ABSENT(int, ldap_search_st, -1)
ABSENT(int, ldap_set_option, -1)
ABSENT(int, ldap_simple_bind, -1)
ABSENT(int, ldap_unbind, -1)
ABSENT(int, ldap_value_free_len, -1)
