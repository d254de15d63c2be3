/* What is said about settings, and where: collected from options, environment and files. */
#ifndef RLOCK_COLLECTION_H
#define RLOCK_COLLECTION_H

#include "rules.h"

/* In rising order: the later one wins. */
enum origin { ORIGIN_DEFAULT, ORIGIN_SYSTEM, ORIGIN_USER, ORIGIN_ENVIRONMENT, ORIGIN_OPTION };

/* What is said about one setting. */
struct given {
    const char *value; /* NULL: nothing */
    enum origin origin;
    const char *file;
    int line;
};

struct collection {
    struct given given[SETTING_COUNT];
    char *files[2]; /* the texts that values are in */
    char *user_file;
    char *urls; /* those of all --url options */
    char *fault;
    size_t size;
};

/* Collects everything, and judges what stands in files. Set "fault" and "size" before. Returns STATUS_OK,
 * or a status with the message in "fault". collection_end() in either case. */
int collection_make(struct collection *all, const struct arguments *arguments);
/* Gives everything back but the texts of files, which values are in: these go to the caller. */
void collection_end(struct collection *all, char *files[2]);

/* Sets what is given for one setting, if anything. Returns like the above. */
int collection_take(const struct collection *all, struct settings *settings, enum setting id);

/* Says what is wrong with what is given for a setting: "PLACE 'VALUE' WHY", or "PLACE WHY" for a secret
 * one. Returns the status for it. */
int collection_refuse(const struct collection *all, enum setting id, const char *why);

/* STATUS_USAGE or STATUS_CONFIG, by where the setting comes from. */
int collection_status(const struct collection *all, enum setting id);

#endif
