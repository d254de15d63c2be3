/* Why a command that could not be executed is perhaps not what was meant. */
#pragma once

#include <stdbool.h>

/* Whether execvp() would find a file of that name. It reads directories. */
bool is_program(const char *command);

/* Prints a hint behind the message that a command was not found, or cannot be executed (status);
 * none if there is nothing to say. It reads files, so nothing may depend on its end. shell: the
 * words before a line for the shell. */
void not_executed_hint(int status, const char *command, const char *shell);
