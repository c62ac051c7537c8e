/* librdkafka against a broker: a codec shared between our client and our broker would hide faults that a foreign client
 * shows. Creates a topic, produces with every codec, idempotently, consumes in a group of two with each assignor, runs
 * transactions with offsets and reads committed.
 *
 * usage: smoke HOST:PORT        exit code 0 when everything held, else 1 with what did not
 */
#include <librdkafka/rdkafka.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define PARTITIONS 4
#define RECORDS 2000
#define DEADLINE_S 60

static const char *bootstrap;
static char err[512];
static int errors; /* reports of lost records */

static void fail(const char *format, ...) {
    va_list rest;
    va_start(rest, format);
    fputs("FAILED: ", stderr);
    vfprintf(stderr, format, rest);
    fputc('\n', stderr);
    va_end(rest);
    exit(1);
}

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static rd_kafka_conf_t *conf(const char *first, ...) {
    rd_kafka_conf_t *c = rd_kafka_conf_new();
    va_list rest;
    rd_kafka_conf_set(c, "bootstrap.servers", bootstrap, err, sizeof err);
    va_start(rest, first);
    for (const char *key = first; key; key = va_arg(rest, const char *)) {
        const char *value = va_arg(rest, const char *);
        if (rd_kafka_conf_set(c, key, value, err, sizeof err) != RD_KAFKA_CONF_OK) fail("%s=%s: %s", key, value, err);
    }
    va_end(rest);
    return c;
}

static void delivered(rd_kafka_t *rk, const rd_kafka_message_t *m, void *opaque) {
    (void)rk;
    (void)opaque;
    if (m->err) {
        fprintf(stderr, "a record was lost: %s\n", rd_kafka_err2str(m->err));
        errors++;
    }
}

static rd_kafka_t *producer(rd_kafka_conf_t *c) {
    rd_kafka_conf_set_dr_msg_cb(c, delivered);
    rd_kafka_t *rk = rd_kafka_new(RD_KAFKA_PRODUCER, c, err, sizeof err);
    if (!rk) fail("producer: %s", err);
    return rk;
}

static rd_kafka_t *consumer(rd_kafka_conf_t *c) {
    rd_kafka_t *rk = rd_kafka_new(RD_KAFKA_CONSUMER, c, err, sizeof err);
    if (!rk) fail("consumer: %s", err);
    rd_kafka_poll_set_consumer(rk);
    return rk;
}

static void create_topic(const char *name) {
    rd_kafka_t *rk = producer(conf(NULL));
    rd_kafka_NewTopic_t *topic = rd_kafka_NewTopic_new(name, PARTITIONS, 1, err, sizeof err);
    rd_kafka_AdminOptions_t *options = rd_kafka_AdminOptions_new(rk, RD_KAFKA_ADMIN_OP_CREATETOPICS);
    rd_kafka_AdminOptions_set_operation_timeout(options, 10000, err, sizeof err);
    rd_kafka_queue_t *queue = rd_kafka_queue_new(rk);
    rd_kafka_CreateTopics(rk, &topic, 1, options, queue);
    rd_kafka_event_t *event = rd_kafka_queue_poll(queue, 20000);
    if (!event || rd_kafka_event_error(event)) fail("create %s: %s", name, event ? rd_kafka_event_error_string(event) : "no answer");
    size_t n;
    const rd_kafka_topic_result_t **results = rd_kafka_CreateTopics_result_topics(rd_kafka_event_CreateTopics_result(event), &n);
    if (n != 1 || rd_kafka_topic_result_error(results[0])) fail("create %s: %s", name, rd_kafka_topic_result_error_string(results[0]));
    rd_kafka_event_destroy(event);
    rd_kafka_queue_destroy(queue);
    rd_kafka_AdminOptions_destroy(options);
    rd_kafka_NewTopic_destroy(topic);
    rd_kafka_destroy(rk);
}

/* Sends records first..first+count-1, their number as key and value; the value is padded so that codecs have work. */
static void send_records(rd_kafka_t *rk, const char *topic, int first, int count) {
    for (int i = first; i < first + count; i++) {
        char key[32], value[256];
        int k = snprintf(key, sizeof key, "%d", i);
        int v = snprintf(value, sizeof value, "%d %0200d", i, i % 7);
        rd_kafka_resp_err_t e;
        while ((e = rd_kafka_producev(rk, RD_KAFKA_V_TOPIC(topic), RD_KAFKA_V_KEY(key, (size_t)k), RD_KAFKA_V_VALUE(value, (size_t)v),
                                      RD_KAFKA_V_MSGFLAGS(RD_KAFKA_MSG_F_COPY), RD_KAFKA_V_END)) == RD_KAFKA_RESP_ERR__QUEUE_FULL)
            rd_kafka_poll(rk, 10);
        if (e) fail("produce to %s: %s", topic, rd_kafka_err2str(e));
    }
}

static void flush(rd_kafka_t *rk, const char *what) {
    if (rd_kafka_flush(rk, 30000)) fail("%s: not all records were acknowledged in 30 s", what);
    if (errors) fail("%s: %d records lost", what, errors);
}

static void subscribe(rd_kafka_t *rk, const char *topic) {
    rd_kafka_topic_partition_list_t *topics = rd_kafka_topic_partition_list_new(1);
    rd_kafka_topic_partition_list_add(topics, topic, RD_KAFKA_PARTITION_UA);
    rd_kafka_resp_err_t e = rd_kafka_subscribe(rk, topics);
    if (e) fail("subscribe to %s: %s", topic, rd_kafka_err2str(e));
    rd_kafka_topic_partition_list_destroy(topics);
}

static int assigned(rd_kafka_t *rk) {
    rd_kafka_topic_partition_list_t *partitions = NULL;
    int n = rd_kafka_assignment(rk, &partitions) ? 0 : partitions->cnt;
    if (partitions) rd_kafka_topic_partition_list_destroy(partitions);
    return n;
}

/* Counts one record into seen[]; a stranger or an error that is not about an end fails. */
static int take(rd_kafka_t *rk, int timeout_ms, unsigned char *seen, int size) {
    rd_kafka_message_t *m = rd_kafka_consumer_poll(rk, timeout_ms);
    if (!m) return 0;
    int got = 0;
    if (!m->err) {
        char text[32] = {0};
        memcpy(text, m->payload, m->len < 31 ? m->len : 31);
        int i = atoi(text);
        if (i < 0 || i >= size) fail("record %d was never to be seen (topic %s)", i, rd_kafka_topic_name(m->rkt));
        if (seen[i] < 255) seen[i]++;
        got = 1;
    } else if (m->err != RD_KAFKA_RESP_ERR__PARTITION_EOF) {
        fail("consume: %s", rd_kafka_message_errstr(m));
    }
    rd_kafka_message_destroy(m);
    return got;
}

static int missing(const unsigned char *seen, int size) {
    int n = 0;
    for (int i = 0; i < size; i++) n += !seen[i];
    return n;
}

static void once(const unsigned char *seen, int size, const char *what) {
    for (int i = 0; i < size; i++)
        if (seen[i] != 1) fail("%s: record %d was seen %d times", what, i, seen[i]);
}

static void codecs(const char *topic) {
    const char *names[] = {"none", "gzip", "snappy", "lz4", "zstd"};
    static unsigned char seen[5 * RECORDS];
    create_topic(topic);
    for (int i = 0; i < 5; i++) {
        rd_kafka_t *rk = producer(conf("compression.codec", names[i], "linger.ms", "20", "enable.idempotence", i % 2 ? "true" : "false", NULL));
        send_records(rk, topic, i * RECORDS, RECORDS);
        flush(rk, names[i]);
        rd_kafka_destroy(rk);
    }
    rd_kafka_t *rk = consumer(conf("group.id", topic, "auto.offset.reset", "earliest", "check.crcs", "true", NULL));
    subscribe(rk, topic);
    for (double end = now() + DEADLINE_S; missing(seen, 5 * RECORDS) && now() < end;) take(rk, 100, seen, 5 * RECORDS);
    once(seen, 5 * RECORDS, "codecs");
    rd_kafka_consumer_close(rk);
    rd_kafka_destroy(rk);
    printf("ok: every codec, idempotent and not\n");
}

static void groups(const char *topic, const char *assignor) {
    static unsigned char seen[2 * RECORDS];
    memset(seen, 0, sizeof seen);
    create_topic(topic);
    rd_kafka_t *rk = producer(conf("enable.idempotence", "true", NULL));
    rd_kafka_t *members[2];
    for (int i = 0; i < 2; i++) {
        members[i] = consumer(conf("group.id", topic, "auto.offset.reset", "earliest", "partition.assignment.strategy", assignor,
                                   "session.timeout.ms", "6000", "heartbeat.interval.ms", "500", NULL));
        subscribe(members[i], topic);
    }
    double end = now() + DEADLINE_S;
    while ((assigned(members[0]) != 2 || assigned(members[1]) != 2) && now() < end)
        for (int i = 0; i < 2; i++) take(members[i], 50, seen, 2 * RECORDS);
    if (assigned(members[0]) != 2 || assigned(members[1]) != 2)
        fail("%s: %d and %d partitions instead of 2 and 2", assignor, assigned(members[0]), assigned(members[1]));
    send_records(rk, topic, 0, RECORDS);
    flush(rk, assignor);
    while (missing(seen, RECORDS) && now() < end)
        for (int i = 0; i < 2; i++) take(members[i], 20, seen, 2 * RECORDS);
    once(seen, RECORDS, assignor);
    for (int i = 0; i < 2; i++)
        if (rd_kafka_commit(members[i], NULL, 0) == RD_KAFKA_RESP_ERR__STATE) fail("%s: commit", assignor);
    rd_kafka_consumer_close(members[1]);
    rd_kafka_destroy(members[1]);
    send_records(rk, topic, RECORDS, RECORDS);
    flush(rk, assignor);
    while (missing(seen, 2 * RECORDS) && now() < end) take(members[0], 100, seen, 2 * RECORDS);
    /* A group is at least once: librdkafka 2.0.2 reads some again when cooperative-sticky gives it more partitions. */
    if (missing(seen, 2 * RECORDS)) fail("%s: %d records were not read", assignor, missing(seen, 2 * RECORDS));
    if (assigned(members[0]) != PARTITIONS) fail("%s: the member that stayed has %d partitions", assignor, assigned(members[0]));
    rd_kafka_consumer_close(members[0]);
    rd_kafka_destroy(members[0]);
    rd_kafka_destroy(rk);
    printf("ok: group of two, %s\n", assignor);
}

static void check(rd_kafka_error_t *e, const char *what) {
    if (e) fail("%s: %s", what, rd_kafka_error_string(e));
}

/* Consume, transform, produce, with offsets in the transaction: every second transaction is aborted and done again. */
static void transactions(const char *in, const char *out) {
    static unsigned char seen[RECORDS], done[RECORDS];
    create_topic(in);
    create_topic(out);
    rd_kafka_t *source = producer(conf("compression.codec", "lz4", NULL));
    send_records(source, in, 0, RECORDS);
    flush(source, "transactions");
    rd_kafka_destroy(source);
    rd_kafka_t *reader = consumer(conf("group.id", in, "auto.offset.reset", "earliest", "enable.auto.commit", "false", NULL));
    subscribe(reader, in);
    rd_kafka_t *rk = producer(conf("transactional.id", in, "transaction.timeout.ms", "20000", NULL));
    check(rd_kafka_init_transactions(rk, 20000), "init_transactions");
    double end = now() + DEADLINE_S;
    int batches = 0;
    while (missing(done, RECORDS) && now() < end) {
        rd_kafka_message_t *batch[200];
        int n = 0;
        for (double stop = now() + 1; n < 200 && now() < stop;) {
            rd_kafka_message_t *m = rd_kafka_consumer_poll(reader, 50);
            if (!m) continue;
            if (m->err) fail("consume: %s", rd_kafka_message_errstr(m));
            batch[n++] = m;
        }
        if (!n) continue;
        int attempts = batches++ % 2 ? 2 : 1;
        for (int attempt = 1; attempt <= attempts; attempt++) {
            check(rd_kafka_begin_transaction(rk), "begin_transaction");
            for (int i = 0; i < n; i++) {
                rd_kafka_resp_err_t e = rd_kafka_producev(rk, RD_KAFKA_V_TOPIC(out), RD_KAFKA_V_VALUE(batch[i]->payload, batch[i]->len),
                                                          RD_KAFKA_V_MSGFLAGS(RD_KAFKA_MSG_F_COPY), RD_KAFKA_V_END);
                if (e) fail("produce: %s", rd_kafka_err2str(e));
            }
            rd_kafka_topic_partition_list_t *offsets = NULL;
            rd_kafka_assignment(reader, &offsets);
            rd_kafka_position(reader, offsets);
            rd_kafka_consumer_group_metadata_t *group = rd_kafka_consumer_group_metadata(reader);
            check(rd_kafka_send_offsets_to_transaction(rk, offsets, group, 20000), "send_offsets");
            rd_kafka_consumer_group_metadata_destroy(group);
            rd_kafka_topic_partition_list_destroy(offsets);
            if (attempt < attempts) {
                flush(rk, "before the abort");
                check(rd_kafka_abort_transaction(rk, 20000), "abort_transaction");
            } else {
                check(rd_kafka_commit_transaction(rk, 20000), "commit_transaction");
            }
        }
        for (int i = 0; i < n; i++) {
            char text[32] = {0};
            memcpy(text, batch[i]->payload, 31);
            done[atoi(text)] = 1;
            rd_kafka_message_destroy(batch[i]);
        }
    }
    if (missing(done, RECORDS)) fail("transactions: %d records were not read", missing(done, RECORDS));
    /* One more transaction stays open: nothing of it may be seen. */
    check(rd_kafka_begin_transaction(rk), "begin_transaction");
    rd_kafka_producev(rk, RD_KAFKA_V_TOPIC(out), RD_KAFKA_V_VALUE("999999", 6), RD_KAFKA_V_MSGFLAGS(RD_KAFKA_MSG_F_COPY), RD_KAFKA_V_END);
    flush(rk, "the open transaction");
    rd_kafka_t *checker = consumer(conf("group.id", out, "auto.offset.reset", "earliest", "isolation.level", "read_committed", NULL));
    subscribe(checker, out);
    while (missing(seen, RECORDS) && now() < end) take(checker, 100, seen, RECORDS);
    for (double stop = now() + 1; now() < stop;) take(checker, 100, seen, RECORDS);
    once(seen, RECORDS, "read committed");
    /* A second producer of the same id fences the first, and the open transaction is gone. */
    rd_kafka_t *next = producer(conf("transactional.id", in, NULL));
    check(rd_kafka_init_transactions(next, 20000), "init_transactions of the second producer");
    rd_kafka_error_t *fenced = rd_kafka_commit_transaction(rk, 20000);
    if (!fenced || !rd_kafka_error_is_fatal(fenced)) fail("the first producer was not fenced");
    rd_kafka_error_destroy(fenced);
    rd_kafka_topic_partition_list_t *committed = rd_kafka_topic_partition_list_new(PARTITIONS);
    for (int i = 0; i < PARTITIONS; i++) rd_kafka_topic_partition_list_add(committed, in, i);
    if (rd_kafka_committed(reader, committed, 20000)) fail("committed offsets cannot be read");
    long long sum = 0;
    for (int i = 0; i < PARTITIONS; i++) sum += committed->elems[i].offset > 0 ? committed->elems[i].offset : 0;
    if (sum != RECORDS) fail("committed offsets add up to %lld instead of %d", sum, RECORDS);
    rd_kafka_topic_partition_list_destroy(committed);
    rd_kafka_consumer_close(reader);
    rd_kafka_consumer_close(checker);
    rd_kafka_destroy(reader);
    rd_kafka_destroy(checker);
    rd_kafka_destroy(next);
    rd_kafka_destroy(rk);
    printf("ok: transactions with offsets, aborts, fencing, read_committed\n");
}

int main(int argc, char **argv) {
    if (argc != 2) {
        fprintf(stderr, "usage: %s HOST:PORT\n", argv[0]);
        return 2;
    }
    bootstrap = argv[1];
    setvbuf(stdout, NULL, _IOLBF, 0);
    char name[5][64];
    for (int i = 0; i < 5; i++) snprintf(name[i], sizeof name[i], "librdkafka-%ld-%d", (long)time(NULL), i);
    codecs(name[0]);
    groups(name[1], "range");
    groups(name[2], "cooperative-sticky");
    transactions(name[3], name[4]);
    return 0;
}
