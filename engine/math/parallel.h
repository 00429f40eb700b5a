/* Loops on several processors, which the files of this room know by this name: they are base/parallel.h's. */
#ifndef DRUPE_MATH_PARALLEL_H
#define DRUPE_MATH_PARALLEL_H

#include "base/parallel.h"

#endif
