/* What the broker reads from files: a configuration, and a journal that a crash or somebody's hand has left.
 * The first byte says which. */
#include "broker/broker_state.h"
#include "fuzz.h"

#include <string.h>

static const char machine[] = "{\"devices\":[{\"id\":\"c\",\"kind\":\"cpu\",\"parts\":70,\"memory\":7000},"
                              "{\"id\":\"g\",\"kind\":\"gpu\",\"memory\":1000}]}";

static void config_run(const char *text, size_t size)
{
    bk_config config;
    drupe_text problems = {0};
    bool good = bk_config_parse(text, size, &config, &problems);
    FUZZ_CHECK(good == (problems.length == 0)); /* what is refused is told */
    if (good) {
        FUZZ_CHECK(config.ndevices <= BK_DEVICES_MOST);
        for (size_t i = 0; i < config.ndevices; i++) {
            FUZZ_CHECK(config.devices[i].id && config.devices[i].name && config.devices[i].parts >= 1);
        }
        bk_config_clear(&config);
    }
    drupe_text_clear(&problems);
}

static void journal_run(const char *text, size_t size)
{
    bk_broker broker = {0};
    bk_config config;
    drupe_text problems = {0};
    unsigned damaged;
    FUZZ_CHECK(bk_config_parse(machine, sizeof machine - 1, &config, &problems));
    FUZZ_CHECK(bk_broker_open(&broker, &config) == DRUPE_OK);
    snprintf(broker.boot, sizeof broker.boot, "boot");
    bk_replay_text(&broker, text, size, &damaged);
    bk_turn_end(&broker);
    FUZZ_CHECK(!bk_broken(&broker));
    bk_broker_close(&broker);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0) return 0;
    if (data[0] == 'j')
        journal_run((const char *)data + 1, size - 1);
    else
        config_run((const char *)data + 1, size - 1);
    return 0;
}
