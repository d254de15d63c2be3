/* The findings of the doctor, as text and as JSON. */
#pragma once

#include "cli/render.h"
#include "store/diagnosis.h"

/* A line a finding. */
void render_doctor(struct strbuf *out, const struct checkup *checkup,
                   const struct render_style *style);

/* One object, in one line. */
void render_doctor_json(struct strbuf *out, const struct checkup *checkup, enum level verdict);
