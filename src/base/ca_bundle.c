/* Looks for the certificates of authorities in the places where Go does. */
#include "base/ca_bundle.h"

#include <stddef.h>
#include <unistd.h>

static const char *const places[] = {
    "/etc/ssl/certs/ca-certificates.crt",                /* Debian, Alpine, Arch, Gentoo */
    "/etc/pki/tls/certs/ca-bundle.crt",                  /* Fedora and its relatives */
    "/etc/ssl/ca-bundle.pem",                            /* SUSE */
    "/etc/pki/tls/cacert.pem",                           /* OpenELEC */
    "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem", /* newer Fedoras */
    "/etc/ssl/cert.pem",                                 /* Alpine, FreeBSD */
    "/usr/local/etc/ssl/cert.pem",                       /* FreeBSD */
    "/usr/local/share/certs/ca-root-nss.crt",            /* FreeBSD's package */
    NULL,
};

const char *ca_bundle_find(void)
{
    const char *const *place = places;

    while (*place && access(*place, R_OK) != 0)
        place++;
    return *place;
}
