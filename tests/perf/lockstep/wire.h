/* HTTP/1.1 as far as load clients use it: texts that grow, requests in, answers out. */
#ifndef LOCKSTEP_WIRE_H
#define LOCKSTEP_WIRE_H

#include <stdbool.h>
#include <stddef.h>

/* Bytes that grow; always followed by a NUL, so that a body can be searched as a string. */
struct text {
    char *bytes;
    size_t length;
    size_t capacity;
};

void text_add(struct text *text, const char *bytes, size_t length);
void text_format(struct text *text, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
void text_drop(struct text *text, size_t length); /* forget the first bytes */
void text_free(struct text *text);

/* One whole request; the pointers are into the text that it was read from. */
struct http_request {
    const char *line; /* "POST /generate HTTP/1.1\r\n..." */
    const char *body;
    size_t body_length;
    size_t length; /* head and body together */
};

/* Find the first request in what a client has sent; false while it is not all there. */
bool http_read(const struct text *received, struct http_request *request);

/* Tell whether the request line begins like this, as in "GET /health ". */
bool http_is(const struct http_request *request, const char *method_and_path);

void http_answer(struct text *out, int status, const char *json);
void http_stream_head(struct text *out);
void http_chunk(struct text *out, const char *bytes, size_t length);
void http_stream_end(struct text *out);

#endif
