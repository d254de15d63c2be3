/* shim_collate: LD_PRELOADed, it is a C library that sorts words the other way round, as one of
 * another version may sort them in another order. For the tests. */
#include <locale.h>
#include <string.h>

int strcoll(const char *one, const char *other)
{
    return strcmp(other, one);
}

int strcoll_l(const char *one, const char *other, locale_t locale)
{
    (void)locale;
    return strcmp(other, one);
}
