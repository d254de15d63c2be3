/* The name service: where the server of a life has a name, it is looked up there. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct addrinfo;

#define NAME_OF_SERVER "db"
/* No server is at an address from this number on; from the next one on none even refuses. */
#define NOWHERE        100
#define NOWHERE_SILENT 110

/* The names of this life. */
extern struct naming {
    bool used;
    int64_t takes;      /* ns, a look-up at most */
    int nowhere;        /* the address that comes before the server's; 0: none does */
    int server;         /* where the name leads */
    int64_t away_until; /* the name service is */
    enum { NAMES_FAIL, NAMES_UNKNOWN, NAMES_SILENT, NAMES_AWAY } away;
} naming;

/* In a part of the plan of its own. */
void names_choose(void);
/* Whether a look-up takes so long that it tells in the time that rlock has. */
bool names_are_slow(void);
/* As getaddrinfo(); it is answered at *until. */
int names_look_up(const char *host, const char *service, struct addrinfo **found, int64_t *until);
