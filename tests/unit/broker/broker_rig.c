#include "broker_rig.h"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define PROCESSES_MOST 512

static pid_t processes[PROCESSES_MOST];
static size_t nprocesses;
static json_t *kept; /* what the tests look at */

static char *quoted(const char *text)
{
    char *copy = strdup(text);
    assert_non_null(copy);
    for (char *at = copy; *at; at++) {
        if (*at == '\'') *at = '"';
    }
    return copy;
}

void rig_open(bk_broker *broker, const char *text)
{
    bk_config config;
    drupe_text problems = {0};
    char *json = quoted(text);
    *broker = (bk_broker){0};
    if (!bk_config_parse(json, strlen(json), &config, &problems)) fail_msg("%s", drupe_text_get(&problems));
    assert_int_equal(bk_broker_open(broker, &config), DRUPE_OK);
    free(json);
    kept = json_array();
}

void rig_close(bk_broker *broker)
{
    assert_null(bk_broken(broker));
    bk_broker_close(broker);
    while (nprocesses) rig_kill(processes[nprocesses - 1]);
    json_decref(kept);
    kept = NULL;
}

pid_t rig_process(void)
{
    pid_t pid = fork();
    assert_true(pid >= 0 && nprocesses < PROCESSES_MOST);
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        for (;;) pause();
    }
    processes[nprocesses++] = pid;
    return pid;
}

void rig_kill(pid_t pid)
{
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
    for (size_t i = 0; i < nprocesses; i++) {
        if (processes[i] == pid) processes[i] = processes[--nprocesses];
    }
}

bk_client *rig_client(bk_broker *broker, uid_t uid)
{
    bk_client *client = bk_client_new(broker, -1, rig_process(), uid);
    assert_non_null(client);
    return client;
}

json_t *rig_next(bk_client *client)
{
    bk_packet *packet = client->first;
    if (!packet) return NULL;
    json_t *object = json_loadb(packet->bytes, packet->size, 0, NULL);
    assert_non_null(object);
    json_array_append_new(kept, object);
    client->first = packet->next;
    if (!client->first) client->last = &client->first;
    client->waiting -= packet->size;
    free(packet);
    return object;
}

json_t *rig_ask(bk_broker *broker, bk_client *client, const char *format, ...)
{
    char text[2048];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    char *json = quoted(text);
    assert_null(client->first); /* the test has looked at what came before */
    bk_request(broker, client, json, strlen(json));
    free(json);
    json_t *answer = rig_next(client);
    assert_non_null(answer);
    bk_turn_end(broker);
    assert_null(bk_broken(broker));
    return answer;
}

void rig_later(bk_broker *broker, double seconds)
{
    broker->now += seconds;
    bk_turn_end(broker);
    assert_null(bk_broken(broker));
}

const char *rig_text(const json_t *answer, const char *key)
{
    const char *text = json_string_value(json_object_get(answer, key));
    return text ? text : "";
}

const char *rig_lease(bk_broker *broker, bk_client *client, const char *code, const char *request)
{
    json_t *answer = rig_ask(broker, client, "{'op':'lease',%s}", request);
    bool waits = json_object_get(answer, "waiting") != NULL;
    assert_string_equal(waits ? "waiting" : rig_text(answer, "code"), code);
    return rig_text(answer, waits ? "ticket" : "lease");
}
