/* The certificates that this system trusts. */
#ifndef RLOCK_BASE_CA_BUNDLE_H
#define RLOCK_BASE_CA_BUNDLE_H

/* The file that has all of them, wherever this distribution keeps it; NULL: it has none. */
const char *ca_bundle_find(void);

#endif
