/* What the doctor found, as text and JSON. */
#ifndef RLOCK_RENDER_DOCTOR_H
#define RLOCK_RENDER_DOCTOR_H

#include "diagnosis.h"
#include "json.h"
#include "render.h"

/* A line a finding. whole: those about all of them together. */
void render_doctor(FILE *out, const struct patient *patients, size_t count,
                   const struct diagnosis *whole, const struct render_style *style);

/* One object. The caller frees. */
char *render_doctor_json(const struct json_library *json, const struct patient *patients,
                         size_t count, const struct diagnosis *whole, enum level verdict);

#endif
