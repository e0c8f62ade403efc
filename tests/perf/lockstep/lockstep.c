/* A server whose every latency is known: at each tick of a timer, every stream gets one token.
 *
 *     cc -O2 -o lockstep lockstep.c requests.c wire.c
 *     ./lockstep TICK_US FIRST_US MODEL_PATH
 *
 * It listens on a free port of 127.0.0.1 and prints that port as its first line. On SIGTERM it
 * prints its record as one line of JSON: when each request came in, and when each of its tokens
 * was handed to the kernel, in microseconds of CLOCK_MONOTONIC. A request's first token comes
 * with the first tick that is at least FIRST_US later than the request. MODEL_PATH is what it says
 * that it serves; the Python client takes its tokenizer from there.
 *
 * It speaks what SGLang's load clients ask for: POST /generate, streamed, with the text so far in
 * every event (as SGLang's own stream does it), and the GETs that they make before and after.
 *
 * Differs from SGLang: streams only; the prompt is counted, not read; nothing is ever refused.
 */
#define _GNU_SOURCE
#include "requests.h"
#include "wire.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <unistd.h>

enum {
    MAX_CONNECTIONS = 65536, /* file descriptors are indices */
    EVENTS = 256,
};

struct connection {
    int fd;
    int64_t arrived_us;      /* first byte of the request that is being read */
    struct text in, out;     /* received and not yet understood; not yet taken by the kernel */
    struct request *request; /* the one that is answered, or NULL */
    bool waits_for_room;     /* the client reads too slowly, the kernel's buffer is full */
};

static struct connection *connections[MAX_CONNECTIONS];
static int highest_fd;
static int64_t tick_us, first_us, longest_tick_us;
static uint64_t ticks, missed_ticks;
static const char *model_path;
static int epoll_fd;

static void fail(const char *what)
{
    fprintf(stderr, "lockstep: %s: %s\n", what, strerror(errno));
    exit(1);
}

/* ---- tokens ---- */

static void drop_connection(struct connection *connection)
{
    connections[connection->fd] = NULL;
    close(connection->fd); /* epoll forgets it, too */
    text_free(&connection->in);
    text_free(&connection->out);
    free(connection);
}

static void watch(int fd, uint32_t what, int operation)
{
    struct epoll_event event = {.events = what, .data.fd = fd};
    if (epoll_ctl(epoll_fd, operation, fd, &event))
        fail("epoll_ctl");
}

/* Hand what there is to the kernel; the rest goes when it has room. False: the client is gone. */
static bool send_out(struct connection *connection)
{
    struct text *out = &connection->out;
    size_t done = 0;
    while (done < out->length) {
        ssize_t sent = send(connection->fd, out->bytes + done, out->length - done, MSG_NOSIGNAL);
        if (sent < 0 && errno == EAGAIN)
            break;
        if (sent < 0)
            return false;
        done += (size_t)sent;
    }
    if (done)
        text_drop(out, done);
    if (connection->waits_for_room != (out->length > 0)) {
        connection->waits_for_room = out->length > 0;
        watch(connection->fd, EPOLLIN | (connection->waits_for_room ? EPOLLOUT : 0),
              EPOLL_CTL_MOD);
    }
    return true;
}

/* The time of a token is when it is handed over, whether or not the client reads it in time. */
static void send_token(struct connection *connection)
{
    struct request *request = connection->request;
    request->sent_us[request->sent++] = now_us();
    request_add_event(request, &connection->out);
    if (request->sent == request->asked)
        connection->request = NULL;
    if (!send_out(connection))
        drop_connection(connection);
}

/* A tick that could not be served in its time is lost: the record counts it, and is void. */
static void on_tick(int timer)
{
    uint64_t expired;
    if (read(timer, &expired, sizeof expired) != sizeof expired)
        return;
    ticks += expired;
    missed_ticks += expired - 1;
    int64_t began_us = now_us();
    for (int fd = 0; fd <= highest_fd; fd++) {
        struct connection *connection = connections[fd];
        if (connection && connection->request
            && connection->request->arrived_us + first_us <= began_us)
            send_token(connection);
    }
    int64_t took_us = now_us() - began_us;
    if (took_us > longest_tick_us)
        longest_tick_us = took_us;
}

/* ---- requests ---- */

static void answer(struct connection *connection, const struct http_request *http)
{
    struct text *out = &connection->out;
    if (http_is(http, "POST /generate ")) {
        connection->request = request_begin(http->body, connection->arrived_us);
        http_stream_head(out);
    } else if (http_is(http, "GET /v1/models ")) {
        http_answer(out, 200, "{\"object\":\"list\",\"data\":[{\"id\":\"lockstep\","
                              "\"object\":\"model\",\"created\":1,\"owned_by\":\"sglang\","
                              "\"root\":\"lockstep\",\"max_model_len\":1000000}]}");
    } else if (http_is(http, "GET /server_info ") || http_is(http, "GET /get_server_info ")) {
        http_answer(out, 200, "{\"version\":\"lockstep\",\"internal_states\":[{}]}");
    } else if (http_is(http, "GET /model_info ") || http_is(http, "GET /get_model_info ")) {
        struct text info = {0};
        text_format(&info, "{\"model_path\":\"%s\",\"is_generation\":true}", model_path);
        http_answer(out, 200, info.bytes);
        text_free(&info);
    } else if (http_is(http, "GET /health") || http_is(http, "POST /flush_cache")
               || http_is(http, "GET /flush_cache")) {
        http_answer(out, 200, "{}");
    } else {
        http_answer(out, 404, "{\"detail\":\"Not Found\"}");
    }
}

/* Answer what has come in whole. No client sends a request before the last one's answer ends. */
static void answer_all(struct connection *connection)
{
    struct http_request http;
    while (!connection->request && http_read(&connection->in, &http)) {
        /* the body ends where the next request begins */
        char *end = connection->in.bytes + http.length;
        char next = *end;
        *end = 0;
        answer(connection, &http);
        *end = next;
        text_drop(&connection->in, http.length);
    }
}

/* ---- sockets ---- */

static void on_client(struct connection *connection, uint32_t what)
{
    char received[65536];
    if (what & (EPOLLIN | EPOLLHUP | EPOLLERR)) {
        ssize_t length = recv(connection->fd, received, sizeof received, 0);
        if (length <= 0 && !(length < 0 && errno == EAGAIN)) {
            drop_connection(connection);
            return;
        }
        if (length > 0) {
            if (!connection->in.length)
                connection->arrived_us = now_us();
            text_add(&connection->in, received, (size_t)length);
            answer_all(connection);
        }
    }
    if (!send_out(connection))
        drop_connection(connection);
}

static void on_listener(int listener)
{
    int fd, one = 1;
    while ((fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC)) >= 0) {
        if (fd >= MAX_CONNECTIONS) {
            close(fd);
            continue;
        }
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
        connections[fd] = calloc(1, sizeof *connections[fd]);
        if (!connections[fd])
            fail("no memory");
        connections[fd]->fd = fd;
        if (fd > highest_fd)
            highest_fd = fd;
        watch(fd, EPOLLIN, EPOLL_CTL_ADD);
    }
}

static int listen_and_tell(void)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof address;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0 || bind(fd, (struct sockaddr *)&address, size) || listen(fd, 8192)
        || getsockname(fd, (struct sockaddr *)&address, &size))
        fail("listen");
    printf("%d\n", ntohs(address.sin_port));
    fflush(stdout);
    return fd;
}

static int make_timer(void)
{
    struct timespec period = {tick_us / 1000000, tick_us % 1000000 * 1000};
    struct itimerspec when = {.it_interval = period, .it_value = period};
    int fd = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
    if (fd < 0 || timerfd_settime(fd, 0, &when, NULL))
        fail("timerfd");
    return fd;
}

/* SIGTERM as a descriptor: it is seen between two events, never in the midst of one. */
static int make_stop(void)
{
    sigset_t signals;
    sigemptyset(&signals);
    sigaddset(&signals, SIGTERM);
    sigprocmask(SIG_BLOCK, &signals, NULL);
    int fd = signalfd(-1, &signals, SFD_NONBLOCK | SFD_CLOEXEC);
    if (fd < 0)
        fail("signalfd");
    return fd;
}

static void print_record(void)
{
    printf("{\"tick_us\":%lld,\"first_us\":%lld,\"ticks\":%llu,\"missed_ticks\":%llu,"
           "\"longest_tick_us\":%lld,\"requests\":",
           (long long)tick_us, (long long)first_us, (unsigned long long)ticks,
           (unsigned long long)missed_ticks, (long long)longest_tick_us);
    requests_print();
    printf("}\n");
}

int main(int argc, char **argv)
{
    if (argc != 4 || (tick_us = atoll(argv[1])) < 1 || (first_us = atoll(argv[2])) < 0) {
        fprintf(stderr, "usage: lockstep TICK_US FIRST_US MODEL_PATH\n");
        return 2;
    }
    model_path = argv[3];
    struct rlimit files;
    getrlimit(RLIMIT_NOFILE, &files);
    files.rlim_cur = files.rlim_max; /* a stream is a descriptor, and shells allow 1,024 */
    setrlimit(RLIMIT_NOFILE, &files);
    requests_begin();
    epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    if (epoll_fd < 0)
        fail("epoll");
    int stop = make_stop(), timer = make_timer(), listener = listen_and_tell();
    watch(stop, EPOLLIN, EPOLL_CTL_ADD);
    watch(timer, EPOLLIN, EPOLL_CTL_ADD);
    watch(listener, EPOLLIN, EPOLL_CTL_ADD);
    for (;;) {
        struct epoll_event events[EVENTS];
        int count = epoll_wait(epoll_fd, events, EVENTS, -1);
        for (int i = 0; i < count; i++) {
            int fd = events[i].data.fd;
            if (fd == stop) {
                print_record();
                return 0;
            }
            if (fd == timer)
                on_tick(timer);
            else if (fd == listener)
                on_listener(listener);
            else if (connections[fd]) /* an earlier event of this batch may have ended it */
                on_client(connections[fd], events[i].events);
        }
    }
}
