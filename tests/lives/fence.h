/* Commands "rlock fence", which compare their tokens with that of one file, and run a command while
 * they have it locked. */
#pragma once

/* Chooses whether there is such a file, and who comes with which token, when. */
void fence_choose(void);
/* When nothing is left to happen. */
void fence_end(void);
