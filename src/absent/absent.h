/* In a static file, each function of a library that is missing is one of these. */
#pragma once

/* A function that looks at none of its arguments, so that their real types do not matter. */
#define ABSENT(type, name, value)                                                                  \
    type name(void);                                                                               \
    type name(void)                                                                                \
    {                                                                                              \
        return value;                                                                              \
    }
