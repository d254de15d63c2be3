/* What each function of a library is that a static file has not got. */
#ifndef RLOCK_ABSENT_ABSENT_H
#define RLOCK_ABSENT_ABSENT_H

/* Its real arguments do not matter: it looks at none. */
#define ABSENT(type, name, value) \
    type name(void);              \
    type name(void)               \
    {                             \
        return value;             \
    }

#endif
