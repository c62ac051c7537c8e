/* Counts a topic with librdkafka as cheaply as it lets us: the batch API, one queue, no CRC check, one partition or many by hand,
 * no group. Prints records, process CPU time per record and wall time as one JSON object. Its figure is what merely consuming costs.
 * usage: count BROKERS TOPIC [CHECK_CRCS]
 * build: cc -O2 -o count count.c -lrdkafka */
#include <inttypes.h>
#include <librdkafka/rdkafka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#define BATCH 10000
#define WAIT_MS 200 /* A call returns when its batch is full or this has passed: at the end it is not full. */
#define QUIET_LIMIT_S 30

static void fail(const char *what, const char *why) {
    fprintf(stderr, "count: %s: %s\n", what, why);
    exit(1);
}

static void set(rd_kafka_conf_t *conf, const char *name, const char *value) {
    char why[512];
    if (rd_kafka_conf_set(conf, name, value, why, sizeof why) != RD_KAFKA_CONF_OK) fail(name, why);
}

static double seconds(struct timeval t) { return (double)t.tv_sec + (double)t.tv_usec / 1e6; }

static double cpu(void) {
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

static double wall(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

int main(int argc, char **argv) {
    if (argc < 3) fail("usage", "count BROKERS TOPIC [CHECK_CRCS]");
    char why[512];
    rd_kafka_conf_t *conf = rd_kafka_conf_new();
    set(conf, "bootstrap.servers", argv[1]);
    set(conf, "check.crcs", argc > 3 ? argv[3] : "false");
    set(conf, "enable.partition.eof", "true");
    set(conf, "fetch.message.max.bytes", "4194304");
    rd_kafka_t *client = rd_kafka_new(RD_KAFKA_CONSUMER, conf, why, sizeof why);
    if (client == NULL) fail("client", why);

    rd_kafka_topic_t *topic = rd_kafka_topic_new(client, argv[2], NULL);
    const struct rd_kafka_metadata *metadata;
    rd_kafka_resp_err_t err = rd_kafka_metadata(client, 0, topic, &metadata, 10000);
    if (err) fail("metadata", rd_kafka_err2str(err));
    if (metadata->topic_cnt != 1 || metadata->topics[0].partition_cnt == 0) fail(argv[2], "no such topic");
    int partitions = metadata->topics[0].partition_cnt;
    rd_kafka_metadata_destroy(metadata);

    /* Start-up is excluded, as it is for what this is compared with. */
    double cpu_from = cpu(), wall_from = wall();
    rd_kafka_queue_t *queue = rd_kafka_queue_new(client);
    for (int p = 0; p < partitions; p++)
        if (rd_kafka_consume_start_queue(topic, p, RD_KAFKA_OFFSET_BEGINNING, queue) == -1)
            fail("start", rd_kafka_err2str(rd_kafka_last_error()));

    static rd_kafka_message_t *messages[BATCH];
    uint64_t records = 0, bytes = 0;
    double heard = wall_from;
    for (int at_end = 0; at_end < partitions;) {
        ssize_t n = rd_kafka_consume_batch_queue(queue, WAIT_MS, messages, BATCH);
        if (n < 0) fail("consume", rd_kafka_err2str(rd_kafka_last_error()));
        if (n > 0) heard = wall();
        else if (wall() - heard > QUIET_LIMIT_S) fail("consume", "the broker is silent");
        for (ssize_t i = 0; i < n; i++) {
            if (messages[i]->err == RD_KAFKA_RESP_ERR_NO_ERROR) records++, bytes += messages[i]->len;
            else if (messages[i]->err == RD_KAFKA_RESP_ERR__PARTITION_EOF) at_end++;
            else fail("record", rd_kafka_message_errstr(messages[i]));
            rd_kafka_message_destroy(messages[i]);
        }
    }
    double cpu_used = cpu() - cpu_from, wall_used = wall() - wall_from;
    printf("{\"records\": %" PRIu64 ", \"bytes\": %" PRIu64 ", \"seconds\": %.3f, \"cpu_us_per_record\": %.4f, \"version\": \"%s\"}\n",
           records, bytes, wall_used, records ? cpu_used * 1e6 / (double)records : 0.0, rd_kafka_version_str());
    return 0;
}
