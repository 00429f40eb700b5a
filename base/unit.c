/* Numbers for people: three digits that count. */
#include "base/base.h"
#include <inttypes.h>
#include <stdio.h>

/* Below 9.995 two decimals, below 99.95 one: so that rounding never makes a fourth digit. */
static drupe_unit unit_make(double value, const char *name)
{
    drupe_unit unit;
    int decimals = value < 9.995 ? 2 : value < 99.95 ? 1 : 0;
    snprintf(unit.text, sizeof unit.text, "%.*f %s", decimals, value, name);
    return unit;
}

static drupe_unit unit_whole(uint64_t number, const char *name)
{
    drupe_unit unit;
    snprintf(unit.text, sizeof unit.text, "%" PRIu64 "%s", number, name);
    return unit;
}

/* The first unit in which the value keeps three digits before the point. */
static drupe_unit unit_scale(double value, double step, const char *const *names, size_t count)
{
    size_t i = 0;
    for (; i + 1 < count && value >= (step == 1000.0 ? 999.5 : 1023.5); i++) value /= step;
    return unit_make(value, names[i]);
}

drupe_unit drupe_unit_bytes(uint64_t bytes)
{
    static const char *const names[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
    if (bytes < 1024) return unit_whole(bytes, " B");
    return unit_scale((double)bytes, 1024.0, names, DRUPE_COUNT_OF(names));
}

drupe_unit drupe_unit_time(uint64_t ns)
{
    static const char *const names[] = {"ns", "\u00b5s", "ms", "s"};
    double value = (double)ns;
    if (ns < 1000) return unit_whole(ns, " ns");
    if (value < 600e9) return unit_scale(value, 1000.0, names, DRUPE_COUNT_OF(names));
    return value < 7200e9 ? unit_make(value / 60e9, "min") : unit_make(value / 3600e9, "h");
}

drupe_unit drupe_unit_rate(uint64_t bytes, uint64_t ns)
{
    static const char *const names[] = {"B/s", "kB/s", "MB/s", "GB/s", "TB/s", "PB/s"};
    double rate = ns == 0 ? 0.0 : (double)bytes / (double)ns * 1e9;
    if (rate <= 0.0 || rate >= 999.5e15) return (drupe_unit){"-"};
    return unit_scale(rate, 1000.0, names, DRUPE_COUNT_OF(names));
}

/* Groups of three, as long as that fits in seven columns. */
drupe_unit drupe_unit_count(uint64_t count)
{
    static const char *const names[] = {"", "k", "M", "G", "T", "P", "E"};
    drupe_unit unit;
    if (count >= 1000000) return unit_scale((double)count, 1000.0, names, DRUPE_COUNT_OF(names));
    if (count < 10000) return unit_whole(count, "");
    snprintf(unit.text, sizeof unit.text, "%" PRIu64 " %03" PRIu64, count / 1000, count % 1000);
    return unit;
}

drupe_unit drupe_unit_share(double part, double whole)
{
    drupe_unit unit;
    if (!(whole > 0.0)) return (drupe_unit){"-"};
    double percent = 100.0 * part / whole;
    if (percent > 100.0) percent = 100.0;
    if (percent > 0.0 && percent < 0.1) return (drupe_unit){"<0.1 %"};
    snprintf(unit.text, sizeof unit.text, "%.*f %%", percent > 0.0 && percent < 9.95 ? 1 : 0, percent);
    return unit;
}

uint64_t drupe_unit_round(uint64_t ns)
{
    static const uint64_t tenths[] = {10, 15, 20, 30, 40, 60, 80};
    for (uint64_t step = 1000; step < UINT64_MAX / 1000; step *= 10)
        for (size_t i = 0; i < DRUPE_COUNT_OF(tenths); i++)
            if (step / 10 * tenths[i] >= ns) return step / 10 * tenths[i];
    return ns;
}
