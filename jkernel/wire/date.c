/* Dates as headers have them: ISO 8601. */
#include "jkernel/wire/wire.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

void jk_date_format(struct timespec date, char text[JK_DATE_SIZE])
{
    struct tm parts;
    if (!gmtime_r(&date.tv_sec, &parts)) memset(&parts, 0, sizeof parts);
    size_t used = strftime(text, JK_DATE_SIZE, "%Y-%m-%dT%H:%M:%S", &parts);
    snprintf(text + used, JK_DATE_SIZE - used, ".%06ldZ", (long)(date.tv_nsec / 1000));
}

/* What follows a decimal point, in nanoseconds; 0 when there is none. */
static long fraction_parse(const char **at)
{
    long result = 0, unit = 100000000;
    if (**at != '.' && **at != ',') return 0;
    for ((*at)++; isdigit((unsigned char)**at); (*at)++, unit /= 10) result += (**at - '0') * unit;
    return result;
}

/* The offset to UTC in seconds. False: the text has none, or goes on behind it. */
static bool offset_parse(const char *at, long *seconds)
{
    *seconds = 0;
    if (strcmp(at, "Z") == 0) return true;
    unsigned hours, minutes;
    int size = 0;
    char sign;
    if (sscanf(at, "%c%2u:%2u%n", &sign, &hours, &minutes, &size) != 3 &&
        sscanf(at, "%c%2u%2u%n", &sign, &hours, &minutes, &size) != 3)
        return false;
    if ((sign != '+' && sign != '-') || at[size] != '\0' || hours > 23 || minutes > 59) return false;
    *seconds = (long)(hours * 3600 + minutes * 60) * (sign == '-' ? -1 : 1);
    return true;
}

bool jk_date_parse(const char *text, struct timespec *date)
{
    struct tm parts = {0};
    long offset;
    const char *at = strptime(text, "%Y-%m-%dT%H:%M:%S", &parts);
    if (!at) return false;
    long fraction = fraction_parse(&at);
    if (!offset_parse(at, &offset)) return false;
    *date = (struct timespec){.tv_sec = timegm(&parts) - offset, .tv_nsec = fraction};
    return true;
}
