/* The certificates that this system trusts. */
#pragma once

/* The file that has all of them, wherever this distribution keeps it; NULL: it has none. */
const char *ca_bundle_find(void);
