/* Figures for a monitoring system, in Prometheus' text format. Users' names are in them for administrators
 * only. */
#include "broker/broker_state.h"
#include <string.h>

static void head(drupe_text *text, const char *name, const char *type, const char *help)
{
    drupe_text_printf(text, "# HELP drupe_broker_%s %s\n# TYPE drupe_broker_%s %s\n", name, help, name, type);
}

static void plain(drupe_text *text, const char *name, const char *type, const char *help, double value)
{
    head(text, name, type, help);
    drupe_text_printf(text, "drupe_broker_%s %.17g\n", name, value);
}

/* A label's value: quotes, backslashes and ends of lines are escaped. */
static void label(drupe_text *text, const char *value)
{
    for (; *value; value++) {
        if (*value == '"' || *value == '\\') drupe_text_append(text, "\\", 1);
        drupe_text_append(text, *value == '\n' ? "\\n" : value, *value == '\n' ? 2 : 1);
    }
}

static void devices_add(drupe_text *text, const bk_broker *broker)
{
    head(text, "device_used", "gauge", "The share of a device that is leased, 0 to 1.");
    for (size_t i = 0; i < broker->config.ndevices; i++) {
        const bk_device *device = &broker->config.devices[i];
        double used = device->nshares ? (double)device->memory_used / (double)device->memory
                                      : (double)device->nused / device->parts;
        drupe_text_printf(text, "drupe_broker_device_used{device=\"");
        label(text, device->id);
        drupe_text_printf(text, "\",kind=\"%s\"} %.6g\n", bk_kind_name(device->kind), used);
    }
}

static void ends_add(drupe_text *text, const bk_broker *broker)
{
    head(text, "ended_total", "counter", "Leases that ended, by the reason.");
    for (unsigned i = 0; i < BK_ENDS; i++) {
        drupe_text_printf(text, "drupe_broker_ended_total{why=\"%s\"} %llu\n", bk_ends[i],
                          (unsigned long long)broker->counts.ended[i]);
    }
}

static void users_add(drupe_text *text, bk_broker *broker)
{
    size_t cursor = 0;
    bk_user *user;
    head(text, "user_device_seconds_total", "counter", "Device-seconds that a user has held.");
    while ((user = drupe_map_next(&broker->users, &cursor, NULL, NULL)) &&
           text->length < BK_ANSWER_MOST / 2) {
        bk_user_account(broker, user);
        for (unsigned kind = BK_CPU; kind < BK_KINDS; kind++) {
            if (user->total[kind] <= 0) continue;
            drupe_text_printf(text, "drupe_broker_user_device_seconds_total{user=\"");
            label(text, user->name);
            drupe_text_printf(text, "\",kind=\"%s\"} %.6f\n", bk_kind_name((bk_kind)kind), user->total[kind]);
        }
    }
}

json_t *bk_reply_metrics(bk_broker *broker, bool names)
{
    drupe_text text = {0};
    const bk_counts *counts = &broker->counts;
    unsigned parked = 0;
    for (const bk_lease *lease = broker->first_lease; lease; lease = lease->next) parked += lease->parked;
    plain(&text, "leases", "gauge", "Leases, parked ones included.", (double)broker->leases.count);
    plain(&text, "parked", "gauge", "Leases that are parked.", parked);
    plain(&text, "waiting", "gauge", "Asks that wait.", (double)broker->tickets.count);
    plain(&text, "connections", "gauge", "Connections.", broker->nclients);
    plain(&text, "requests_total", "counter", "Requests.", (double)counts->requests);
    plain(&text, "granted_total", "counter", "Leases granted, and parked ones resumed.",
          (double)counts->granted);
    plain(&text, "refused_total", "counter", "Requests refused.", (double)counts->refused);
    plain(&text, "parked_total", "counter", "Leases parked.", (double)counts->parked);
    plain(&text, "resumed_total", "counter", "Leases resumed.", (double)counts->resumed);
    plain(&text, "waited_total", "counter", "Leases granted after a wait.", (double)counts->waited);
    plain(&text, "wait_seconds_total", "counter", "Seconds that these waited.", counts->waited_seconds);
    plain(&text, "wait_seconds_longest", "gauge", "The longest wait.", counts->longest_wait);
    plain(&text, "closed_total", "counter", "Connections closed because nobody read them.",
          (double)counts->overflows);
    devices_add(&text, broker);
    ends_add(&text, broker);
    if (names) users_add(&text, broker);
    json_t *answer = json_pack("{sbss}", "ok", 1, "metrics", drupe_text_get(&text));
    drupe_text_clear(&text);
    return answer;
}
