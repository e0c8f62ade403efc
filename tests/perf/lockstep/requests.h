/* The requests for tokens: what a stream sends, and the record of when it did. */
#ifndef LOCKSTEP_REQUESTS_H
#define LOCKSTEP_REQUESTS_H

#include "wire.h"

#include <stdint.h>

/* One request. Kept until the end: together they are the record. */
struct request {
    int64_t arrived_us; /* when its first byte was read */
    int prompt_tokens;
    int asked; /* tokens */
    int sent;
    int64_t *sent_us; /* of each token */
};

/* Microseconds of CLOCK_MONOTONIC, which is one clock for all processes. */
int64_t now_us(void);

/* Once, before the first request. */
void requests_begin(void);

struct request *request_begin(const char *body, int64_t arrived_us);

/* Add the event of the newest token, and what ends the stream when that is the last one. */
void request_add_event(const struct request *request, struct text *out);

/* Print the record: a JSON list, in the order of arrival. */
void requests_print(void);

#endif
