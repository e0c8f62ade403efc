/* See wire.h. */
#define _GNU_SOURCE
#include "wire.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void make_room(struct text *text, size_t more)
{
    size_t needed = text->length + more + 1; /* the NUL */
    if (needed <= text->capacity)
        return;
    text->capacity = 2 * needed;
    text->bytes = realloc(text->bytes, text->capacity);
    if (!text->bytes) {
        perror("lockstep: no memory");
        exit(1);
    }
}

void text_add(struct text *text, const char *bytes, size_t length)
{
    make_room(text, length);
    memcpy(text->bytes + text->length, bytes, length);
    text->length += length;
    text->bytes[text->length] = 0;
}

void text_format(struct text *text, const char *format, ...)
{
    char piece[512]; /* every caller's pieces are shorter; the long ones go through text_add */
    va_list values;
    va_start(values, format);
    int length = vsnprintf(piece, sizeof piece, format, values);
    va_end(values);
    if (length < 0 || (size_t)length >= sizeof piece)
        abort();
    text_add(text, piece, (size_t)length);
}

void text_drop(struct text *text, size_t length)
{
    text->length -= length;
    memmove(text->bytes, text->bytes + length, text->length + 1); /* and the NUL */
}

void text_free(struct text *text)
{
    free(text->bytes);
    *text = (struct text){0};
}

bool http_read(const struct text *received, struct http_request *request)
{
    if (!received->length)
        return false;
    const char *end = strstr(received->bytes, "\r\n\r\n");
    if (!end)
        return false;
    const char *field = strcasestr(received->bytes, "\r\ncontent-length:");
    request->line = received->bytes;
    request->body = end + 4;
    /* a field of that name behind the head would be part of the body */
    request->body_length = field && field < end ? strtoul(field + 17, NULL, 10) : 0;
    request->length = (size_t)(request->body - request->line) + request->body_length;
    return received->length >= request->length;
}

bool http_is(const struct http_request *request, const char *method_and_path)
{
    return !strncmp(request->line, method_and_path, strlen(method_and_path));
}

void http_answer(struct text *out, int status, const char *json)
{
    text_format(out,
                "HTTP/1.1 %d %s\r\ncontent-type: application/json\r\ncontent-length: %zu\r\n\r\n",
                status, status == 200 ? "OK" : "Not Found", strlen(json));
    text_add(out, json, strlen(json));
}

void http_stream_head(struct text *out)
{
    text_format(out, "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream; charset=utf-8\r\n"
                     "transfer-encoding: chunked\r\n\r\n");
}

void http_chunk(struct text *out, const char *bytes, size_t length)
{
    text_format(out, "%zx\r\n", length);
    text_add(out, bytes, length);
    text_add(out, "\r\n", 2);
}

void http_stream_end(struct text *out)
{
    text_add(out, "0\r\n\r\n", 5);
}
