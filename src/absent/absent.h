/* In a static file, each function of a library that is missing is one of these. */
#pragma once

/* Its real arguments do not matter: it looks at none. */
#define ABSENT(type, name, value)                                                                  \
    type name(void);                                                                               \
    type name(void)                                                                                \
    {                                                                                              \
        return value;                                                                              \
    }
