/* Parts of addresses: the functions with which the kinds of stores parse and print them.
 *
 * The functions that parse work in place, in url->text, and return NULL or what is wrong with
 * the address. Faults are constants that follow "the URL": nothing of the text, which may hold a
 * password, gets into a message. */
#pragma once

#include "store/url.h"

/* Takes the whole of "text" as a number from "least" to "most" into *out; if it is not one, returns
 * "fault". */
const char *url_take_number(const char *text, int least, int most, int *out, const char *fault);

/* Percent-decodes what stands up to "end", which is the last byte of the text or a separator
 * that is done with. */
const char *url_decode(char *start, const char *end);

/* Takes USER:PASS@ off *rest, if there. It ends at the last '@' before the path, as passwords
 * are pasted with theirs not encoded. USER@ has an empty password, which comes from elsewhere. */
const char *url_take_userinfo(struct url *url, char **rest);

/* Takes USER:PASS@ off *rest, and cuts it at the first '/', where the host ends: *path is what
 * follows that, NULL if there is none. Refuses a query. */
const char *url_take_authority(struct url *url, char **rest, char **path);

/* Takes HOST[:PORT], up to the end of "text", as the URL's next host. */
const char *url_take_host(struct url *url, char *text, int default_port);

/* Takes HOST[:PORT][,HOST[:PORT]...], up to the end of "text". */
const char *url_take_hosts(struct url *url, char *text, int default_port);

/* Takes /PATH, up to the end of "text" or a '?'; *query is what follows that, NULL if there is
 * none. The path fits into the address of a Unix socket. */
const char *url_take_path(struct url *url, char *text, char **query);

/* Appends the URL's hosts with their ports to "out", which has "size" bytes in all. */
void url_append_hosts(const struct url *url, char *out, size_t size);
/* Appends text to "out" in the same way, with %XX for the characters in "special" and for what no
 * URL may have. */
void url_append_encoded(const char *text, const char *special, char *out, size_t size);
