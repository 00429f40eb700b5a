/* drupe-broker: leases the devices of a machine to the processes of many people. */
#include "broker/broker_state.h"
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#define EXIT_USAGE 2

static const char usage[] =
    "usage: drupe-broker --config FILE [--socket PATH] [--state FOLDER] [--check]\n"
    "\n"
    "Leases the devices that FILE describes to processes of this machine; a lease ends with its process.\n"
    "\n"
    "  --config FILE    the devices, profiles and quotas, as JSON (docs/internals/broker.md)\n"
    "  --check          say what is wrong with FILE, and do nothing else\n"
    "  --socket PATH    where clients connect; otherwise that of FILE, of $DRUPE_BROKER,\n"
    "                   /run/drupe/broker.sock, or $XDG_RUNTIME_DIR/drupe/broker.sock for a user other than "
    "root\n"
    "  --state FOLDER   where leases are kept over a restart; otherwise that of FILE, "
    "/var/lib/drupe/broker,\n"
    "                   or $XDG_STATE_HOME/drupe/broker (~/.local/state/drupe/broker)\n"
    "  --version        say which version this is\n"
    "\n"
    "SIGTERM ends it; leases go on at the next start. SIGHUP opens the file of accounts anew.\n";

typedef struct options {
    const char *config, *socket, *state;
    bool check, done;
} options;

static int fail(const char *text)
{
    fprintf(stderr, "drupe-broker: %s\n", text);
    return EXIT_USAGE;
}

/* The value of an option, as --name=VALUE or --name VALUE; NULL when this is another one or has none. */
static const char *value_of(const char *name, char **arguments, int count, int *at)
{
    size_t length = strlen(name);
    if (!arguments[*at] || strncmp(arguments[*at], name, length) != 0) return NULL;
    if (arguments[*at][length] == '=') return arguments[*at] + length + 1;
    if (arguments[*at][length] || *at + 1 >= count) return NULL;
    return arguments[++*at];
}

static bool options_read(int count, char **arguments, options *given)
{
    for (int i = 1; i < count; i++) {
        const char *value;
        if (strcmp(arguments[i], "--help") == 0 || strcmp(arguments[i], "-h") == 0) {
            fputs(usage, stdout);
            given->done = true;
        } else if (strcmp(arguments[i], "--version") == 0) {
            puts("drupe-broker " DRUPE_VERSION);
            given->done = true;
        } else if (strcmp(arguments[i], "--check") == 0) {
            given->check = true;
        } else if ((value = value_of("--config", arguments, count, &i))) {
            given->config = value;
        } else if ((value = value_of("--socket", arguments, count, &i))) {
            given->socket = value;
        } else if ((value = value_of("--state", arguments, count, &i))) {
            given->state = value;
        } else {
            fprintf(stderr, "drupe-broker: what is \"%s\"? It is unknown or lacks its value; see --help.\n",
                    arguments[i]);
            return false;
        }
    }
    return true;
}

/* Each problem in a line of its own, behind the file's name. */
static void problems_tell(const char *path, const drupe_text *problems)
{
    for (const char *line = drupe_text_get(problems); *line;) {
        size_t length = strcspn(line, "\n");
        fprintf(stderr, "drupe-broker: %s: %.*s\n", path, (int)length, line);
        line += length + (line[length] == '\n');
    }
}

/* A path below a folder that a variable names; malloc'ed. */
static char *below(const char *variable, const char *otherwise, const char *rest)
{
    const char *folder = getenv(variable), *home = getenv("HOME");
    drupe_text path = {0};
    if (folder && *folder == '/')
        drupe_text_printf(&path, "%s/%s", folder, rest);
    else if (home && *home == '/')
        drupe_text_printf(&path, "%s/%s/%s", home, otherwise, rest);
    return drupe_text_take(&path);
}

static char *socket_of(const options *given, const bk_config *config)
{
    const char *variable = getenv("DRUPE_BROKER");
    if (given->socket) return strdup(given->socket);
    if (config->socket) return strdup(config->socket);
    if (variable && *variable) return strdup(variable);
    return geteuid() == 0 ? strdup("/run/drupe/broker.sock")
                          : below("XDG_RUNTIME_DIR", ".cache", "drupe/broker.sock");
}

static char *state_of(const options *given, const bk_config *config)
{
    if (given->state) return strdup(given->state);
    if (config->state) return strdup(config->state);
    return geteuid() == 0 ? strdup("/var/lib/drupe/broker")
                          : below("XDG_STATE_HOME", ".local/state", "drupe/broker");
}

/* A connection and a watched process take a descriptor each. */
static void descriptors_raise(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
    limit.rlim_cur = limit.rlim_max;
    setrlimit(RLIMIT_NOFILE, &limit);
}

static int serve(bk_broker *broker, const options *given, bk_config *config)
{
    char *state = state_of(given, config), *path = socket_of(given, config);
    umask(0022);
    descriptors_raise();
    drupe_status status = bk_broker_open(broker, config);
    broker->socket = path;
    if (status == DRUPE_OK && (!state || !path)) {
        status = drupe_error_set(DRUPE_E_INVALID, "There is no HOME: say --state and --socket.");
    }
    if (status == DRUPE_OK) status = bk_journal_open(broker, state);
    if (status == DRUPE_OK) status = bk_signals(broker);
    if (status == DRUPE_OK) status = bk_listen(broker);
    if (status == DRUPE_OK) {
        bk_say("%zu devices are leased at %s", broker->config.ndevices, broker->socket);
        status = bk_run(broker);
    }
    if (status != DRUPE_OK) bk_say("%s", drupe_error_last()->text);
    free(state);
    bk_broker_close(broker);
    return status == DRUPE_OK ? 0 : 1;
}

int main(int count, char **arguments)
{
    static bk_broker broker;
    options given = {0};
    bk_config config;
    drupe_text problems = {0};
    setvbuf(stderr, NULL, _IOLBF, 0);
    if (!options_read(count, arguments, &given)) return EXIT_USAGE;
    if (given.done) return 0;
    if (!given.config) return fail("--config FILE says which devices there are; see --help");
    bool good = bk_config_read(given.config, &config, &problems);
    if (!good) problems_tell(given.config, &problems);
    drupe_text_clear(&problems);
    if (!good) return 1;
    if (given.check) {
        printf("%s: %zu devices, %zu profiles, nothing is wrong\n", given.config, config.ndevices,
               config.nprofiles);
        bk_config_clear(&config);
        return 0;
    }
    return serve(&broker, &given, &config);
}
