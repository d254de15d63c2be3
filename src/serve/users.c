#include "serve/users.h"

#include <crypt.h>
#include <stdio.h>

#include "base/decimal.h"
#include "base/mem.h"

#define HASH_LENGTH 60 /* "$2y$10$" and 53 characters */
#define COST_LEAST  4
#define COST_MOST   14 /* takes a second, in which nothing else is served */

struct user {
    char *name;
    char hash[HASH_LENGTH + 1];
    char *known; /* the password, once it was right; NULL before */
};

struct users {
    struct user *all;
    size_t count;
    struct crypt_data scratch;
};

/* -- reading ----------------------------------------------------------------------------------- */

/* Returns why users cannot be checked by this hash, a constant, or NULL. It must be "$2y$", the
 * cost in two digits, "$", and salt and hash. A cost above the greatest would keep the server busy
 * for seconds. */
static const char *hash_fault(const char *hash, size_t length)
{
    static const char digits[] = "./0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
    int64_t cost;

    if (length != HASH_LENGTH || hash[0] != '$' || hash[1] != '2' || !strchr("aby", hash[2]) ||
        hash[3] != '$' || hash[6] != '$' || !decimal_read(hash + 4, 2, 99, &cost) ||
        strspn(hash + 7, digits) != HASH_LENGTH - 7)
        return "not a bcrypt hash (htpasswd -B makes one)";
    if (cost < COST_LEAST || cost > COST_MOST)
        return "the cost of its hash is not from 4 to 14";
    return NULL;
}

/* The user of that name; NULL: there is none. */
static struct user *find_user(const struct users *users, const char *name, size_t length)
{
    for (size_t i = 0; i < users->count; i++)
        if (strlen(users->all[i].name) == length && memcmp(users->all[i].name, name, length) == 0)
            return &users->all[i];
    return NULL;
}

/* Takes a line of the file of users, USER:HASH, into "users". Returns false, with what is wrong in
 * "fault", if the line has another form, or tells of a user of an earlier line. */
static bool take_line(struct users *users, const char *line, size_t length, char *fault,
                      size_t size)
{
    const char *colon = memchr(line, ':', length), *why;

    if (!colon || colon == line) {
        snprintf(fault, size, "not USER:HASH");
        return false;
    }
    size_t named = (size_t)(colon - line);
    if ((why = hash_fault(colon + 1, length - named - 1))) {
        snprintf(fault, size, "%s", why);
        return false;
    }
    if (find_user(users, line, named)) {
        snprintf(fault, size, "its user stands in an earlier line");
        return false;
    }
    struct user *user = MEM_APPEND(users->all, users->count);
    *user = (struct user){.name = mem_checked(strndup(line, named))};
    memcpy(user->hash, colon + 1, HASH_LENGTH);
    return true;
}

struct users *users_parse(const char *text, size_t text_length, unsigned *line, char *fault,
                          size_t size)
{
    struct users *users = mem_zeroed(sizeof *users);
    bool cut = strlen(text) < text_length;

    *line = 0;
    while (*text && !cut) {
        size_t whole = strcspn(text, "\n");
        size_t length = whole > 0 && text[whole - 1] == '\r' ? whole - 1 : whole;
        ++*line;
        if (length > 0 && *text != '#' && !take_line(users, text, length, fault, size)) {
            users_free(users);
            return NULL;
        }
        text += whole + (text[whole] == '\n');
    }
    if (users->count > 0)
        return users;
    *line = 0;
    snprintf(fault, size, cut ? "it has a NUL byte" : "it has no user");
    users_free(users);
    return NULL;
}

/* -- asking ------------------------------------------------------------------------------------ */

/* Whether two texts are the same. It takes as long for any two of the same length, so that the
 * time does not tell how many bytes are right. */
static bool is_same(const char *one, const char *other)
{
    size_t length = strlen(one);
    unsigned differs = 0;

    if (strlen(other) != length)
        return false;
    for (size_t i = 0; i < length; i++)
        differs |= (unsigned char)one[i] ^ (unsigned char)other[i];
    return differs == 0;
}

bool users_know(const struct users *users, const char *name, const char *password)
{
    const struct user *user = find_user(users, name, strlen(name));

    return user && user->known && is_same(user->known, password);
}

bool users_admit(struct users *users, const char *name, const char *password)
{
    struct user *user = find_user(users, name, strlen(name));
    const char *hash = user ? user->hash : users->all->hash; /* any will do: it takes the time */

    if (users_know(users, name, password))
        return true;
    const char *made = crypt_r(password, hash, &users->scratch);
    bool right = user && made && is_same(hash, made);
    if (right) {
        free(user->known);
        user->known = mem_strdup(password);
    }
    return right;
}

void users_free(struct users *users)
{
    if (!users)
        return;
    for (size_t i = 0; i < users->count; i++) {
        free(users->all[i].name);
        free(users->all[i].known);
    }
    free(users->all);
    free(users);
}
