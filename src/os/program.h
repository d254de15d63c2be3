/* Programs of this package that are not in PATH. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* Finds the program "name" beside this one, as in a build directory or where both were copied to a
 * host, or else where it is installed. False if it is in neither place; "path" says then where it
 * would be installed. */
bool program_find(const char *name, char *path, size_t size);
