/* Durations: within their bounds, and what is printed can be read again, rounded. */
#include "base/duration.h"
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = fuzz_text(data, size);
    char shown[64];
    int64_t ns = -1, again = -1;

    if (duration_parse(text, &ns)) {
        MUST(ns >= 0 && ns <= DURATION_MAX_NS);
        duration_print(ns, shown, sizeof shown);
        MUST(duration_parse(shown, &again) && again <= DURATION_MAX_NS);
        MUST(again - ns <= 500000 + ns / 16 && ns - again <= 500000 + ns / 16);
    } else {
        MUST(ns == -1);
    }
    free(text);
    return 0;
}
