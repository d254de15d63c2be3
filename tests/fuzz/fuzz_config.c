/* Config files: each line is a setting or a fault, and each value is taken or refused with a
 * reason. */
#include "cli/config.h"
#include "cli/settings.h"
#include "fuzz.h"

static void take(const struct config_reader *line)
{
    enum setting id = setting_find(line->key);
    struct settings settings = {0};
    char room[SETTING_FAULT_SIZE];

    MUST(line->number > 0 && *line->key);
    if (!id)
        return;
    const char *fault = setting_take(id, &settings, line->value, room);
    MUST(!fault || (*fault && strlen(fault) < SETTING_FAULT_SIZE));
    settings_free(&settings);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = fuzz_text(data, size);
    struct config_reader reader = {.rest = text, .end = text + size};
    int last = 0;

    while (config_next(&reader)) {
        MUST(reader.number > last);
        last = reader.number;
        take(&reader);
    }
    MUST(!reader.fault || *reader.fault);
    free(text);
    return 0;
}
