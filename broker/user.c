/* Users: their names and groups, what they hold and have used, their quotas.
 *
 * Use is counted in device-seconds, kept in twelve slots of five minutes: the sum is that of the last hour.
 * Time is added when something is asked or changes, so nothing runs for it. */
#include "broker/broker_state.h"
#include <grp.h>
#include <math.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>

#define LOOK_SECONDS   60.0
#define GROUPS_OF_USER 1024
#define NAME_ROOM      256
#define FIRST_PERSON   1000 /* the first user id of people's accounts */

bk_user *bk_user_named(bk_broker *broker, const char *name)
{
    bk_user *user = drupe_map_get(&broker->users, name, strlen(name));
    if (user) return user;
    user = calloc(1, sizeof *user);
    if (!user) return NULL;
    user->name = strdup(name);
    user->accounted = broker->now;
    user->slot = (int64_t)(broker->now / BK_SLOT_SECONDS);
    user->looked = user->jumped_at = -INFINITY;
    for (size_t i = 0; i < broker->config.nadmins; i++) {
        if (strcmp(broker->config.admins[i], name) == 0) user->admin = true;
    }
    if (!user->name || drupe_map_put(&broker->users, name, strlen(name), user, NULL) != DRUPE_OK) {
        free(user->name);
        free(user);
        return NULL;
    }
    return user;
}

/* Names by uid are looked up once a minute at most, for a directory service may be slow. */
typedef struct uid_name {
    double until;
    bk_user *user;
} uid_name;

/* The name of the account, or the digits; whether there is an account. */
static bool name_of(uid_t uid, char name[NAME_ROOM])
{
    struct passwd entry, *found = NULL;
    char text[8192];
    if (getpwuid_r(uid, &entry, text, sizeof text, &found) != 0) found = NULL;
    const bool account = found && *entry.pw_name && strlen(entry.pw_name) < NAME_ROOM;
    if (account)
        memcpy(name, entry.pw_name, strlen(entry.pw_name) + 1);
    else
        snprintf(name, NAME_ROOM, "%u", (unsigned)uid);
    return account;
}

/* Whose range of user ids this line is, if it has `uid`: a name or digits. */
static bool range_has(const char *line, uid_t uid, uid_t *owner)
{
    char name[NAME_ROOM], text[8192], *end;
    unsigned long begin, count;
    struct passwd entry, *found = NULL;
    if (sscanf(line, "%255[^:#]:%lu:%lu", name, &begin, &count) != 3) return false;
    if (uid < begin || uid - begin >= count) return false;
    *owner = (uid_t)strtoul(name, &end, 10);
    if (*name && !*end) return true;
    if (getpwnam_r(name, &entry, text, sizeof text, &found) != 0 || !found) return false;
    *owner = entry.pw_uid;
    return true;
}

/* A person may have a range of user ids for containers, and could ask as so many users, each with a quota.
 * They are all that person: NULL where `uid` is in nobody's range. The ranges of root and of other accounts
 * of the system are those of daemons, which run containers of many people. */
static bk_user *user_of_range(bk_broker *broker, uid_t uid)
{
    FILE *file = fopen(broker->subuids, "re");
    char line[512], name[NAME_ROOM];
    uid_t owner = 0;
    bool found = false;
    while (file && !found && fgets(line, sizeof line, file)) found = range_has(line, uid, &owner);
    if (file) fclose(file);
    if (!found || owner < FIRST_PERSON) return NULL;
    (void)name_of(owner, name);
    bk_user *user = bk_user_named(broker, name);
    return user && user->admin ? NULL : user; /* what an administrator contains is no administrator */
}

bk_user *bk_user_of(bk_broker *broker, uid_t uid)
{
    uid_name *known = drupe_map_get(&broker->uids, &uid, sizeof uid);
    if (known && broker->now < known->until) return known->user;
    char name[NAME_ROOM];
    bk_user *user = name_of(uid, name) ? NULL : user_of_range(broker, uid);
    if (!user) user = bk_user_named(broker, name);
    if (!user) return NULL;
    if (!known) {
        known = calloc(1, sizeof *known);
        if (!known) return user;
        if (drupe_map_put(&broker->uids, &uid, sizeof uid, known, NULL) != DRUPE_OK) {
            free(known);
            return user;
        }
    }
    *known = (uid_name){broker->now + LOOK_SECONDS, user};
    return user;
}

/* --- Groups --------------------------------------------------------------------------------------------- */

static uint64_t group_bit(const bk_broker *broker, gid_t gid)
{
    for (size_t i = 0; i < broker->config.ngroups; i++) {
        if (broker->config.groups[i].exists && broker->config.groups[i].gid == gid) return (uint64_t)1 << i;
    }
    return 0;
}

void bk_user_look(bk_broker *broker, bk_user *user)
{
    if (broker->now - user->looked < LOOK_SECONDS) return;
    user->looked = broker->now;
    struct passwd entry, *found = NULL;
    char text[8192];
    if (getpwnam_r(user->name, &entry, text, sizeof text, &found) != 0 || !found) {
        user->groups = 0;
        return;
    }
    struct group group, *primary = NULL;
    char names[8192];
    if (getgrgid_r(entry.pw_gid, &group, names, sizeof names, &primary) == 0 && primary) {
        snprintf(user->group, sizeof user->group, "%s", group.gr_name);
    }
    gid_t gids[GROUPS_OF_USER];
    int count = GROUPS_OF_USER;
    uint64_t groups = 0;
    if (broker->config.ngroups && getgrouplist(user->name, entry.pw_gid, gids, &count) < 0)
        count = GROUPS_OF_USER;
    for (int i = 0; broker->config.ngroups && i < count; i++) groups |= group_bit(broker, gids[i]);
    user->groups = groups;
}

/* --- What they hold, and have used ---------------------------------------------------------------------- */

void bk_user_account(bk_broker *broker, bk_user *user)
{
    int64_t slot = (int64_t)(broker->now / BK_SLOT_SECONDS);
    double from = user->accounted;
    for (int64_t at = user->slot; at <= slot; at++) {
        if (slot - at > BK_SLOTS) at = slot - BK_SLOTS; /* older ones are forgotten anyway */
        unsigned place = (unsigned)(at % BK_SLOTS);
        double begin = (double)at * BK_SLOT_SECONDS, until = fmin(begin + BK_SLOT_SECONDS, broker->now);
        double seconds = fmax(0, until - fmax(from, begin));
        for (unsigned kind = 0; kind < BK_KINDS; kind++) {
            if (at != user->slot) user->history[kind][place] = 0;
            user->history[kind][place] += seconds * (double)user->held[kind] / BK_UNIT;
        }
    }
    for (unsigned kind = 0; kind < BK_KINDS; kind++) {
        user->total[kind] += fmax(0, broker->now - from) * (double)user->held[kind] / BK_UNIT;
    }
    user->slot = slot;
    user->accounted = broker->now;
}

double bk_user_history(bk_broker *broker, bk_user *user, bk_kind kind)
{
    double sum = 0;
    bk_user_account(broker, user);
    for (unsigned i = 0; i < BK_SLOTS; i++) sum += user->history[kind][i];
    return sum;
}

void bk_user_hold(bk_broker *broker, bk_user *user, const bk_holding *holding, uint64_t groups, bool take)
{
    bk_user_account(broker, user);
    for (unsigned kind = 0; kind < BK_KINDS; kind++) {
        if (take)
            user->held[kind] += holding->amount[kind];
        else
            user->held[kind] -= holding->amount[kind];
    }
    for (size_t i = 0; i < broker->config.ngroups; i++) {
        if (!(groups >> i & 1)) continue;
        if (take)
            broker->config.groups[i].held += holding->amount[BK_ANY];
        else
            broker->config.groups[i].held -= holding->amount[BK_ANY];
    }
}

/* --- Quotas --------------------------------------------------------------------------------------------- */

static const bk_quota *quota_of(const bk_broker *broker, const bk_user *user)
{
    for (size_t i = 0; i < broker->config.nusers; i++) {
        if (strcmp(broker->config.users[i].name, user->name) == 0) return &broker->config.users[i];
    }
    return &broker->config.everyone;
}

double bk_user_seconds(bk_broker *broker, bk_user *user)
{
    bk_user_look(broker, user);
    double least = quota_of(broker, user)->seconds;
    for (size_t i = 0; i < broker->config.ngroups; i++) {
        double seconds = broker->config.groups[i].seconds;
        if (user->groups >> i & 1 && seconds > 0 && (least == 0 || seconds < least)) least = seconds;
    }
    return least;
}

/* Amounts are rounded down, three thirds to less than a whole: nothing that fits is refused for that. */
static bool over(uint64_t held, uint64_t amount, uint64_t quota)
{
    return quota != UINT64_MAX && held + amount > quota;
}

const char *bk_user_over(bk_broker *broker, bk_user *user, uint64_t amount, bool groups, bool *ever)
{
    static char sentence[300];
    bk_user_look(broker, user);
    const bk_quota *own = quota_of(broker, user);
    *ever = false;
    if (over(user->held[BK_ANY], amount, own->devices)) {
        *ever = over(0, amount, own->devices);
        snprintf(sentence, sizeof sentence, "Your quota is %.4g devices; you hold %.4g and ask for %.4g%s.",
                 (double)own->devices / BK_UNIT, (double)user->held[BK_ANY] / BK_UNIT,
                 (double)amount / BK_UNIT, *ever ? "" : ": give something back first");
        return sentence;
    }
    const char *found = NULL;
    for (size_t i = 0; i < broker->config.ngroups && !*ever; i++) {
        const bk_quota *group = &broker->config.groups[i];
        if (!(user->groups >> i & 1)) continue;
        bool always = over(0, amount, group->devices);
        if (!always && (!groups || !over(group->held, amount, group->devices))) continue;
        *ever = always;
        snprintf(sentence, sizeof sentence,
                 "The quota of the group %s is %.4g devices; %.4g are held and %.4g asked for.", group->name,
                 (double)group->devices / BK_UNIT, (double)group->held / BK_UNIT, (double)amount / BK_UNIT);
        found = sentence;
    }
    return found;
}

/* --- Forgetting ----------------------------------------------------------------------------------------- */

static bool forgettable(bk_broker *broker, bk_user *user)
{
    return user->nclients == 0 && user->nleases == 0 && user->ntickets == 0 &&
           bk_user_history(broker, user, BK_ANY) == 0;
}

/* Nobody with whom something is: users are named by admins or by the system, so there are few. */
void bk_users_sweep(bk_broker *broker, bool all)
{
    size_t cursor = 0, count = 0;
    uid_name *known;
    bk_user *user, **gone = calloc(broker->users.count + 1, sizeof *gone);
    while ((known = drupe_map_next(&broker->uids, &cursor, NULL, NULL))) free(known);
    drupe_map_clear(&broker->uids);
    if (!gone) return;
    cursor = 0;
    while ((user = drupe_map_next(&broker->users, &cursor, NULL, NULL))) {
        if (all || forgettable(broker, user)) gone[count++] = user;
    }
    for (size_t i = 0; i < count; i++) {
        drupe_map_remove(&broker->users, gone[i]->name, strlen(gone[i]->name));
        free(gone[i]->name);
        free(gone[i]);
    }
    free(gone);
}
