/* The plan: parsed rules, counters, and the decision for each call. One lock guards all of it; a layer for
 * tests need not be fast. */
#include "layers/fault_plan.h"
#include "base/base.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MOST_RULES 64

typedef struct rule {
    drupe_fault_entry counter;
    uint64_t from, to; /* calls, counted from 1 */
    drupe_status status;
} rule;

typedef struct plan {
    rule rules[MOST_RULES];
    size_t count;
    uint64_t lost_at; /* submission, or 0 */
    uint64_t random;  /* state of the generator; 0: none */
    double rate;
} plan;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static plan current;
static uint64_t calls[DRUPE_FAULT_COUNTERS], failures;
static bool started;

static const char *const counter_names[DRUPE_FAULT_COUNTERS] = {
#define NAME(result, name, ...) [DRUPE_FAULT_##name] = #name,
    DRUPE_ENTRIES_SLOT(NAME) DRUPE_ENTRIES_OBJECT(NAME)
#undef NAME
        [DRUPE_FAULT_any] = "any",
    [DRUPE_FAULT_event] = "event",
    [DRUPE_FAULT_submission] = "submission",
};

#define FAILS_STATUS true
#define FAILS_VOID   false
#define FAILS_BOOL   false
#define FAILS_TYPE   false
static const bool can_fail[DRUPE_FAULT_COUNTERS] = {
#define CAN(result, name, ...) [DRUPE_FAULT_##name] = FAILS_##result,
    DRUPE_ENTRIES_SLOT(CAN) DRUPE_ENTRIES_OBJECT(CAN)
#undef CAN
        [DRUPE_FAULT_any] = true,
    [DRUPE_FAULT_event] = true,
    [DRUPE_FAULT_submission] = true,
};

/* --- Reading -------------------------------------------------------------------------------------------- */

static drupe_fault_entry find_counter(const char *name)
{
    for (int i = 0; i < DRUPE_FAULT_COUNTERS; i++) {
        if (strcmp(counter_names[i], name) == 0) return (drupe_fault_entry)i;
    }
    return DRUPE_FAULT_COUNTERS;
}

static bool read_status(const char *text, drupe_status *status)
{
    *status = DRUPE_E_INTERNAL;
    if (!*text || strcmp(text, "late") == 0) return true;
    for (int i = 1; i < DRUPE_STATUS_COUNT; i++) {
        *status = (drupe_status)i;
        if (strcmp(drupe_status_name(*status), text) == 0) return true;
    }
    return false;
}

/* "3=NO_MEMORY", "3+" */
static bool read_calls(const char *text, rule *fresh)
{
    char *end;
    fresh->from = fresh->to = strtoull(text, &end, 10);
    if (end == text || fresh->from == 0) return false;
    if (*end == '+') {
        fresh->to = UINT64_MAX;
        end++;
    }
    if (*end && *end != '=') return false;
    return read_status(*end ? end + 1 : end, &fresh->status);
}

static bool read_random(const char *text, plan *fresh)
{
    char *end;
    uint64_t seed = strtoull(text, &end, 10);
    if (end == text || *end != ':') return false;
    const char *rate = end + 1;
    fresh->rate = strtod(rate, &end);
    fresh->random = seed * 2654435761u + 88172645463325252u;
    return end != rate && !*end && fresh->rate >= 0 && fresh->rate <= 1;
}

static bool read_rule(char *text, plan *fresh)
{
    char *colon = strchr(text, ':');
    if (!colon) return false;
    *colon = '\0';
    const char *rest = colon + 1;
    bool read = false;
    if (strcmp(text, "random") == 0) {
        read = read_random(rest, fresh);
    } else if (strcmp(text, "device") == 0) {
        read = sscanf(rest, "lost@%" SCNu64, &fresh->lost_at) == 1 && fresh->lost_at > 0;
    } else if (fresh->count < MOST_RULES) {
        rule *one = &fresh->rules[fresh->count];
        one->counter = find_counter(text);
        read = one->counter < DRUPE_FAULT_COUNTERS && can_fail[one->counter] && read_calls(rest, one);
        fresh->count += read;
    }
    *colon = ':';
    return read;
}

static drupe_status read_plan(const char *text, plan *fresh)
{
    drupe_status status = DRUPE_OK;
    memset(fresh, 0, sizeof *fresh);
    char *copy = strdup(text), *at = copy, *word;
    if (!copy) return drupe_error_set(DRUPE_E_NO_MEMORY, "No memory for a plan of failures.");
    while (status == DRUPE_OK && (word = strsep(&at, ", ")) != NULL) {
        if (*word && !read_rule(word, fresh))
            status = drupe_error_set(DRUPE_E_INVALID,
                                     "'%.80s' is no rule of a fault plan; 'submit_kernel:3=NO_MEMORY', "
                                     "'any:7', 'event:5=late', 'device:lost@7' and 'random:1:0.01' are.",
                                     word);
    }
    free(copy);
    return status;
}

drupe_status drupe_fault_plan(const char *text)
{
    plan fresh;
    DRUPE_TRY(read_plan(text ? text : "", &fresh));
    pthread_mutex_lock(&lock);
    current = fresh;
    memset(calls, 0, sizeof calls);
    failures = 0;
    started = true;
    pthread_mutex_unlock(&lock);
    return DRUPE_OK;
}

drupe_status drupe_fault_start(void)
{
    const char *text = getenv("DRUPE_FAULT");
    pthread_mutex_lock(&lock);
    plan fresh;
    drupe_status status = !started && text ? read_plan(text, &fresh) : DRUPE_OK;
    if (!started && text && status == DRUPE_OK) current = fresh;
    started = started || status == DRUPE_OK;
    pthread_mutex_unlock(&lock);
    return status;
}

/* --- Deciding ------------------------------------------------------------------------------------------- */

static drupe_status planned(drupe_fault_entry counter)
{
    for (size_t i = 0; i < current.count; i++) {
        const rule *one = &current.rules[i];
        if (one->counter == counter && calls[counter] >= one->from && calls[counter] <= one->to)
            return one->status;
    }
    return DRUPE_OK;
}

/* xorshift64*, the upper 53 bits as a fraction. */
static bool unlucky(void)
{
    if (!current.random) return false;
    current.random ^= current.random >> 12;
    current.random ^= current.random << 25;
    current.random ^= current.random >> 27;
    return (double)((current.random * 2685821657736338717u) >> 11) / 9007199254740992.0 < current.rate;
}

drupe_status drupe_fault_count_call(drupe_fault_entry entry, const char *backend)
{
    pthread_mutex_lock(&lock);
    calls[entry]++;
    drupe_status status = planned(entry);
    if (can_fail[entry]) {
        calls[DRUPE_FAULT_any]++;
        if (status == DRUPE_OK) status = planned(DRUPE_FAULT_any);
        if (status == DRUPE_OK && unlucky()) status = DRUPE_E_INTERNAL;
    }
    uint64_t number = calls[entry];
    failures += status != DRUPE_OK;
    pthread_mutex_unlock(&lock);
    if (status == DRUPE_OK) return DRUPE_OK;
    return drupe_error_set_native(status, backend, 0, NULL, "Planned failure of %s, call %llu.",
                                  counter_names[entry], (unsigned long long)number);
}

drupe_status drupe_fault_event_fate(void)
{
    pthread_mutex_lock(&lock);
    calls[DRUPE_FAULT_event]++;
    drupe_status status = planned(DRUPE_FAULT_event);
    failures += status != DRUPE_OK;
    pthread_mutex_unlock(&lock);
    return status;
}

bool drupe_fault_lost(bool submission)
{
    pthread_mutex_lock(&lock);
    calls[DRUPE_FAULT_submission] += submission;
    bool lost = current.lost_at && calls[DRUPE_FAULT_submission] >= current.lost_at;
    failures += lost && submission;
    pthread_mutex_unlock(&lock);
    return lost;
}

uint64_t drupe_fault_calls(const char *entry)
{
    drupe_fault_entry counter = entry ? find_counter(entry) : DRUPE_FAULT_any;
    if (counter >= DRUPE_FAULT_COUNTERS) return 0;
    pthread_mutex_lock(&lock);
    uint64_t count = calls[counter];
    pthread_mutex_unlock(&lock);
    return count;
}

uint64_t drupe_fault_made(void)
{
    pthread_mutex_lock(&lock);
    uint64_t count = failures;
    pthread_mutex_unlock(&lock);
    return count;
}
