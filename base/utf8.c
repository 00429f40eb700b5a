/* UTF-8 that anything may have written. */
#include "base/base.h"

/* The bounds of the second byte rule out overlong forms, surrogates and what lies beyond U+10FFFF. */
int drupe_utf8_next(const char *text, size_t size)
{
    const unsigned char *bytes = (const unsigned char *)text;
    if (size == 0) return 0;
    unsigned char first = bytes[0];
    if (first < 0x80) return 1;

    int length;
    unsigned char low = 0x80, high = 0xbf;
    if (first >= 0xc2 && first <= 0xdf) {
        length = 2;
    } else if (first >= 0xe0 && first <= 0xef) {
        length = 3;
        if (first == 0xe0) low = 0xa0;
        if (first == 0xed) high = 0x9f;
    } else if (first >= 0xf0 && first <= 0xf4) {
        length = 4;
        if (first == 0xf0) low = 0x90;
        if (first == 0xf4) high = 0x8f;
    } else {
        return -1;
    }
    for (int i = 1; i < length; i++) {
        if ((size_t)i == size) return 0;
        if (bytes[i] < low || bytes[i] > high) return -1;
        low = 0x80;
        high = 0xbf;
    }
    return length;
}

bool drupe_utf8_valid(const char *text, size_t size)
{
    for (size_t at = 0; at < size;) {
        int length = drupe_utf8_next(text + at, size - at);
        if (length <= 0) return false;
        at += (size_t)length;
    }
    return true;
}
