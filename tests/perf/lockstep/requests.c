/* See requests.h. */
#include "requests.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum {
    MAX_TOKENS = 4096, /* per request */
    WORD = 7,          /* bytes of a token's text: a word of the tiny model's tokenizer */
};

static struct request **requests;
static size_t count, capacity;
static char words[MAX_TOKENS * WORD + 1]; /* "w00002 w00003 ..." */
static struct text ids;                   /* "2,3,4,..." */
static size_t ids_end[MAX_TOKENS + 1];

int64_t now_us(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

static void *or_end(void *memory)
{
    if (!memory) {
        perror("lockstep: no memory");
        exit(1);
    }
    return memory;
}

/* Token number n of every answer is id n + 2: the word "w00002" and so on. */
void requests_begin(void)
{
    for (int n = 0; n < MAX_TOKENS; n++) {
        snprintf(words + n * WORD, WORD + 1, "w%05d ", n + 2);
        text_format(&ids, n ? ",%d" : "%d", n + 2);
        ids_end[n + 1] = ids.length;
    }
}

static int number_after(const char *body, const char *key, int otherwise)
{
    const char *place = strstr(body, key);
    place = place ? strchr(place, ':') : NULL;
    return place ? atoi(place + 1) : otherwise;
}

static int count_ids(const char *body)
{
    const char *place = strstr(body, "\"input_ids\"");
    place = place ? strchr(place, '[') : NULL;
    int found = place != NULL;
    for (; place && *place && *place != ']'; place++)
        found += *place == ',';
    return found;
}

struct request *request_begin(const char *body, int64_t arrived_us)
{
    struct request *request = or_end(calloc(1, sizeof *request));
    int asked = number_after(body, "\"max_new_tokens\"", 128);
    request->arrived_us = arrived_us;
    request->prompt_tokens = count_ids(body);
    request->asked = asked < 1 ? 1 : asked > MAX_TOKENS ? MAX_TOKENS : asked;
    request->sent_us = or_end(calloc((size_t)request->asked, sizeof *request->sent_us));
    if (count == capacity) {
        capacity = 2 * capacity + 1024;
        requests = or_end(realloc(requests, capacity * sizeof *requests));
    }
    requests[count++] = request;
    return request;
}

void request_add_event(const struct request *request, struct text *out)
{
    static struct text event;
    event.length = 0;
    text_format(&event, "data: {\"text\":\"");
    text_add(&event, words, (size_t)request->sent * WORD - 1); /* no blank at the end */
    text_format(&event, "\",\"output_ids\":[");
    text_add(&event, ids.bytes, ids_end[request->sent]);
    text_format(&event, "],\"meta_info\":{\"id\":\"%p\",\"finish_reason\":",
                (const void *)request);
    if (request->sent == request->asked)
        text_format(&event, "{\"type\":\"length\",\"length\":%d}", request->asked);
    else
        text_format(&event, "null");
    text_format(&event,
                ",\"weight_version\":\"default\",\"num_retractions\":0,\"prompt_tokens\":%d,"
                "\"completion_tokens\":%d,\"cached_tokens\":0}}\n\n",
                request->prompt_tokens, request->sent);
    http_chunk(out, event.bytes, event.length);
    if (request->sent == request->asked) {
        http_chunk(out, "data: [DONE]\n\n", 14);
        http_stream_end(out);
    }
}

void requests_print(void)
{
    printf("[");
    for (size_t i = 0; i < count; i++) {
        const struct request *request = requests[i];
        printf("%s{\"arrived_us\":%lld,\"prompt_tokens\":%d,\"asked\":%d,\"sent_us\":[",
               i ? "," : "", (long long)request->arrived_us, request->prompt_tokens,
               request->asked);
        for (int n = 0; n < request->sent; n++)
            printf("%s%lld", n ? "," : "", (long long)request->sent_us[n]);
        printf("]}");
    }
    printf("]");
}
