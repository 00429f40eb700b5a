#include "conformance.h"
const conformance_case cases_memory[] = {{NULL, NULL}};
